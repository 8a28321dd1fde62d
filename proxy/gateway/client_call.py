"""One call of a client whose team is known: reading its body, and writing its answer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, Protocol, TypeVar, cast

from aiohttp import web

from providers.unified_request import Task, UnifiedRequest
from proxy.deadlines import Deadlines
from proxy.errors import ErrorFacts, FieldProblem, GatewayError, OverloadReason, invalid_request, overloaded
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
from proxy.request_outcomes import GuardMarks
from proxy.request_record import VENDOR_ID, RequestRecord
from proxy.routing.deployment_load import Load
from proxy.routing.request_plan import Plan
from proxy.routing.resolve_model import plan
from proxy.routing.session_load import SessionLoad
from proxy.routing.snapshot import Key, Snapshot, Team
from proxy.surfaces.registry import ID_HEADERS, PathMatch, error_headers
from proxy.surfaces.request.field_rules import model
from proxy.surfaces.request.rule_kinds import Invalid
from proxy.surfaces.surface import Renderer, Surface
from proxy.teams.team_limiter import TeamLimiter
from proxy.telemetry.metrics import Metrics
from proxy.telemetry.observer_guard import ObserverGuard
from proxy.telemetry.request_outcomes import record_client_gone
from proxy.timers import Timers, TimerWheel, alarms

BUFFERED_BYTES = 64 * 1024
"""Bytes of an answer that the connection's buffer takes at once."""


_EVENTS: Final = header_lines(STREAM_HEADERS)
_JSON: Final = header_lines({**BASE_HEADERS, "Content-Type": JSON, "x-accel-buffering": "no"})
"""Of a head before keep-alives, which nginx would hold back."""


@dataclass(slots=True, eq=False)
class ClientCalls:
    """The state that the requests of all clients share. `hooks` are the hooks of requests that begin from now on;
    `deadlines` are the deadlines of the requests in flight, to end them, and `alarms` ring them; `draining` makes each
    response close its connection; `now` is the event loop's clock in seconds; `guard` calls observers while requests
    run; `wheel` calls the streams of clients that wait in silence."""

    metrics: Metrics
    now: Callable[[], float]
    guard: ObserverGuard
    hooks: TeamHooks = field(default_factory=TeamHooks)
    deadlines: set[Deadlines] = field(default_factory=set)
    draining: bool = False
    alarms: Timers = field(default_factory=alarms)
    wheel: TimerWheel = field(init=False)

    def __post_init__(self) -> None:
        self.wheel = TimerWheel(self.alarms)

    def response(self, status: int, body: bytes, record: RequestRecord, extra: Mapping[str, str]) -> BufferedResponse:
        """Return an answer with these headers, and note its status in the record."""
        return self.settled(status, body, record, header_lines(extra))

    def settled(self, status: int, body: bytes, record: RequestRecord, lines: str) -> BufferedResponse:
        """Do as `response`, with headers that are lines already."""
        if record.held is not None:
            self.end_held(record)
        return self.unsettled(status, body, record, lines)

    def unsettled(self, status: int, body: bytes, record: RequestRecord, lines: str) -> BufferedResponse:
        """Return an answer that takes time to be written: what the request holds of limits ends with its record, since
        the ledger's rows are told apart by when they end."""
        record.status = status
        show(record, body)
        lines = f"x-request-id: {record.request_id}\r\n{lines}"  # of an id that is fit for headers
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
        """Give back what a request holds of its limits, if it holds anything. A fault in it changes no response."""
        if record.held is not None and not record.held.ended:
            self.guard.call("limits", record.request_id, record.held.end, record)

    def overloaded(self, record: RequestRecord, reason: OverloadReason) -> GatewayError:
        """Return the error of a request that is refused for the gateway's own sake, and count it."""
        record.outcome = "shed"
        self.metrics.shed(reason)
        return overloaded(reason)


class Named(Protocol):
    """A client's parsed request, a dataclass."""

    @property
    def model(self) -> str:
        """The model that it is for."""


R = TypeVar("R", bound=Named)
T = TypeVar("T")


