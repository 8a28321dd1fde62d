"""A model server that does as it is told: what it writes for a call, before any wire format.

It keeps the constraints, stops and limits of the call exactly, so that what a client sees at the end shows what the
gateway asked for and what it did itself. Never a vendor's field name, a frame or a socket.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import orjson

from providers.unified import JsonObject, JsonValue

WINDOW = 4000
"""Tokens that prompt and answer may have together, for every model of every fake."""

WORDS = ("one", " two", " END", " three")
"""The tokens of every answer that no constraint shapes; the last one is the candidate's own."""

LAST = (" three", " four", " five", " six")
"""How candidates end, by number. The second is the likeliest."""

LOGPROBS = (-0.5, -0.25, -0.75, -1.0)
"""Of each token, by candidate."""

PATTERN = "[0-9]{3}"
FINDS: Mapping[str, str] = {PATTERN: "123", "(yes|no)": "no"}
"""A text for each pattern that is asked for."""


@dataclass(frozen=True, slots=True)
class Ask:
    """What a call wants, whatever the wire. `prompts` are texts; of token ids, their numbers with spaces between.

    `text` is what a constraint makes of the answer, `tool` the function to call instead of a text; `limit` the most
    tokens.
    """

    prompts: tuple[str, ...]
    n: int = 1
    best_of: int = 1
    stops: tuple[str, ...] = ()
    keep_stop: bool = False
    echo: bool = False
    limit: int | None = None
    text: str | None = None
    tool: str | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """One choice. `tokens` are those of the prompt, when it is echoed, and of the answer, with their log probabilities
    (None for the very first of a prompt)."""

    text: str
    tokens: tuple[tuple[str, float | None], ...]
    finish: Literal["stop", "length", "tool_calls"]
    stop: str | None = None
    tool: str | None = None


class Engine:
    """Writes candidates; a prompt that is asked again gets further ones, as sampling would give."""

    def __init__(self) -> None:
        self._asked: dict[str, int] = {}

    def write(self, ask: Ask) -> tuple[list[Written], int]:
        """The choices in the order of their indices, and how many tokens were generated, all candidates counted."""
        choices: list[Written] = []
        generated = 0
        for prompt in ask.prompts:
            first = self._asked.get(prompt, 0)
            count = max(ask.n, ask.best_of)
            self._asked[prompt] = first + count
            candidates = [self._written(ask, prompt, number % len(LAST)) for number in range(first, first + count)]
            generated += sum(len(_words(ask, 0)) for _ in candidates)
            if ask.best_of > ask.n:
                candidates.sort(key=lambda written: -(written.tokens[-1][1] or 0))
            choices += candidates[: ask.n]
        return choices, generated

    def _written(self, ask: Ask, prompt: str, number: int) -> Written:
        if ask.tool is not None:
            return Written("", (), "tool_calls", tool=ask.tool)
        words = _words(ask, number)
        text = "".join(words)
        finish: Literal["stop", "length"] = "length" if ask.limit is not None and ask.limit <= len(words) else "stop"
        stop = min((stop for stop in ask.stops if stop in text), key=text.find, default=None)
        if stop is not None:
            end = text.find(stop)
            text, finish = text[: end + len(stop) if ask.keep_stop else end], "stop"
        kept: list[tuple[str, float | None]] = []
        for word in words:
            if sum(len(token) for token, _ in kept) < len(text):
                kept.append((word, LOGPROBS[number]))
        if ask.echo:
            parts = prompt.split(" ")
            prompted = [part if not place else f" {part}" for place, part in enumerate(parts)]
            kept = [(token, -0.1 if place else None) for place, token in enumerate(prompted)] + kept
            text = prompt + text
        return Written(text, tuple(kept), finish, stop)


def _words(ask: Ask, number: int) -> tuple[str, ...]:
    if ask.text is not None:
        return (ask.text,)
    words = (*WORDS[:-1], LAST[number])
    return words if ask.limit is None else words[: ask.limit]


def prompt_tokens(ask: Ask) -> int:
    """Words count as tokens."""
    return sum(len(prompt.split()) for prompt in ask.prompts)


def constrained(body: JsonObject) -> str | None:
    """A text that keeps whatever constraint the body carries, in the form that each server documents; None without
    one."""
    for name in ("", "structured_outputs", "nvext", "response_format", "output_config"):
        holder = body.get(name) if name else body
        if isinstance(holder, dict) and (text := _kept(holder)) is not None:
            return text
    return None


def _kept(holder: JsonObject) -> str | None:
    for name, value in holder.items():
        kind, given = name.removeprefix("guided_"), value
        if name == "type" and "value" in holder:
            kind, given = str(value), holder["value"]
        elif name == "type" and value == "json_object" and "schema" not in holder:
            return "{}"
        elif isinstance(value, dict) and value.get("type") == "const_string":
            return str(value["value"])
        if kind in _WRITERS:
            return _WRITERS[kind](given)
    return None


def _of_pattern(value: JsonValue) -> str:
    return FINDS[str(value)]


def _of_choices(value: JsonValue) -> str:
    return str(value[-1]) if isinstance(value, list) else ""


def _of_grammar(value: JsonValue) -> str:
    literals = re.findall(r'"([^"]*)"', str(value))
    return str(literals[-1]) if literals else FINDS[PATTERN]


def _of_schema(value: JsonValue) -> str:
    """The smallest object that a schema allows; a schema may be wrapped, or JSON in a string."""
    if isinstance(value, str):
        value = orjson.loads(value)
    if isinstance(value, dict) and isinstance(value.get("schema"), dict):
        value = value["schema"]
    properties = value.get("properties") if isinstance(value, dict) else None
    members = properties if isinstance(properties, dict) else {}
    return orjson.dumps({name: _value(schema) for name, schema in members.items()}).decode()


def _value(schema: JsonValue) -> JsonValue:
    options = schema.get("enum") if isinstance(schema, dict) else None
    return options[-1] if isinstance(options, list) else 1


_WRITERS: Mapping[str, Callable[[JsonValue], str]] = {
    "regex": _of_pattern,
    "choice": _of_choices,
    "grammar": _of_grammar,
    "ebnf": _of_grammar,
    **dict.fromkeys(("json", "json_schema", "schema", "format"), _of_schema),
}
"""By the name under which a server takes a constraint."""
