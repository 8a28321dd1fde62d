"""Gathers the reasoning details of one reasoning item, and seals the details that a vendor needs back.

Source: OpenRouter's `reasoning_details` in @openrouter/sdk 1.3.19: in a stream, chunks of one block share `type` and
`index`, and the signature comes in a separate chunk; November 2026.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from providers.json_types import JsonObject, JsonValue
from proxy.surfaces.thinking_envelope import seal

_TEXT: Final = "reasoning.text"


class GatheredDetails:
    """The chunks of details so far, in order."""

    __slots__ = ("_chunks",)

    def __init__(self) -> None:
        self._chunks: list[JsonObject] = []

    def add(self, chunks: Iterable[JsonObject]) -> None:
        """Add further chunks."""
        self._chunks += chunks

    def sealed(self) -> str | None:
        """Return the blocks in an envelope; `None` if the blocks have only a text, because the client shows this text
        and sends it back anyway."""
        if not any([chunk.get("signature") or chunk.get("type") == "reasoning.encrypted" for chunk in self._chunks]):
            return None
        return seal([*self._blocks()])

    def _blocks(self) -> Iterator[JsonObject]:
        block: JsonObject = {}
        texts: list[str] = []
        for chunk in self._chunks:
            if not (block and _continues(block, chunk)):
                yield from _joined_block(block, texts)
                block, texts = {}, []
            text = chunk.get("text")
            if isinstance(text, str):
                texts.append(text)
            block |= {name: value for name, value in chunk.items() if value is not None}
        yield from _joined_block(block, texts)


def _continues(block: JsonObject, chunk: JsonObject) -> bool:
    """Return whether a chunk belongs to the block before it. A block ends with its signature."""
    if chunk.get("type") != _TEXT or block.get("type") != _TEXT or "index" not in chunk:
        return False
    return chunk["index"] == block.get("index") and not block.get("signature")


def _joined_block(block: JsonObject, texts: list[str]) -> Iterator[JsonObject]:
    if block:
        text: dict[str, JsonValue] = {"text": "".join(texts)} if texts else {}
        yield {**block, **text}
