"""Removes the Markdown fence from a response for which the prompt requested JSON.

Only a fence around the whole text is removed. A fence is a first line of three backticks and at most one word, and a
last line of three backticks. The rest of the text is unchanged. Models put a fence around JSON even if the prompt
forbids it (seen with Claude and Cohere models, November 2026).
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from providers.completion import Chunk

MARK: Final = "```"
MOST_HELD: Final = 256
"""The most characters that are held back because they may belong to a fence. A longer line is not a fence."""

_OPENING = re.compile(r"\s*```[A-Za-z0-9_+-]*[ \t]*\r?\n")
_MAY_OPEN = re.compile(r"\s*(?:`{0,2}|```[A-Za-z0-9_+-]*[ \t]*\r?)")
_CLOSING = re.compile(r"\r?\n[ \t]*```\s*\Z")


def unfenced(text: str) -> str:
    """Return a complete text without the fence around it."""
    fence = FenceFilter()
    return fence.add(text) + fence.end()


class FenceFilter:
    """Removes the fence from the text of one choice, which arrives in chunks. The time for a text is linear in its
    length, however the text is divided into chunks."""

    __slots__ = ("_held", "_inside", "_open")

    def __init__(self) -> None:
        self._held = ""
        self._open = True  # the opening line may still arrive
        self._inside = False

    def feed(self, chunk: Chunk) -> Iterator[Chunk]:
        """Yield the chunk with the part of the text that cannot belong to a fence."""
        text = self.add(chunk.text)
        if chunk.finish_reason is not None:
            text += self.end()
        yield chunk if text == chunk.text else replace(chunk, text=text)

    def add(self, text_part: str) -> str:
        """Add a text. Return the held-back and added text that cannot belong to a fence."""
        if not self._open and not self._inside:
            return text_part
        self._held += text_part
        if self._open and not self._opened():
            return ""
        if not self._inside:
            return self._release(len(self._held))
        return self._release(_closing_at(self._held))

    def end(self) -> str:
        """Return the rest of the text that was held back, without a closing fence."""
        self._open = False
        closing = _CLOSING.search(self._held, max(0, len(self._held) - MOST_HELD)) if self._inside else None
        return self._release(len(self._held) if closing is None else closing.start(), drop=True)

    def _opened(self) -> bool:
        """Return whether it is already known if the text begins with a fence."""
        opening = _OPENING.match(self._held[:MOST_HELD])
        if opening is not None:
            self._held = self._held[opening.end() :]
            self._inside, self._open = True, False
        elif len(self._held) >= MOST_HELD or _MAY_OPEN.fullmatch(self._held) is None:
            self._open = False
        return not self._open

    def _release(self, size: int, *, drop: bool = False) -> str:
        text, self._held = self._held[:size], "" if drop else self._held[size:]
        return text


def _closing_at(text: str) -> int:
    """Return the position at which the white space or the line begins that may become the closing fence; the length of
    the text if there is no such position."""
    least = max(0, len(text) - MOST_HELD)
    end = text[least:].rstrip()
    line = end.rstrip("`").rstrip(" \t")
    if len(end) - len(end.rstrip("`")) <= len(MARK) and line.endswith("\n"):
        end = line[:-1].removesuffix("\r")
    return least + len(end)
