"""Puts the prompt before its answer, for vendors without `echo`."""

from collections.abc import Iterator
from dataclasses import replace

from providers.completion import Chunk
from providers.emulation.join_extras import shifted_annotations


class EchoPrefix:
    """Puts `prompt` before the text of one choice, in its first chunk. Comes after a StopScanner: a stop within the
    prompt ends nothing."""

    __slots__ = ("_length", "_prompt")

    def __init__(self, prompt: str) -> None:
        self._prompt = prompt
        self._length = len(prompt)

    def feed(self, chunk: Chunk) -> Iterator[Chunk]:
        """Yield the chunk, the first one with the prompt."""
        extras = chunk.extras
        if extras is not None and extras.annotations:
            chunk = replace(chunk, extras=shifted_annotations(extras, self._length))
        if self._prompt:
            prompt, self._prompt = self._prompt, ""
            chunk = replace(chunk, text=prompt + chunk.text)
        yield chunk
