"""Calls of tools as blocks of the Messages API, non-streaming and streamed.

Blocks never overlap. If a vendor streams several calls in parallel, the first is sent as it arrives, and the others are
held back until the response ends. Arguments are sent only as `input_json_delta`: if the block already begins with an
input, a client runs the tool with `{}`. If the token limit cut off the arguments, a non-streaming response leaves out
the call, and a stream leaves the arguments unfinished, as Anthropic does.

Other arguments that are not a JSON object, as weak models write them, become the value of a single argument
`arguments`, so that the client's tool refuses them and the model tries again. In a stream this is done only if the
arguments do not begin like a JSON object (for example `{'a': 1}` or `[1]`). Arguments with a valid beginning have
already been sent when an error is found, so the client has to find the error.

Sources: `anthropic` 2.12.0 type `ToolUseBlock`; Claude Code 2.1.197, November 2026.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import orjson

from providers.completion import CallKind, ToolCall, ToolCallDelta
from providers.failure import Failure, FailureKind, UpstreamError
from providers.framing.text_frames import text_of_ascii
from providers.json_types import JsonObject, JsonValue
from proxy.surfaces.anthropic.events import ARGUMENTS, END, block_start, block_stop
from proxy.surfaces.response.write_sse import ascii_json, utf8_json
from proxy.surfaces.surface import LiteralWriter

_OWN_FIELDS = ("caller", "toolset_name")
"""The fields of Anthropic's own calls besides the fields that calls of all vendors have."""


def whole_calls(calls: Sequence[ToolCall], finish: str) -> list[JsonObject]:
    """Return the blocks of the calls of a non-streaming response."""
    blocks: list[JsonObject] = []
    for call in calls:
        arguments = _arguments(call.kind, call.arguments)
        parsed = _parsed(arguments)
        if parsed is not None or finish != "length":
            parsed = {"arguments": arguments} if parsed is None else parsed
            blocks.append({**_head(call.id, call.name, call.extra), "input": parsed})
    return blocks


def _head(identity: str, name: str, extra: Mapping[str, JsonValue] | None) -> JsonObject:
    own_fields: JsonObject = {key: extra[key] for key in _OWN_FIELDS if key in extra} if extra else {}
    return {**own_fields, "type": "tool_use", "id": identity, "name": name}


def _arguments(kind: CallKind, text: str) -> str:
    """Return arguments as JSON. The text of a custom tool becomes their only field."""
    return text if kind == "function" else utf8_json({"input": text}).decode()


def _parsed(arguments: str) -> JsonObject | None:
    """Return the parsed arguments of a call; an empty text gives an empty object. Return `None` for a text that is not
    a JSON object."""
    if not arguments or arguments.isspace():
        return {}
    try:
        value: JsonValue = orjson.loads(arguments)
    except (orjson.JSONDecodeError, UnicodeEncodeError):
        return None
    return value if isinstance(value, dict) else None


_SPACE = " \t\n\r"
"""White space of JSON."""

_CUT_OFF = re.compile(r'[ \t\n\r]*+(?:\{[ \t\n\r]*+(?:["}]|\Z)|\Z)')
"""Matches a text that could be the beginning of an object that was cut off."""


@dataclass(slots=True)
class _Call:
    """A call in progress. `first_char` is the first character of its arguments, while it is not known whether they
    begin like an object. After that, `streams` is true if the arguments begin like an object; then each delta is sent
    as it arrives."""

    id: str
    name: str
    kind: CallKind
    extra: Mapping[str, JsonValue] | None
    deltas: list[str] = field(default_factory=list)
    first_char: str = ""
    streams: bool | None = None

    @property
    def arguments(self) -> str:
        return _arguments(self.kind, "".join(self.deltas))

    def begins(self, delta_text: str) -> bool:
        """Return whether the arguments up to and including this delta begin like an object."""
        if self.streams is None:
            rest = delta_text.lstrip(_SPACE)
            if not self.first_char:
                self.first_char, rest = rest[:1], rest[1:].lstrip(_SPACE)
            if self.first_char and (rest or self.first_char != "{"):
                self.streams = self.first_char == "{" and rest[0] in '"}'
        return self.streams is True

    def final_arguments(self, finish: str) -> str:
        """Return the arguments at the end of a call of which no arguments have been sent."""
        arguments = self.arguments
        if _parsed(arguments) is not None or (finish == "length" and _CUT_OFF.match(arguments)):
            return arguments
        return utf8_json({"arguments": arguments}).decode()


