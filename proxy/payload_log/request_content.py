"""The contents of one request and its response, held for the payload log while the request runs."""

from dataclasses import dataclass, field
from typing import Final

import orjson

from providers.completion import Chunk, TextRun
from providers.json_types import JsonObject
from proxy.payload_log.payload_entry import SLACK

ALLOWANCE_STEP: Final = 4096
"""The bytes that a stream takes from the allowance at a time."""

HOLDER_BYTES: Final = 256
"""The number of bytes that a choice or a call counts as, in addition to its texts."""


@dataclass(slots=True, eq=False)
class Allowance:
    """The bytes that all contents together may still take."""

    left: int

    def take(self, size: int) -> bool:
        """Take `size` bytes, if as many are left. Return whether they were."""
        if size > self.left:
            return False
        self.left -= size
        return True


@dataclass(slots=True, eq=False)
class _StreamedText:
    """A text of a stream; `clipped` is true if the text continues."""

    data: bytearray = field(default_factory=bytearray)
    clipped: bool = False

    def text(self) -> str:
        return self.data.decode("utf-8", "ignore")


@dataclass(slots=True, eq=False)
class _StreamedCall:
    name: str = ""
    arguments: _StreamedText = field(default_factory=_StreamedText)


@dataclass(slots=True, eq=False)
class _StreamedChoice:
    texts: dict[str, _StreamedText] = field(default_factory=lambda: {"text": _StreamedText()})
    calls: dict[int, _StreamedCall] = field(default_factory=dict)
    finish_reason: str | None = None


@dataclass(slots=True, eq=False)
class LoggedContent:
    """Implements RequestContent: the body of the request, and the body of the response or the content of its stream, up
    to `most` bytes and the slack. `held` is the number of bytes that this content has taken of the allowance."""

    allowance: Allowance
    request: bytes
    most: int
    answer: bytes | None = None
    held: int = 0
    _left: int = field(init=False)
    _taken: int = 0
    _choices: dict[int, _StreamedChoice] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._left = self.most + SLACK

    def add_run(self, run: TextRun) -> None:
        """Add a run that was sent to the client."""
        choice = self._choice(run.index)
        if choice is None:
            return
        if run.part != "text":
            for chunk in run.chunks():
                self.add_chunk(chunk)
        elif run.odd:
            self._add(choice.texts["text"], "".join(chunk.text for chunk in run.chunks()).encode("utf-8", "replace"))
        else:
            self._add(choice.texts["text"], b"".join(run.literals))

    def add_chunk(self, chunk: Chunk) -> None:
        """Add a chunk of a choice that was sent to the client."""
        choice = self._choice(chunk.index)
        if choice is None:
            return
        for name, text in (("text", chunk.text), ("reasoning", chunk.reasoning), ("refusal", chunk.refusal)):
            if text:
                self._add(choice.texts.setdefault(name, _StreamedText()), text.encode("utf-8", "replace"))
        for delta in chunk.tool_calls:
            call = choice.calls.get(delta.index)
            if call is None:
                if not self._hold(HOLDER_BYTES):
                    return
                call = choice.calls[delta.index] = _StreamedCall(delta.name or "")
            self._add(call.arguments, delta.arguments.encode("utf-8", "replace"))
        choice.finish_reason = chunk.finish_reason or choice.finish_reason

    def streamed(self) -> bytes | None:
        """Return the choices of the stream as JSON; `None` if there was no stream."""
        if not self._choices:
            return None
        return orjson.dumps([_choice_json(index, choice) for index, choice in sorted(self._choices.items())])

    def release(self) -> None:
        """Return the held bytes to the allowance."""
        self.allowance.left += self.held
        self.held = 0

    def _choice(self, index: int) -> _StreamedChoice | None:
        choice = self._choices.get(index)
        if choice is None and self._hold(HOLDER_BYTES):
            choice = self._choices[index] = _StreamedChoice()
        return choice

    def _add(self, text: _StreamedText, data: bytes) -> None:
        if text.clipped:
            return
        added = data[: max(0, self._left)]
        if not self._hold(len(added)):
            added = b""
        text.data += added
        self._left -= len(added)
        text.clipped = len(added) < len(data)

    def _hold(self, size: int) -> bool:
        """Count `size` bytes, and take more of the allowance if needed."""
        needed = self._taken + size - (self.held - len(self.request))
        if needed > 0:
            step = -(-needed // ALLOWANCE_STEP) * ALLOWANCE_STEP
            if not self.allowance.take(step):
                return False
            self.held += step
        self._taken += size
        return True


def _choice_json(index: int, choice: _StreamedChoice) -> JsonObject:
    found: JsonObject = {"index": index}
    for name, text in choice.texts.items():
        found[name] = text.text()
    clipped: list[str | int] = [name for name, text in choice.texts.items() if text.clipped]
    if choice.calls:
        calls = [call for _, call in sorted(choice.calls.items())]
        found["tool_calls"] = [{"name": call.name, "arguments": call.arguments.text()} for call in calls]
        clipped += [place for place, call in enumerate(calls) if call.arguments.clipped]
    if choice.finish_reason is not None:
        found["finish_reason"] = choice.finish_reason
    if clipped:
        found["clipped"] = [*clipped]
    return found
