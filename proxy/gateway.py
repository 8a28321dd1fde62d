"""One client request from its first byte to its last: access, parse, plan, dispatch, relay, record.

Never knows a surface's or a vendor's particulars, and never chooses a target a second time.
"""

import asyncio
import logging
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from aiohttp import web

from providers.failure import Failure, FailureKind, UpstreamError
from providers.shape import Prepared
from providers.unified import Operation
from proxy.access import WrongKey, identify, permit_extras
from proxy.admission import Admission, Admitted, Reason
from proxy.deadlines import DeadlinePassed, Deadlines, Phase
from proxy.dispatch import Dispatcher, choose
from proxy.errors import ErrorFacts, GatewayError, internal, overloaded, too_many_guesses, upstream_failed
from proxy.guesses import Guesses
from proxy.live import Live
from proxy.metrics import Metrics
from proxy.record import Outcome, RequestRecord
from proxy.relay import Relay
from proxy.router import Route, Router
from proxy.routing import Plan, plan, visible
from proxy.server import BASE_HEADERS, HEALTH_PATHS, JSON, STREAM_HEADERS, fresh_id, health, read_body, request_id
from proxy.shed import Shedding, may_stay
from proxy.snapshot import Snapshot, Team
from proxy.surfaces.registry import SURFACES
from proxy.surfaces.surface import AnswerFacts, ModelCard, Renderer, Surface


@dataclass(frozen=True, slots=True)
class Call:
    """One request, parsed and planned: what the answering half needs."""

    plan: Plan
    prepared: Prepared
    surface: Surface
    record: RequestRecord
    http: web.BaseRequest
    admitted: Admitted

    @property
    def total(self) -> float:
        """Seconds the whole request may take: the client's `inference_timeout` may shorten the operator's limit."""
        limit, wish = self.prepared.target.timeouts.total, self.prepared.request.timeout
        return limit if wish is None else min(limit, wish)

    def renderer(self) -> Renderer:
        """A fresh renderer for this answer."""
        facts = AnswerFacts(fresh_id(), int(time.time()), self.plan.served_name(self.prepared.target))
        return self.surface.renderer(self.prepared.request, facts)

    def headers(self) -> dict[str, str]:
        """The answer's own headers: who answered, and what became of the fields."""
        record = self.record
        headers = {
            "x-dragoman-deployment": self.prepared.target.name,
            "x-dragoman-attempts": str(len(record.attempts)),
        }
        if record.emulated:
            headers["x-dragoman-emulated"] = ", ".join(record.emulated)
        if record.dropped:
            headers["x-dragoman-dropped"] = ", ".join(record.dropped)
        if record.max_tokens is not None:
            headers["x-dragoman-max-tokens"] = str(record.max_tokens)
        return headers


BRIEF = 256 * 1024
"""Bytes of a body that is read at once; a longer one is read in a thread, for its densest form would hold everybody up
for more than 50 ms."""

LAST_WRITE = 5.0
"""Seconds the error frame of a broken stream may take to leave."""


