"""Converts a response that is constrained to the arguments of a call into that call, for non-streaming responses and
streams."""

import re
from dataclasses import replace
from typing import Final

import orjson

from providers.adaptation.forced_calls import ForcedCall
from providers.completion import Chunk, ToolCallDelta

_BEGINNING: Final = re.compile(r'\s*\{\s*"name"\s*:\s*("(?:[^"\\]|\\.)*")\s*,\s*"arguments"\s*:\s*')


class CallReader:
    """Makes the call of one choice from the choice's text. If only one function can be called, its arguments are passed
    on as they arrive. If the text also names one of several functions, it is parsed when it is complete."""

    __slots__ = ("_begun", "_forced", "_held", "_is_unchanged")

    def __init__(self, forced: ForcedCall) -> None:
        self._forced = forced
        self._begun = False
        self._is_unchanged = False
        self._held: list[str] = []

    def feed(self, chunk: Chunk) -> Chunk:
        """Return the chunk with a call in place of the text. A refusal, and a call that the vendor itself returned, are
        unchanged."""
        self._is_unchanged = self._is_unchanged or chunk.refusal is not None or bool(chunk.tool_calls)
        if self._is_unchanged or not (chunk.text or chunk.finish_reason):
            return chunk
        deltas = self._call_deltas(chunk)
        finish = chunk.finish_reason
        if self._begun and _is_whole(chunk):
            finish = "tool_calls"
        return replace(chunk, text="", tool_calls=deltas, finish_reason=finish)

    def _call_deltas(self, chunk: Chunk) -> tuple[ToolCallDelta, ...]:
        if len(self._forced.names) > 1:
            self._held.append(chunk.text)
            return () if chunk.finish_reason is None else self._named("".join(self._held), chunk)
        if not chunk.text:
            return ()
        if self._begun:
            return (ToolCallDelta(0, arguments=chunk.text),)
        return self._begin(chunk.index, self._forced.names[0], chunk.text)

    def _begin(self, choice: int, name: str, arguments: str) -> tuple[ToolCallDelta, ...]:
        self._begun = True
        return (ToolCallDelta(0, self._forced.call_id(choice), name, arguments),)

    def _named(self, text: str, chunk: Chunk) -> tuple[ToolCallDelta, ...]:
        """Return the call that a text names. If the text was cut off, the call has the arguments that arrived. A
        complete text has already been checked."""
        beginning = _BEGINNING.match(text)
        if beginning is None:
            return self._in_other_order(text, chunk.index)
        name = next((each for each in self._forced.names if orjson.dumps(each).decode() == beginning[1]), None)
        rest = text[beginning.end() :].rstrip()
        if _is_whole(chunk):
            rest = rest.removesuffix("}").rstrip()
        return () if name is None else self._begin(chunk.index, name, rest)

    def _in_other_order(self, text: str, choice: int) -> tuple[ToolCallDelta, ...]:
        try:
            call = orjson.loads(text)
        except orjson.JSONDecodeError:
            return ()
        if not isinstance(call, dict) or call.get("name") not in self._forced.names:
            return ()
        return self._begin(choice, call["name"], orjson.dumps(call.get("arguments")).decode())


def _is_whole(chunk: Chunk) -> bool:
    """Return whether the choice ends with this chunk and its text was not cut off."""
    return chunk.finish_reason == "stop" and not isinstance(chunk.matched_stop, str)
