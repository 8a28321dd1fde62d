"""How answers become bytes: JSON writing, and the frames of a stream around the choices.

Never knows what a choice looks like inside, and never puts a newline, an `id:` line or an empty `data:` into a frame:
each breaks a vendor's SDK.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import orjson

from providers.completion import FinishReason, Usage
from providers.unified import UnifiedRequest
from proxy.errors import ErrorFacts

DONE = b"data: [DONE]\n\n"
_ESCAPING = json.JSONEncoder(separators=(",", ":"))


def utf8_json(value: object) -> bytes:
    """Compact JSON. What orjson cannot write (lone surrogates, integers beyond 64 bits) is escaped or spelled out."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        return _escaped(value)


def ascii_json(value: object) -> bytes:
    """Compact JSON in ASCII: line-based clients (httpx `iter_lines`) also split at U+2028 and U+0085."""
    data = utf8_json(value)
    return data if data.isascii() else _escaped(value)


def _escaped(value: object) -> bytes:
    return _ESCAPING.encode(value).encode()


def event(data: bytes) -> bytes:
    """One frame: a single data line."""
    return b"data: %b\n\n" % data


def usage_json(usage: Usage) -> dict[str, object]:
    """OpenAI's usage object; details only where the vendor gave some, `estimated` only where the gateway guessed."""
    body: dict[str, object] = {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
    }
    if usage.prompt_details:
        body["prompt_tokens_details"] = dict(usage.prompt_details)
    if usage.completion_details:
        body["completion_tokens_details"] = dict(usage.completion_details)
    if usage.estimated:
        body["estimated"] = True
    return body


class Frames:
    """The frames of one stream. The constant head and tail are written once; this class shows no usage.

    `head` is the answer's object without its choices, `done` the terminator.
    """

    __slots__ = ("_done", "_fingerprint", "_members", "_prefix", "_suffix")

    def __init__(self, head: Mapping[str, object], request: UnifiedRequest, done: bytes) -> None:
        self._prefix = b"data: " + ascii_json(head)[:-1] + b',"choices":['
        self._done = done
        self._fingerprint = b""
        self._carry(b"")

    def frame(self, choice: bytes) -> bytes:
        """A frame with one choice."""
        return self._prefix + choice + self._suffix

    def finish(self, choice: bytes) -> bytes:
        """The frame that ends a choice; empty when it is held back."""
        return self.frame(choice)

    def sign(self, fingerprint: str) -> None:
        """The vendor's system fingerprint, which every frame carries from now on."""
        self._fingerprint = b',"system_fingerprint":' + ascii_json(fingerprint)
        self._carry(self._members)

    def usage(self, usage: Usage) -> bytes:
        """Take note of the usage; frames that became due."""
        return b""

    def end(self) -> bytes:
        """What was held back, and the terminator."""
        return self._done

    def bare(self, members: Mapping[str, object]) -> bytes:
        """A frame without choices that carries further members."""
        return self._prefix + b"]," + ascii_json(members)[1:] + b"\n\n"

    def _carry(self, members: bytes) -> None:
        self._members = members
        self._suffix = self._close(members)

    def _close(self, members: bytes) -> bytes:
        return b"]" + self._fingerprint + members + b"}\n\n"


class UsageFrames(Frames):
    """Usage as OpenAI sends it to those who asked: null on each frame, then a frame of its own without choices.

    When the vendor gave none, that frame is left out rather than filled with invented numbers. A client that asked for
    running usage (vLLM's `continuous_usage_stats`) gets the latest known numbers on each frame instead of null.
    """

    __slots__ = ("_running", "_usage")

    def __init__(self, head: Mapping[str, object], request: UnifiedRequest, done: bytes) -> None:
        super().__init__(head, request, done)
        self._usage: Usage | None = None
        self._running = request.stream_options.continuous_usage_stats
        self._carry(_usage_member(None))

    def usage(self, usage: Usage) -> bytes:
        """The final frame reports it; running usage shows from the next frame on."""
        self._usage = usage
        if self._running:
            self._carry(_usage_member(usage))
        return b""

    def end(self) -> bytes:
        """The usage, where there is one, and the terminator."""
        if self._usage is None:
            return self._done
        return self._prefix + self._close(_usage_member(self._usage)) + self._done


class FinishUsageFrames(Frames):
    """Usage on the frame that ends the last choice, as Fireworks and Scale send it: that frame waits for the usage."""

    __slots__ = ("_held", "_open", "_usage")

    def __init__(self, head: Mapping[str, object], request: UnifiedRequest, done: bytes) -> None:
        super().__init__(head, request, done)
        self._open = request.choices
        self._held: bytes | None = None
        self._usage: Usage | None = None

    def finish(self, choice: bytes) -> bytes:
        """The last one waits until the usage is known to be final."""
        self._open -= 1
        if self._open:
            return self.frame(choice)
        self._held = choice
        return b""

    def usage(self, usage: Usage) -> bytes:
        """Usage after the last choice's end is final; before that it may still grow."""
        self._usage = usage
        return b"" if self._held is None else self._release()

    def end(self) -> bytes:
        """The held frame, with the usage if there is any, and the terminator."""
        return (b"" if self._held is None else self._release()) + self._done

    def _release(self) -> bytes:
        choice, self._held = self._held or b"", None
        members = b"" if self._usage is None else _usage_member(self._usage)
        return self._prefix + choice + self._close(members)


def _usage_member(usage: Usage | None) -> bytes:
    return b',"usage":' + (b"null" if usage is None else orjson.dumps(usage_json(usage)))


@dataclass(frozen=True, slots=True)
class Style:
    """How one surface writes answers.

    `unasked` and `asked` are its frames for clients that did not and did ask for usage in a stream, `broken` writes the
    end of a stream that failed, `tool_finish` is what a text completion says when the model called a tool.
    """

    done: bytes
    unasked: type[Frames]
    asked: type[Frames]
    broken: Callable[[Frames, ErrorFacts], bytes]
    tool_finish: FinishReason

    def frames(self, head: Mapping[str, object], request: UnifiedRequest) -> Frames:
        """The frames of one answer."""
        kind = self.asked if request.stream_options.include_usage else self.unasked
        return kind(head, request, self.done)