class Gateway:
    """The public listener's handler. `emit` receives each finished record once.

    `clocks` are the deadlines of the calls under way, for whoever must end them; `draining` makes each answer say that
    the connection closes; `idle` is set while nothing is in flight.
    """

    def __init__(
        self,
        live: Live,
        dispatcher: Dispatcher,
        metrics: Metrics,
        emit: Callable[[RequestRecord], None],
        admission: Admission,
    ) -> None:
        self._live = live
        self._dispatcher = dispatcher
        self._metrics = metrics
        self._emit = emit
        self._admission = admission
        self._sheds = Shedding()
        self._clock = asyncio.get_running_loop().time
        self._log = logging.getLogger("dragoman")
        self._router = Router(SURFACES)
        self._guesses = Guesses()
        self._draw = random.Random().random  # noqa: S311 - spreads load, guards nothing
        self.clocks: set[Deadlines] = set()
        self.ready = True
        self.draining = False
        self.in_flight = 0
        self.idle = asyncio.Event()
        self.idle.set()

    async def handle(self, http: web.BaseRequest) -> web.StreamResponse:
        """Answer one request; whatever happens, one record leaves and the client gets the surface's envelope."""
        started = self._clock()
        path = http.path
        if path in HEALTH_PATHS:
            return self._health(path)
        route = self._router.resolve(path)
        record = RequestRecord(request_id(http.headers), started, route.surface.name, path, http.remote or "")
        length = http.content_length or 0
        reason = self._admission.refusal(length)
        if reason is not None:
            return self._shed(http, route.surface, record, reason)
        admitted = self._admission.begin(length)
        self.in_flight += 1
        self.idle.clear()
        try:
            return await self._answer(http, route, record, admitted)
        except GatewayError as error:
            return self._refusal(route.surface, error, record)
        except asyncio.CancelledError:
            self._left(record)
            raise
        except Exception:  # the outermost handler: a fault of ours must not become a traceback on the wire
            self._log.exception("request %s failed", record.request_id)
            return self._refusal(route.surface, internal(), record)
        finally:
            admitted.end()
            self.in_flight -= 1
            if not self.in_flight:
                self.idle.set()
            record.finished = record.finished or self._clock()
            self._emit(record)

    async def _answer(
        self, http: web.BaseRequest, route: Route, record: RequestRecord, admitted: Admitted
    ) -> web.StreamResponse:
        surface = route.surface
        action = route.action(http.method)
        snapshot = self._live.snapshot
        try:
            team = identify(snapshot, http.headers, surface.key_headers)
        except WrongKey as wrong:
            wait = self._guesses.count(record.client, self._clock())
            raise (too_many_guesses(wait) if wait else wrong) from None
        record.team = team.name
        if not isinstance(action, Operation):
            return self._models(snapshot, team, route, record)
        body = await read_body(http)
        admitted.holds(len(body))
        given = (action, body, snapshot.default_models.get(surface.name))
        request = surface.parse(*given) if len(body) <= BRIEF else await asyncio.to_thread(surface.parse, *given)
        record.asked, record.stream = request.model, request.stream
        if request.stream:
            self._may_stream(record)
        planned = plan(snapshot, team, request.model, surface.name, self._draw)
        record.model = planned.label
        permit_extras(team, request)
        prepared = choose(planned, team, request)
        record.emulated, record.dropped = prepared.emulated, prepared.dropped
        call = Call(planned, prepared, surface, record, http, admitted)
        if request.stream:
            return await self._streamed(call)
        return await self._whole(call)

    async def _whole(self, call: Call) -> web.Response:
        prepared, record = call.prepared, call.record
        clock = Deadlines(call.total)
        self.clocks.add(clock)
        try:
            with clock:
                completion = await self._dispatcher.whole(prepared, record, clock)
        except (UpstreamError, DeadlinePassed) as error:
            raise upstream_failed(settle(record, error)) from None
        finally:
            self.clocks.discard(clock)
        record.usage = completion.usage
        if completion.usage is not None and completion.usage.estimated:
            record.emulated = (*record.emulated, "usage")
        return self._response(200, call.renderer().completion(completion), record, call.headers())

    async def _streamed(self, call: Call) -> web.StreamResponse:
        prepared, record, renderer = call.prepared, call.record, call.renderer()
        response: web.StreamResponse | None = None
        clock = Deadlines(call.total)
        self.clocks.add(clock)
        try:
            with clock:
                async with self._dispatcher.streamed(prepared, record, clock) as stream:
                    timeouts = prepared.target.timeouts
                    clock.commit(timeouts.idle, timeouts.progress, timeouts.stream)
                    response = await self._commit(call)
                    await Relay(stream, renderer, response.write, clock, record, prepared.request).run()
                    clock.pause()
                    await response.write_eof(renderer.end())
                    record.finished = self._clock()
                    clock.stop()
                    await stream.finish()
        except (UpstreamError, DeadlinePassed) as error:
            if isinstance(error, DeadlinePassed) and error.phase is Phase.CLIENT:
                self._left(record)
                abandon(call.http)
                return response or web.Response(status=499)
            failure = settle(record, error)
            if response is None:
                raise upstream_failed(failure) from None
            self._metrics.abort(*blame(error))
            await self._break(call, response, renderer, upstream_failed(failure).facts)
        except (ConnectionError, asyncio.CancelledError) as gone:
            self._left(record)
            if isinstance(gone, asyncio.CancelledError):
                raise
        finally:
            self.clocks.discard(clock)
            if response is not None and not record.finished and record.outcome == "ok":
                # A fault of ours is on its way out; the client must not take what it got for whole.
                self._metrics.abort("gateway", "internal_error")
                await self._break(call, response, renderer, internal().facts)
        # Without a response the client left before its head could be written; nobody reads what is returned.
        return response or web.Response(status=499)

    def _left(self, record: RequestRecord) -> None:
        """The client is gone; unless it has everything, nobody else is to blame."""
        if record.finished or record.outcome == "client_gone":
            return
        record.outcome, record.status = "client_gone", 499
        if record.first_content is not None:
            self._metrics.abort("client", "disconnect")

    async def _commit(self, call: Call) -> web.StreamResponse:
        """The commit point: from here on no other target can answer."""
        record = call.record
        call.admitted.commit()
        record.first_content = self._clock()
        record.status = 200
        headers = {**STREAM_HEADERS, "x-request-id": record.request_id, **call.headers()}
        response = web.StreamResponse(status=200, headers=headers)
        if self.draining:
            response.force_close()
        await response.prepare(call.http)
        return response

    async def _break(self, call: Call, response: web.StreamResponse, renderer: Renderer, facts: ErrorFacts) -> None:
        """End a committed stream so that nobody takes it for whole: an error frame, then a body without its end."""
        call.record.code = facts.code
        try:
            async with asyncio.timeout(LAST_WRITE):
                await response.write(renderer.error(facts))
        except (ConnectionError, TimeoutError):
            call.record.outcome = "client_gone"
        finally:
            if call.http.transport is not None:
                call.http.transport.close()

    def _shed(
        self, http: web.BaseRequest, surface: Surface, record: RequestRecord, reason: Reason
    ) -> web.StreamResponse:
        """Refuse a request of which nothing but the head has been read."""
        record.status, record.code, record.outcome = 503, "overloaded", "shed"
        record.finished = self._clock()
        self._metrics.shed(reason)
        self._emit(record)
        keep = may_stay(http) and not self.draining
        return self._sheds.answer(surface, reason, record.request_id, keep)

    def _may_stream(self, record: RequestRecord) -> None:
        """Raises GatewayError where no more streams are taken on."""
        reason = self._admission.refuses_streams()
        if reason is not None:
            record.outcome = "shed"
            self._metrics.shed(reason)
            raise overloaded(reason)

    def _models(self, snapshot: Snapshot, team: Team, route: Route, record: RequestRecord) -> web.Response:
        if route.tail is None:
            names = visible(snapshot, team)
            cards = [self._card(snapshot, team, route, name) for name in names]
            return self._response(200, route.surface.models(cards), record, {})
        card = self._card(snapshot, team, route, route.tail)
        return self._response(200, route.surface.model(card), record, {})

    def _card(self, snapshot: Snapshot, team: Team, route: Route, name: str) -> ModelCard:
        planned = plan(snapshot, team, name, route.surface.name, self._draw)
        windows = [target.context_window for target in planned.targets]
        known = [window for window in windows if window is not None]
        window = min(known) if len(known) == len(windows) else None
        owner = "dragoman" if planned.by_route else planned.targets[0].vendor
        return ModelCard(name, self._live.since, owner, window)

    def _refusal(self, surface: Surface, error: GatewayError, record: RequestRecord) -> web.Response:
        facts = error.facts
        status, body = surface.error(facts)
        record.code = facts.code
        if record.outcome == "ok":
            record.outcome = outcome_of(status)
        return self._response(status, body, record, facts.headers)

    def _response(self, status: int, body: bytes, record: RequestRecord, extra: Mapping[str, str]) -> web.Response:
        record.status = status
        headers = {**BASE_HEADERS, "Content-Type": JSON, "x-request-id": record.request_id, **extra}
        response = web.Response(status=status, body=body, headers=headers)
        if self.draining:
            response.force_close()
        return response

    def _health(self, path: str) -> web.Response:
        response = health(self.ready or path == "/health/live", BASE_HEADERS)
        if self.draining:
            response.force_close()
        return response


