"""The exchange of one client request in the gateway: the request is read and planned, and its response is written."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Protocol, TypeVar, cast

from aiohttp import web

from providers.unified_request import Task, UnifiedRequest
from proxy.deadlines import Deadlines
from proxy.dispatch.exchange import Exchange, R
from proxy.errors import FieldProblem, GatewayError, OverloadReason, invalid_request, overloaded
from proxy.gateway.match_path import TIMEOUT_HEADER, RequestHead
from proxy.hooks.request_hook import ContextSource, Hooks, show
from proxy.hooks.team_hooks import TeamHooks
from proxy.listener.buffered_response import BASE_HEADERS, JSON, STREAM_HEADERS, BufferedResponse, header_lines
from proxy.listener.client_request import Incoming
from proxy.listener.request_body import read_body, received_body
from proxy.listener.streamed_response import StreamedResponse
from proxy.off_loop.request_threads import RequestThreads
from proxy.overload.admission_limits import Admitted
from proxy.receipt.server_timing import timing_line
from proxy.relay.client_stream import BLANK, ClientStream
from proxy.request_record import RequestRecord
from proxy.routing.deployment_load import Load
from proxy.routing.request_plan import Plan
from proxy.routing.resolve_model import plan_for
from proxy.routing.session_load import SessionLoad
from proxy.routing.snapshot import Key, Snapshot, Team
from proxy.surfaces.registry import ID_HEADERS
from proxy.surfaces.request.field_rules import model
from proxy.surfaces.request.rule_kinds import Invalid
from proxy.teams.team_limiter import TeamLimiter
from proxy.telemetry.metrics import Metrics
from proxy.telemetry.observer_guard import ObserverGuard
from proxy.telemetry.request_outcomes import record_client_gone
from proxy.timers import Timers, TimerWheel, loop_alarms

BUFFERED_BYTES: Final = 64 * 1024
"""The most bytes of a response that the connection's buffer takes at once."""

_SECONDS: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")

_EVENTS: Final = header_lines(STREAM_HEADERS)
_JSON: Final = header_lines({**BASE_HEADERS, "Content-Type": JSON, "x-accel-buffering": "no"})
"""The lines of a response head that keep-alives follow. Without `x-accel-buffering: no`, nginx would hold keep-alives
back."""


@dataclass(slots=True, eq=False)
class Exchanges:
    """The state that the exchanges of all clients share. `hooks` are the hooks of requests that begin from now on;
    `deadlines` are the deadlines of the requests in flight, by which they can be ended, and `alarms` are their timers;
    `draining` makes each response close its connection; `now` is the event loop's clock in seconds; `guard` calls
    observers while requests run; `wheel` calls the streams of clients that wait in silence; work of large requests runs
    in `threads`."""

    metrics: Metrics
    now: Callable[[], float]
    guard: ObserverGuard
    threads: RequestThreads
    hooks: TeamHooks = field(default_factory=TeamHooks)
    deadlines: set[Deadlines] = field(default_factory=set)
    draining: bool = False
    alarms: Timers = field(default_factory=loop_alarms)
    wheel: TimerWheel = field(init=False)

    def __post_init__(self) -> None:
        self.wheel = TimerWheel(self.alarms)

    def response(self, status: int, body: bytes, record: RequestRecord, extra: Mapping[str, str]) -> BufferedResponse:
        """Return a response with these extra headers, and note its status in the record."""
        return self.settled(status, body, record, header_lines(extra))

    def settled(self, status: int, body: bytes, record: RequestRecord, lines: str) -> BufferedResponse:
        """Do as `response`, with headers that are already formatted as lines."""
        if record.held is not None:
            self.end_held(record)
        return self.unsettled(status, body, record, lines)

    def unsettled(self, status: int, body: bytes, record: RequestRecord, lines: str) -> BufferedResponse:
        """Return a response that takes time to be written. The request's reservations in limits are not ended here, but
        with its record, because the ledger distinguishes its rows by the time of their end."""
        record.status = status
        show(record, body)
        lines = f"x-request-id: {record.request_id}\r\n{lines}"  # the id has only characters that headers allow
        if record.surface in ID_HEADERS:
            lines += f"{ID_HEADERS[record.surface]}: {record.request_id}\r\n"
        lines += record.hook_lines
        if record.held is not None:
            lines += record.held.header_lines()
        if record.receipt is not None:
            lines += timing_line(record, self.now())
        response = BufferedResponse(status, body, lines)
        if self.draining:
            response.force_close()
        return response

    def end_held(self, record: RequestRecord) -> None:
        """End the reservations of a request in limits, if it has any. An exception meanwhile changes no response."""
        if record.held is not None and not record.held.ended:
            self.guard.call("limits", record.request_id, record.held.end, record)

    def overloaded(self, record: RequestRecord, reason: OverloadReason) -> GatewayError:
        """Return the error of a request that is refused because the gateway is overloaded, and count the refusal."""
        record.outcome = "shed"
        self.metrics.shed(reason)
        return overloaded(reason)


