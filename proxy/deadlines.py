"""The deadlines of one request: a limit for the current phase, which activity renews, and limits that nothing renews.

One alarm (a timer of the event loop) replaces `asyncio.timeout` around every read. The alarm is set again only when it
fires before a deadline. Renewing a limit is one attribute assignment. The standard library's renewal costs about 4 us a
read (measured on CPython 3.11).
"""

import asyncio
from enum import StrEnum
from types import TracebackType
from typing import Self

from proxy.eager_task import EagerTask, running_task
from proxy.timers import Timer, Timers, loop_alarms


class Phase(StrEnum):
    """The deadline that passed, named by the phase of the request or by another reason."""

    TOTAL = "total"
    ATTEMPT = "attempt"
    ANSWER = "answer"
    FIRST_EVENT = "first_event"
    IDLE = "idle"
    PROGRESS = "progress"
    STREAM = "stream"
    CLIENT = "client"
    DRAIN = "drain"
    HEDGE = "hedge"


OF_AN_ATTEMPT = frozenset({Phase.ATTEMPT, Phase.ANSWER, Phase.FIRST_EVENT, Phase.IDLE, Phase.HEDGE})
"""The deadlines of a single attempt. After them another attempt may follow, as long as nothing has been written to the
client."""

CLIENT_STALL = 60.0
"""The most seconds for which a client may leave written data unread."""

FIRST_CHECK = 60.0
"""Seconds until the first check of a request. Most requests soon enter phases with longer limits, so one alarm is
enough."""


_MESSAGES = {
    Phase.TOTAL: "No response within the request's deadline of {limit:g} s.",
    Phase.ATTEMPT: "The deployment did not respond within its share of the request's deadline, {limit:g} s.",
    Phase.ANSWER: "The upstream did not begin to respond within {limit:g} s.",
    Phase.FIRST_EVENT: "The upstream sent no content within {limit:g} s.",
    Phase.IDLE: "The upstream sent nothing for {limit:g} s.",
    Phase.PROGRESS: "The upstream sent no content for {limit:g} s.",
    Phase.STREAM: "The stream did not end within {limit:g} s.",
    Phase.CLIENT: "The client read nothing for {limit:g} s.",
    Phase.DRAIN: "The gateway is shutting down.",
    Phase.HEDGE: "Another attempt answered first.",
}


class DeadlinePassed(Exception):
    """Raised when a deadline passes: `phase` names the deadline, `limit` is its length in seconds."""

    def __init__(self, phase: Phase, limit: float) -> None:
        super().__init__(phase.value, limit)
        self.phase = phase
        self.limit = limit

    @property
    def message(self) -> str:
        """The text for the client."""
        return _MESSAGES[self.phase].format(limit=self.limit)


