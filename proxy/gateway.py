"""One client request from its first byte to its last: access, parse, plan, dispatch, relay, record.

Never knows a surface's or a vendor's particulars, and never chooses a target a second time.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import partial

from aiohttp import web

from providers.unified import Operation
from proxy.access import ExpiredKey, WrongKey, identify, permit_extras, recognize
from proxy.admission import Admission, Admitted, Reason
from proxy.catalogue import Catalogue
from proxy.concurrency_limit import Limited
from proxy.deadlines import Deadlines, Phase
from proxy.dispatch import Dispatcher
from proxy.errors import NOT_ALLOWED, GatewayError, internal, overloaded, too_many_guesses
from proxy.exchange import Exchange, attempt_headers, cut_off, job_of, left
from proxy.guesses import Guesses
from proxy.hops import arrive
from proxy.last_failures import Noted
from proxy.line import Line
from proxy.live import Live
from proxy.metrics import Metrics
from proxy.ready import ReadyResponse, lines
from proxy.record import Outcome, RequestRecord
from proxy.router import Route, Router
from proxy.routing import plan
from proxy.server import BASE_HEADERS, HEALTH_PATHS, STREAM_HEADERS, health, path_of, read_body, request_id
from proxy.shed import Shedding, claimed, may_stay
from proxy.snapshot import Snapshot, Team
from proxy.surfaces.body import is_heavy
from proxy.surfaces.registry import SURFACES
from proxy.surfaces.surface import Surface

LARGE = 64 * 1024
"""Bytes of an answer that the connection's buffer takes at once."""

UNREAD = (408, 413, 415)
"""Statuses of a request whose body was not read, so that its connection is of no further use."""


COMPLAIN_EVERY = 1.0
"""Seconds between two faults of ours that are told with where they lie. The access log has a line for each."""


