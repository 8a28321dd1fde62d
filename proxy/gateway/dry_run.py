"""Dry run of a request: the rules that choose its targets, and the exact call that each would get.

It never sends or waits, and reads no clock and no random numbers: equal input gives an equal explanation.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeAlias, cast

import orjson
from multidict import CIMultiDict

from providers.constraints.constraint_styles import Unenforceable
from providers.dialect import TaskCalls, UpstreamRequest
from providers.emulation.check_answer import compile_check
from providers.emulation.plan_calls import CallPlan, unsupported_field
from providers.failure import FailureKind, Refusal
from providers.request_fields import PROMPT_FIELDS
from providers.target import Target
from providers.tasks.pass_on import PassedCall, pass_on
from providers.unified_request import Operation, Task, UnifiedRequest
from proxy.dispatch.next_deployment import prepared_for
from proxy.dispatch.prefer_honouring import honouring_first
from proxy.errors import GatewayError, field_refused
from proxy.gateway.estimate_prompt import request_size
from proxy.gateway.match_path import resolve_path
from proxy.gateway.read_passed import read_passed
from proxy.gateway.task_apis import TASK_APIS
from proxy.hedging.hedged_requests import why_never, why_not_first, why_not_hedged
from proxy.limits.limit import end_user
from proxy.routing.deployment_load import Idle
from proxy.routing.request_plan import Plan
from proxy.routing.resolve_model import plan_for, settings_of
from proxy.routing.session_load import PlacedSession, Placement, SessionLoad
from proxy.routing.snapshot import Snapshot, Team
from proxy.surfaces.registry import STORING, SURFACES, PathMatch
from proxy.surfaces.surface import ReferredIds, StoringSurface
from proxy.teams.client_keys import permit_extras
from proxy.teams.limit_outline import RequestLimits, request_limits
from proxy.teams.team_limiter import RequestSize
from proxy.upstream.mock_transport import SCHEME, refused_by_mock
from proxy.upstream.request_headers import DEFAULT_HEADERS, call_headers

DEFAULT_SURFACE: Final = "openai"

REQUEST_ID: Final = "(the client's, or a fresh one)"


Calls = CallPlan | TaskCalls[object] | PassedCall
Outcome = Calls | Refusal


class NotServed(Refusal):
    """A target that the mock does not serve. A request that is routed to the target gets `answer`."""

    def __init__(self, answer: GatewayError) -> None:
        super().__init__(
            answer.facts.param or "",
            "the mock's faults, delays and long answers need a model that the table names, not an entry for any model",
            answer.facts.code,
        )
        self.answer = answer


@dataclass(frozen=True, slots=True)
class Trial:
    """One target of the plan with the calls it would get, or with the reason why it cannot honour the request.

    `behind` are the fields that this target would drop, and because of which it comes after targets that honour them.
    """

    target: Target
    outcome: Outcome
    behind: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of one request.

    `fallbacks` are the targets used after a failure of a kind for which the configuration has its own list. `drawn` is
    set if the order of the targets varies between requests; this is one possible order. `error` is the status and the
    body of the response if nothing would be sent upstream; `logged` is the error code in the log if it differs from the
    code in the response. `plan` is `None` if the request is refused before it is planned, `limits` is `None` if nothing
    limits the request. A budget may also route the request to another name, depending on the amount spent at that time.
    `plugins` are the configuration's plugins that the request would pass; they are not called here. `fallbacks_of` is
    the route that defines the fallbacks, empty if it is the requested name itself. `placed` describes how the
    conversation of the request orders the targets (`None` if the name has no affinity). `with_headers` is true if the
    client's headers are known. If the name has second attempts, `unhedged` is the reason why this request has no second
    attempt, as a clause (`None`: it may have one).
    """

    path: str
    surface: str
    team: str
    plan: Plan | None
    drawn: bool
    trials: tuple[Trial, ...]
    fallbacks: Mapping[FailureKind, tuple[Trial, ...]]
    error: tuple[int, bytes] | None
    logged: str | None = None
    limits: RequestLimits | None = None
    plugins: tuple[str, ...] = ()
    placed: PlacedSession | None = None
    unhedged: str | None = None
    fallbacks_of: str = ""
    with_headers: bool = False

    @property
    def chosen(self) -> Calls | None:
        """The calls of the first target that can honour the request; `None` if nothing would be sent."""
        if self.error is not None:
            return None
        ready = (each.outcome for each in self.trials if not isinstance(each.outcome, Refusal))
        return next(ready, None)

    @property
    def without_second(self) -> str | None:
        """Why the request has no second attempt although its name has them, as a clause; `None` if it may have one."""
        if self.plan is None or self.plan.hedge is None:
            return None
        if (why := why_never(self.plan.targets)) is not None:
            return why
        calls = self.chosen
        if not isinstance(calls, CallPlan):
            return "it is not for completions"
        return self.unhedged or why_not_first(calls)

    def why_skipped(self, placement: Placement) -> str | None:
        """Return the reason why the best member of a group is not called first, as a clause; `None` if it is called
        first."""
        if placement.why_skipped is not None:
            return placement.why_skipped
        name, home = placement.ranked_names[0], placement.home
        if all(target.out_of_service for target in home):
            return f"{name} is out of service"
        trials = [trial for trial in self.trials if trial.target in home]
        if trials and all(isinstance(trial.outcome, Refusal) for trial in trials):
            return f"{name} cannot honour the request"
        if trials and all(trial.behind for trial in trials):
            return f"{name} would drop {', '.join(trials[0].behind)}"
        return None


