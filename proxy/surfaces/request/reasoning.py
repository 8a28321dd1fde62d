"""Resolves the fields that say how much a model thinks: `reasoning_effort`, `thinking`, and OpenRouter's `reasoning`.

Sources: @openrouter/sdk 1.3.19 `ChatGenerationParams.reasoning`; "Reasoning tokens" page of OpenRouter; fireworks-ai
1.2.28 `thinking`; November 2026.
"""

from providers.json_types import JsonObject, JsonValue
from proxy.surfaces.request.parse_state import ParsedFields
from proxy.surfaces.request.rule_kinds import Invalid, boolean, check_at, integer, json_object, text

_SHARED = frozenset({"effort", "max_tokens", "enabled"})
"""Members that `reasoning_effort` and `thinking` say as well."""

_ENABLED = "medium"
"""The effort that the page names for `enabled: true` alone."""

_CHECKS = {"effort": text, "max_tokens": integer(1), "enabled": boolean}


def reasoning_object(value: JsonValue) -> JsonObject:
    """Check the members of `reasoning` that are known here; null members are left out."""
    members: JsonObject = {name: member for name, member in json_object(value).items() if member is not None}
    for name, check in _CHECKS.items():
        if name in members:
            check_at(check, members[name], name)
    return members


def reasoning(parsed: ParsedFields) -> None:
    """Turn `reasoning` into the field that says the same, and refuse two that cannot go together: Fireworks allows one.

    Further members stay, for vendors that know them.
    """
    given = parsed.take("reasoning", dict)
    if given is not None:
        _resolve(parsed, {name: member for name, member in given.items() if (name, member) != ("exclude", False)})
    if "thinking" in parsed.values and "reasoning_effort" in parsed.values:
        parsed.conflict("reasoning_effort", "cannot go with 'thinking'")


def _resolve(parsed: ParsedFields, given: JsonObject) -> None:
    if further := {name: member for name, member in given.items() if name not in _SHARED}:
        parsed.unknown["reasoning"] = further
    effort, budget, enabled = given.get("effort"), given.get("max_tokens"), given.get("enabled")
    if effort is not None and budget is not None:
        parsed.refuse("reasoning", Invalid("may hold 'effort' or 'max_tokens', not both"))
    elif enabled is False:
        _set(parsed, "reasoning_effort", "none")
    elif budget is not None:
        _set(parsed, "thinking", {"type": "enabled", "budget_tokens": budget})
    elif effort is not None or enabled:
        _set(parsed, "reasoning_effort", effort or _ENABLED)


def _set(parsed: ParsedFields, name: str, value: JsonValue) -> None:
    if parsed.values.setdefault(name, value) != value:
        parsed.conflict("reasoning", f"differs from '{name}', which says the same")
