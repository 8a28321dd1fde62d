"""Plans of requests for a model at a host, and lookups in their bodies."""

from typing import Literal

import orjson

from providers.emulation.plan_calls import CallPlan, plan_calls
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import UnifiedRequest
from tests.providers.dialects.kit import target_of

A_TOOL = {"type": "function", "function": {"name": "a", "parameters": {"type": "object", "properties": {}}}}


def planned(
    request: UnifiedRequest, profile: str, model: str, drop: Literal["error", "drop"] = "error", **members: object
) -> CallPlan:
    return plan_calls(request, target_of(profile, model, base_url="https://host", **members), drop)


def found(body: JsonValue, name: str) -> JsonValue:
    """Return the value of a field at any depth, because dialects nest fields differently."""
    spellings = {name, name.replace("top_p", "topP")}
    if not isinstance(body, dict):
        return None
    for key, value in body.items():
        if key in spellings or (inner := found(value, name)) is not None:
            return value if key in spellings else inner
    return None


def sent(plan: CallPlan) -> JsonObject:
    return orjson.loads(plan.calls[0].sent.body)  # type: ignore[no-any-return]
