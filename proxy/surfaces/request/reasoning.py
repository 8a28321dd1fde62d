"""Resolves the fields that control how much a model reasons: `reasoning_effort`, `thinking`, and OpenRouter's
`reasoning`.

Sources: @openrouter/sdk 1.3.19 `ChatGenerationParams.reasoning`; "Reasoning tokens" page of OpenRouter; fireworks-ai
1.2.28 `thinking`; November 2026.
"""

from providers.json_types import JsonObject, JsonValue
from proxy.surfaces.request.parse_state import ParsedFields
from proxy.surfaces.request.rule_kinds import Invalid, boolean, check_at, integer, json_object, text

_EQUIVALENT_KEYS = frozenset({"effort", "max_tokens", "enabled"})
"""Keys that have an equivalent in `reasoning_effort` or `thinking`."""

_DEFAULT_EFFORT = "medium"
"""The effort that applies to `enabled: true` without other keys, according to OpenRouter's page."""

_CHECKS = {"effort": text, "max_tokens": integer(1), "enabled": boolean}


def reasoning_object(value: JsonValue) -> JsonObject:
    """Check the known keys of `reasoning`; keys with null are left out."""
    given: JsonObject = {name: item for name, item in json_object(value).items() if item is not None}
    for name, check in _CHECKS.items():
        if name in given:
            check_at(check, given[name], name)
    return given


def reasoning(parsed: ParsedFields) -> None:
    """Replace `reasoning` by the equivalent field, and refuse two fields that cannot be combined, because Fireworks
    allows only one of them.

    Other keys stay in `reasoning`, for vendors that know them.
    """
    given = parsed.take("reasoning", dict)
    if given is not None:
        _resolve(parsed, {name: item for name, item in given.items() if (name, item) != ("exclude", False)})
    if "thinking" in parsed.values and "reasoning_effort" in parsed.values:
        parsed.conflict("reasoning_effort", "cannot go with 'thinking'")


def _resolve(parsed: ParsedFields, given: JsonObject) -> None:
    if further := {name: item for name, item in given.items() if name not in _EQUIVALENT_KEYS}:
        parsed.unknown["reasoning"] = further
    effort, budget, enabled = given.get("effort"), given.get("max_tokens"), given.get("enabled")
    if effort is not None and budget is not None:
        parsed.refuse("reasoning", Invalid("may hold 'effort' or 'max_tokens', not both"))
    elif enabled is False:
        _set(parsed, "reasoning_effort", "none")
    elif budget is not None:
        _set(parsed, "thinking", {"type": "enabled", "budget_tokens": budget})
    elif effort is not None or enabled:
        _set(parsed, "reasoning_effort", effort or _DEFAULT_EFFORT)


def _set(parsed: ParsedFields, name: str, value: JsonValue) -> None:
    if parsed.values.setdefault(name, value) != value:
        parsed.conflict("reasoning", f"differs from '{name}', which sets the same")