class MessageCalls:
    """The calls of one stream; `begun` is true if there was at least one call."""

    __slots__ = ("_block", "_done", "_held", "_open", "_tested", "begun")

    def __init__(self) -> None:
        self.begun = self._tested = False
        self._block = 0
        self._open: tuple[int, _Call] | None = None
        self._held: dict[int, _Call] = {}
        self._done: dict[int, None] = {}  # an empty set takes three times as much memory

    @property
    def is_open(self) -> bool:
        """Whether a block of a call is open."""
        return self._open is not None

    def add(self, delta: ToolCallDelta, index: int) -> tuple[bytes, int]:
        """Return the events of a delta of a call, and the index of the next block after it. `index` is the index of the
        next block before the delta. Raises UpstreamError for a further delta of a call that was complete."""
        if self._open is not None and self._open[0] == delta.index:
            return self._delta_events(self._open[1], delta), index
        if delta.index in self._held:
            self._held[delta.index].deltas.append(delta.arguments)
            return b"", index
        if delta.index in self._done:
            if delta.arguments and not delta.arguments.isspace():
                message = "The upstream continued a tool call that was complete."
                raise UpstreamError(Failure(FailureKind.MALFORMED, message, ours=True))
            return b"", index
        self.begun = True
        call = _Call(delta.id or f"toolu_{delta.index}", delta.name or "", delta.kind, delta.extra)
        frames = self.close_if_complete()
        if self._open is not None or delta.kind != "function":
            call.deltas.append(delta.arguments)
            self._held[delta.index] = call
            return frames, index
        self._open, self._block, self._tested = (delta.index, call), index, False
        start = block_start(index, {**_head(call.id, call.name, call.extra), "input": {}})
        return frames + start + self._delta_events(call, delta), index + 1

    def _delta_events(self, tool_call: _Call, delta: ToolCallDelta) -> bytes:
        if not delta.arguments:
            return b""
        tool_call.deltas.append(delta.arguments)
        if tool_call.streams:
            return ARGUMENTS % self._block + ascii_json(delta.arguments) + END
        if not tool_call.begins(delta.arguments):
            return b""
        return ARGUMENTS % self._block + ascii_json(tool_call.arguments) + END

    def literal_writer(self, number: int) -> LiteralWriter | None:
        """Return the function that writes events with further arguments of a call; `None` if the arguments are not sent
        as they arrive."""
        if self._open is None or self._open[0] != number or not self._open[1].streams:
            return None
        prefix, suffix, deltas = ARGUMENTS % self._block + b'"', b'"' + END, self._open[1].deltas

        def write(literal: bytes) -> bytes:
            deltas.append(text_of_ascii(literal))
            return prefix + literal + suffix

        return write

    def close_if_complete(self) -> bytes:
        """Close the open call if its arguments are complete. The arguments are tested only once, so that the work is
        linear in their length."""
        if self._open is None or self._tested:
            return b""
        self._tested = True
        number, call = self._open
        if not call.deltas or _parsed(call.arguments) is None:
            return b""
        self._done[number] = None
        self._open = None
        return block_stop(self._block)

    def finish(self, index: int, finish: str) -> tuple[bytes, int]:
        """Return the events of all remaining calls, and the index of the next block."""
        frames = [*self._last(finish)]
        for number, call in sorted(self._held.items()):
            frames += self._whole(call, index, finish)
            self._done[number] = None
            index += 1
        self._held = {}
        return b"".join(frames), index

    def _last(self, finish: str) -> Iterator[bytes]:
        if self._open is None:
            return
        number, call = self._open
        if call.deltas and not call.streams:
            yield ARGUMENTS % self._block + ascii_json(call.final_arguments(finish)) + END
        yield block_stop(self._block)
        self._done[number] = None
        self._open = None

    def _whole(self, tool_call: _Call, index: int, finish: str) -> Iterator[bytes]:
        arguments = tool_call.final_arguments(finish)
        yield block_start(index, {**_head(tool_call.id, tool_call.name, tool_call.extra), "input": {}})
        if arguments:
            yield ARGUMENTS % index + ascii_json(arguments) + END
        yield block_stop(index)