@dataclass(slots=True)
class _ObservedIdle(Idle):
    """A load of zero. `drawn` is set if a policy has used a random number or a turn."""

    drawn: bool = field(default=False)

    def draw(self) -> float:
        """Return the lowest random number, and note that it was drawn."""
        self.drawn = True
        return 0.0

    def turn(self, group: str) -> int:
        """Return the first turn, and note that it was taken."""
        self.drawn = True
        return 0


@dataclass(frozen=True, slots=True)
class _RequestBytes:
    """A client's request: its body, and headers with case-insensitive names."""

    body: bytes
    headers: Mapping[str, str]


class NotGenerating(ValueError):
    """The error for a path whose requests cannot be explained."""


class StoreNeeded(ValueError):
    """The error for a request that refers to stored responses, which only a running gateway has."""


_Planned: TypeAlias = tuple[Plan, Callable[[Target], Outcome], RequestSize, str | None]
"""A plan, the call for each of its targets, the size of the request, and its end user."""


def explained(
    snapshot: Snapshot, team: Team, path: str, body: bytes, headers: Mapping[str, str] | None = None
) -> Explanation:
    """Explain a POST of `body` to `path` with a key of the team.

    `headers` have case-insensitive names; only headers that name a conversation matter, and the explanation contains no
    header value. `None` means that the headers are not known.

    Raises NotGenerating for another kind of path, and StoreNeeded.
    """
    match = resolve_path(path)
    load = _ObservedIdle()
    plan: Plan | None = None
    trials: tuple[Trial, ...] = ()
    fallbacks: dict[FailureKind, tuple[Trial, ...]] = {}
    error: tuple[int, bytes] | None = None
    logged: str | None = None
    limits: RequestLimits | None = None
    placed: PlacedSession | None = None
    unhedged: str | None = None
    try:
        action = match.action("POST")
        if isinstance(action, Operation):
            request = _RequestBytes(body, headers or {})
            plan, outcome, size, user, placed, unhedged = _planned_text(snapshot, team, match, action, request, load)
        elif isinstance(action, Task) and action in TASK_APIS:
            plan, outcome, size, user = _planned_task(snapshot, team, match, action, body, load)
        elif isinstance(action, Task) and action is not Task.TRANSCRIPTIONS:
            plan, outcome, size, user = _planned_passed(snapshot, team, match, action, body, load)
        else:
            raise NotGenerating(f"{match.path} has no calls that could be shown: it takes a form, or only reads")
        limits = request_limits(snapshot, team, plan, size, end_user(user))
        trials = _trials(outcome, plan, plan.targets)
        for kind, targets in plan.fallbacks.items():
            fallbacks[kind] = _trials(outcome, plan, targets)
        _require_one(trials)
    except GatewayError as problem:
        error = match.surface.error(problem.facts)
        logged = problem.logged if problem.logged != problem.facts.code else None
    drawn = load.drawn and len(trials) > 1
    found = (path, match.surface.name, team.name, plan, drawn, trials, fallbacks, error, logged, limits)
    fallbacks_of = _fallbacks_of(snapshot, team, plan)
    known = headers is not None
    return Explanation(*found, placed=placed, unhedged=unhedged, fallbacks_of=fallbacks_of, with_headers=known)


def _fallbacks_of(snapshot: Snapshot, team: Team, plan: Plan | None) -> str:
    """Return the route that defines the fallbacks of a plan, empty if it is the requested name itself."""
    route = None if plan is None else team.routes.get(plan.asked) or snapshot.routes.get(plan.asked)
    return "" if route is None else settings_of(snapshot, team, route).fallbacks_of


def _planned_text(
    snapshot: Snapshot, team: Team, match: PathMatch, operation: Operation, asked: _RequestBytes, load: Idle
) -> tuple[*_Planned, PlacedSession | None, str | None]:
    surface, body = match.surface, asked.body
    if isinstance(surface, StoringSurface) and (ids := surface.referred_ids(body)) != ReferredIds():
        named = [*([ids.previous] if ids.previous else []), *ids.items]
        raise StoreNeeded(f"the request refers to {named[0]}, which only a running gateway has stored; write it out")
    request = surface.parse(operation, body, snapshot.default_models.get(surface.name))
    permit_extras(team, request)
    own = SessionLoad(load, team.tenant, len(body), asked.headers, request)
    plan = plan_for(snapshot, team, request.model, surface.name, own)
    size = request_size(request, [*plan.every_target])
    outcome = partial(_outcome, request, team, own.sent(plan.affinity))
    unhedged = why_not_hedged(request, storing=surface.name in STORING)
    return honouring_first(plan, request, team), outcome, size, request.user, own.placed, unhedged


