"""The public listener's handler: one client request from its head to its last byte."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from aiohttp import web

from providers.unified_request import Operation, Task
from proxy.deadlines import Deadlines, Phase
from proxy.dispatch.single_attempt import Dispatcher
from proxy.errors import (
    ErrorFacts,
    GatewayError,
    OverloadReason,
    internal_error,
    too_many_wrong_keys,
    usage_refused,
    usage_unknown,
    websocket_refused,
)
from proxy.gateway.answer_generation import TextGeneration
from proxy.gateway.answer_task import TaskAnswers
from proxy.gateway.client_exchange import ClientExchange, Exchanges
from proxy.gateway.count_tokens import TokenCounting
from proxy.gateway.gateway_headers import refusal_headers
from proxy.gateway.match_path import head_of, resolve_path
from proxy.gateway.models_list import Catalogue
from proxy.gateway.pass_on_task import PassThrough
from proxy.gateway.task_apis import TASK_APIS
from proxy.hooks.team_hooks import TeamHooks
from proxy.ledger.usage_report import UsageResponse
from proxy.listener.buffered_response import BufferedResponse
from proxy.listener.health_endpoints import HEALTH_PATHS, health_response
from proxy.listener.http_connection import path_of
from proxy.loop_clock import loop_clock
from proxy.overload.admission_limits import Admission
from proxy.overload.refusal_responses import RefusalResponses, may_keep_connection
from proxy.overload.refusing_connection import admit
from proxy.overload.start_queue import StartQueue
from proxy.receipt.server_timing import NAMELESS, wants_last
from proxy.request_outcomes import Receipt
from proxy.request_record import RequestRecord, fresh_id, request_id
from proxy.routing.resolve_model import allowed
from proxy.routing.snapshot import NO_KEY, CurrentSnapshot, Snapshot, Team
from proxy.surfaces.anthropic.models import models_page
from proxy.surfaces.anthropic.surface import ANTHROPIC
from proxy.surfaces.registry import PathMatch
from proxy.surfaces.surface import Action, CountAction, ReadAction, Surface
from proxy.teams.client_keys import ExpiredKey, WrongKey, key_of, recognize
from proxy.teams.team_limiter import TeamLimiter
from proxy.teams.wrong_keys import WrongKeyLimiter
from proxy.telemetry.request_outcomes import record_cancelled, record_refusal
from proxy.upstream.loop_detection import arrive

BODY_UNREAD = (408, 413, 415)
"""Statuses of a request whose body was not read, so that its connection cannot be reused."""

TRACEBACK_EVERY = 1.0
"""Seconds between two tracebacks in the process log. The access log has a line for each failed request."""


# Any: each action parses a request of its own type.
Respond = Callable[[ClientExchange[Any]], Awaitable[web.StreamResponse]]
"""Responds to a request whose team is known."""


class Gateway:
    """Handles the requests of the public listener, within the limits of their teams. `emit` receives each finished
    record once. `generation` responds to requests for text, `counting` to requests that count tokens, and `catalogue`
    makes the lists of models.

    `on_begin` receives each record once its team is known. `usage` returns the usage of a team for a query string and
    the team. `idle` is set while no request is in flight.
    """

    def __init__(
        self,
        current: CurrentSnapshot,
        dispatcher: Dispatcher,
        limits: TeamLimiter,
        emit: Callable[[RequestRecord], None],
        admission: Admission,
        queue: StartQueue,
    ) -> None:
        self._current = current
        self._dispatcher = dispatcher
        metrics = self._metrics = dispatcher.metrics
        self._emit = emit
        self._admission = admission
        self._queue = queue
        self._now = loop_clock()
        self._unix_now = current.now
        self._log = logging.getLogger("dragoman")
        self._wrong_keys = WrongKeyLimiter()
        self.catalogue = Catalogue(current.since)
        self.guard = dispatcher.guard
        self._exchanges = Exchanges(metrics, self._now, dispatcher.guard, dispatcher.off_loop.threads)
        self.generation = TextGeneration(dispatcher, admission, limits)
        tasks = TaskAnswers(dispatcher, limits)
        passed, self.counting = PassThrough(dispatcher, limits), TokenCounting(dispatcher, limits)
        self._actions: dict[Action, Respond] = {
            ReadAction.MODELS: self._list_models,
            ReadAction.USAGE: self._show_usage,
            **{task: partial(tasks.answer, task, api) for task, api in TASK_APIS.items()},
            Task.MODERATIONS: partial(passed.answer_json, Task.MODERATIONS),
            Task.TRANSCRIPTIONS: partial(passed.answer_form, Task.TRANSCRIPTIONS),
            Task.SPEECH: partial(passed.answer_json, Task.SPEECH),
            Task.IMAGES: partial(passed.answer_json, Task.IMAGES),
            CountAction.TOKENS: self.counting.answer,
        }
        self._last_traceback = float("-inf")
        self._receipt: Receipt | None = None
        self._receipts: dict[Team, Receipt] = {}
        self._receipts_of = current.snapshot
        self.on_begin: Callable[[RequestRecord], None] = lambda record: None
        self.usage: Callable[[str, str], Awaitable[UsageResponse]] | None = None
        self.refusals = RefusalResponses()
        self.ready = True
        self.in_flight = 0
        self.idle = asyncio.Event()
        self.idle.set()

    @property
    def hooks(self) -> TeamHooks:
        """The hooks of requests that begin from now on."""
        return self._exchanges.hooks

    @hooks.setter
    def hooks(self, hooks: TeamHooks) -> None:
        self._exchanges.hooks = hooks

    def serve(self, actions: Mapping[Action, Respond]) -> None:
        """Add functions that respond to further actions."""
        self._actions.update(actions)

    @property
    def draining(self) -> bool:
        """Whether each response closes its connection, because the process is about to end."""
        return self._exchanges.draining

    @draining.setter
    def draining(self, draining: bool) -> None:
        self._exchanges.draining = draining

    def use_receipts(self, *, on: bool) -> None:
        """Set whether requests that begin from now on get receipts."""
        self._receipt = NAMELESS if on else None

    @property
    def deadlines(self) -> set[Deadlines]:
        """The deadlines of the requests in flight."""
        return self._exchanges.deadlines

    async def handle(self, http: web.BaseRequest) -> web.StreamResponse:
        """Respond to one request. Exactly one record is emitted in every case. An error is written in the format of the
        client's API."""
        started = self._now()
        head = head_of(http)
        path, surface = head.path, head.match.surface
        if path in HEALTH_PATHS:
            return self._answer_health(path)
        record = RequestRecord(head.given_id or fresh_id(), started, surface.name, path, http.remote or "")
        record.aside = head.aside
        record.receipt = self._receipt
        admitted = admit(http, self._admission, self._queue)
        if isinstance(admitted, OverloadReason):
            return self._refuse_overloaded(http, surface, record, admitted)
        if not self.in_flight:
            self.idle.clear()
        self.in_flight += 1
        exchange: ClientExchange[Any] = ClientExchange(self._exchanges, http, head, record, admitted)
        try:
            if not admitted.starts:
                await self._queue.wait()
                record.waits().queued = self._now() - started
            return await self._begin(exchange)
        except GatewayError as error:
            return self._error_response(surface, error, record)
        except asyncio.CancelledError:
            record_cancelled(record, self._metrics, http)
            raise
        except MemoryError:
            return self._error_response(surface, self._exchanges.overloaded(record, OverloadReason.MEMORY), record)
        except Exception:  # the outermost handler: no exception here may close the connection without a response
            self._log_traceback(record)
            return self._error_response(surface, internal_error(), record)
        finally:
            admitted.end()
            self._end(record)

    def _end(self, record: RequestRecord) -> None:
        self.in_flight -= 1
        if not self.in_flight:
            self.idle.set()
        record.finished = record.finished or self._now()
        self._exchanges.end_held(record)
        if record.unanswered:
            self.guard.call("ledger", record.request_id, record.bill_unanswered)
        if record.receipt is not None:
            record.receipt = NAMELESS  # else the record would keep the configuration in memory
        record.hooks = ()  # else the record would keep replaced plugins in memory
        self._emit(record)
        if record.heavy:
            self._dispatcher.off_loop.threads.free(record.heavy)

    def refuse(self, http: web.BaseRequest, error: GatewayError) -> BufferedResponse:
        """Respond to a request whose head is invalid, and record it."""
        path, now = path_of(http), self._now()
        surface = resolve_path(path).surface
        record = RequestRecord(request_id(http.headers), now, surface.name, path, http.remote or "")
        response = self._error_response(surface, error, record)
        record.finished = now
        self._emit(record)
        return response

    def _log_traceback(self, record: RequestRecord) -> None:
        """Log the traceback of a failed request, at a limited rate: a client that finds a fault can repeat it."""
        now = self._now()
        if now - self._last_traceback >= TRACEBACK_EVERY:
            self._last_traceback = now
            self._log.exception("request %s failed", record.request_id)

    def _begin(self, exchange: ClientExchange[Any]) -> Awaitable[web.StreamResponse]:
        """Return the response to a request, once its team is known. Raises GatewayError."""
        head, record, http = exchange.head, exchange.record, exchange.http
        action, snapshot, key = head.action, self._current.snapshot, NO_KEY
        if action is None:
            return self._begin_unserved(http, head.match, record)
        if snapshot.keys:
            try:
                key = key_of(snapshot, head.key_digest(http), self._unix_now())
            except (WrongKey, ExpiredKey) as refused:
                raise self._key_refused(refused, record) from None
        team = key.team
        record.team, record.key, record.key_label, record.tags = team.name, key.name, key.label, team.tags
        if head.from_gateway:
            arrive(http.headers)
        hooks = record.hooks = self._exchanges.hooks[team.name, record.surface]
        exchange.snapshot, exchange.key, exchange.team, exchange.hooks = snapshot, key, team, hooks
        for hook in hooks:
            hook.begun(http, record)
        self.guard.call("watchdog", record.request_id, self.on_begin, record)
        if (reason := exchange.admitted.assign(record.owner)) is not None:
            raise self._exchanges.overloaded(record, reason)
        if record.receipt is not None:
            record.receipt = self._receipt_of(snapshot, team, head.receipt)
        if isinstance(action, Operation):
            return self.generation.answer(exchange, action)
        return self._actions[action](exchange)

    def _receipt_of(self, snapshot: Snapshot, team: Team, asked: str | None) -> Receipt:
        """Return the receipt of a team's request. `asked` is the header that selects it. Raises GatewayError for an
        unknown value."""
        if self._receipts_of is not snapshot:
            self._receipts, self._receipts_of = {}, snapshot
        receipt = self._receipts.get(team)
        if receipt is None:
            receipt = self._receipts[team] = Receipt(partial(allowed, snapshot, team))
        return receipt if asked is None else receipt._replace(last=wants_last(asked))

    def _begin_unserved(
        self, http: web.BaseRequest, match: PathMatch, record: RequestRecord
    ) -> Awaitable[web.StreamResponse]:
        """Return the response to a request whose path or method is not served. Raises GatewayError."""
        try:
            match.action(http.method)
        except GatewayError as error:
            probed = self._answer_probe(http, match, record, error.facts)
            if probed is None:
                raise
            return _given(probed)
        raise RuntimeError("an action that its head does not have")

    def _answer_probe(
        self, http: web.BaseRequest, match: PathMatch, record: RequestRecord, facts: ErrorFacts
    ) -> BufferedResponse | None:
        """Return the response to a path that clients probe; `None` for any other path. Raises GatewayError for
        WebSocket."""
        if match.path == "/" and http.method == "HEAD":
            # Claude Code's probe, which has no key.
            return self._exchanges.response(200, b"", record, {})
        known = recognize(self._current.snapshot, http.headers, match.surface.key_headers, self._unix_now())
        if known is not None:
            record.team, record.key, record.key_label = known.team.name, known.name, known.label
        if facts.status == 405 and http.headers.get("upgrade", "").lower() == "websocket":
            raise websocket_refused(facts.headers["allow"]) from None
        return None

    def _key_refused(self, refused: WrongKey | ExpiredKey, record: RequestRecord) -> GatewayError:
        """Count a request without a valid key, and return the error of its response."""
        if isinstance(refused, ExpiredKey):
            self._metrics.key_refused("expired")
            key, team = refused.key, refused.key.team
            record.team, record.key, record.key_label, record.tags = team.name, key.name, key.label, team.tags
            return refused
        self._metrics.key_refused("wrong")
        wait = self._wrong_keys.count(record.client, self._now())
        record.outcome = "denied"
        return too_many_wrong_keys(wait) if wait else refused

    async def _list_models(self, exchange: ClientExchange[Any]) -> BufferedResponse:
        snapshot, team, match = exchange.snapshot, exchange.team, exchange.match
        if match.tail is None:
            body = await self.catalogue.models(snapshot, team, match.surface)
            if match.surface is ANTHROPIC:
                body = models_page(body, exchange.http.query)
        else:
            body = await self.catalogue.model(snapshot, team, match.surface, match.tail)
        return self._exchanges.response(200, body, exchange.record, {})

    async def _show_usage(self, exchange: ClientExchange[Any]) -> BufferedResponse:
        """Return the usage of the key's team. This request counts for no limit."""
        if self.usage is None or exchange.key is NO_KEY:
            raise usage_unknown()
        answer = await self.usage(exchange.http.query_string, exchange.team.name)
        if answer.message:
            raise usage_refused(answer.status, answer.code, answer.message)
        return self._exchanges.response(answer.status, answer.body, exchange.record, {})

    def _refuse_overloaded(
        self, http: web.BaseRequest, surface: Surface, record: RequestRecord, reason: OverloadReason
    ) -> web.StreamResponse:
        """Refuse a request because of overload, after only its head has been read."""
        refusal = self.refusals.get(surface, reason)
        record.status, record.code, record.outcome = refusal.status, "overloaded", "shed"
        record.finished = self._now()
        self._metrics.shed(reason)
        self._emit(record)
        keep = may_keep_connection(http) and not self.draining
        return refusal.response(record.request_id, keep)

    def _error_response(self, surface: Surface, error: GatewayError, record: RequestRecord) -> BufferedResponse:
        facts = error.facts
        status, body = surface.error(facts)
        record_refusal(record, error.logged, status)
        response = self._exchanges.response(status, body, record, refusal_headers(record, surface, facts))
        if status in BODY_UNREAD:
            response.force_close()
        return response

    def _answer_health(self, path: str) -> web.Response:
        response = health_response(path, self.ready)
        if self.draining:
            response.force_close()
        return response

    def end_calls(self) -> None:
        """End all exchanges in flight because the process ends; streams get an in-band error."""
        for deadlines in tuple(self.deadlines):
            deadlines.expire(Phase.DRAIN)


async def _given(response: BufferedResponse) -> BufferedResponse:
    return response
