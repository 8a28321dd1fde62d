"""Puts the targets that honour all fields of a request before the targets that would drop some. It encodes no request.

Only the capabilities of the targets decide. If a target has a field but refuses its value, this is found only when the
request is prepared for the target.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain

from providers.capabilities import feature_of
from providers.failure import Refusal
from providers.request_fields import NEVER_DROPPED, is_advisory, is_neutral
from providers.target import Target
from providers.unified_request import UnifiedRequest
from proxy.routing.request_plan import Plan
from proxy.routing.snapshot import Team

UNKNOWN = "unknown"
"""Stands for all fields outside the unified request, whose names are the client's."""


def honouring_first(plan: Plan, request: UnifiedRequest, team: Team) -> Plan:
    """Return the plan with the targets that `on_unsupported: drop` would make drop a field behind all others.

    Within both groups the order stays, so that a policy or the configuration decides it. A target that refuses the
    request keeps its position, and is skipped there.
    """
    if len(plan.targets) < 2 and not plan.fallbacks:
        return plan
    everywhere = dict.fromkeys([*plan.targets, *chain.from_iterable(plan.fallbacks.values())])
    if "drop" not in [team.on_unsupported or target.on_unsupported for target in everywhere]:
        return plan
    wanted = {name: feature_of(name, value) for name, value in request.params.items() if _steers(request, name, value)}
    if not wanted and not request.unknown:
        return plan
    dropping = {target: names for target in everywhere if (names := _dropped(request, wanted, target, team))}
    if not dropping:
        return plan
    fallbacks = {kind: _behind(group, dropping) for kind, group in plan.fallbacks.items()}
    return replace(plan, targets=_behind(plan.targets, dropping), fallbacks=fallbacks, dropping=dropping)


def _behind(targets: Sequence[Target], dropping: Mapping[Target, tuple[str, ...]]) -> tuple[Target, ...]:
    return tuple(sorted(targets, key=dropping.__contains__))


def _dropped(request: UnifiedRequest, wanted: Mapping[str, str], target: Target, team: Team) -> tuple[str, ...]:
    """Return the fields that a target would drop for a team, of the fields in `wanted`, with their features."""
    if (team.on_unsupported or target.on_unsupported) == "error":
        return ()
    try:
        table = target.dialect.capabilities(request, target)
    except Refusal:
        return ()
    found = tuple([name for name, feature in wanted.items() if table[feature].refused])
    return (*found, UNKNOWN) if request.unknown and table["unknown"].refused else found


def _steers(request: UnifiedRequest, name: str, value: object) -> bool:
    """Return whether a field requests an effect that may be dropped. A field that is only advice does not count."""
    bound = name in NEVER_DROPPED or name == "guided"
    return not (bound or name in request.injected or is_neutral(name, value) or is_advisory(name, value))
