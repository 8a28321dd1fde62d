"""A client's view of an answer: whole or streamed, text or chat, the same members. Never an assertion of its own."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

import orjson

from providers.unified import JsonObject, JsonValue
from tests.proxy.raw_client import Answer

DONE = b"[DONE]"


@dataclass(slots=True)
class ShownChoice:
    """One choice. `tokens` are those of its log probabilities with their numbers, None where none came; `calls` the
    functions called, with their arguments."""

    text: str = ""
    finish: JsonValue = None
    tokens: list[tuple[str, float | None]] | None = None
    calls: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Shown:
    """What the client got: choices by index, usage as (prompt, completion), and what the gateway says it did."""

    choices: Mapping[int, ShownChoice]
    usage: tuple[int, int] | None
    named: tuple[str, ...]

    @property
    def only(self) -> ShownChoice:
        """The one choice; there must not be another."""
        assert list(self.choices) == [0], f"choices {list(self.choices)}"
        return self.choices[0]


def named(answer: Answer) -> tuple[str, ...]:
    """The fields of `x-dragoman-emulated`."""
    header = answer.headers.get("x-dragoman-emulated", "")
    return tuple(name for name in header.split(", ") if name)


def shown(answer: Answer) -> Shown:
    """An answer with status 200, read."""
    assert answer.status == 200, answer.body
    assert answer.whole
    if not answer.headers["content-type"].startswith("text/event-stream"):
        return _read([answer.json()], named(answer))
    *events, last = answer.events()
    assert last == DONE, last
    return _read([orjson.loads(event) for event in events], named(answer))


def _read(bodies: list[JsonObject], names: tuple[str, ...]) -> Shown:
    choices: dict[int, ShownChoice] = {}
    usage: tuple[int, int] | None = None
    for body in bodies:
        assert "error" not in body, body
        for choice in cast(list[JsonObject], body["choices"]):
            _add(choices.setdefault(cast(int, choice["index"]), ShownChoice()), choice)
        counted = body.get("usage")
        if isinstance(counted, dict):
            usage = (cast(int, counted["prompt_tokens"]), cast(int, counted["completion_tokens"]))
    return Shown(dict(sorted(choices.items())), usage, names)


def _add(seen: ShownChoice, choice: JsonObject) -> None:
    message = cast(JsonObject, choice.get("message", choice.get("delta", choice)))
    seen.text += str(message.get("content") or message.get("text") or "")
    if choice.get("finish_reason") is not None:
        assert seen.finish is None, "a choice ends twice"
        seen.finish = choice["finish_reason"]
    for call in cast(list[JsonObject], message.get("tool_calls") or []):
        function = cast(JsonObject, call["function"])
        if "name" in function:
            seen.calls.append((str(function["name"]), ""))
        name, arguments = seen.calls[-1]
        seen.calls[-1] = (name, arguments + str(function.get("arguments", "")))
    logprobs = choice.get("logprobs")
    if isinstance(logprobs, dict):
        seen.tokens = (seen.tokens or []) + _tokens(logprobs)


def _tokens(logprobs: JsonObject) -> list[tuple[str, float | None]]:
    if "content" in logprobs:
        entries = cast(list[JsonObject], logprobs["content"] or [])
        return [(str(entry["token"]), cast(float, entry["logprob"])) for entry in entries]
    tokens, numbers = cast(list[str], logprobs["tokens"]), cast(list[float | None], logprobs["token_logprobs"])
    return list(zip(tokens, numbers, strict=True))
