"""Plans a request without the fields that a target refuses, if the configuration says `on_unsupported: drop`."""

from collections.abc import Callable
from typing import TypeVar

from providers.capabilities import Capabilities, feature_of, refused_beside
from providers.failure import Refusal
from providers.request_fields import NEVER_DROPPED, shown_names
from providers.target import Target
from providers.unified_request import UnifiedRequest

MAX_NAMED = 64
"""The most dropped fields that are named, since a header must hold their names. At most the same number of fields is
dropped one at a time."""

P = TypeVar("P")


def why_refused(name: str, value: object, table: Capabilities, target: Target) -> str:
    """Return the message of the refusal for a field that the capability table refuses."""
    how = table[feature_of(name, value)].how
    return f"'{name}' is not supported by {target.name}{f': {how}' if how else ''}."


def plan_dropping(
    plan: Callable[[UnifiedRequest, Target], P], request: UnifiedRequest, target: Target, dropped: dict[str, str]
) -> P:
    """Plan a request with `plan`, without the fields that the target refuses, and return the plan. These fields are
    added to `dropped`, each with the message of its refusal. Raises Refusal if the target refuses a field that is never
    dropped."""
    for _ in range(MAX_NAMED):
        try:
            return plan(request, target)
        except Refusal as refusal:
            if not _droppable(refusal, request):
                raise
            table = target.dialect.capabilities(request, target)
            names = refused_beside(refusal.param, request, table)
            for name in shown_names(names, MAX_NAMED - len(dropped)):
                value = request.params.get(name)
                is_other = name != refusal.param and value is not None
                dropped[name] = why_refused(name, value, table, target) if is_other else refusal.message
            request = request.without(names)
    return plan(request, target)


def _droppable(refusal: Refusal, request: UnifiedRequest) -> bool:
    name = refusal.param
    known = name in request.params or name in (request.unknown or ())
    return refusal.code == "unsupported_parameter" and known and name not in NEVER_DROPPED
