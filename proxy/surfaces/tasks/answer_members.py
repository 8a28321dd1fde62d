"""The fields that the responses of all tasks share: the id, the usage, and the vendor's own fields."""

from providers.completion import Usage
from providers.json_types import JsonObject


def with_id(own: JsonObject, otherwise: str) -> JsonObject:
    """Return the vendor's own fields with an id: the vendor's id, or `otherwise`. Without an id, mistralai 3.7.0 cannot
    read a response."""
    found = own.get("id")
    return {**own, "id": found if isinstance(found, str) and found else otherwise}


def usage_fields(usage: Usage | None, details: JsonObject) -> JsonObject:
    """Return the usage, including the vendor's other fields of the usage; empty if no usage is known."""
    if usage is None:
        return details
    tokens = usage.prompt_tokens
    shown: JsonObject = {**details, "prompt_tokens": tokens, "total_tokens": tokens}
    return {**shown, "estimated": True} if usage.estimated else shown
