"""Leases between the workers of one gateway and their supervisor, which counts for all of them if there is no Redis.

Both ends have the same version, and a worker is as trusted as its supervisor.
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

EXCHANGE_TIMEOUT: Final = 0.2
"""The most seconds for an exchange. It is this long because a supervisor that collects metrics or loads a configuration
is busy for a while."""

LEASES: Final = "leases"
WORKER_ENDED: Final = "ended"
"""The names of the frames with leases, and of the frame about a worker that has ended. Workers that count in Redis need
the latter."""

_KINDS: Final = {"r": RateRequest, "c": SlotsRequest, "s": SpendingRequest}


class SupervisorLeases:
    """The worker's end of the channel. `send` sends a body to the supervisor; `receive_grants` takes the bodies that
    the supervisor sends."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._waiting: dict[int, asyncio.Future[list[LeaseGrant]]] = {}
        self._last = 0

    async def exchange(self, asks: Sequence[LeaseRequest]) -> Sequence[LeaseGrant | None]:
        """Exchange lease requests for grants, as LeaseSource describes."""
        self._last = number = self._last + 1
        response: asyncio.Future[list[LeaseGrant]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = response
        self._send(orjson.dumps([number, [_written(ask) for ask in asks]]))
        try:
            return await reply_within(EXCHANGE_TIMEOUT, response)
        except TimeoutError:
            raise ConnectionError("no response from the supervisor in time") from None
        finally:
            del self._waiting[number]

    def receive_grants(self, body: bytes) -> None:
        """Receive the grants for an exchange; grants that come too late are dropped."""
        number, grants = orjson.loads(body)
        response = self._waiting.get(number)
        if response is not None and not response.done():
            response.set_result([LeaseGrant(*grant) for grant in grants])


@dataclass(slots=True, eq=False)
class LeaseService:
    """The supervisor's end of the channel."""

    _counter: LeaseCounter = field(default_factory=LeaseCounter)

    def response(self, worker: str, body: bytes) -> bytes:
        """Return the response to a body that a worker sent."""
        number, written = orjson.loads(body)
        asks = [_KINDS[kind](*values) for kind, *values in written]
        grants = self._counter.exchange(worker, asks, time.monotonic() * 1_000_000)
        responses = [
            [it.granted, it.level, it.share, it.processes, it.epoch, it.claimed, it.reserved, it.doubtful]
            for it in grants
        ]
        return orjson.dumps([number, responses])

    def forget(self, worker: str) -> None:
        """Release the leases of a worker that has ended: its slots become free at once."""
        self._counter.forget(worker)


def _written(ask: LeaseRequest) -> list[object]:
    match ask:
        case RateRequest():
            values: list[object] = [
                ask.key,
                ask.per_second,
                ask.burst,
                ask.want,
                ask.least,
                ask.back,
                ask.demand,
                ask.holds,
            ]
            values += [ask.life, ask.total, ask.epoch, ask.owed, ask.paid]
            return ["r", *values, ask.silence, ask.share, ask.equal]
        case SlotsRequest():
            return ["c", ask.key, ask.capacity, ask.held, ask.want, ask.used]
        case SpendingRequest():
            return ["s", ask.key, ask.amount, ask.base, ask.most, ask.held, ask.want, ask.least, ask.reserved]
