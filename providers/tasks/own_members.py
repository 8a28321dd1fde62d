"""What a vendor's answer to a task has beside what the gateway reads: passed on under the vendor's names."""

from collections.abc import Collection, Sequence

from providers.completion import count_of
from providers.json_types import JsonObject, JsonValue

_COUNTS = frozenset({"prompt_tokens", "total_tokens"})

_LEVELS = 2
"""Of objects in usages, whose counts are summed: OpenAI's details of tokens are one below."""


def own_members(answer: JsonObject, read: Collection[str]) -> JsonObject:
    """Return the members of an answer that are not `read`, without nulls."""
    return {name: value for name, value in answer.items() if name not in read and value is not None}


def usage_details(answer: JsonObject) -> JsonObject:
    """Return the members of an answer's usage that are not read as the tokens of the inputs."""
    usage = answer.get("usage")
    return own_members(usage, _COUNTS) if isinstance(usage, dict) else {}


def sum_details(parts: Sequence[JsonObject], levels: int = _LEVELS) -> JsonObject:
    """Return the usages' other members of several calls as one: counts that each call has are summed, the rest is left
    out."""
    summed: JsonObject = {}
    for name in parts[0]:
        values = [part.get(name) for part in parts]
        counts = [count for count in map(count_of, values) if count is not None]
        inner = [value for value in values if isinstance(value, dict)]
        value: JsonValue = None
        if len(counts) == len(parts):
            value = sum(counts)
        elif len(inner) == len(parts) and levels > 1:
            value = sum_details(inner, levels - 1) or None
        if value is not None:
            summed[name] = value
    return summed
