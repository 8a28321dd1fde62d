"""Gathers the blocks of thinking of one reasoning item, and seals those that a vendor wants back.

Source: OpenRouter's `reasoning_details` in @openrouter/sdk 1.3.19: in a stream, pieces of one block share `type` and
`index`, and the signature comes in a piece of its own; November 2026.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from providers.json_types import JsonObject, JsonValue
from proxy.surfaces.thinking_envelope import seal

_TEXT: Final = "reasoning.text"


class GatheredDetails:
    """The pieces so far, in order."""

    __slots__ = ("_pieces",)

    def __init__(self) -> None:
        self._pieces: list[JsonObject] = []

    def add(self, pieces: Iterable[JsonObject]) -> None:
        """Add further pieces."""
        self._pieces += pieces

    def sealed(self) -> str | None:
        """Return the blocks in an envelope; None where they say nothing beyond their text, which the client shows and
        sends back anyway."""
        if not any([piece.get("signature") or piece.get("type") == "reasoning.encrypted" for piece in self._pieces]):
            return None
        return seal([*self._blocks()])

    def _blocks(self) -> Iterator[JsonObject]:
        block: JsonObject = {}
        texts: list[str] = []
        for piece in self._pieces:
            if not (block and _continues(block, piece)):
                yield from _whole(block, texts)
                block, texts = {}, []
            said = piece.get("text")
            if isinstance(said, str):
                texts.append(said)
            block |= {name: value for name, value in piece.items() if value is not None}
        yield from _whole(block, texts)


def _continues(block: JsonObject, piece: JsonObject) -> bool:
    """Return whether a piece is of the block before it, which ends with its signature."""
    if piece.get("type") != _TEXT or block.get("type") != _TEXT or "index" not in piece:
        return False
    return piece["index"] == block.get("index") and not block.get("signature")


def _whole(block: JsonObject, texts: list[str]) -> Iterator[JsonObject]:
    if block:
        said: dict[str, JsonValue] = {"text": "".join(texts)} if texts else {}
        yield {**block, **said}