@dataclass(slots=True, eq=False)
class ClientCall:
    """One call: its HTTP request, what its path means, its record and its place in the gateway, and the table, team,
    key and hooks that hold for it to its end. `size` are the bytes of its body and of what it continues,
    `continued` is the conversation of the stored response that it continues, `prompt_tokens` the estimated length of a
    prompt that was measured off the event loop."""

    shared: ClientCalls
    http: web.BaseRequest
    match: PathMatch
    record: RequestRecord
    admitted: Admitted
    snapshot: Snapshot
    team: Team
    key: Key
    hooks: Hooks
    size: int = 0
    continued: int | None = None
    prompt_tokens: int | None = None

    @property
    def surface(self) -> Surface:
        """The surface of its path."""
        return self.match.surface

    def rendered(self, renderer: Renderer) -> Renderer:
        """Return the renderer of a stream as the hooks leave it."""
        for hook in self.hooks:
            renderer = hook.rendered(self.record, renderer)
        return renderer

    def choice_ended(self, reason: str) -> None:
        """Let the hooks observe why a choice of a stream ended."""
        for hook in self.hooks:
            hook.ended(self.record, reason)

    def add_hooks_of(self, plan: Plan, request: UnifiedRequest) -> None:
        """Add the hooks that the request has by the features of its plan."""
        self.hooks = (*self.hooks, *self.shared.hooks.of_plan(plan, request, self.record, self.http.headers))

    def context_source(self) -> ContextSource | None:
        """Return the source of the stored responses that bodies refer to; `None` if no hook has one."""
        return next((source for hook in self.hooks if (source := hook.context()) is not None), None)

    def default_model(self, task: Task | None = None) -> str | None:
        """Return the model of a request whose body names none: the path's, or else the configuration's. Raises
        GatewayError for a path with an invalid name."""
        if self.match.tail is None:
            surface, snapshot = self.match.surface.name, self.snapshot
            return snapshot.default_models.get(surface) if task is None else snapshot.task_models.get((surface, task))
        try:
            return model(self.match.tail)
        except Invalid as bad:
            raise invalid_request((FieldProblem(("model",), f"'model' in the path {bad.message}."),)) from None

    def for_path(self, request: R) -> R:
        """Return the request for the model in its path, if there is one: Azure ignores a model in the body."""
        name = self.match.tail
        if name is None or name == request.model:
            return request
        return cast(R, replace(cast(UnifiedRequest, request), model=name))

    async def parsed(self, threads: RequestThreads, parse: Callable[[], T], *, heavy: bool) -> T:
        """Return the result of `parse`: of a heavy body in a thread, where it is freed once the request has ended."""
        if not heavy:
            return parse()
        request = await threads.run(self.record.owner, parse)
        self.record.heavy.append(request)
        return request

    def plan(self, name: str, load: Load) -> Plan:
        """Return the plan of a request for `name` of the call's team, and note it in the record. Raises GatewayError
        for a name that the team may not use."""
        planned = plan(self.snapshot, self.team, name, self.match.surface.name, load)
        self.record.model = planned.label
        return planned

    def plan_text(self, limits: TeamLimiter, request: UnifiedRequest, load: Load) -> Plan:
        """Do as `plan`, by the conversation of the request, or plan for what answers instead once the budget of the
        call's team says so. Only for text: no other task can be done by the model of a chat, and none has turns."""
        record, name = self.record, request.model
        planned = self._planned(self.team, name, request, load)
        instead = limits.route(self.key, self.snapshot) if limits.routed else None
        if instead is not None and instead[0] != name:
            record.routed, team = instead
            # As behind a route of the table, the answer names the model that served.
            planned = replace(self._planned(team, record.routed, request, load), by_route=True)
        record.model = planned.label
        return planned

    def _planned(self, team: Team, name: str, request: UnifiedRequest, load: Load) -> Plan:
        snapshot, surface = self.snapshot, self.match.surface.name
        if not snapshot.places:
            return plan(snapshot, team, name, surface, load)
        own = SessionLoad(load, self.team.tenant, self.size, self.http.headers, request, self.continued)
        planned = plan(snapshot, team, name, surface, own)
        self.record.placed, self.record.session = own.placed, own.sent(planned.affinity)
        if own.placed is not None:
            own.placed.first = planned.targets[0].label
        return planned

    async def read_body(self) -> bytes:
        """Return the body. Raises GatewayError where it cannot be read, or does not fit beside those of others."""
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
        """Return the body where all of it has come, so that nothing has to be waited for; else None. Raises as
        `read_body` does."""
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
        """Count `length` received bytes. Raises GatewayError where they are too many beside those of others."""
        if not self.admitted.hold_body(length):
            raise self.shared.overloaded(self.record, OverloadReason.BODY_BYTES)

    def hold_more(self, length: int) -> None:
        """Count bytes that the call needs besides its body. Raises GatewayError where they do not fit beside those of
        others."""
        if not self.admitted.hold_more(length):
            raise self.shared.overloaded(self.record, OverloadReason.BODY_BYTES)

    async def begin_stream(self, extra: Mapping[str, str]) -> StreamedResponse:
        """Begin a streamed answer with these headers, which leave with its first piece."""
        response = self._opened(StreamedResponse({**STREAM_HEADERS, **extra}, self._own_lines()))
        self.stream_begun()
        return response

    def client_stream(self, every: float | None, *, streams: bool) -> ClientStream:
        """Return the sender of a stream, or of keep-alives before JSON, with `every` seconds between two
        keep-alives."""
        opened, filler = (self.open_events, self.match.surface.keep_alive) if streams else (self.open_json, BLANK)
        return ClientStream(opened, self.record, self.shared.wheel, filler, every)

    def open_events(self, lines: str) -> StreamedResponse:
        """Begin a stream of events with these lines of a head: as `begin_stream`, without a mapping of what is the same
        in every head. The call keeps the slot of a request until `stream_begun` is called."""
        return self._opened(StreamedResponse({}, f"{_EVENTS}{self._own_lines()}{lines}", whole_events=True))

    def open_json(self, lines: str) -> StreamedResponse:
        """Begin a response whose JSON follows, as long as it is then."""
        return self._opened(StreamedResponse({}, f"{_JSON}{self._own_lines()}{lines}"))

    def stream_begun(self) -> None:
        """Take the slot of a stream, and free the client's request."""
        self.admitted.commit()
        if self.http.content.at_eof():
            cast(Incoming, self.http).let_head_and_body_go()

    def _own_lines(self) -> str:
        """Return the lines of the head that tell of the request."""
        record = self.record
        lines = f"x-request-id: {record.request_id}\r\n"  # of an id that is fit for headers
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
        """Return a good answer; of one that is larger than the connection's buffer, wait until the client has it."""
        if len(body) <= BUFFERED_BYTES:
            return self.shared.response(200, body, self.record, extra)
        response = self.shared.unsettled(200, body, self.record, header_lines(extra))
        await self._deliver(response)
        return response

    async def _deliver(self, response: BufferedResponse) -> None:
        """Wait until the client has read an answer, or its connection is closed because it does not."""
        shared, record = self.shared, self.record
        started = shared.now()
        try:
            await response.prepare(self.http)
            await self.http.writer.drain()
        except ConnectionError:
            record_client_gone(record, shared.metrics)
        finally:
            record.client_waited += shared.now() - started


