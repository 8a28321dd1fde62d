"""The public listener's handler: one client request from its head to its last byte."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import partial

from aiohttp import web

from providers.unified_request import Operation, UnifiedRequest
from proxy.deadlines import Deadlines, Phase
from proxy.dispatch.prefer_honouring import honouring_first
from proxy.dispatch.single_attempt import Dispatcher
from proxy.errors import NOT_ALLOWED, GatewayError, OverloadReason, internal_error, overloaded, too_many_wrong_keys
from proxy.gateway.answer_request import Exchange, attempt_headers, make_job, record_cancelled, record_client_gone
from proxy.gateway.match_path import resolve_path
from proxy.gateway.models_list import Catalogue
from proxy.gateway.restore_thinking import TurnMemory
from proxy.listener.buffered_response import BufferedResponse, header_lines
from proxy.listener.health_endpoints import HEALTH_PATHS, health_response
from proxy.listener.http_connection import path_of
from proxy.listener.request_body import read_body
from proxy.listener.response_headers import STREAM_HEADERS
from proxy.overload.admission_limits import Admission, Admitted
from proxy.overload.refusal_responses import RefusalResponses, may_keep_connection
from proxy.overload.refusing_connection import claim_admission
from proxy.overload.start_queue import StartQueue
from proxy.request_record import Outcome, RequestRecord, request_id
from proxy.routing.resolve_model import plan
from proxy.routing.snapshot import CurrentSnapshot, Snapshot, Team
from proxy.surfaces.registry import PathMatch
from proxy.surfaces.request.parse_json import is_heavy
from proxy.surfaces.surface import Surface
from proxy.teams.client_keys import ExpiredKey, WrongKey, identify, permit_extras, recognize
from proxy.teams.wrong_keys import WrongKeyLimiter
from proxy.telemetry.metrics import Metrics
from proxy.upstream.loop_detection import arrive

BUFFERED_BYTES = 64 * 1024
"""Bytes of an answer that the connection's buffer takes at once."""

BODY_UNREAD = (408, 413, 415)
"""Statuses of a request whose body was not read, so that its connection cannot be kept."""

TRACEBACK_EVERY = 1.0
"""Seconds between two tracebacks in the process log. The access log has a line for each failed request."""


