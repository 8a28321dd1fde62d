"""The members that the answers of all tasks share: the id, the usage, and what is the vendor's own."""

from providers.completion import Usage
from providers.json_types import JsonObject


def with_id(own: JsonObject, otherwise: str) -> JsonObject:
    """Return the vendor's own members with an id, which mistralai 3.7.0 does not read an answer without: the vendor's,
    or `otherwise`."""
    found = own.get("id")
    return {**own, "id": found if isinstance(found, str) and found else otherwise}


def usage_shown(usage: Usage | None, details: JsonObject) -> JsonObject:
    """Return the usage, with the vendor's other members of it; empty where nothing is known."""
    if usage is None:
        return details
    tokens = usage.prompt_tokens
    shown: JsonObject = {**details, "prompt_tokens": tokens, "total_tokens": tokens}
    return {**shown, "estimated": True} if usage.estimated else shown