class Named(Protocol):
    """A client's parsed request, a dataclass."""

    @property
    def model(self) -> str:
        """The model that the request names."""


N = TypeVar("N", bound=Named)
T = TypeVar("T")


class ClientExchange(Exchange[R]):
    """An exchange with its client. The listener's request and its `head` are set from the beginning. `snapshot`, `key`,
    `team` and `hooks` are set once the team is known, and do not change until the end. `request`, `plan` and
    `deadlines` are set once the request has been parsed and planned.

    `size` is the number of bytes of the request's body and of the stored responses that it continues, `continued` is
    the number of the conversation of these responses, `prompt_tokens` the estimated length of a prompt that was
    measured off the event loop.
    """

    __slots__ = (
        *("admitted", "continued", "head", "hooks", "http", "key", "match", "prompt_tokens", "shared", "size"),
        *("snapshot", "surface"),
    )

    hooks: Hooks
    key: Key
    snapshot: Snapshot

    def __init__(
        self, shared: Exchanges, http: web.BaseRequest, head: RequestHead, record: RequestRecord, admitted: Admitted
    ) -> None:
        self.shared = shared
        self.http = http
        self.head = head
        self.match = head.match
        self.surface = head.match.surface
        self.record = record
        self.admitted = admitted
        self.heavy = False
        self.size = 0
        self.continued: int | None = None
        self.prompt_tokens: int | None = None

    # The request ----------------------------------------------------------------------------------------------------

    def context_source(self) -> ContextSource | None:
        """Return the source of the stored responses that bodies refer to; `None` if no hook has one."""
        return next((source for hook in self.hooks if (source := hook.context()) is not None), None)

    def default_model(self, task: Task | None = None) -> str | None:
        """Return the model for a body without a model: the model in the path, or else the configuration's default
        model. Raises GatewayError for a path with an invalid name."""
        if self.match.tail is None:
            surface, snapshot = self.surface.name, self.snapshot
            return snapshot.default_models.get(surface) if task is None else snapshot.task_models.get((surface, task))
        try:
            return model(self.match.tail)
        except Invalid as bad:
            raise invalid_request((FieldProblem(("model",), f"'model' in the path {bad.message}."),)) from None

    def for_path(self, request: N) -> N:
        """Return the request with the model in its path, if the path has one, because Azure ignores a model in the
        body."""
        name = self.match.tail
        if name is None or name == request.model:
            return request
        return cast(N, replace(cast(UnifiedRequest, request), model=name))

    async def parsed(self, parse: Callable[[], T]) -> T:
        """Return the result of `parse`, which runs in a thread if the body is heavy. Such a result is freed off the
        event loop once the request has ended."""
        if not self.heavy:
            return parse()
        request = await self.shared.threads.run(self.record.owner, parse)
        self.record.heavy.append(request)
        return request

    # Its plan -------------------------------------------------------------------------------------------------------

    def plan_task(self, name: str, load: Load) -> None:
        """Plan a request for the team's model or route `name`, and note the name in the record. Raises GatewayError for
        a name that the team may not use."""
        self.plan = plan_for(self.snapshot, self.team, name, self.surface.name, load)
        self.record.model = self.plan.label

    def plan_text(self: "ClientExchange[UnifiedRequest]", limits: TeamLimiter, load: Load) -> None:
        """Do as `plan_task`, with the conversation of the request taken into account, and with another name if the
        budget of its team requires that. This is only for text: other tasks have no turns, and a chat model cannot do
        them."""
        record, name, snapshot = self.record, self.request.model, self.snapshot
        if snapshot.has_affinity:
            plan = self._placed(self.team, name, load)
        else:
            plan = plan_for(snapshot, self.team, name, self.surface.name, load)
        if limits.routed and (instead := limits.route(self.key, snapshot)) is not None and instead[0] != name:
            record.routed, team = instead
            # As for a route of the configuration, the response names the model that served.
            plan = replace(self._placed(team, record.routed, load), by_route=True)
        self.plan = plan
        record.model = plan.label

    def _placed(self: "ClientExchange[UnifiedRequest]", team: Team, name: str, load: Load) -> Plan:
        """Return the plan of a name, in the order for the request's conversation if names have affinity."""
        snapshot, surface, record = self.snapshot, self.surface.name, self.record
        if not snapshot.has_affinity:
            return plan_for(snapshot, team, name, surface, load)
        own = SessionLoad(load, self.team.tenant, self.size, self.http.headers, self.request, self.continued)
        plan = plan_for(snapshot, team, name, surface, own)
        record.placed, record.session = own.placed, own.sent(plan.affinity)
        if own.placed is not None:
            own.placed.first = plan.targets[0].label
        return plan

    def add_hooks(self: "ClientExchange[UnifiedRequest]") -> None:
        """Add the hooks of the features that the request's plan uses."""
        self.hooks = (*self.hooks, *self.shared.hooks.of_plan(self, self.http.headers))

    def set_deadlines(self) -> None:
        """Set the deadlines of a planned request: the longest total timeout of its targets, or the client's if that is
        shorter, less the time that the request has waited for limits.

        Raises GatewayError for an `x-request-timeout` that is not a number of seconds.
        """
        limit = total = self.plan.total
        timeout, text = self.request.timeout, self.head.timeout
        if timeout is not None and timeout < total:
            total = timeout
        if text is not None:
            total = min(total, seconds_of(text))
        self.hurried = total < limit
        self.total = total - self.record.limit_waited
        self.deadlines = Deadlines(self.total, self.shared.alarms, self.shared.deadlines)

    # Its body -------------------------------------------------------------------------------------------------------

    async def read_body(self) -> bytes:
        """Return the body. Raises GatewayError if it cannot be read, or does not fit into memory beside the bodies of
        other requests."""
        body = self.whole_body()
        if body is not None:
            return body
        shared, record = self.shared, self.record
        started = shared.now()
        try:
            body = await read_body(self.http, self._hold_body)
        finally:
            record.client_waited = record.waits().upload = shared.now() - started
        return self._taken(body)

    def whole_body(self) -> bytes | None:
        """Return the body if it has been received completely, without waiting; else `None`. Raises as `read_body`
        does."""
        body = received_body(self.http)
        if body is None:
            return None
        if (reason := self.admitted.hold_whole(len(body))) is not None:
            raise self.shared.overloaded(self.record, reason)
        for hook in self.hooks:
            hook.received(self.record, body)
        return body

    def _taken(self, body: bytes) -> bytes:
        if (reason := self.admitted.complete()) is not None:
            raise self.shared.overloaded(self.record, reason)
        for hook in self.hooks:
            hook.received(self.record, body)
        return body

    def _hold_body(self, length: int) -> None:
        """Count `length` received bytes. Raises GatewayError if they are too many beside the bytes of other
        requests."""
        if not self.admitted.hold_body(length):
            raise self.shared.overloaded(self.record, OverloadReason.BODY_BYTES)

    def hold_more(self, length: int) -> None:
        """Count bytes that the request needs besides its body. Raises GatewayError if they are too many beside the
        bytes of other requests."""
        if not self.admitted.hold_more(length):
            raise self.shared.overloaded(self.record, OverloadReason.BODY_BYTES)

    # Its response ---------------------------------------------------------------------------------------------------

    async def begin_stream(self, extra: Mapping[str, str]) -> StreamedResponse:
        """Begin a streamed response with these extra headers. They are sent together with its first chunk."""
        response = self._opened(StreamedResponse({**STREAM_HEADERS, **extra}, self._own_lines()))
        self.stream_begun()
        return response

    def client_stream(self: "ClientExchange[UnifiedRequest]", every: float | None) -> ClientStream:
        """Return the sender of a stream, or of keep-alives before JSON, with `every` seconds between two
        keep-alives."""
        if self.request.stream:
            return ClientStream(self.open_events, self.record, self.shared.wheel, self.surface.keep_alive, every)
        return ClientStream(self.open_json, self.record, self.shared.wheel, BLANK, every)

    def open_events(self, lines: str) -> StreamedResponse:
        """Begin a stream of events with these extra header lines. Unlike `begin_stream`, this builds no mapping of the
        headers that are the same in every head. The exchange keeps the slot of a request until `stream_begun` is
        called."""
        return self._opened(StreamedResponse({}, f"{_EVENTS}{self._own_lines()}{lines}", whole_events=True))

    def open_json(self, lines: str) -> StreamedResponse:
        """Begin a response whose JSON body follows and may have any length."""
        return self._opened(StreamedResponse({}, f"{_JSON}{self._own_lines()}{lines}"))

    def stream_begun(self) -> None:
        """Exchange the request's slot for the slot of a stream, and free the client's request."""
        self.admitted.commit()
        if self.http.content.at_eof():
            cast(Incoming, self.http).let_head_and_body_go()

    def _own_lines(self) -> str:
        """Return the lines of the head that identify the request."""
        record = self.record
        lines = f"x-request-id: {record.request_id}\r\n"  # the id has only characters that headers allow
        if record.surface in ID_HEADERS:
            lines += f"{ID_HEADERS[record.surface]}: {record.request_id}\r\n"
        lines += record.hook_lines
        return lines if record.held is None else lines + record.held.header_lines()

    def _opened(self, response: StreamedResponse) -> StreamedResponse:
        if self.shared.draining:
            response.force_close()
        response.begin(self.http)
        return response

    async def respond(self, body: bytes, extra: Mapping[str, str]) -> BufferedResponse:
        """Return a response with status 200. If it is larger than the connection's buffer, wait until the client has
        read it."""
        if len(body) <= BUFFERED_BYTES:
            return self.shared.response(200, body, self.record, extra)
        response = self.shared.unsettled(200, body, self.record, header_lines(extra))
        await self._deliver(response)
        return response

    async def _deliver(self, response: BufferedResponse) -> None:
        """Wait until the client has read a response, or its connection has been closed because it does not read."""
        shared, record = self.shared, self.record
        started = shared.now()
        try:
            await response.prepare(self.http)
            await self.http.writer.drain()
        except ConnectionError:
            record_client_gone(record, shared.metrics)
        finally:
            record.client_waited += shared.now() - started


def seconds_of(text: str) -> float:
    """Return the seconds within which the client wants the response. They are a duration, so that the clocks may
    differ. Raises GatewayError for any other text."""
    if not _SECONDS.fullmatch(text) or not float(text):
        raise invalid_request(
            (FieldProblem((TIMEOUT_HEADER,), f"'{TIMEOUT_HEADER}' must be a number of seconds, such as 30 or 2.5."),)
        )
    return float(text)
