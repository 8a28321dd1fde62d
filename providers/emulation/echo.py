"""Puts the prompt before its answer, for vendors without `echo`."""

from collections.abc import Iterator
from dataclasses import replace

from providers.completion import Chunk


class EchoPrefix:
    """Puts `prompt` before the text of one choice, in its first chunk. Comes after a StopScanner: a stop within the
    prompt ends nothing."""

    __slots__ = ("_prompt",)

    def __init__(self, prompt: str) -> None:
        self._prompt = prompt

    def feed(self, chunk: Chunk) -> Iterator[Chunk]:
        """Yield the chunk, the first one with the prompt."""
        if self._prompt:
            prompt, self._prompt = self._prompt, ""
            chunk = replace(chunk, text=prompt + chunk.text)
        yield chunk
