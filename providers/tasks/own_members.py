"""Returns the fields of a vendor's response to a task that the gateway does not read. They are passed on under the
vendor's names."""

from collections.abc import Collection, Sequence

from providers.completion import count_of
from providers.json_types import JsonObject, JsonValue

_COUNTS = frozenset({"prompt_tokens", "total_tokens"})

_LEVELS = 2
"""The levels of objects in a usage whose counts are summed. OpenAI's token details are one level below the usage."""


def vendor_fields(answer: JsonObject, read: Collection[str]) -> JsonObject:
    """Return the fields of a response that are not in `read` and not null."""
    return {name: value for name, value in answer.items() if name not in read and value is not None}


def usage_details(answer: JsonObject) -> JsonObject:
    """Return the fields of a response's usage other than the tokens of the inputs."""
    usage = answer.get("usage")
    return vendor_fields(usage, _COUNTS) if isinstance(usage, dict) else {}


def sum_details(parts: Sequence[JsonObject], levels: int = _LEVELS) -> JsonObject:
    """Join the usage details of several calls. Counts that all calls have are summed, everything else is left out."""
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
