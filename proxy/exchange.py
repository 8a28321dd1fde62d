"""One planned request on its way to its answer and to its client: dispatch, commit, relay, and a break that shows.

Never reads a request, and never chooses who is asked.
"""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web

from providers.failure import VERDICTS, Failure, FailureKind, UpstreamError
from providers.shape import Prepared
from providers.unified import UnifiedRequest
from proxy.attempts import Job
from proxy.deadlines import DeadlinePassed, Deadlines, Phase
from proxy.dispatch import Dispatcher
from proxy.errors import ErrorFacts, Problem, internal, invalid_request, upstream_failed
from proxy.metrics import Metrics
from proxy.record import RequestRecord
from proxy.relay import Relay
from proxy.routing import Plan
from proxy.server import fresh_id
from proxy.snapshot import Team
from proxy.surfaces.surface import AnswerFacts, Renderer, Surface

PATIENCE = "x-request-timeout"
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")

LAST_WRITE = 5.0
"""Seconds the error frame of a broken stream may take to leave."""

Begin = Callable[[Mapping[str, str]], Awaitable[web.StreamResponse]]
"""Sends the head of a stream with these headers."""


class Exchange:
    """One request. `begin` sends the head of a streamed answer to its client."""

    __slots__ = ("_begin", "_dispatcher", "_http", "_job", "_metrics", "_now", "_record", "_renderer", "_surface")

    def __init__(
        self, dispatcher: Dispatcher, metrics: Metrics, job: Job, surface: Surface, http: web.BaseRequest, begin: Begin
    ) -> None:
        self._dispatcher = dispatcher
        self._metrics = metrics
        self._job = job
        self._record = job.record
        self._surface = surface
        self._http = http
        self._begin = begin
        self._now = dispatcher.clock
        self._renderer: Renderer | None = None

    async def whole(self) -> tuple[bytes, Mapping[str, str]]:
        """The body of the answer and its own headers. Raises GatewayError."""
        record = self._record
        try:
            with self._job.clock:
                prepared, completion = await self._dispatcher.whole(self._job)
        except (UpstreamError, DeadlinePassed) as error:
            raise upstream_failed(settle(record, error), len(record.attempts)) from None
        record.usage = completion.usage
        if completion.usage is not None and completion.usage.estimated:
            record.emulated = (*record.emulated, "usage")
        return self._rendering(prepared).completion(completion), answer_headers(record)

    async def streamed(self) -> web.StreamResponse:
        """The stream, written to its end, whatever that end is. Raises GatewayError while nothing has been written."""
        record, clock = self._record, self._job.clock
        response: web.StreamResponse | None = None
        try:
            with clock:
                async with self._dispatcher.streamed(self._job) as (prepared, stream):
                    timeouts = prepared.target.timeouts
                    clock.commit(timeouts.idle, timeouts.progress, timeouts.stream)
                    renderer = self._renderer = self._rendering(prepared)
                    record.first_content = self._now()
                    record.status = 200
                    response = await self._begin(answer_headers(record))
                    await Relay(stream, renderer, response.write, clock, record, prepared.request).run()
                    clock.pause()
                    await response.write_eof(renderer.end())
                    record.finished = self._now()
                    clock.stop()
                    await stream.finish()
        except (UpstreamError, DeadlinePassed) as error:
            await self._failed(response, error)
        except ConnectionError:
            left(record, self._metrics)
        except asyncio.CancelledError:
            cut_off(record, self._metrics, self._http)
            raise
        finally:
            if response is not None and not record.finished and record.outcome == "ok":
                # A fault of ours is on its way out; the client must not take what it got for whole.
                self._metrics.abort("gateway", "internal_error", record.model)
                await self._break(response, internal().facts)
        # Without a response the client left before its head could be written; nobody reads what is returned.
        return response or web.Response(status=499)

    async def _failed(self, response: web.StreamResponse | None, error: UpstreamError | DeadlinePassed) -> None:
        """Tell the client of a failure, in the stream where one has begun."""
        if isinstance(error, DeadlinePassed) and error.phase is Phase.CLIENT:
            left(self._record, self._metrics)
            abandon(self._http)
            return
        failure = settle(self._record, error)
        if response is None:
            # Not kept in a variable: its traceback holds this frame, a cycle that holds what the upstream sent, too.
            raise upstream_failed(failure, len(self._record.attempts)) from None
        self._metrics.abort(*blame(error), self._record.model)
        failed = upstream_failed(failure, len(self._record.attempts))
        await self._break(response, failed.facts)

    async def _break(self, response: web.StreamResponse, facts: ErrorFacts) -> None:
        """End a committed stream so that nobody takes it for whole: an error frame, then a body without its end."""
        self._record.code = facts.code
        try:
            if self._renderer is not None:
                async with asyncio.timeout(LAST_WRITE):
                    await response.write(self._renderer.error(facts))
        except (ConnectionError, TimeoutError):
            self._record.outcome = "client_gone"
        finally:
            if self._http.transport is not None:
                self._http.transport.close()

    def _rendering(self, prepared: Prepared) -> Renderer:
        facts = AnswerFacts(fresh_id(), int(time.time()), self._job.plan.served_name(prepared.target))
        return self._surface.renderer(prepared.request, facts)