class Gateway:
    """Handles the requests of the public listener. `emit` receives each finished record once; `turns` is the
    memory of what models thought, `catalogue` makes the models lists.

    `on_begin` receives each record once its team is known. `deadlines` are those of the calls under way, to end them;
    `draining` makes each answer close its connection; `idle` is set while nothing is in flight.
    """

    def __init__(
        self,
        current: CurrentSnapshot,
        dispatcher: Dispatcher,
        metrics: Metrics,
        emit: Callable[[RequestRecord], None],
        admission: Admission,
        queue: StartQueue,
    ) -> None:
        self._current = current
        self._dispatcher = dispatcher
        self._metrics = metrics
        self._emit = emit
        self._admission = admission
        self._queue = queue
        self._now = asyncio.get_running_loop().time
        self._unix_now = current.now
        self._log = logging.getLogger("dragoman")
        self._wrong_keys = WrongKeyLimiter()
        self.catalogue = Catalogue(current.since)
        self._load = dispatcher.load
        self.turns = TurnMemory(self._now)
        self._last_traceback = float("-inf")
        self.on_begin: Callable[[RequestRecord], None] = lambda record: None
        self.deadlines: set[Deadlines] = set()
        self.refusals = RefusalResponses()
        self.ready = True
        self.draining = False
        self.in_flight = 0
        self.idle = asyncio.Event()
        self.idle.set()

    async def handle(self, http: web.BaseRequest) -> web.StreamResponse:
        """Answer one request. In every case one record is emitted, and errors have the surface's envelope."""
        started = self._now()
        path = path_of(http)
        if path in HEALTH_PATHS:
            return self._answer_health(path)
        match = resolve_path(path)
        record = RequestRecord(request_id(http.headers), started, match.surface.name, path, http.remote or "")
        admitted = claim_admission(http)
        if admitted is None:
            reason = self._admission.refusal()
            if reason is not None:
                return self._refuse_overloaded(http, match.surface, record, reason)
            admitted = self._admission.begin(0) if http.content.is_eof() else self._admission.expect()
        self.in_flight += 1
        self.idle.clear()
        try:
            if self._queue.busy:
                await self._queue.wait()
            return await self._answer(http, match, record, admitted)
        except GatewayError as error:
            return self._error_response(match.surface, error, record)
        except asyncio.CancelledError:
            record_cancelled(record, self._metrics, http)
            raise
        except MemoryError:
            return self._error_response(match.surface, self._overloaded(record, OverloadReason.MEMORY), record)
        except Exception:  # the outermost handler: no exception of ours may close the connection without an answer
            self._log_traceback(record)
            return self._error_response(match.surface, internal_error(), record)
        finally:
            admitted.end()
            self.in_flight -= 1
            if not self.in_flight:
                self.idle.set()
            record.finished = record.finished or self._now()
            self._emit(record)

    def refuse(self, http: web.BaseRequest, error: GatewayError) -> BufferedResponse:
        """Answer a request that its head makes invalid, and record it."""
        path, now = path_of(http), self._now()
        surface = resolve_path(path).surface
        record = RequestRecord(request_id(http.headers), now, surface.name, path, http.remote or "")
        response = self._error_response(surface, error, record)
        record.finished = now
        self._emit(record)
        return response

    def _log_traceback(self, record: RequestRecord) -> None:
        """Log where a request failed, at a limited rate: a client that finds a fault can repeat it."""
        now = self._now()
        if now - self._last_traceback >= TRACEBACK_EVERY:
            self._last_traceback = now
            self._log.exception("request %s failed", record.request_id)

    async def _answer(
        self, http: web.BaseRequest, match: PathMatch, record: RequestRecord, admitted: Admitted
    ) -> web.StreamResponse:
        surface, snapshot = match.surface, self._current.snapshot
        try:
            action = match.action(http.method)
        except GatewayError:
            known = recognize(snapshot, http.headers, surface.key_headers, self._unix_now())
            if known is not None:
                record.team, record.key = known.team.name, known.name
            raise
        team = self._identify(snapshot, http, surface, record)
        arrive(http.headers)
        self.on_begin(record)
        if (reason := admitted.assign(record.owner)) is not None:
            raise self._overloaded(record, reason)
        if not isinstance(action, Operation):
            return self._response(200, await self._read_models(snapshot, team, match), record, {})
        body = await self._read_body(http, record, admitted)
        heavy = is_heavy(body)
        parse = partial(surface.parse, action, body, snapshot.default_models.get(surface.name))
        request = await self._dispatcher.off_loop.threads.run(record.owner, parse) if heavy else parse()
        self._admit_request(team, request, record)
        planned = plan(snapshot, team, request.model, surface.name, self._load)
        record.model = planned.label
        keeper = None
        if self.turns.concerns(planned, request):
            request, keeper = await self.turns.recall(planned, request, turn_owner(team, record))
        permit_extras(team, request)
        planned = honouring_first(planned, request, team)
        job = make_job(planned, team, request, http.headers, record, heavy=heavy)
        begin = partial(self._begin_stream, http, record, admitted)
        exchange = Exchange(self._dispatcher, self._metrics, job, surface, http, begin, keeper)
        self.deadlines.add(job.deadlines)
        try:
            if request.stream:
                return await exchange.streamed()
            answer, headers = await exchange.whole()
        finally:
            self.deadlines.discard(job.deadlines)
        response = self._response(200, answer, record, headers)
        if len(answer) > BUFFERED_BYTES:
            await self._deliver(http, response, record)
        return response

    def _identify(self, snapshot: Snapshot, http: web.BaseRequest, surface: Surface, record: RequestRecord) -> Team:
        """Return the team of the request's key. Raises GatewayError without a valid one."""
        try:
            key = identify(snapshot, http.headers, surface.key_headers, self._unix_now())
        except WrongKey as wrong:
            wait = self._wrong_keys.count(record.client, self._now())
            record.outcome = "denied"
            raise (too_many_wrong_keys(wait) if wait else wrong) from None
        except ExpiredKey as expired:
            record.team, record.key = expired.key.team.name, expired.key.name
            raise
        record.team, record.key = key.team.name, key.name
        return key.team

    async def _read_body(self, http: web.BaseRequest, record: RequestRecord, admitted: Admitted) -> bytes:
        """Return the body. Raises GatewayError where it cannot be read, or does not fit beside those of others."""
        started = self._now()
        try:
            body = await read_body(http, partial(self._hold_body, record, admitted))
        finally:
            record.client_waited = self._now() - started
        if (reason := admitted.complete()) is not None:
            raise self._overloaded(record, reason)
        return body

    def _hold_body(self, record: RequestRecord, admitted: Admitted, length: int) -> None:
        """Count `length` received bytes. Raises GatewayError where they are too many beside those of others."""
        if not admitted.hold_body(length):
            raise self._overloaded(record, OverloadReason.BODY_BYTES)

    def _admit_request(self, team: Team, request: UnifiedRequest, record: RequestRecord) -> None:
        """Admit a team's parsed request, once, before it is planned; limits and budgets of teams belong here. Raises
        GatewayError where it is refused: today only a stream above the limit of streams."""
        record.asked, record.stream = request.model, request.stream
        if request.stream and (reason := self._admission.refuses_streams()) is not None:
            raise self._overloaded(record, reason)

    async def _begin_stream(
        self, http: web.BaseRequest, record: RequestRecord, admitted: Admitted, extra: Mapping[str, str]
    ) -> web.StreamResponse:
        admitted.commit()
        headers = {**STREAM_HEADERS, "x-request-id": record.request_id, **extra}
        response = web.StreamResponse(status=200, headers=headers)
        if self.draining:
            response.force_close()
        await response.prepare(http)
        return response

    async def _deliver(self, http: web.BaseRequest, response: BufferedResponse, record: RequestRecord) -> None:
        """Wait until the client has read an answer, or its connection is closed because it does not."""
        started = self._now()
        try:
            await response.prepare(http)
            await http.writer.drain()
        except ConnectionError:
            record_client_gone(record, self._metrics)
        finally:
            record.client_waited += self._now() - started

    async def _read_models(self, snapshot: Snapshot, team: Team, match: PathMatch) -> bytes:
        if match.tail is None:
            return await self.catalogue.models(snapshot, team, match.surface)
        return await self.catalogue.model(snapshot, team, match.surface, match.tail)

    def _refuse_overloaded(
        self, http: web.BaseRequest, surface: Surface, record: RequestRecord, reason: OverloadReason
    ) -> web.StreamResponse:
        """Refuse a request of which only the head has been read."""
        record.status, record.code, record.outcome = 503, "overloaded", "shed"
        record.finished = self._now()
        self._metrics.shed(reason)
        self._emit(record)
        keep = may_keep_connection(http) and not self.draining
        return self.refusals.get(surface, reason).response(record.request_id, keep)

    def _overloaded(self, record: RequestRecord, reason: OverloadReason) -> GatewayError:
        record.outcome = "shed"
        self._metrics.shed(reason)
        return overloaded(reason)

    def _error_response(self, surface: Surface, error: GatewayError, record: RequestRecord) -> BufferedResponse:
        facts = error.facts
        status, body = surface.error(facts)
        record.code = error.logged
        if record.outcome == "ok":
            record.outcome = "denied" if error.logged == NOT_ALLOWED else outcome_of(status)
        response = self._response(status, body, record, {**facts.headers, **attempt_headers(record)})
        if status in BODY_UNREAD:
            response.force_close()
        return response

    def _response(self, status: int, body: bytes, record: RequestRecord, extra: Mapping[str, str]) -> BufferedResponse:
        record.status = status
        response = BufferedResponse(status, body, header_lines({"x-request-id": record.request_id, **extra}))
        if self.draining:
            response.force_close()
        return response

    def _answer_health(self, path: str) -> web.Response:
        response = health_response(path, self.ready)
        if self.draining:
            response.force_close()
        return response

    def end_calls(self) -> None:
        """End all calls under way because the process ends; streams get an in-band error."""
        for deadlines in tuple(self.deadlines):
            deadlines.expire(Phase.DRAIN)


def turn_owner(team: Team, record: RequestRecord) -> str:
    """Return whose turns a request may use: its team's, or where there are no teams those of its client's address."""
    return f"team {team.tenant}" if team.tenant else f"client {record.client}"


def outcome_of(status: int) -> Outcome:
    """Return the record's outcome for an error status. A 429 here means that every vendor said to wait."""
    if status in (401, 403):
        return "denied"
    if status < 500 and status != 429:
        return "client_error"
    return "error" if status == 500 else "upstream_error"
