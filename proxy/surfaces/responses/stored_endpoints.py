"""The endpoints of stored responses, below the paths of the Responses API.

Source: OpenAI OpenAPI 2.3.0 and openai-python 3.54.0 `resources/responses`, November 2026.
"""

from collections.abc import Mapping
from typing import Final

from proxy.surfaces.surface import Endpoint, StoredAction

_PATHS: Final[Mapping[tuple[str, str], StoredAction]] = {
    ("GET", "/{id}"): StoredAction.RETRIEVE,
    ("DELETE", "/{id}"): StoredAction.DELETE,
    ("GET", "/{id}/input_items"): StoredAction.INPUT_ITEMS,
    ("POST", "/{id}/cancel"): StoredAction.CANCEL,
    ("POST", "/compact"): StoredAction.COMPACT,
    ("POST", "/input_tokens"): StoredAction.INPUT_TOKENS,
}


def stored_endpoints(*bases: str) -> tuple[Endpoint, ...]:
    """Return the endpoints below each base path, such as `/v1/responses`."""
    return tuple(Endpoint(method, base + path, action) for base in bases for (method, path), action in _PATHS.items())
