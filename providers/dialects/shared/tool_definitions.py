"""Checks of a request's tools, common to all vendors' own APIs."""

from providers.failure import Refusal
from providers.json_types import JsonObject
from providers.unified_request import Params


def offers_tools(params: Params) -> bool:
    """Return whether a request offers tools. Raises Refusal for a `tool_choice` without any."""
    if params.get("tools"):
        return True
    if params.get("tool_choice") not in (None, "none", "auto"):
        raise Refusal("tool_choice", "'tool_choice' needs 'tools' to choose from.", "invalid_value")
    return False


def read_parameters(function: JsonObject) -> JsonObject:
    """Return the schema of a function's parameters, empty where it has none. Raises Refusal unless it is of objects."""
    parameters = function.get("parameters") or {}
    if not isinstance(parameters, dict) or parameters.get("type", "object") != "object":
        raise Refusal("tools", "The parameters of a function must be a schema of type 'object'.", "invalid_value")
    return parameters