class Deadlines:
    """Context manager around one request. It raises DeadlinePassed if a deadline passes inside the block. An instance
    is used once.

    It is built on task cancellation, as `asyncio.timeout` is: a cancellation from elsewhere passes through. While the
    task unwinds after a deadline, `passed` is the deadline that has passed. The object is in the set `among` while the
    request runs. `content_at` is the time of the last content; code that waits for more content may set it instead of
    calling `advance`.
    """

    __slots__ = (
        *("_alarm", "_alarms", "_among", "_attempt", "_attempt_at", "_begin", "_begin_at", "_begin_phase"),
        *("_cancelling", "_last", "_limit", "_now", "_phase", "_progress", "_task", "_total"),
        *("_total_at", "_total_phase", "_waiting", "content_at", "passed"),
    )

    def __init__(self, total: float, rung_by: Timers | None = None, among: "set[Deadlines] | None" = None) -> None:
        self.passed: DeadlinePassed | None = None
        self._among = among
        self._alarms = loop_alarms() if rung_by is None else rung_by
        self._alarm: Timer | None = None
        self._now = self._alarms.now
        self._task: EagerTask | asyncio.Task[object] | None = None
        self._cancelling = 0
        self._total, self._total_phase = total, Phase.TOTAL
        self._phase = Phase.TOTAL
        self._begin_phase = Phase.ANSWER
        self._limit: float | None = None
        self._attempt: float | None = None
        self._begin: float | None = None
        self._progress: float | None = None
        self._attempt_at = self._begin_at = 0.0
        self._waiting = True
        self._last = self.content_at = self._now()
        self._total_at = self._last + total

    def __enter__(self) -> Self:
        self._task = running_task()
        if self._task is None:
            raise RuntimeError("Deadlines needs a running task")
        self._cancelling = self._task.cancelling()
        # At this point the total duration is the only limit.
        self._alarm = self._alarms.set(min(self._total_at, self._last + FIRST_CHECK), self._check)
        if self._among is not None:
            self._among.add(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._among is not None:
            self._among.discard(self)
        alarm, self._alarm = self._alarm, None
        if alarm is not None:
            self._alarms.drop(alarm)
        task, self._task = self._task, None
        if self.passed is None or task is None:
            return
        if task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise self.passed from None

    def enter(self, phase: Phase, limit: float) -> None:
        """Begin a phase that may last `limit` seconds without activity."""
        self._phase = phase
        self._limit = limit
        now = self._last = self._now()
        # The alarm already fires in time for all other limits.
        if self._alarm is None or not self._waiting or now + limit < self._alarm.at:
            self._arm()

    def expect(self, phase: Phase, limit: float | None) -> None:
        """Limit the time until the response begins to `limit` seconds (`None`: no limit). Activity does not renew this
        limit; the limits of phases may begin and be renewed meanwhile."""
        self._limit, self._begin, self._begin_phase = None, limit, phase
        if limit is not None:
            self._begin_at = self._now() + limit
            self._arm_by(self._begin_at)

    def begun(self) -> None:
        """End the limit that `expect` set, because the response has begun."""
        self._begin = None

    @property
    def remaining(self) -> float:
        """Seconds left until the deadline of the whole request."""
        return self._total_at - self._now()

    def begin_attempt(self, limit: float | None) -> None:
        """Begin an attempt, which may take `limit` seconds (`None`: the time that is left). A limit of the attempt or
        of one of its phases ends only the attempt, and `end_attempt` returns it; any other limit ends the request."""
        self._attempt = limit
        if limit is not None:
            self._attempt_at = self._now() + limit
            self._arm_by(self._attempt_at)

    def end_attempt(self, error: BaseException | None) -> BaseException | None:
        """End the attempt. `error` is the exception that ended it, or `None`. If a limit of the attempt passed, `error`
        is the CancelledError that the limit caused; then return the DeadlinePassed. Otherwise return `error`."""
        self._attempt = self._limit = self._begin = None
        passed, task = self.passed, self._task
        if passed is None or task is None or not isinstance(error, asyncio.CancelledError):
            return error
        if passed.phase not in OF_AN_ATTEMPT:
            return error
        self.passed = None
        self._arm()
        return passed if task.uncancel() <= self._cancelling else error

    def commit(self, idle: float, progress: float, longest: float) -> None:
        """Switch to the limits of a stream: `idle` seconds without data, `progress` seconds without content, `longest`
        seconds in all."""
        now = self._last = self.content_at = self._now()
        self._phase, self._limit, self._progress = Phase.IDLE, idle, progress
        self._total, self._total_at, self._total_phase = longest, now + longest, Phase.STREAM
        self._arm()

    def advance(self) -> float:
        """Renew the limits after content from the upstream, and wait for the upstream again. Return the time."""
        now = self.content_at = self._now()
        self._waiting = True
        return now

    def touch(self) -> float:
        """Renew the idle limit after data from the upstream, and wait for the upstream again. Return the time. A
        preceding pause does not count as time without content."""
        now = self._now()
        if not self._waiting:
            self.content_at += now - self._last
            self._waiting = True
        self._last = now
        return now

    def pause(self) -> None:
        """Wait for the client until the next `touch` or `advance`; the upstream's silence does not count meanwhile.

        A stalled client is noticed when the alarm next fires. This is late by at most the length of the phase's limit.
        """
        now = self._now()
        if not self._waiting:
            self.content_at += now - self._last
        self._last = now
        self._waiting = False

    def stop(self) -> None:
        """Disable all deadlines, because the response is written and the remaining work has its own limits."""
        self._drop_alarm()
        self._task = None

    def expire(self, phase: Phase) -> None:
        """Let a deadline pass now, for a reason outside the request. Outside the block this has no effect."""
        self._fire(DeadlinePassed(phase, 0.0))

    def _arm_by(self, at: float) -> None:
        """Set the alarm for a new limit that passes at the time `at`, unless the alarm already fires before that
        time."""
        if self._alarm is None or at < self._alarm.at:
            self._arm()

    def _arm(self) -> None:
        """Set the alarm for the earliest limit, unless it already fires before that limit; `_check` then sets the next
        alarm."""
        due = self._due()
        if self._alarm is not None and self._alarm.at <= due:
            return
        self._drop_alarm()
        if self._task is not None:
            self._alarm = self._alarms.set(due, self._check)

    def _drop_alarm(self) -> None:
        if self._alarm is not None:
            self._alarms.drop(self._alarm)
            self._alarm = None

    def _due(self) -> float:
        limit = self._limit if self._waiting else CLIENT_STALL
        due = self._total_at if limit is None else min(self._total_at, self._active_at() + limit)
        if self._attempt is not None:
            due = min(due, self._attempt_at)
        if self._begin is not None:
            due = min(due, self._begin_at)
        # While the client reads slowly, missing content is not the upstream's fault.
        return min(due, self.content_at + self._progress) if self._waiting and self._progress is not None else due

    def _active_at(self) -> float:
        """Return the time of the last activity."""
        return max(self._last, self.content_at)

    def _check(self) -> None:
        self._alarm = None
        now, active_at = self._now(), self._active_at()
        if now >= self._total_at:
            self._fire(DeadlinePassed(self._total_phase, self._total))
        elif not self._waiting and now >= active_at + CLIENT_STALL:
            self._fire(DeadlinePassed(Phase.CLIENT, CLIENT_STALL))
        elif self._waiting and self._limit is not None and now >= active_at + self._limit:
            self._fire(DeadlinePassed(self._phase, self._limit))
        elif self._begin is not None and now >= self._begin_at:
            self._fire(DeadlinePassed(self._begin_phase, self._begin))
        elif self._attempt is not None and now >= self._attempt_at:
            self._fire(DeadlinePassed(Phase.ATTEMPT, self._attempt))
        elif self._waiting and self._progress is not None and now >= self.content_at + self._progress:
            self._fire(DeadlinePassed(Phase.PROGRESS, self._progress))
        else:
            self._arm()

    def _fire(self, expired: DeadlinePassed) -> None:
        # The task is cancelled only once. A second cancellation could not be undone, and the error of the first one
        # would be lost.
        if self._task is not None and self.passed is None:
            self.passed = expired
            self._task.cancel()
