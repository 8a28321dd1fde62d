"""Restricts the model to some of the tools, for vendors whose tool choice cannot do so: only the allowed tools are
offered.

Source: OpenAI OpenAPI 2.3.0 `ChatCompletionAllowedToolsChoice`.
"""

from typing import Final, cast

from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import Params

ALLOWED: Final = "allowed_tools"
"""The type of the tool choice. In a profile, `tool_types` uses the same name."""

FIELD: Final = "tool_choice"
_CALLED: Final = ("function", "custom")
_MODES: Final = ("auto", "required")


def allows_some(params: Params) -> bool:
    """Return whether a request restricts the model to a list of its tools."""
    choice = params.get("tool_choice")
    return isinstance(choice, dict) and choice.get("type") == ALLOWED


def with_allowed_tools(params: Params) -> Params:
    """Return the params of a request for which `allows_some` is true, with only the allowed tools, and with the
    choice's mode as the tool choice. Raises Refusal for a choice that is not in OpenAI's form, or that allows no tool
    of the request."""
    choice = params.get("tool_choice")
    held = choice.get(ALLOWED) if isinstance(choice, dict) else None
    mode, listed = (held.get("mode"), held.get("tools")) if isinstance(held, dict) else (None, None)
    if mode not in _MODES:
        raise _invalid("must allow tools in the mode 'auto' or 'required'")
    entries: list[JsonValue] = listed if isinstance(listed, list) else []
    allowed = {_identity(entry) for entry in entries if isinstance(entry, dict)}
    kept = [tool for tool in params.get("tools", ()) if _identity(tool) in allowed]
    if not kept:
        raise _invalid("must allow one of the 'tools'")
    return cast(Params, {**params, "tools": kept, "tool_choice": mode})


def _identity(tool: JsonObject) -> tuple[str, str]:
    """Return the identity of a tool: its name if the client runs it, else its type."""
    for kind in _CALLED:
        if isinstance(held := tool.get(kind), dict):
            return "", str(held.get("name"))
    return str(tool.get("type")), ""


def _invalid(rule: str) -> Refusal:
    return Refusal(FIELD, f"'{FIELD}' {rule}.", "invalid_value")
