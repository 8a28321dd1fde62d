"""The ordinary implementations that replace the fast paths: from asyncio, from aiohttp, or the gateway's own general
code."""

import asyncio
import gc
from collections.abc import Callable
from functools import partial

from aiohttp import web

from providers.dialect import UpstreamRequest
from proxy.http_client.http_response import HttpResponse
from proxy.http_client.request_bytes import CallHead, CallHeads
from proxy.http_client.request_bytes import _make_head as made_head
from proxy.listener.buffered_response import BASE_HEADERS, JSON
from proxy.timers import Slot, Timer, Timers, TimerWheel, Watcher
from proxy.upstream.transport import Take

# Functions with any arguments, whose result means that the fast path does not apply.


def nothing(*arguments: object, **named: object) -> None:
    """Return `None`: a fast path does not apply."""


def never(*arguments: object, **named: object) -> bool:
    """Return false."""
    return False


def loop_time() -> Callable[[], float]:
    """Return the running loop's own clock."""
    return asyncio.get_running_loop().time


async def each_read(self: HttpResponse, take: Take) -> None:
    """Read each chunk in the coroutine that needs it."""
    while take(await self.read()):
        pass


def new_head(self: CallHeads, request: UpstreamRequest) -> CallHead:
    """Make the head of a call to a vendor."""
    return made_head(request)


class WholeResponse(web.Response):
    """A JSON response from aiohttp."""

    def __init__(self, status: int, body: bytes, headers: str) -> None:
        pairs = [line.partition(": ")[::2] for line in headers.split("\r\n") if line]
        super().__init__(status=status, body=body, headers=[*BASE_HEADERS.items(), ("Content-Type", JSON), *pairs])


class TimerAlarm(Timer):
    """An alarm with an asyncio timer of its own."""

    __slots__ = ("timer",)
    timer: asyncio.TimerHandle


def set_timer(self: Timers, at: float, ring: Callable[[], None]) -> Timer:
    """Call `ring` at a time, by a timer of its own."""
    alarm = TimerAlarm(at, ring)

    def due() -> None:
        alarm.ring = None
        ring()

    alarm.timer = asyncio.get_running_loop().call_at(at, due)
    return alarm


def drop_timer(self: Timers, alarm: Timer) -> None:
    """Cancel an alarm's timer."""
    if alarm.ring is not None and isinstance(alarm, TimerAlarm):
        alarm.ring = None
        alarm.timer.cancel()


def set_alone(self: TimerWheel, at: float, wait: float, watcher: Watcher) -> Slot:
    """Call `watcher` at a time, by an alarm of its own."""
    slot: Slot = {watcher: None}
    self._alarms.set(at, partial(self._ring, at, slot))
    return slot


PYTHONS_THRESHOLDS = (700, 10, 10)
"""CPython's own thresholds (3.11)."""


async def collect_as_python(held: Callable[[], int]) -> None:
    """Configure the garbage collector as Python does."""
    gc.set_threshold(*PYTHONS_THRESHOLDS)
    await asyncio.Event().wait()
