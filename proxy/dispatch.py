"""From a plan to an answer: which target is asked, and what becomes of a failure. The only place that may try again.

Never reads an answer, and never writes to the client; a stream is handed over at its first content, the commit point.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace

from providers.completion import Completion
from providers.dialect import Target
from providers.failure import Failure, FailureKind, Refusal, UpstreamError
from providers.shape import Prepared, prepare
from providers.unified import UnifiedRequest
from proxy.caller import Caller
from proxy.deadlines import Deadlines
from proxy.errors import GatewayError, refused
from proxy.metrics import Metrics
from proxy.record import Attempt, RequestRecord
from proxy.routing import Plan
from proxy.snapshot import Team
from proxy.streams import Stream
from proxy.upstream import Transport


def choose(plan: Plan, team: Team, request: UnifiedRequest) -> Prepared:
    """The calls of the first target that can honour the request.

    Raises GatewayError with the first target's reason when none can.
    """
    first: Refusal | None = None
    for target in plan.targets:
        try:
            return prepared_for(request, target, team)
        except Refusal as refusal:
            first = first or refusal
    if first is None:
        raise RuntimeError(f"the plan for {plan.asked!r} has no targets")
    raise refused(first)


def prepared_for(request: UnifiedRequest, target: Target, team: Team) -> Prepared:
    """The calls of one target, as the team wants them; its word goes before the deployment's. Raises Refusal."""
    on_unsupported = team.on_unsupported or target.on_unsupported
    return prepare(request, target, on_unsupported, team.context_behavior or target.context_behavior)


class Dispatcher:
    """Has targets asked and keeps their account in the request's record."""

    def __init__(self, http: Transport, metrics: Metrics) -> None:
        self._caller = Caller(http)
        self._metrics = metrics
        self._clock = asyncio.get_running_loop().time

    async def whole(self, prepared: Prepared, record: RequestRecord, clock: Deadlines) -> Completion:
        """The answer of a request that is not streamed. Raises UpstreamError."""
        with self._attempt(prepared, record):
            return await self._caller.whole(prepared, record, clock)

    @asynccontextmanager
    async def streamed(self, prepared: Prepared, record: RequestRecord, clock: Deadlines) -> AsyncIterator[Stream]:
        """The stream of a request, read up to its first content; closed on leaving. Raises UpstreamError."""
        with self._attempt(prepared, record):
            async with self._caller.streamed(prepared, record, clock) as stream:
                yield stream

    @contextmanager
    def _attempt(self, prepared: Prepared, record: RequestRecord) -> Iterator[Attempt]:
        """One target's entry in the record and its place in the in-flight gauge, whatever its end."""
        attempt = Attempt(prepared.target.label, self._clock())
        record.attempts.append(attempt)
        record.price = prepared.target.price
        self._metrics.inflight(attempt.deployment, 1)
        try:
            yield attempt
        except UpstreamError as error:
            error.failure = _unquoted(error.failure, prepared.target)
            attempt.outcome = error.failure.kind.value
            attempt.status = error.failure.status
            attempt.message = error.failure.message
            raise
        except GatewayError:
            # What the client wants of the window cannot be kept there, which only this attempt could tell.
            attempt.outcome = FailureKind.INVALID_REQUEST.value
            raise
        except (asyncio.CancelledError, ConnectionError):
            # The upstream's own connection errors have become UpstreamErrors: this one is the client's.
            attempt.outcome = "cancelled"
            raise
        finally:
            attempt.finished = self._clock()
            self._metrics.inflight(attempt.deployment, -1)


def _unquoted(failure: Failure, target: Target) -> Failure:
    """The failure without what the vendor repeated of the operator's credential, for the client and for the log."""
    conceal = target.credential.conceal
    code, param = (value and conceal(value) for value in (failure.code, failure.param))
    return replace(failure, message=conceal(failure.message), code=code, param=param)
