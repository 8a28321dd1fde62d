"""Leases between the workers of one gateway and their supervisor, which counts for all of them where there is no Redis.

Both ends are of one version, and a worker is as trusted as its supervisor.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import orjson

from proxy.limits.lease_counter import LeaseCounter
from proxy.shared_state.lease import LeaseGrant, LeaseRequest, RateRequest, SlotsRequest, SpendingRequest
from proxy.shared_state.running_timeout import reply_within

LIMIT: Final = 0.2
"""Seconds for an exchange: a supervisor that collects metrics or loads a table is busy for a while."""

NAME: Final = "leases"
ENDED: Final = "ended"
"""The names of the frames: leases, and a worker that has ended, for those who count in Redis."""

_KINDS: Final = {"r": RateRequest, "c": SlotsRequest, "s": SpendingRequest}


class SupervisorLeases:
    """A worker's end. `send` sends a body to the supervisor; `answered` takes the bodies that come from there."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._waiting: dict[int, asyncio.Future[list[LeaseGrant]]] = {}
        self._last = 0

    async def exchange(self, asks: Sequence[LeaseRequest]) -> Sequence[LeaseGrant | None]:
        """See LeaseSource."""
        self._last = number = self._last + 1
        answer: asyncio.Future[list[LeaseGrant]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        self._send(orjson.dumps([number, [_written(ask) for ask in asks]]))
        try:
            return await reply_within(LIMIT, answer)
        except TimeoutError:
            raise ConnectionError("no answer from the supervisor in time") from None
        finally:
            del self._waiting[number]

    def answered(self, body: bytes) -> None:
        """Take an answer; one that comes too late is dropped."""
        number, grants = orjson.loads(body)
        answer = self._waiting.get(number)
        if answer is not None and not answer.done():
            answer.set_result([LeaseGrant(*grant) for grant in grants])


@dataclass(slots=True, eq=False)
class LeaseDesk:
    """The supervisor's end."""

    _counter: LeaseCounter = field(default_factory=LeaseCounter)

    def answer(self, worker: str, body: bytes) -> bytes:
        """Return the answer to what a worker sent."""
        number, written = orjson.loads(body)
        asks = [_KINDS[kind](*members) for kind, *members in written]
        grants = self._counter.exchange(worker, asks, time.monotonic() * 1_000_000)
        answers = [
            [it.granted, it.level, it.share, it.processes, it.epoch, it.claimed, it.reserved, it.doubtful]
            for it in grants
        ]
        return orjson.dumps([number, answers])

    def forget(self, worker: str) -> None:
        """Let go of what a worker held that has ended: its places are free at once."""
        self._counter.forget(worker)


def _written(ask: LeaseRequest) -> list[object]:
    match ask:
        case RateRequest():
            members: list[object] = [
                ask.key,
                ask.per_second,
                ask.burst,
                ask.want,
                ask.least,
                ask.back,
                ask.demand,
                ask.holds,
            ]
            members += [ask.life, ask.total, ask.epoch, ask.owed, ask.paid]
            return ["r", *members, ask.silence, ask.share, ask.equal]
        case SlotsRequest():
            return ["c", ask.key, ask.capacity, ask.held, ask.want, ask.used]
        case SpendingRequest():
            return ["s", ask.key, ask.amount, ask.base, ask.most, ask.held, ask.want, ask.least, ask.reserved]