def job_of(
    plan: Plan, team: Team, request: UnifiedRequest, headers: Mapping[str, str], record: RequestRecord, *, heavy: bool
) -> Job:
    """A planned request with its deadline: the longest that any of its targets has, unless the client wants less.

    Raises GatewayError for an `x-request-timeout` that is no time.
    """
    limit = total = max([target.timeouts.total for target in plan.targets])
    for wish in (request.timeout, _wish(headers)):
        if wish is not None and wish < total:
            total = wish
    return Job(plan, team, request, record, Deadlines(total), total, hurried=total < limit, heavy=heavy)


def _wish(headers: Mapping[str, str]) -> float | None:
    """Seconds that whoever sent the request has left for it; as a duration, so that clocks may differ."""
    text = headers.get(PATIENCE)
    if text is None:
        return None
    if not _SECONDS.fullmatch(text) or not float(text):
        raise invalid_request((Problem((PATIENCE,), f"'{PATIENCE}' must be a number of seconds, such as 30 or 2.5."),))
    return float(text)


def left(record: RequestRecord, metrics: Metrics) -> None:
    """The client is gone; unless it has everything, nobody else is to blame."""
    if record.finished or record.outcome == "client_gone":
        return
    record.outcome, record.status = "client_gone", 499
    if record.first_content is not None:
        metrics.abort("client", "disconnect", record.model)


def cut_off(record: RequestRecord, metrics: Metrics, http: web.BaseRequest) -> None:
    """The request's task is cancelled: its client is gone, or it is still there and the gateway ends at once."""
    if http.transport is None:
        left(record, metrics)
    elif not record.finished and record.outcome == "ok":
        failed = upstream_failed(settle(record, DeadlinePassed(Phase.DRAIN, 0.0)))
        record.status, record.code = record.status or failed.facts.status, failed.facts.code
        if record.first_content is not None:
            metrics.abort("gateway", "shutdown", record.model)


def attempt_headers(record: RequestRecord) -> dict[str, str]:
    """Which deployment was called last, and how many were tried; nothing where none was called."""
    if record.called is None:
        return {}
    return {"x-dragoman-deployment": record.called, "x-dragoman-attempts": str(len(record.attempts))}


def answer_headers(record: RequestRecord) -> Mapping[str, str]:
    """An answer's own headers: who answered, and what became of the fields."""
    headers = attempt_headers(record)
    if record.emulated:
        headers["x-dragoman-emulated"] = ", ".join(record.emulated)
    if record.dropped:
        headers["x-dragoman-dropped"] = ", ".join(record.dropped)
    if record.max_tokens is not None:
        headers["x-dragoman-max-tokens"] = str(record.max_tokens)
    return headers


def abandon(http: web.BaseRequest) -> None:
    """Drop the connection of a client that does not read; what is buffered for it goes too."""
    if http.transport is not None:
        http.transport.abort()


def settle(record: RequestRecord, error: UpstreamError | DeadlinePassed) -> Failure:
    """Write the end of a request into its record and say it as a failure."""
    committed = record.first_content is not None
    if isinstance(error, DeadlinePassed) and error.phase is Phase.DRAIN:
        record.outcome = "truncated" if committed else "error"
        return Failure(FailureKind.OVERLOADED, error.message)
    failure = error.failure if isinstance(error, UpstreamError) else Failure(FailureKind.TIMEOUT, error.message)
    if failure.kind is FailureKind.TIMEOUT:
        record.outcome = "timeout"
    elif committed:
        record.outcome = "truncated"
    else:
        record.outcome = "client_error" if VERDICTS[failure.kind].status == 400 else "upstream_error"
    return failure


def blame(error: UpstreamError | DeadlinePassed) -> tuple[str, str]:
    """Which side ended a stream early, and why: the labels of `stream_aborts_total`."""
    if isinstance(error, UpstreamError):
        return "upstream", error.failure.kind.value
    return ("gateway", "shutdown") if error.phase is Phase.DRAIN else ("upstream", FailureKind.TIMEOUT.value)
