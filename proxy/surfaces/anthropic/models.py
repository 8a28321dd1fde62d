"""The models list in Anthropic's form, and its pages.

Source: `anthropic` 2.12.0 types `ModelInfo` and `SyncPage`, November 2026.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import orjson

from providers.json_types import JsonObject, JsonValue
from proxy.errors import FieldProblem, invalid_request
from proxy.surfaces.response.write_sse import ascii_json
from proxy.surfaces.surface import ModelCard

MAX_PAGE = 1000
"""The most models on a page that a client may request."""


def model_json(card: ModelCard) -> JsonObject:
    """Return one model."""
    created = datetime.fromtimestamp(card.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    body: JsonObject = {
        "type": "model",
        "id": card.id,
        "display_name": card.id,
        "created_at": created,
        "lifecycle": "active",
    }
    sizes = {"max_input_tokens": card.window, "max_tokens": card.max_output}
    return {**body, **{name: size for name, size in sizes.items() if size is not None}}


def models_json(cards: Sequence[ModelCard]) -> bytes:
    """Return the whole list as one page."""
    return _page([model_json(card) for card in cards], more=False)


def models_page(whole: bytes, query: Mapping[str, str]) -> bytes:
    """Return the page that a query requests by `limit`, `after_id` and `before_id`; the whole list without these
    parameters. Raises GatewayError."""
    limit, after, before = query.get("limit"), query.get("after_id"), query.get("before_id")
    if limit is None and after is None and before is None:
        return whole
    most = _limit(limit)
    body: JsonValue = orjson.loads(whole)
    listed = body.get("data") if isinstance(body, dict) else None
    models = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    ids = [each["id"] for each in models]
    if after is not None and after in ids:
        models = models[ids.index(after) + 1 :]
    elif before is not None and before in ids:
        end = ids.index(before)
        start = max(0, end - most)
        return _page(models[start:end], more=start > 0)
    return _page(models[:most], more=len(models) > most)


def _limit(given: str | None) -> int:
    if given is None:
        return MAX_PAGE
    if not (given.isascii() and given.isdigit() and len(given) < 5 and 1 <= int(given) <= MAX_PAGE):
        raise invalid_request((FieldProblem(("limit",), f"'limit' must be an integer from 1 to {MAX_PAGE}."),))
    return int(given)


def _page(models: list[JsonObject], *, more: bool) -> bytes:
    return ascii_json(
        {
            "data": models,
            "has_more": more,
            "first_id": models[0]["id"] if models else None,
            "last_id": models[-1]["id"] if models else None,
        }
    )