class Gateway:
    """The public listener's handler. `emit` receives each finished record once.

    `begun` receives each record once its team is known. `clocks` are the deadlines of the calls under way, for whoever
    must end them; `draining` makes each answer say that the connection closes; `idle` is set while nothing is in
    flight.
    """

    def __init__(
        self,
        live: Live,
        dispatcher: Dispatcher,
        metrics: Metrics,
        emit: Callable[[RequestRecord], None],
        admission: Admission,
        line: Line,
    ) -> None:
        self._live = live
        self._dispatcher = dispatcher
        self._metrics = metrics
        self._emit = emit
        self._admission = admission
        self._line = line
        self._sheds = Shedding()
        self._clock = asyncio.get_running_loop().time
        self._wall = live.wall
        self._log = logging.getLogger("dragoman")
        self._router = Router(SURFACES)
        self._guesses = Guesses()
        self._catalogue = Catalogue(live.since)
        self._load = dispatcher.load
        self._complained = float("-inf")
        self.begun: Callable[[RequestRecord], None] = unnoted
        self.clocks: set[Deadlines] = set()
        self.ready = True
        self.draining = False
        self.in_flight = 0
        self.idle = asyncio.Event()
        self.idle.set()

    def left_alone(self) -> dict[str, float]:
        """The deployments that are not asked at the moment, and the seconds until they may be."""
        return dict(self._dispatcher.deployments.healths.waits(self._clock()))

    def last_failures(self) -> Mapping[str, Noted]:
        """How each deployment that failed did so last."""
        return dict(self._dispatcher.last_failures.noted)

    def limited(self) -> dict[str, Limited]:
        """The deployments whose requests at once are limited."""
        return dict(self._dispatcher.deployments.limited(self._clock()))

    @property
    def shared(self) -> str:
        """Whether other processes are told what vendors say, and can be reached."""
        return self._dispatcher.deployments.healths.shared

    async def handle(self, http: web.BaseRequest) -> web.StreamResponse:
        """Answer one request; whatever happens, one record leaves and the client gets the surface's envelope."""
        started = self._clock()
        path = path_of(http)
        if path in HEALTH_PATHS:
            return self._health(path)
        route = self._router.resolve(path)
        record = RequestRecord(request_id(http.headers), started, route.surface.name, path, http.remote or "")
        admitted = claimed(http)
        if admitted is None:
            reason = self._admission.refusal()
            if reason is not None:
                return self._shed(http, route.surface, record, reason)
            admitted = self._admission.begin(0) if http.content.is_eof() else self._admission.expect()
        self.in_flight += 1
        self.idle.clear()
        try:
            if self._line.busy:
                await self._line.turn()
            return await self._answer(http, route, record, admitted)
        except GatewayError as error:
            return self._refusal(route.surface, error, record)
        except asyncio.CancelledError:
            cut_off(record, self._metrics, http)
            raise
        except MemoryError:
            return self._refusal(route.surface, self._overloaded(record, Reason.MEMORY), record)
        except Exception:  # the outermost handler: a fault of ours must not become a traceback on the wire
            self._complain(record)
            return self._refusal(route.surface, internal(), record)
        finally:
            admitted.end()
            self.in_flight -= 1
            if not self.in_flight:
                self.idle.set()
            record.finished = record.finished or self._clock()
            self._emit(record)

    def refuse(self, http: web.BaseRequest, error: GatewayError) -> ReadyResponse:
        """Answer a request that is refused by its head, and record it like every other."""
        path, now = path_of(http), self._clock()
        surface = self._router.resolve(path).surface
        record = RequestRecord(request_id(http.headers), now, surface.name, path, http.remote or "")
        response = self._refusal(surface, error, record)
        record.finished = now
        self._emit(record)
        return response

    def _complain(self, record: RequestRecord) -> None:
        """Say where a fault of ours lies, at most once in a while: whoever finds one can ask for it again and again."""
        now = self._clock()
        if now - self._complained >= COMPLAIN_EVERY:
            self._complained = now
            self._log.exception("request %s failed", record.request_id)

    async def _answer(
        self, http: web.BaseRequest, route: Route, record: RequestRecord, admitted: Admitted
    ) -> web.StreamResponse:
        surface = route.surface
        snapshot = self._live.snapshot
        try:
            action = route.action(http.method)
        except GatewayError:
            if (known := recognize(snapshot, http.headers, surface.key_headers, self._wall())) is not None:
                record.team, record.key = known.team.name, known.name
            raise
        team = self._identified(snapshot, http, surface, record)
        arrive(http.headers)
        self.begun(record)
        if (reason := admitted.belongs(record.owner)) is not None:
            raise self._overloaded(record, reason)
        if not isinstance(action, Operation):
            return await self._models(snapshot, team, route, record)
        arriving = self._clock()
        try:
            body = await read_body(http, partial(self._hold, record, admitted))
        finally:
            record.client_waited = self._clock() - arriving
        if (reason := admitted.arrived()) is not None:
            raise self._overloaded(record, reason)
        heavy = is_heavy(body)
        parse = partial(surface.parse, action, body, snapshot.default_models.get(surface.name))
        request = await self._dispatcher.off_loop.threads.run(record.owner, parse) if heavy else parse()
        record.asked, record.stream = request.model, request.stream
        if request.stream:
            self._may_stream(record)
        planned = plan(snapshot, team, request.model, surface.name, self._load)
        record.model = planned.label
        permit_extras(team, request)
        job = job_of(planned, team, request, http.headers, record, heavy=heavy)
        begin = partial(self._begin, http, record, admitted)
        exchange = Exchange(self._dispatcher, self._metrics, job, surface, http, begin)
        self.clocks.add(job.clock)
        try:
            if request.stream:
                return await exchange.streamed()
            answer, headers = await exchange.whole()
        finally:
            self.clocks.discard(job.clock)
        response = self._response(200, answer, record, headers)
        if len(answer) > LARGE:
            await self._deliver(http, response, record)
        return response

    def _identified(self, snapshot: Snapshot, http: web.BaseRequest, surface: Surface, record: RequestRecord) -> Team:
        """Whose request it is. Raises GatewayError where nobody's."""
        try:
            key = identify(snapshot, http.headers, surface.key_headers, self._wall())
        except WrongKey as wrong:
            wait = self._guesses.count(record.client, self._clock())
            record.outcome = "denied"
            raise (too_many_guesses(wait) if wait else wrong) from None
        except ExpiredKey as expired:
            record.team, record.key = expired.key.team.name, expired.key.name
            raise
        record.team, record.key = key.team.name, key.name
        return key.team

    async def _deliver(self, http: web.BaseRequest, response: ReadyResponse, record: RequestRecord) -> None:
        """Stay with an answer until its client has read it, or is dropped because it does not."""
        written = self._clock()
        try:
            await response.prepare(http)
            await http.writer.drain()
        except ConnectionError:
            left(record, self._metrics)
        finally:
            record.client_waited += self._clock() - written

    async def _begin(
        self, http: web.BaseRequest, record: RequestRecord, admitted: Admitted, extra: Mapping[str, str]
    ) -> web.StreamResponse:
        """Send the head of a streamed answer."""
        admitted.commit()
        headers = {**STREAM_HEADERS, "x-request-id": record.request_id, **extra}
        response = web.StreamResponse(status=200, headers=headers)
        if self.draining:
            response.force_close()
        await response.prepare(http)
        return response

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

    def _hold(self, record: RequestRecord, admitted: Admitted, length: int) -> None:
        """So much of a body has come. Raises GatewayError where that is too much together with the others."""
        if not admitted.holds(length):
            raise self._overloaded(record, Reason.BODY_BYTES)

    def _may_stream(self, record: RequestRecord) -> None:
        """Raises GatewayError where no more streams are taken on."""
        reason = self._admission.refuses_streams()
        if reason is not None:
            raise self._overloaded(record, reason)

    def _overloaded(self, record: RequestRecord, reason: Reason) -> GatewayError:
        record.outcome = "shed"
        self._metrics.shed(reason)
        return overloaded(reason)

    async def _models(self, snapshot: Snapshot, team: Team, route: Route, record: RequestRecord) -> ReadyResponse:
        if route.tail is None:
            body = await self._catalogue.models(snapshot, team, route.surface)
        else:
            body = self._catalogue.model(snapshot, team, route.surface, route.tail)
        return self._response(200, body, record, {})

    def _refusal(self, surface: Surface, error: GatewayError, record: RequestRecord) -> ReadyResponse:
        facts = error.facts
        status, body = surface.error(facts)
        record.code = error.logged
        if record.outcome == "ok":
            record.outcome = "denied" if error.logged == NOT_ALLOWED else outcome_of(status)
        response = self._response(status, body, record, {**facts.headers, **attempt_headers(record)})
        if status in UNREAD:
            response.force_close()
        return response

    def _response(self, status: int, body: bytes, record: RequestRecord, extra: Mapping[str, str]) -> ReadyResponse:
        record.status = status
        response = ReadyResponse(status, body, lines({"x-request-id": record.request_id, **extra}))
        if self.draining:
            response.force_close()
        return response

    def cut(self) -> None:
        """Tell whatever is under way that the gateway ends, streams in-band."""
        for clock in tuple(self.clocks):
            clock.expire(Phase.DRAIN)

    def _health(self, path: str) -> web.Response:
        response = health(self.ready or path == "/health/live", BASE_HEADERS)
        if self.draining:
            response.force_close()
        return response


def unnoted(record: RequestRecord) -> None:
    """A request has begun, which is of interest to nobody."""


def outcome_of(status: int) -> Outcome:
    """The record's outcome for an answer that is an error; 429 is said where every vendor told the gateway to wait."""
    if status in (401, 403):
        return "denied"
    if status < 500 and status != 429:
        return "client_error"
    return "error" if status == 500 else "upstream_error"