def attempt_headers(record: RequestRecord) -> dict[str, str]:
    """Return headers with the deployment called last, the number of attempts, the vendor's id of the last one, and the
    name that requests go to if a budget chose it; no headers if no deployment was called."""
    if record.called is None:
        return {}
    headers = _called(record.called, len(record.attempts))
    if vendor_id := record.vendor_id:
        headers[VENDOR_ID] = vendor_id
    if record.routed is not None:
        headers["x-dragoman-budget-route"] = record.routed
    return headers


def refusal_headers(record: RequestRecord, surface: Surface, facts: ErrorFacts) -> dict[str, str]:
    """Return the headers of an error in the form of a surface."""
    return {**record.passed_on, **error_headers(surface, facts), **attempt_headers(record)}


def answer_headers(record: RequestRecord) -> Mapping[str, str]:
    """Return the headers of a response: the deployment, and which fields were emulated, dropped or changed."""
    headers = {**record.passed_on, **attempt_headers(record)}
    if record.guarded is not None:
        _add_guarded(headers, record, record.guarded)
    if record.emulated:
        headers["x-dragoman-emulated"] = ", ".join(record.emulated)
    if record.dropped:
        headers["x-dragoman-dropped"] = ", ".join(record.dropped)
    if record.max_tokens is not None:
        headers["x-dragoman-max-tokens"] = str(record.max_tokens)
    if record.cache is not None:
        headers["x-dragoman-cache"] = record.cache.result
        if record.from_cache:
            headers["age"] = str(int(record.cache.age))
    return headers


def answer_lines(record: RequestRecord) -> str:
    """Return `answer_headers` as lines. Most responses name their deployment alone, and have the same lines for it."""
    called = record.called
    if called is None or record.emulated or record.dropped or record.guarded is not None or record.cache is not None:
        return header_lines(answer_headers(record))
    if record.max_tokens is not None or record.routed is not None or record.passed:
        return header_lines(answer_headers(record))
    lines = _called_lines(called, len(record.attempts))
    return f"{lines}{VENDOR_ID}: {vendor_id}\r\n" if (vendor_id := record.vendor_id) else lines


@lru_cache(maxsize=1024)  # clients choose the names under `vendor/*`
def _called_lines(called: str, attempts: int) -> str:
    return header_lines(_called(called, attempts))


def _called(called: str, attempts: int) -> dict[str, str]:
    return {"x-dragoman-deployment": called, "x-dragoman-attempts": str(attempts)}


def _add_guarded(headers: dict[str, str], record: RequestRecord, marks: GuardMarks) -> None:
    """Name the plugins that changed something, and note the fields that they dropped."""
    if marks.names:
        headers["x-dragoman-guarded"] = ", ".join(marks.names)
    record.dropped = (*record.dropped, *(each for each in marks.dropped if each not in record.dropped))
