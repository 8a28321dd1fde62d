"""Reads vendors' lists of models page by page: describes each kind of list, writes the calls and reads their responses.

The vendor's data is not trusted: names are checked before clients see them. The URL of the next page is never taken
from the vendor, only a cursor, which is put into the query of the gateway's URL.

Sources, read in November 2026: openai 3.54 `types/model.py`; vLLM 0.32 (`max_model_len`); OpenRouter "Models API
Standard" (`context_length`, `top_provider`); Groq "List models" (`context_window`, `max_completion_tokens`); Mistral
"List models" (`max_context_length`); Together "List models" (a bare list); anthropic 2.12 `types/model_info.py`
(`max_input_tokens`, `max_tokens`, `has_more`, `last_id`); "models.list" of the Gemini API
(`inputTokenLimit`, `outputTokenLimit`, `nextPageToken`; 1,000 a page at most); Cohere "List models" (`page_size` of
1,000 at most, `next_page_token`); Ollama `api/types.go`, `ListResponse`, whose OpenAI-shaped twin writes `null` for an
empty list.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final
from urllib.parse import quote

import orjson

from providers.dialect import UpstreamRequest
from providers.dialects.shared.read_json import load_json, malformed
from providers.json_types import JsonObject, JsonValue
from providers.profile import ModelListStyle
from providers.target import Target
from providers.unified_request import Operation

MAX_NAME: Final = 256
"""The most characters of a model's name, as in the configuration."""

MAX_ENTRIES: Final = 5000
"""The most entries of one page that are read."""

MAX_CURSOR: Final = 1024
"""The most characters of the cursor of a next page."""

MAX_VALUES: Final = 200_000
"""The most objects, lists and commas of one page. 500 models with all of OpenRouter's fields have 50,000. This number
of objects takes 40 MB while the page is read."""

MOST_TOKENS: Final = 1_000_000_000
"""The largest plausible number of tokens, as in the configuration."""

_SEGMENT: Final = r"(?!\.{1,2}(?:/|$))[A-Za-z0-9._:@+~-]+"
_NAME: Final = re.compile(rf"{_SEGMENT}(?:/{_SEGMENT})*")
"""The characters that configured names may have, and further characters that vendors use. No segment may be empty or
`..`, because at vendors that have the model's name in the path, it would lead to another path."""


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A model in its vendor's list: the vendor's name of the model, its context window, and the most tokens of a
    response. The numbers are `None` if the list does not have them."""

    name: str
    window: int | None = None
    max_output: int | None = None


@dataclass(frozen=True, slots=True)
class ListPage:
    """The content of one response: models, the number of entries without a usable name, which are left out, and the
    cursor of the next page, `None` on the last page."""

    models: tuple[ListedModel, ...]
    left_out: int
    next: str | None


@dataclass(frozen=True, slots=True)
class ListStyle:
    """One kind of list.

    `path` is appended to the base URL, after `base_end` has been removed from the end of the base URL. `query` is sent
    with every page. `entries` is the key of the list, `name` is the key of an entry's name, from which `prefix` is
    removed. `windows` and `outputs` are the keys that may hold sizes; a dot leads into a nested object. `cursor` is the
    key of the next page's cursor, which is sent as `cursor_query`. If `more` is set, there is a next page only if the
    field with that key is true. `version_header` is sent with the operator's API version, or with `version`.
    """

    path: str
    entries: str
    name: str
    prefix: str = ""
    base_end: str = ""
    query: str = ""
    windows: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    cursor: str | None = None
    cursor_query: str = ""
    more: str | None = None
    version_header: str | None = None
    version: str = ""


STYLES: Final[Mapping[ModelListStyle, ListStyle]] = MappingProxyType(
    {
        "openai": ListStyle(
            path="/models",
            entries="data",
            name="id",
            windows=("max_model_len", "context_length", "context_window", "max_context_length"),
            outputs=("max_completion_tokens", "top_provider.max_completion_tokens"),
        ),
        "anthropic": ListStyle(
            path="/v1/models",
            base_end="/v1",
            query="limit=1000",
            entries="data",
            name="id",
            windows=("max_input_tokens",),
            outputs=("max_tokens",),
            cursor="last_id",
            cursor_query="after_id",
            more="has_more",
            version_header="anthropic-version",
            version="2023-06-01",
        ),
        "gemini": ListStyle(
            path="/models",
            query="pageSize=1000",
            entries="models",
            name="name",
            prefix="models/",
            windows=("inputTokenLimit",),
            outputs=("outputTokenLimit",),
            cursor="nextPageToken",
            cursor_query="pageToken",
        ),
        "cohere": ListStyle(
            path="/v1/models",
            query="page_size=1000",
            entries="models",
            name="name",
            windows=("context_length",),
            cursor="next_page_token",
            cursor_query="page_token",
        ),
        "ollama": ListStyle(path="/api/tags", entries="models", name="name"),
    }
)


def ask_for_page(style: ListStyle, target: Target, cursor: str | None) -> UpstreamRequest:
    """Return the call for the first page, or for the page of a cursor."""
    page = "" if cursor is None else f"{style.cursor_query}={quote(cursor, safe='')}"
    query = "&".join(filter(None, (style.query, page)))
    url = f"{target.base_url.removesuffix(style.base_end)}{style.path}{'?' if query else ''}{query}"
    headers: dict[str, str] = {}
    if style.version_header is not None:
        headers[style.version_header] = target.api_version or target.profile.api_version or style.version
    return UpstreamRequest(target, Operation.CHAT, url, b"", stream=False, headers=headers, method="GET")


def read_page(style: ListStyle, data: bytes) -> ListPage:
    """Return the content of a response. Raises UpstreamError(MALFORMED) if it is not a list of models or far too
    large."""
    if sum(map(data.count, (b"{", b"[", b","))) > MAX_VALUES:
        raise malformed("has more values than are read")
    try:
        answer = load_json(data)
    except orjson.JSONDecodeError:
        raise malformed("is not valid JSON") from None
    entries = answer
    if isinstance(answer, dict):
        entries = [] if answer.get(style.entries, "") is None else answer.get(style.entries)
    if not isinstance(entries, list):
        raise malformed("is not a list of models")
    models = tuple(_models(style, entries[:MAX_ENTRIES]))
    return ListPage(models, len(entries) - len(models), _next(style, answer) if isinstance(answer, dict) else None)


def _models(style: ListStyle, entries: Sequence[JsonValue]) -> Iterator[ListedModel]:
    for entry in entries:
        name = entry.get(style.name) if isinstance(entry, dict) else None
        if not isinstance(entry, dict) or not isinstance(name, str):
            continue
        own = name.removeprefix(style.prefix)
        if len(own) <= MAX_NAME and _NAME.fullmatch(own):
            yield ListedModel(own, _size(entry, style.windows), _size(entry, style.outputs))


def _next(style: ListStyle, answer: JsonObject) -> str | None:
    if style.cursor is None or (style.more is not None and answer.get(style.more) is not True):
        return None
    cursor = answer.get(style.cursor)
    if cursor is None or cursor == "":
        return None
    if not isinstance(cursor, str) or len(cursor) > MAX_CURSOR:
        raise malformed("has a cursor of an unknown form for the next page")
    return cursor


def _size(entry: JsonObject, keys: Sequence[str]) -> int | None:
    """Return the first of these fields that is a plausible number of tokens, otherwise `None`."""
    for key in keys:
        value: JsonValue = entry
        for step in key.split("."):
            value = value.get(step) if isinstance(value, dict) else None
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MOST_TOKENS:
            return value
    return None
