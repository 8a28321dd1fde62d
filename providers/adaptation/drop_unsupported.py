"""Plans a request without the fields that a target refuses, if the configuration says `on_unsupported: drop`."""

from collections.abc import Callable
from typing import TypeVar

from providers.capabilities import refused_beside
from providers.failure import Refusal
from providers.request_fields import NEVER_DROPPED, shown_names
from providers.target import Target
from providers.unified_request import UnifiedRequest

MAX_NAMED = 64
"""The most dropped fields that are named, since a header has to hold them, and that are dropped one at a time."""

P = TypeVar("P")


def plan_dropping(
    plan: Callable[[UnifiedRequest, Target], P], request: UnifiedRequest, target: Target, dropped: list[str]
) -> P:
    """Return the `plan` of a request without the fields that the target refuses, except those that are never dropped;
    their names are added to `dropped`. Raises Refusal."""
    for _ in range(MAX_NAMED):
        try:
            return plan(request, target)
        except Refusal as refusal:
            if not _droppable(refusal, request):
                raise
            names = refused_beside(refusal.param, request, target.dialect.capabilities(request, target))
            dropped += shown_names(names, MAX_NAMED - len(dropped))
            request = request.without(names)
    return plan(request, target)


def _droppable(refusal: Refusal, request: UnifiedRequest) -> bool:
    name = refusal.param
    known = name in request.params or name in (request.unknown or ())
    return refusal.code == "unsupported_parameter" and known and name not in NEVER_DROPPED