def abandon(http: web.BaseRequest) -> None:
    """Drop the connection of a client that does not read; what is buffered for it goes too."""
    if http.transport is not None:
        http.transport.abort()


def settle(record: RequestRecord, error: UpstreamError | DeadlinePassed) -> Failure:
    """Write the end of the last attempt into the record and say it as a failure."""
    committed = record.first_content is not None
    if isinstance(error, UpstreamError):
        failure = error.failure
    elif error.phase is Phase.DRAIN:
        record.outcome = "truncated" if committed else "error"
        return Failure(FailureKind.OVERLOADED, _PASSED[error.phase])
    else:
        failure = Failure(FailureKind.TIMEOUT, _PASSED[error.phase].format(limit=error.limit))
        record.attempts[-1].outcome = failure.kind.value
        record.attempts[-1].message = failure.message
    record.outcome = (
        "timeout" if failure.kind is FailureKind.TIMEOUT else "truncated" if committed else "upstream_error"
    )
    return failure


def blame(error: UpstreamError | DeadlinePassed) -> tuple[str, str]:
    """Which side ended a stream early, and why: the labels of `stream_aborts_total`."""
    if isinstance(error, UpstreamError):
        return "upstream", error.failure.kind.value
    return ("gateway", "shutdown") if error.phase is Phase.DRAIN else ("upstream", FailureKind.TIMEOUT.value)


_PASSED = {
    Phase.TOTAL: "No answer within the request's deadline of {limit:g} s.",
    Phase.FIRST_EVENT: "The upstream sent no content within {limit:g} s.",
    Phase.TRY: "The deployment had not answered when its share of the request's deadline, {limit:g} s, was over.",
    Phase.IDLE: "The upstream sent nothing for {limit:g} s.",
    Phase.PROGRESS: "The upstream sent no content for {limit:g} s.",
    Phase.STREAM: "The stream was not over after {limit:g} s.",
    Phase.CLIENT: "The client read nothing for {limit:g} s.",
    Phase.DRAIN: "The gateway is shutting down.",
}


def outcome_of(status: int) -> Outcome:
    """The record's outcome for an answer that is an error."""
    if status in (401, 403):
        return "denied"
    if status < 500:
        return "client_error"
    return "error" if status == 500 else "upstream_error"
