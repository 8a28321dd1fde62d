"""A coroutine that runs inside the callbacks for which it waits. A request that waits only for its vendor needs no
asyncio task, and no event loop iteration between the vendor's bytes and the client's.

An `EagerTask` begins at once, as asyncio's eager tasks do (Python 3.12). In addition, it continues at once: when its
coroutine waits for a `Signal`, setting the signal runs the coroutine within the call. Measured on CPython 3.11, waking
a task by a future, through the loop, is 4 to 8 us of the cost of a streamed chunk.

The code of a coroutine needs no change. `asyncio.current_task()` returns the EagerTask, which has the methods that
asyncio's own `timeout` and `TaskGroup` call on a task. An awaited future wakes the EagerTask through the loop, as it
wakes any task.
"""

import asyncio
import asyncio.tasks
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context, copy_context
from threading import get_ident
from types import coroutine
from typing import Any, Final, cast

_enter_task: Final = cast("Callable[[asyncio.AbstractEventLoop, object], None]", asyncio.tasks._enter_task)
_leave_task: Final = cast("Callable[[asyncio.AbstractEventLoop, object], None]", asyncio.tasks._leave_task)
"""The functions by which a task of any class registers with asyncio as running (documented in CPython's
`asyncio/tasks.py` as `_enter_task` and `_leave_task`, "register/unregister a running task", for third-party tasks; 3.7
to 3.14)."""


_running: Final[dict[int, "EagerTask"]] = {}
"""The running EagerTask of each thread, by the thread's id. A lookup in this dict takes a third of the time of
`asyncio.current_task`."""


def running_task() -> "EagerTask | asyncio.Task[Any] | None":
    """Return the task that is running, as `asyncio.current_task` does."""
    return _running.get(get_ident()) or asyncio.current_task()


class Signal:
    """An object that wakes the one coroutine that waits for it. The signal carries no data and is not remembered: if it
    is set while no coroutine waits, it is lost. So the owner stores the data, and a reader checks for it before it
    waits."""

    __slots__ = ("_refused", "_waiter", "take")

    def __init__(self) -> None:
        self._waiter: EagerTask | asyncio.Future[None] | None = None
        self._refused = False
        self.take: Callable[[bytes], bool] | None = None

    def set(self) -> None:
        """Wake the waiter. An EagerTask continues before this returns, unless another task is running."""
        waiter, self._waiter, self.take = self._waiter, None, None
        if waiter is None:
            return
        if isinstance(waiter, EagerTask):
            waiter.wake()
        elif not waiter.done():
            waiter.set_result(None)

    def refuse(self, error: BaseException | None) -> None:
        """Wake the waiter because its `take` refuses further data. If `take` raised an exception, `error` is that
        exception and is raised in the waiter; otherwise `error` is `None`."""
        waiter, self._waiter, self.take = self._waiter, None, None
        self._refused = True
        if isinstance(waiter, EagerTask):
            waiter.wake(error)

    def leave(self) -> None:
        """Remove the waiter, which has been cancelled, and its `take`."""
        self._waiter = self.take = None

    @coroutine
    def taking(self, take: Callable[[bytes], bool]) -> Generator[object, None, bool]:
        """Wait for the signal, or until `refuse` is called. Return whether the signal ended the wait.

        Meanwhile `take` may be called with the data that arrives, within the callback that delivers the data. A chunk
        of a stream then costs one call, instead of resuming the whole chain of coroutines below the request's handler.
        `take` must not need a running task. In an asyncio task, `take` is not called, and the task waits for the signal
        alone.
        """
        task = _running.get(get_ident())
        if task is None:
            yield from self.__await__()
            return True
        self._waiter, self.take, self._refused = task, take, False
        try:
            yield self
            return not self._refused
        finally:
            self.take = None

    def __await__(self) -> Generator[object, None, None]:
        task = _running.get(get_ident())
        if task is not None:
            self._waiter = task
            yield self
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiter = future
        try:
            yield from future
        finally:
            self._waiter = None


