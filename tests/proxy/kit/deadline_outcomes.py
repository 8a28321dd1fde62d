"""Work under a request's deadlines, in virtual time, and the deadline that ends it."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import pytest

from proxy.deadlines import DeadlinePassed, Deadlines, Phase
from tests.proxy.kit.virtual_time import named_after, run

TOTAL = 600.0
AGES = 1e6

Work = Callable[[Deadlines], Awaitable[object]]


async def under(clock: Deadlines, work: Work) -> None:
    """Do the work inside the block."""
    with clock:
        await work(clock)


@contextmanager
def attempt(clock: Deadlines, limit: float | None) -> Iterator[None]:
    """Run the block as an attempt under a request's deadlines."""
    clock.begin_attempt(limit)
    try:
        yield
    except BaseException as error:
        if (ended := clock.end_attempt(error)) is not error and ended is not None:
            raise ended from None
        raise
    else:
        clock.end_attempt(None)


def deadline_of(work: Work) -> tuple[Phase, float, float]:
    """Return the deadline that stopped the work, its limit, and the virtual second in which it did."""

    async def main() -> tuple[Phase, float, float]:
        with pytest.raises(DeadlinePassed) as caught:
            await under(Deadlines(TOTAL), work)
        assert cancelling() == 0
        return caught.value.phase, caught.value.limit, asyncio.get_running_loop().time()

    return run(main())


def passes(*expected: object) -> Callable[[Work], Callable[[], None]]:
    """Return a decorator for a test of work that this phase's deadline stops, with this limit, in this virtual
    second.
    """

    def decorate(work: Work) -> Callable[[], None]:
        def test() -> None:
            assert deadline_of(work) == expected

        return named_after(work, test)

    return decorate


def cancelling() -> int:
    """Return how many cancellations of this task are open."""
    task = asyncio.current_task()
    assert task is not None
    return task.cancelling()
