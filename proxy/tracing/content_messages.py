"""The texts of prompts and answers as OpenTelemetry's conventions for generative AI write them: JSON lists of messages,
each with a `role` and its `parts` (gen-ai-input-messages.json and gen-ai-output-messages.json of
semantic-conventions-genai, November 2026). Never media: of them the type alone.

What is kept of one request is bounded, and so is what it takes to make it, however long the prompt is.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from providers.completion import Choice, Chunk
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import ChatPrompt, Prompt, TextPrompt

MOST_CHARACTERS: Final = 32_000
"""Of the texts of a prompt, and of those of an answer. Of a longer conversation the latest messages are kept."""

MOST_MESSAGES: Final = 64
MOST_PARTS: Final = 64
"""Messages of a conversation, and parts of a message, that are kept."""

CUT: Final = "…"
"""Ends a text that is not there to its end."""


class _TextRoom:
    """How many characters may still be kept."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MOST_CHARACTERS

    def take(self, text: str) -> str:
        """Return the text, cut to what there is room for."""
        taken = text[: self.left]
        self.left -= len(taken)
        return taken if len(taken) == len(text) else taken + CUT


def prompt_json(prompt: Prompt) -> str:
    """Return the messages of a prompt; empty for one of token ids."""
    room = _TextRoom()
    if isinstance(prompt, ChatPrompt):
        latest = prompt.messages[-MOST_MESSAGES:]
        messages = [_message(message, room) for message in reversed(latest) if room.left]
        return _written(messages[::-1])
    if isinstance(prompt, TextPrompt):
        texts = prompt.texts[:MOST_MESSAGES]
        return _written([{"role": "user", "parts": [_text(text, room)]} for text in texts if room.left])
    return ""


def answer_json(choices: Iterable[Choice]) -> str:
    """Return the messages of a whole answer."""
    texts = GatheredTexts()
    for choice in choices:
        texts.add_choice(choice)
    return texts.json()


class GatheredTexts:
    """The texts of an answer as they come. `fresh` says that there is something that `json` has not returned yet."""

    __slots__ = ("_calls", "_reasons", "_room", "_texts", "_thoughts", "fresh")

    def __init__(self) -> None:
        self._room = _TextRoom()
        self._texts: dict[int, list[str]] = {}
        self._thoughts: dict[int, list[str]] = {}
        self._calls: dict[int, dict[str, list[str]]] = {}
        self._reasons: dict[int, str] = {}
        self.fresh = False

    def add(self, chunk: Chunk) -> None:
        """Add a piece of a stream."""
        if chunk.finish_reason is not None:
            self._reasons[chunk.index] = chunk.finish_reason
            self.fresh = True
        if not self._room.left:
            return
        self._keep(self._texts, chunk.index, chunk.text)
        self._keep(self._thoughts, chunk.index, chunk.reasoning or "")
        for delta in chunk.tool_calls[:MOST_PARTS]:
            self._keep_call(chunk.index, delta.index, delta.name or "", delta.arguments)

    def add_choice(self, choice: Choice) -> None:
        """Add a choice of a whole answer."""
        self._reasons[choice.index] = choice.finish_reason
        self._keep(self._texts, choice.index, choice.text)
        self._keep(self._thoughts, choice.index, choice.reasoning or "")
        for number, call in enumerate(choice.tool_calls[:MOST_PARTS]):
            self._keep_call(choice.index, number, call.name, call.arguments)

    def json(self) -> str:
        """Return the messages so far."""
        self.fresh = False
        indices = sorted({*self._texts, *self._thoughts, *self._calls, *self._reasons})[:MOST_MESSAGES]
        return _written([self._answer(index) for index in indices])

    def _keep(self, kept: dict[int, list[str]], index: int, text: str) -> None:
        if text and self._room.left:
            kept.setdefault(index, []).append(self._room.take(text))

    def _keep_call(self, index: int, number: int, name: str, arguments: str) -> None:
        calls = self._calls.setdefault(index, {})
        if number < MOST_PARTS:
            pieces = calls.setdefault(str(number), [""])
            pieces[0] += self._room.take(name) if name else ""
            if arguments and self._room.left:
                pieces.append(self._room.take(arguments))

    def _answer(self, index: int) -> JsonObject:
        parts: list[JsonValue] = []
        if thought := "".join(self._thoughts.get(index, ())):
            parts.append({"type": "reasoning", "content": thought})
        if text := "".join(self._texts.get(index, ())):
            parts.append({"type": "text", "content": text})
        for name, *arguments in self._calls.get(index, {}).values():
            parts.append({"type": "tool_call", "name": name, "arguments": "".join(arguments)})
        return {"role": "assistant", "parts": parts, "finish_reason": self._reasons.get(index, "error")}


def _message(message: JsonObject, room: _TextRoom) -> JsonObject:
    role = message.get("role")
    return {"role": role[:64] if isinstance(role, str) else "user", "parts": [*_parts(message, room)]}


def _parts(message: JsonObject, room: _TextRoom) -> Iterator[JsonValue]:
    content = message.get("content")
    if isinstance(content, str):
        if message.get("role") == "tool":
            yield {"type": "tool_call_response", "response": room.take(content)}
        else:
            yield _text(content, room)
    elif isinstance(content, list):
        yield from (_part(part, room) for part in content[:MOST_PARTS] if isinstance(part, dict))
    calls = message.get("tool_calls")
    for call in calls[:MOST_PARTS] if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            name, arguments = str(function.get("name"))[:256], function.get("arguments")
            said = room.take(arguments) if isinstance(arguments, str) else ""
            yield {"type": "tool_call", "name": name, "arguments": said}


def _part(part: JsonObject, room: _TextRoom) -> JsonObject:
    text = part.get("text")
    return _text(text, room) if isinstance(text, str) else {"type": str(part.get("type"))[:64]}


def _text(text: str, room: _TextRoom) -> JsonObject:
    return {"type": "text", "content": room.take(text)}


def _written(messages: Sequence[JsonObject]) -> str:
    # Not orjson: a client's text may hold lone surrogates. In ASCII nothing of it can break what carries it.
    return json.dumps(messages, separators=(",", ":")) if messages else ""
