"""An event loop whose clock jumps to the next timer, so that minutes of timeouts pass exactly and at once."""

import asyncio
import functools
import selectors
from collections.abc import Callable, Coroutine
from typing import ParamSpec, TypeVar

from typing_extensions import override

_P = ParamSpec("_P")
_T = TypeVar("_T")


class _Jumping(selectors.DefaultSelector):
    """A selector that advances the clock to the next timer instead of waiting."""

    now = 0.0

    @override
    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise AssertionError("everything waits and no timer is set")
            self.now += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop whose time starts at 0 and advances only while everything waits."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    @override
    def time(self) -> float:
        return self._jumping.now


def run(main: Coroutine[None, None, _T]) -> _T:
    """Return the coroutine's result, on a loop of its own."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


def in_virtual_time(test: Callable[_P, Coroutine[None, None, None]]) -> Callable[_P, None]:
    """Run an asynchronous test to its end on a loop of its own, in virtual time."""

    @functools.wraps(test)
    def runs(*args: _P.args, **kwargs: _P.kwargs) -> None:
        run(test(*args, **kwargs))

    return runs


def named_after(body: Callable[..., object], test: Callable[[], None]) -> Callable[[], None]:
    """Return the test under the name of its body, without the body's parameters, which are no fixtures."""
    functools.update_wrapper(test, body)
    del test.__wrapped__  # type: ignore[attr-defined]  # set by the line before
    return test