class EagerTask:
    """A task that runs its coroutine inside callbacks of the event loop, as the module describes. `ended` is called
    once, with the exception that ended the coroutine or `None`.

    `begin` and `Signal.set` run the coroutine; call both only from callbacks of the event loop.
    """

    __slots__ = ("__weakref__", "_cancelled", "_cancels", "_context", "_coroutine", "_ended", "_loop", "_waits_for")

    def __init__(
        self,
        coroutine: Coroutine[object, None, object],
        loop: asyncio.AbstractEventLoop,
        ended: Callable[[BaseException | None], None],
    ) -> None:
        self._coroutine = coroutine
        self._loop = loop
        self._ended: Callable[[BaseException | None], None] | None = ended
        self._context: Context = copy_context()
        self._waits_for: Signal | asyncio.Future[Any] | None = None
        self._cancelled = False
        self._cancels = 0

    def begin(self) -> None:
        """Run the coroutine up to its first wait. Call this once, while no task is running."""
        self._context.run(self._step, None)

    def wake(self, error: BaseException | None = None) -> None:
        """Continue after a Signal; raise `error` in the coroutine if it is not `None`."""
        self._waits_for = None
        if asyncio.current_task(self._loop) is None:
            self._context.run(self._step, error)
        else:
            self._loop.call_soon(self._step, error, context=self._context)

    def done(self) -> bool:
        """Return whether the coroutine has ended."""
        return self._ended is None

    def cancel(self, msg: object = None) -> bool:
        """Raise CancelledError in the coroutine at its wait, in the next event loop iteration. Return whether the
        coroutine was still running. As with asyncio's tasks, the coroutine may continue after the error."""
        if self._ended is None:
            return False
        self._cancels += 1
        waits_for = self._waits_for
        if isinstance(waits_for, Signal):
            self._stop_waiting(waits_for)
        elif waits_for is None or not waits_for.cancel(msg):
            self._cancelled = True
        return True

    def uncancel(self) -> int:
        """Undo one `cancel`, as `asyncio.Task.uncancel` does, and return the number of cancellations that are left. As
        in asyncio from Python 3.13 on, undoing the last cancellation also removes a CancelledError that has not been
        raised yet."""
        if self._cancels > 0:
            self._cancels -= 1
            self._cancelled = self._cancelled and self._cancels > 0
        return self._cancels

    def cancelling(self) -> int:
        """Return how many calls of `cancel` have not been undone."""
        return self._cancels

    def _step(self, error: BaseException | None) -> None:
        """Run the coroutine up to its next wait. Exceptions that end the process are raised; all others go to
        `ended`."""
        if self._cancelled:
            self._cancelled = False
            error = asyncio.CancelledError()
        loop = self._loop
        _enter_task(loop, self)
        thread = get_ident()
        _running[thread] = self
        try:
            waits_for = self._coroutine.send(None) if error is None else self._coroutine.throw(error)
        except StopIteration:
            del _running[thread]  # as `_leave`
            _leave_task(loop, self)
            self._end(asyncio.CancelledError() if self._cancelled else None)
        except (KeyboardInterrupt, SystemExit) as ending:
            self._leave(thread)
            self._end(ending)
            raise
        except BaseException as failure:
            self._leave(thread)
            self._end(failure)
        else:
            del _running[thread]  # as `_leave`, without its call
            _leave_task(loop, self)
            if isinstance(waits_for, Signal) and not self._cancelled:
                self._waits_for = waits_for  # the common case, without the call of `_wait_for`
            else:
                self._wait_for(waits_for)
        finally:
            error = None  # this breaks the reference cycle of the error, its traceback and this frame

    def _leave(self, thread: int) -> None:
        del _running[thread]
        _leave_task(self._loop, self)

    def _wait_for(self, waits_for: object) -> None:
        if isinstance(waits_for, Signal):
            self._waits_for = waits_for
            if self._cancelled:  # the coroutine cancelled its own task while it ran
                self._cancelled = False
                self._stop_waiting(waits_for)
        elif waits_for is None:  # asyncio.sleep(0)
            self._loop.call_soon(self._step, None, context=self._context)
        else:
            future = cast("asyncio.Future[Any]", waits_for)
            future._asyncio_future_blocking = False
            self._waits_for = future
            future.add_done_callback(self._future_done, context=self._context)
            if self._cancelled and future.cancel():
                self._cancelled = False

    def _stop_waiting(self, signal: Signal) -> None:
        """In the next event loop iteration, raise CancelledError at the point at which the coroutine waits for a
        signal."""
        signal.leave()
        self._waits_for = None
        self._loop.call_soon(self._step, asyncio.CancelledError(), context=self._context)

    def _future_done(self, future: "asyncio.Future[Any]") -> None:
        # The coroutine reads the future's result, or its exception, when it continues.
        self._waits_for = None
        self._step(None)

    def _end(self, error: BaseException | None) -> None:
        ended, self._ended = self._ended, None
        if ended is not None:
            ended(error)
