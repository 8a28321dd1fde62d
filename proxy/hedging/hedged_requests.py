"""Decide which requests may have a second attempt. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from providers.emulation.plan_calls import CallPlan
from providers.json_types import JsonValue
from providers.target import Target
from providers.unified_request import UnifiedRequest

_CLIENT_TOOLS: Final = frozenset({None, "function", "custom"})
"""The types of tools that the client executes itself. `None` is a tool without a type."""

_VENDOR_RUNS: Final = frozenset({"background", "enable_search", "mcp_servers", "plugins", "search_parameters"})
"""Fields outside the unified request that make a vendor execute something, or let it continue without the client."""

STORED: Final = "its response is stored"
HOSTED: Final = "its vendor runs tools"
SEVERAL: Final = "it needs several calls"
NO_SECOND: Final = "retries.safety or retries.attempts permits none"
ONE_DEPLOYMENT: Final = "there is one deployment"
NO_TEXT: Final = "its deployments generate no text"


def why_not_hedged(request: UnifiedRequest, *, storing: bool) -> str | None:
    """Return the reason why a request must not be sent to two deployments, as a clause; `None` if it may. `storing` is
    set if the client's API stores responses unless a request forbids it."""
    if request.params.get("store") or (storing and not _unstored(request)):
        return STORED
    if "web_search_options" in request.params or _has_hosted(request.params.get("tools", ())):
        return HOSTED
    members: list[Mapping[str, JsonValue]] = [each for each in (request.unknown, request.extra_params) if each]
    if request.native is not None:
        body = request.native.body
        tools = body.get("tools")
        if isinstance(tools, list) and _has_hosted(tools):
            return HOSTED
        members.append(body)
    if any(each[name] for each in members for name in _VENDOR_RUNS.intersection(each)):
        return HOSTED
    return None


def _unstored(request: UnifiedRequest) -> bool:
    return request.native is not None and request.native.body.get("store") is False


def _has_hosted(tools: Iterable[JsonValue]) -> bool:
    return any(isinstance(tool, dict) and tool.get("type") not in _CLIENT_TOOLS for tool in tools)


def why_never(targets: Sequence[Target]) -> str | None:
    """Return the reason why a name with these deployments has no second attempts, as a clause; `None` if it may have
    them."""
    if len(targets) < 2:
        return ONE_DEPLOYMENT
    if not any(target.profile.for_model(*target.model_names).wires for target in targets):
        return NO_TEXT
    return None if any(map(_permits, targets)) else NO_SECOND


def _permits(target: Target) -> bool:
    """Return whether a second attempt may follow the first one at this deployment. A second attempt is paid twice,
    which only `retries.safety: safe` permits. It counts as one of `retries.attempts`."""
    return target.retries.safety == "safe" and target.retries.attempts > 1


def why_not_first(prepared: CallPlan) -> str | None:
    """Return the reason why a request, as prepared for its first deployment, has no second attempt, as a clause;
    `None` if it may have one."""
    if len(prepared.calls) != 1:
        return SEVERAL
    return None if _permits(prepared.target) else NO_SECOND
