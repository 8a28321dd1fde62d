"""Puts the prompt before the generated text, for vendors without `echo`."""

from collections.abc import Collection, Iterator
from dataclasses import replace

from providers.completion import Chunk
from providers.emulation.join_extras import shifted_annotations
from providers.failure import Refusal

MAX_ECHO = 32 * 2**20
"""The most characters of prompts that the gateway repeats in one response, for all choices together."""


def check_echo(prompts: Collection[str], n: int) -> None:
    """Raise Refusal for prompts that are too long if each prompt is repeated before `n` choices."""
    if sum(map(len, prompts)) * n > MAX_ECHO:
        message = f"'echo' can repeat at most {MAX_ECHO} characters before all choices together."
        raise Refusal("echo", message, "invalid_value")


class EchoPrefix:
    """Puts `prompt` before the text of one choice, in its first chunk. The chunks must have passed through a
    StopScanner before, so that a stop string within the prompt does not end the choice."""

    __slots__ = ("_length", "_prompt")

    def __init__(self, prompt: str) -> None:
        self._prompt = prompt
        self._length = len(prompt)

    def feed(self, chunk: Chunk) -> Iterator[Chunk]:
        """Yield the chunk. The first one has the prompt before its text."""
        extras = chunk.extras
        if extras is not None and extras.annotations:
            chunk = replace(chunk, extras=shifted_annotations(extras, self._length))
        if self._prompt:
            prompt, self._prompt = self._prompt, ""
            if chunk.extras is not None and chunk.extras.image_places:
                places = tuple([place + len(prompt) for place in chunk.extras.image_places])
                chunk = replace(chunk, extras=replace(chunk.extras, image_places=places))
            chunk = replace(chunk, text=prompt + chunk.text)
        yield chunk
