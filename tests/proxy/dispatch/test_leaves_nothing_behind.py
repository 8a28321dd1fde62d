"""The objects that a completed request leaves behind: no reference cycles, since the garbage collector runs seldom and
late.

A body of 24 MiB once stayed in memory for minutes: errors had tracebacks whose frames referred to the same errors.
"""

import gc
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress

import pytest

from providers.failure import FailureKind, UpstreamError
from providers.unified_request import UnifiedRequest
from tests.proxy.kit.dispatch_rig import OK, Behaviour, Rig, fails, hangs, refuses
from tests.proxy.kit.hedge_rig import HedgeRig, says_after
from tests.proxy.kit.virtual_time import run
from tests.support.collection import keep_for_good
from tests.support.looped import looped


@pytest.fixture(scope="module", autouse=True)
def frozen_objects() -> None:
    """Freeze the existing objects: the collector would take longer to scan them for each row than all rows take."""
    keep_for_good()


@contextmanager
def cycles() -> Iterator[list[object]]:
    """Collect the objects made in the block that only the garbage collector frees."""
    gc.collect()
    gc.disable()
    found: list[object] = []
    try:
        yield found
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        found.extend(gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


ENDS: dict[str, dict[str, list[Behaviour]]] = {
    "answered": {"a": [OK]},
    "answered elsewhere": {"a": [fails(FailureKind.SERVER)], "b": [OK]},
    "refused": {"a": [refuses("invalid_request", 400)]},
    "failed everywhere": {"a": [refuses("server")], "b": [refuses("overloaded", 529)]},
    "failed after a wait": {"a": [refuses("rate_limited 2", 429)]},
}


async def whole(rig: Rig) -> None:
    with suppress(UpstreamError):
        await rig.dispatcher().whole(rig.job())


async def streamed(rig: Rig) -> None:
    with suppress(UpstreamError):
        async with await rig.dispatcher().streamed(rig.job()):
            pass


@looped("ask", [whole, streamed])
@looped("behaviours", ENDS.values(), ids=ENDS)
def test_no_request_is_left_to_the_collector_however_it_ends(
    ask: Callable[[Rig], Coroutine[None, None, None]], behaviours: dict[str, list[Behaviour]]
) -> None:
    with cycles() as found:
        run(ask(Rig({name: list(each) for name, each in behaviours.items()})))
    assert [each for each in found if isinstance(each, UnifiedRequest)] == []


LATE: dict[str, dict[str, list[Behaviour]]] = {
    "the second won": {"a": [hangs()], "b": [OK]},
    "the first won": {"a": [says_after(2.0, "a")], "b": [hangs()]},
    "both failed": {"a": [refuses("server", 500, 2.0)], "b": [refuses("overloaded", 529, 2.0)]},
    "the second had no slot": {"a": [says_after(2.0, "a")], "picky": [OK]},
}


async def within_deadlines(rig: HedgeRig) -> None:
    job = rig.job()
    with suppress(UpstreamError), job.deadlines:
        if rig.stream:
            async with await rig.dispatcher().streamed(job):
                pass
        else:
            await rig.dispatcher().whole(job)


@looped("stream", [False, True])
@looped("behaviours", LATE.values(), ids=LATE)
def test_nor_is_one_with_a_second_attempt(behaviours: dict[str, list[Behaviour]], stream: bool) -> None:
    with cycles() as found:
        run(within_deadlines(HedgeRig({name: list(each) for name, each in behaviours.items()}, stream=stream)))
    assert [each for each in found if isinstance(each, UnifiedRequest)] == []
