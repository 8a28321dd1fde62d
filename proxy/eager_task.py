"""A coroutine that runs inside the callbacks that bring what it waits for: a request that waits for nothing but its
vendor needs no task of asyncio's, and no turn of the event loop between the vendor's bytes and the client's.

An `EagerTask` begins at once, as asyncio's eager tasks do (Python 3.12). Unlike those it also goes on at once: where
its coroutine waits for a `Signal`, setting the signal runs the coroutine within the call. Measured on CPython 3.11, a
task's wake-up by a future, through the loop, is 4 to 8 us of a streamed chunk's cost.

Coroutines do not see the difference. `asyncio.current_task()` returns the EagerTask, which offers what asyncio's own
`timeout` and `TaskGroup` ask of a task; a future that is awaited wakes it through the loop as ever.
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
"""How any class of task tells asyncio that it is running (documented in CPython's `asyncio/tasks.py` as `_enter_task`
and `_leave_task`, "register/unregister a running task", for third-party tasks; 3.7 to 3.14)."""


_running: Final[dict[int, "EagerTask"]] = {}
"""The EagerTask that runs in a thread, by the thread's id: a look into this takes a third of `asyncio.current_task`."""


def running_task() -> "EagerTask | asyncio.Task[Any] | None":
    """Return the task that runs, as `asyncio.current_task` does."""
    return _running.get(get_ident()) or asyncio.current_task()


class Signal:
    """Wakes the one coroutine that waits for it. What has come is the owner's to keep: a signal that is set while
    nobody waits is forgotten, so look before waiting."""

    __slots__ = ("_refused", "_waiter", "take")

    def __init__(self) -> None:
        self._waiter: EagerTask | asyncio.Future[None] | None = None
        self._refused = False
        self.take: Callable[[bytes], bool] | None = None

    def set(self) -> None:
        """Wake the waiter: an EagerTask goes on before this returns, unless another task is running."""
        waiter, self._waiter, self.take = self._waiter, None, None
        if waiter is None:
            return
        if isinstance(waiter, EagerTask):
            waiter.wake()
        elif not waiter.done():
            waiter.set_result(None)

    def refuse(self, error: BaseException | None) -> None:
        """Wake the waiter because its `take` wants no more, or raise there what `take` has raised."""
        waiter, self._waiter, self.take = self._waiter, None, None
        self._refused = True
        if isinstance(waiter, EagerTask):
            waiter.wake(error)

    def leave(self) -> None:
        """Forget the waiter, which has been cancelled, and its `take`."""
        self._waiter = self.take = None

    @coroutine
    def taking(self, take: Callable[[bytes], bool]) -> Generator[object, None, bool]:
        """Wait for the signal, or until `refuse` is called. Returns whether it was the signal.

        Meanwhile `take` may be given what comes, within the callback that brings it: what a piece of a stream costs is
        then a call, and not the resumption of every coroutine from the request's handler on. It calls nothing that
        needs a running task. Tasks of asyncio's wait for the signal alone.
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
    """See the module. `ended` is called once, with the exception that ended the coroutine or None.

    `begin` and `Signal.set` run the coroutine; both belong in callbacks of the event loop.
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
        """Run the coroutine up to its first wait. To be called once, while no task is running."""
        self._context.run(self._step, None)

    def wake(self, error: BaseException | None = None) -> None:
        """Go on after a Signal, with this error if there is one."""
        self._waits_for = None
        if asyncio.current_task(self._loop) is None:
            self._context.run(self._step, error)
        else:
            self._loop.call_soon(self._step, error, context=self._context)

    def done(self) -> bool:
        """Whether the coroutine has ended."""
        return self._ended is None

    def cancel(self, msg: object = None) -> bool:
        """Raise CancelledError in the coroutine where it waits, in the loop's next turn. Returns whether it has not
        ended. As with asyncio's tasks, the coroutine may go on after that."""
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
        """See asyncio.Task.uncancel. As there from Python 3.13 on, the last one takes back a cancellation that has not
        been raised."""
        if self._cancels > 0:
            self._cancels -= 1
            self._cancelled = self._cancelled and self._cancels > 0
        return self._cancels

    def cancelling(self) -> int:
        """See asyncio.Task.cancelling."""
        return self._cancels

    def _step(self, error: BaseException | None) -> None:
        """Run the coroutine up to its next wait. The exceptions that end a process leave it, all others go to
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
                self._waits_for = waits_for  # as nearly always; see `_wait_for`
            else:
                self._wait_for(waits_for)
        finally:
            error = None  # its traceback holds this frame, which would hold it

    def _leave(self, thread: int) -> None:
        del _running[thread]
        _leave_task(self._loop, self)

    def _wait_for(self, waits_for: object) -> None:
        if isinstance(waits_for, Signal):
            self._waits_for = waits_for
            if self._cancelled:  # cancelled by itself while it ran
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
        """Raise CancelledError where the coroutine waits for a signal, in the loop's next turn."""
        signal.leave()
        self._waits_for = None
        self._loop.call_soon(self._step, asyncio.CancelledError(), context=self._context)

    def _future_done(self, future: "asyncio.Future[Any]") -> None:
        # The coroutine asks the future for its result, or its exception, when it goes on.
        self._waits_for = None
        self._step(None)

    def _end(self, error: BaseException | None) -> None:
        ended, self._ended = self._ended, None
        if ended is not None:
            ended(error)
