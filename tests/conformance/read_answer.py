"""A response as its client sees it, in one form for non-streaming and streamed, text and chat."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

import orjson

from providers.json_types import JsonObject, JsonValue
from tests.proxy.kit.raw_client import Answer

DONE = b"[DONE]"


@dataclass(slots=True)
class ChoiceView:
    """One choice. `tokens` are the tokens of its log probabilities with their values, `None` without log
    probabilities; `calls` are the functions called, with their arguments."""

    text: str = ""
    finish: JsonValue = None
    tokens: list[tuple[str, float | None]] | None = None
    calls: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class AnswerView:
    """A response: choices by index, usage as (prompt, completion), and the fields that `x-dragoman-emulated` names."""

    choices: Mapping[int, ChoiceView]
    usage: tuple[int, int] | None
    named: tuple[str, ...]

    @property
    def only(self) -> ChoiceView:
        assert list(self.choices) == [0], f"choices {list(self.choices)}"
        return self.choices[0]


def emulated_fields(answer: Answer) -> tuple[str, ...]:
    return _names_in(answer, "x-dragoman-emulated")


def dropped_fields(answer: Answer) -> tuple[str, ...]:
    return _names_in(answer, "x-dragoman-dropped")


def _names_in(answer: Answer, header: str) -> tuple[str, ...]:
    return tuple(name for name in answer.headers.get(header, "").split(", ") if name)


def read_answer(answer: Answer) -> AnswerView:
    assert answer.status == 200, answer.body
    assert answer.whole
    if not answer.headers["content-type"].startswith("text/event-stream"):
        return _read([answer.json()], emulated_fields(answer))
    *events, last = answer.events()
    assert last == DONE, last
    return _read([orjson.loads(event) for event in events], emulated_fields(answer))


def _read(bodies: list[JsonObject], names: tuple[str, ...]) -> AnswerView:
    choices: dict[int, ChoiceView] = {}
    usage: tuple[int, int] | None = None
    for body in bodies:
        assert "error" not in body, body
        for choice in cast(list[JsonObject], body["choices"]):
            _add(choices.setdefault(cast(int, choice["index"]), ChoiceView()), choice)
        counted = body.get("usage")
        if isinstance(counted, dict):
            usage = (cast(int, counted["prompt_tokens"]), cast(int, counted["completion_tokens"]))
    return AnswerView(dict(sorted(choices.items())), usage, names)


def _add(seen: ChoiceView, choice: JsonObject) -> None:
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