def _planned_task(snapshot: Snapshot, team: Team, match: PathMatch, task: Task, body: bytes, load: Idle) -> _Planned:
    api = TASK_APIS[task]
    request = api.parse(body, snapshot.task_models.get((match.surface.name, task)))
    plan = plan_for(snapshot, team, request.model, match.surface.name, load)
    api.check(plan)
    permit_extras(team, request)

    def outcome(target: Target) -> Outcome:
        try:
            return cast(TaskCalls[object], api.calls(request, target, team.on_unsupported or target.on_unsupported))
        except Refusal as refusal:
            return refusal

    return plan, outcome, (len(body), 0, 1), request.user


def _planned_passed(snapshot: Snapshot, team: Team, match: PathMatch, task: Task, body: bytes, load: Idle) -> _Planned:
    request = read_passed(task, body, snapshot.task_models.get((match.surface.name, task)))
    plan = plan_for(snapshot, team, request.model, match.surface.name, load)
    permit_extras(team, request)

    def outcome(target: Target) -> Outcome:
        try:
            return pass_on(request, target)
        except Refusal as refusal:
            return refusal

    return plan, outcome, (0, 0, 1), request.user


def _trials(outcome: Callable[[Target], Outcome], plan: Plan, targets: Sequence[Target]) -> tuple[Trial, ...]:
    dropping = plan.dropping
    first = next((position for position, target in enumerate(targets) if target in dropping), 0)
    # If every target would drop a field, this does not change the order.
    behind = dropping if first else {}
    return tuple(Trial(target, _served(outcome(target), target), behind.get(target, ())) for target in targets)


def _served(outcome: Outcome, target: Target) -> Outcome:
    """Return the outcome after the transport of its calls: NotServed if the transport is the mock and does not serve
    them."""
    if isinstance(outcome, Refusal) or not any(sent.url.startswith(SCHEME) for sent in sent_calls(outcome)):
        return outcome
    answer = refused_by_mock(target)
    return outcome if answer is None else NotServed(answer)


def _outcome(request: UnifiedRequest, team: Team, session: str | None, target: Target) -> CallPlan | Refusal:
    try:
        prepared = prepared_for(request, target, team, session)
    except Refusal as refusal:
        return refusal
    for check in prepared.checks:
        try:
            compile_check(check)
        except Unenforceable as error:
            return unsupported_field(target, check.field, error.reason)
    return prepared


def sent_calls(calls: Calls) -> tuple[UpstreamRequest, ...]:
    """Return every call of a target, in order."""
    return tuple(call.sent for call in calls.calls) if isinstance(calls, CallPlan) else calls.calls


def is_counted(calls: Calls) -> bool:
    """Return whether the tokens of the prompt are first counted and compared with the context window."""
    return isinstance(calls, CallPlan) and calls.counted


def why_dropped(calls: Calls) -> Mapping[str, str]:
    """Return the dropped fields that the target refuses, each with the text of the refusal."""
    return calls.refused if isinstance(calls, CallPlan) else {}


def _require_one(trials: tuple[Trial, ...]) -> None:
    """Raise the gateway's error if nothing would be sent: the first target that it calls is not served, or no
    target can honour the request."""
    refusals: list[Refusal] = []
    for each in trials:
        if isinstance(each.outcome, NotServed):
            raise each.outcome.answer
        if not isinstance(each.outcome, Refusal):
            return
        refusals.append(each.outcome)
    raise field_refused(refusals[0])


def upstream_headers(sent: UpstreamRequest) -> dict[str, str]:
    """Return the headers of a call with every secret masked, without `Host` and `Content-Length`."""
    headers = CIMultiDict(DEFAULT_HEADERS)
    headers.update(call_headers(sent, sent.target.credential.masked(), REQUEST_ID))
    return dict(headers)


def default_path(surface: str, body: bytes) -> str:
    """Return the surface's first path for the prompt field in this body. If the body has no such field, return the path
    of text completions. If the surface lacks the path, return its first path."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        value = None
    fields = value if isinstance(value, dict) else {}
    wanted = next((operation for operation, name in PROMPT_FIELDS.items() if name in fields), Operation.COMPLETIONS)
    endpoints = [endpoint for each in SURFACES if each.name == surface for endpoint in each.endpoints]
    return next((endpoint.path for endpoint in endpoints if endpoint.action == wanted), endpoints[0].path)
