"""What would become of a request: the rules that chose its targets, and the exact call each of them would get.

Never sends, waits, reads a clock or draws: the same input gives the same explanation.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import orjson
from multidict import CIMultiDict

from providers.dialect import Target, UpstreamRequest
from providers.failure import FailureKind, Refusal
from providers.guided import Unenforceable
from providers.shape import Prepared, unsupported
from providers.unified import Operation, UnifiedRequest
from providers.verify import verifier
from proxy.access import permit_extras
from proxy.candidates import prepared_for
from proxy.errors import GatewayError, refused
from proxy.load import Idle
from proxy.outbound import SESSION_HEADERS, call_headers
from proxy.router import Route, Router
from proxy.routing import Plan, plan
from proxy.snapshot import Snapshot, Team
from proxy.surfaces.registry import SURFACES
from proxy.terminal import USAGE, CommandError

DEFAULT_SURFACE: Final = "openai"

REQUEST_ID: Final = "(the client's, or a fresh one)"


@dataclass(frozen=True, slots=True)
class Trial:
    """One target of the plan, and the call it would get or the reason why it cannot honour the request."""

    target: Target
    outcome: Prepared | Refusal


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything there is to say about one request.

    `fallbacks` are the targets that follow a failure of a kind, as far as the table has lists of their own for it.
    `drawn` says that the order of the targets is chosen for each request, and this is one of those possible. `error` is
    status and body of the answer when nothing would be sent, `logged` the code in the log where that says more; `plan`
    is missing when that was decided before any target was known.
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

    @property
    def chosen(self) -> Prepared | None:
        """The calls that would be made: those of the first target which can honour the request."""
        ready = (each.outcome for each in self.trials if isinstance(each.outcome, Prepared))
        return next(ready, None)


@dataclass(slots=True)
class _Chance(Idle):
    """No load, and whether somebody asked for it."""

    asked: bool = field(default=False)

    def draw(self) -> float:
        """The lowest draw."""
        self.asked = True
        return 0.0

    def turn(self, group: str) -> int:
        """The first turn."""
        self.asked = True
        return 0


def explained(snapshot: Snapshot, team: Team, path: str, body: bytes) -> Explanation:
    """What becomes of a POST of `body` to `path` by somebody of the team. Raises CommandError for a path of another
    kind."""
    route = Router(SURFACES).resolve(path)
    chance = _Chance()
    planned: Plan | None = None
    trials: tuple[Trial, ...] = ()
    fallbacks: dict[FailureKind, tuple[Trial, ...]] = {}
    error: tuple[int, bytes] | None = None
    logged: str | None = None
    try:
        request = _parsed(snapshot, route, body)
        permit_extras(team, request)
        planned = plan(snapshot, team, request.model, route.surface.name, chance)
        trials = tuple(Trial(target, _outcome(request, target, team)) for target in planned.targets)
        for kind, targets in planned.fallbacks.items():
            fallbacks[kind] = tuple(Trial(target, _outcome(request, target, team)) for target in targets)
        _require_one(trials)
    except GatewayError as problem:
        error = route.surface.error(problem.facts)
        logged = problem.logged if problem.logged != problem.facts.code else None
    drawn = chance.asked and len(trials) > 1
    return Explanation(path, route.surface.name, team.name, planned, drawn, trials, fallbacks, error, logged)


def _parsed(snapshot: Snapshot, route: Route, body: bytes) -> UnifiedRequest:
    operation = route.action("POST")
    if not isinstance(operation, Operation):
        raise CommandError(f"the path {route.path} generates nothing", USAGE)
    return route.surface.parse(operation, body, snapshot.default_models.get(route.surface.name))


def _outcome(request: UnifiedRequest, target: Target, team: Team) -> Prepared | Refusal:
    try:
        prepared = prepared_for(request, target, team)
    except Refusal as refusal:
        return refusal
    if prepared.check is not None:
        try:
            verifier(prepared.check)
        except Unenforceable as error:
            return unsupported(target, prepared.check.field, error.reason)
    return prepared


def _require_one(trials: tuple[Trial, ...]) -> None:
    """As the gateway does: when no target can honour the request, the first reason is the answer."""
    refusals = [each.outcome for each in trials if isinstance(each.outcome, Refusal)]
    if len(refusals) == len(trials):
        raise refused(refusals[0])


def upstream_headers(sent: UpstreamRequest) -> dict[str, str]:
    """The headers of a call, every secret hidden; `Host` and `Content-Length` are left out."""
    headers = CIMultiDict(SESSION_HEADERS)
    headers.update(call_headers(sent, sent.target.credential.masked(), REQUEST_ID))
    return dict(headers)


def default_path(surface: str, body: bytes) -> str:
    """The first path of a surface for a body: its chat path for one with `messages`, else its path for prompts."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        value = None
    wanted = Operation.CHAT if isinstance(value, dict) and "messages" in value else Operation.COMPLETIONS
    endpoints = (endpoint for row in SURFACES if row.name == surface for endpoint in row.endpoints)
    return next(endpoint.path for endpoint in endpoints if endpoint.action == wanted)
