"""Many alarms on one timer of the event loop.

A request sets an alarm or two for its deadlines, and almost always ends before they fire. One asyncio timer for each
alarm would cost about 3 us (measured on CPython 3.11: an object with its context, a heap that compares in Python, and
the removal of cancelled timers). An entry in a heap of tuples costs 0.5 us.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import count
from math import ceil
from typing import Protocol
from weakref import WeakKeyDictionary

from proxy.loop_clock import loop_clock

PRUNED_FROM = 256
"""The number of dropped alarms that may always stay in the heap. Above this number, the heap is pruned when dropped
alarms are half of its entries."""


@dataclass(slots=True, eq=False)
class Timer:
    """An alarm: its time, and its callback `ring`, which is `None` once the alarm has fired or has been dropped."""

    at: float
    ring: Callable[[], None] | None


class Timers:
    """The alarms of the running event loop. Times are the loop's, in seconds; `now` returns the current time."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.now = loop_clock()
        self._heap: list[tuple[float, int, Timer]] = []
        self._order = count()
        # The time is stored here because uvloop's handle does not return it once it has passed.
        self._timer: tuple[float, asyncio.TimerHandle] | None = None
        self._dropped = 0

    def set(self, at: float, ring: Callable[[], None]) -> Timer:
        """Call `ring` at the time `at` or soon after, never before."""
        alarm = Timer(at, ring)
        heappush(self._heap, (at, next(self._order), alarm))
        if self._timer is None or self._timer[0] > at:
            self._arm(at)
        return alarm

    def drop(self, alarm: Timer) -> None:
        """Drop an alarm, so that it does not fire. This has no effect on an alarm that has fired."""
        if alarm.ring is None:
            return
        alarm.ring = None
        self._dropped += 1
        if self._dropped == len(self._heap):
            self._heap.clear()
            self._dropped = 0
        elif self._dropped > PRUNED_FROM and 2 * self._dropped > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[2].ring is not None]
            heapify(self._heap)
            self._dropped = 0

    def __len__(self) -> int:
        return len(self._heap)

    def _arm(self, at: float) -> None:
        """Set the event loop's timer to an earlier time."""
        if self._timer is not None:
            self._timer[1].cancel()
        self._timer = at, self._loop.call_at(at, self._ring)

    def _ring(self) -> None:
        """Fire the alarms that are due. Each of them may set others."""
        timer, self._timer = self._timer, None
        now = self.now() if timer is None else max(self.now(), timer[0])
        try:
            while self._heap and self._heap[0][0] <= now:
                _, _, alarm = heappop(self._heap)
                ring, alarm.ring = alarm.ring, None
                if ring is None:
                    self._dropped -= 1
                else:
                    ring()
        finally:
            while self._heap and self._heap[0][2].ring is None:
                heappop(self._heap)
                self._dropped -= 1
            if self._heap:
                self._arm(self._heap[0][0])


class Watcher(Protocol):
    """An object that a timer wheel calls."""

    def ring(self, now: float) -> None:
        """Do the work that is due. The watcher may be set again."""


Slot = dict[Watcher, None]
"""The watchers that one alarm calls."""


class TimerWheel:
    """Coarse alarms for many watchers with the same wait. The watchers of one step share an alarm, so that a watcher
    with a wait of 20 s costs less than 0.1 us a second. One alarm for each watcher would wake the event loop more
    often. A slot keeps its alarm when all of its watchers have been removed, for later watchers of its step."""

    STEPS = 32
    """The number of steps in one wait. A watcher may be called one step late."""

    def __init__(self, rung_by: Timers) -> None:
        self._alarms = rung_by
        self._slots: dict[float, Slot] = {}

    def set(self, at: float, wait: float, watcher: Watcher) -> Slot:
        """Call a watcher at the time `at`, or up to one step of `wait` later. Return the watcher's slot."""
        step = wait / self.STEPS
        at = ceil(at / step) * step
        slot = self._slots.get(at)
        if slot is None:
            slot = self._slots[at] = {}
            self._alarms.set(at, partial(self._ring, at, slot))
        slot[watcher] = None
        return slot

    def drop(self, slot: Slot, watcher: Watcher) -> None:
        """Remove a watcher."""
        slot.pop(watcher, None)

    def __len__(self) -> int:
        return sum(map(len, self._slots.values()))

    def _ring(self, at: float, slot: Slot) -> None:
        if self._slots.get(at) is slot:
            del self._slots[at]
        now = max(self._alarms.now(), at)
        try:
            while slot:
                slot.popitem()[0].ring(now)
        finally:
            if slot:  # a watcher has raised, so a new alarm calls the others
                self._alarms.set(at, partial(self._ring, at, slot))


_of_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, Timers] = WeakKeyDictionary()


def loop_alarms() -> Timers:
    """Return the alarms of the running loop."""
    loop = asyncio.get_running_loop()
    found = _of_loops.get(loop)
    if found is None:
        found = _of_loops[loop] = Timers(loop)
    return found
