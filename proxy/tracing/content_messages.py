"""The texts of prompts and responses in the format of OpenTelemetry's conventions for generative AI: JSON lists of
messages, each with a `role` and its `parts` (gen-ai-input-messages.json and gen-ai-output-messages.json of
semantic-conventions-genai, November 2026). Media are never included; only their type is.

The stored text of one request is bounded, and so is the work to produce it, however long the prompt is.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from providers.completion import Choice, Chunk
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import ChatPrompt, Prompt, TextPrompt

MOST_CHARACTERS: Final = 32_000
"""The most characters of the texts of a prompt, and of the texts of a response. Of a longer conversation the latest
messages are stored."""

MOST_MESSAGES: Final = 64
MOST_PARTS: Final = 64
"""The most messages of a conversation, and the most parts of a message, that are stored."""

CUT: Final = "…"
"""The end of a text that was cut."""


class _TextLimit:
    """The number of characters that may still be stored."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MOST_CHARACTERS

    def take(self, text: str) -> str:
        """Return the text, cut to the remaining characters."""
        taken = text[: self.left]
        self.left -= len(taken)
        return taken if len(taken) == len(text) else taken + CUT


def prompt_json(prompt: Prompt) -> str:
    """Return the messages of a prompt; empty for a prompt of token ids."""
    limit = _TextLimit()
    if isinstance(prompt, ChatPrompt):
        latest = prompt.messages[-MOST_MESSAGES:]
        messages = [_message(message, limit) for message in reversed(latest) if limit.left]
        return _written(messages[::-1])
    if isinstance(prompt, TextPrompt):
        texts = prompt.texts[:MOST_MESSAGES]
        return _written([{"role": "user", "parts": [_text(text, limit)]} for text in texts if limit.left])
    return ""


def response_json(choices: Iterable[Choice]) -> str:
    """Return the messages of a non-streaming response."""
    texts = GatheredTexts()
    for choice in choices:
        texts.add_choice(choice)
    return texts.json()


class GatheredTexts:
    """The texts of a response while it arrives. `fresh` is true if there are texts that `json` has not returned yet."""

    __slots__ = ("_calls", "_limit", "_reasoning", "_reasons", "_texts", "fresh")

    def __init__(self) -> None:
        self._limit = _TextLimit()
        self._texts: dict[int, list[str]] = {}
        self._reasoning: dict[int, list[str]] = {}
        self._calls: dict[int, dict[str, list[str]]] = {}
        self._reasons: dict[int, str] = {}
        self.fresh = False

    def add(self, chunk: Chunk) -> None:
        """Add a chunk of a stream."""
        if chunk.finish_reason is not None:
            self._reasons[chunk.index] = chunk.finish_reason
            self.fresh = True
        if not self._limit.left:
            return
        self._add_text(self._texts, chunk.index, chunk.text)
        self._add_text(self._reasoning, chunk.index, chunk.reasoning or "")
        for delta in chunk.tool_calls[:MOST_PARTS]:
            self._add_call(chunk.index, delta.index, delta.name or "", delta.arguments)

    def add_choice(self, choice: Choice) -> None:
        """Add a choice of a non-streaming response."""
        self._reasons[choice.index] = choice.finish_reason
        self._add_text(self._texts, choice.index, choice.text)
        self._add_text(self._reasoning, choice.index, choice.reasoning or "")
        for number, call in enumerate(choice.tool_calls[:MOST_PARTS]):
            self._add_call(choice.index, number, call.name, call.arguments)

    def json(self) -> str:
        """Return the messages so far."""
        self.fresh = False
        indices = sorted({*self._texts, *self._reasoning, *self._calls, *self._reasons})[:MOST_MESSAGES]
        return _written([self._choice_message(index) for index in indices])

    def _add_text(self, lists: dict[int, list[str]], index: int, text: str) -> None:
        if text and self._limit.left:
            lists.setdefault(index, []).append(self._limit.take(text))

    def _add_call(self, index: int, number: int, name: str, arguments: str) -> None:
        calls = self._calls.setdefault(index, {})
        if number < MOST_PARTS:
            texts = calls.setdefault(str(number), [""])
            texts[0] += self._limit.take(name) if name else ""
            if arguments and self._limit.left:
                texts.append(self._limit.take(arguments))

    def _choice_message(self, index: int) -> JsonObject:
        parts: list[JsonValue] = []
        if reasoning := "".join(self._reasoning.get(index, ())):
            parts.append({"type": "reasoning", "content": reasoning})
        if text := "".join(self._texts.get(index, ())):
            parts.append({"type": "text", "content": text})
        for name, *arguments in self._calls.get(index, {}).values():
            parts.append({"type": "tool_call", "name": name, "arguments": "".join(arguments)})
        return {"role": "assistant", "parts": parts, "finish_reason": self._reasons.get(index, "error")}


def _message(message: JsonObject, limit: _TextLimit) -> JsonObject:
    role = message.get("role")
    return {"role": role[:64] if isinstance(role, str) else "user", "parts": [*_parts(message, limit)]}


def _parts(message: JsonObject, limit: _TextLimit) -> Iterator[JsonValue]:
    content = message.get("content")
    if isinstance(content, str):
        if message.get("role") == "tool":
            yield {"type": "tool_call_response", "response": limit.take(content)}
        else:
            yield _text(content, limit)
    elif isinstance(content, list):
        yield from (_part(part, limit) for part in content[:MOST_PARTS] if isinstance(part, dict))
    calls = message.get("tool_calls")
    for call in calls[:MOST_PARTS] if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            name, arguments = str(function.get("name"))[:256], function.get("arguments")
            text = limit.take(arguments) if isinstance(arguments, str) else ""
            yield {"type": "tool_call", "name": name, "arguments": text}


def _part(part: JsonObject, limit: _TextLimit) -> JsonObject:
    text = part.get("text")
    return _text(text, limit) if isinstance(text, str) else {"type": str(part.get("type"))[:64]}


def _text(text: str, limit: _TextLimit) -> JsonObject:
    return {"type": "text", "content": limit.take(text)}


def _written(messages: Sequence[JsonObject]) -> str:
    # orjson cannot be used, because a client's text may contain lone surrogates. ASCII text is valid in every format
    # that carries it.
    return json.dumps(messages, separators=(",", ":")) if messages else ""
