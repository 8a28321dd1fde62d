"""Converts searches by vendors other than Anthropic to blocks of the Messages API.

Each query becomes one call of the server tool, together with its result. The first result has the sources of all
queries, because vendors report the sources together. The results are not encrypted, unlike Claude's, so they are not
sent back to Claude.

The blocks precede the text, the thinking block or the call that follows the search. No block of a search follows the
last text, because agents take the last block for the result. Gemini reports its searches at the end of a stream, after
the text. Such searches are counted in the usage, cited in the text, and listed in the vendor's own field of
`message_delta`.

Source: `anthropic` 2.12.0 types `ServerToolUseBlock`, `WebSearchToolResultBlock`, November 2026.
"""

import re
from hashlib import sha256
from typing import Final

from providers.completion import Choice, Extras
from providers.conversation import FOREIGN_SEARCH
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import UnifiedRequest
from proxy.surfaces.anthropic.events import block_start, block_stop
from proxy.surfaces.tool_items.searches import WebSearch, foreign_searches, shows_searches

_FORBIDDEN_ID_CHARS: Final = re.compile(r"[^a-zA-Z0-9_]")
_RESULT: Final[JsonObject] = {"type": "web_search_result", "encrypted_content": "", "page_age": None}


class SearchBlocks:
    """The searches of one response that wait for the block that follows them."""

    __slots__ = ("_shows", "_waiting")

    def __init__(self, request: UnifiedRequest) -> None:
        self._shows = shows_searches(request)
        self._waiting: list[WebSearch] = []

    def add(self, extras: Extras) -> bool:
        """Add the searches of a chunk. Return whether any are waiting."""
        if self._shows:
            self._waiting += [each for each in foreign_searches(extras) if each not in self._waiting]
        return bool(self._waiting)

    def take_blocks(self) -> list[JsonObject]:
        """Return and remove the blocks of the waiting searches."""
        waiting, self._waiting = self._waiting, []
        return [block for search in waiting for block in blocks_of_search(search)]

    def events(self, index: int) -> tuple[bytes, int]:
        """Return the events of the blocks of the waiting searches, and the index of the next block, and remove these
        searches. `index` is the index of the first block."""
        frames: list[bytes] = []
        for block in self.take_blocks():
            frames += [block_start(index, block), block_stop(index)]
            index += 1
        return b"".join(frames), index

    def whole(self, choice: Choice, answer: Extras) -> list[JsonObject]:
        """Return the blocks of searches in a non-streaming response; `answer` are the response's fields beside the
        choices."""
        for extras in (choice.extras, answer):
            if extras is not None:
                self.add(extras)
        return self.take_blocks()


def blocks_of_search(search: WebSearch) -> list[JsonObject]:
    """Return the blocks of a search: a call and its result for each query."""
    found: list[JsonValue] = [{**_RESULT, "url": url, "title": title or url} for url, title in search.sources]
    name = search.name or sha256(repr((search.queries, search.sources)).encode(errors="surrogatepass")).hexdigest()[:24]
    blocks: list[JsonObject] = []
    for number, query in enumerate(search.queries or ("",)):
        identity = f"{FOREIGN_SEARCH}{_FORBIDDEN_ID_CHARS.sub('_', name)}{f'_{number + 1}' if number else ''}"
        blocks += [
            {"type": "server_tool_use", "id": identity, "name": "web_search", "input": {"query": query}},
            {"type": "web_search_tool_result", "tool_use_id": identity, "content": [] if number else found},
        ]
    return blocks
