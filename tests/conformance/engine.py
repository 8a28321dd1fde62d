"""A model that honours the constraints, stops and limits of a call exactly, independent of the wire format.

The client's response therefore shows what the gateway sent and which features it emulated.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import orjson

from providers.emulation.plan_checks import CHOICE, OBJECT, SCHEMA
from providers.json_types import JsonObject, JsonValue

WINDOW = 4000
"""The tokens that a prompt and its response may have together, for every model of every fake."""

WORDS = ("one", " two", " END", " three")
"""The tokens of every response that no constraint shapes. The last token differs by candidate."""

LAST = (" three", " four", " five", " six")
"""The last token of each candidate, by number. The second candidate is the most likely."""

LOGPROBS = (-0.5, -0.25, -0.75, -1.0)
"""The log probability of every token of a candidate, by its number."""

THOUGHT = 16
"""The reasoning tokens of a model whose reasoning counts towards the limit, if the limit leaves room for a text."""

PATTERN = "[0-9]{3}"
FINDS: Mapping[str, str] = {PATTERN: "123", "(yes|no)": "no"}
"""A text that matches each pattern of the requests."""


@dataclass(frozen=True, slots=True)
class EngineRequest:
    """One call, independent of the wire format. `prompts` are texts; token ids become their numbers with spaces
    between.

    `text` is the response that a constraint demands, `tool` the function to call instead of a text, `limit` the
    greatest number of tokens.
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
class EngineChoice:
    """One choice. `tokens` are the tokens of the prompt, if it is echoed, and of the response, with their log
    probabilities (`None` for the first token of a prompt)."""

    text: str
    tokens: tuple[tuple[str, float | None], ...]
    finish: Literal["stop", "length", "tool_calls"]
    stop: str | None = None
    tool: str | None = None


class Engine:
    """A model that generates candidates. A repeated prompt gets further candidates, as sampling would give."""

    def __init__(self) -> None:
        self._asked: dict[str, int] = {}

    def write(self, request: EngineRequest) -> tuple[list[EngineChoice], int]:
        """Return the choices in the order of their indices, and the number of generated tokens of all candidates."""
        choices: list[EngineChoice] = []
        generated = 0
        for prompt in request.prompts:
            first = self._asked.get(prompt, 0)
            count = max(request.n, request.best_of)
            self._asked[prompt] = first + count
            candidates = [self._written(request, prompt, number % len(LAST)) for number in range(first, first + count)]
            generated += sum(len(_words(request, 0)) for _ in candidates)
            if request.best_of > request.n:
                candidates.sort(key=lambda written: -(written.tokens[-1][1] or 0))
            choices += candidates[: request.n]
        return choices, generated

    def _written(self, request: EngineRequest, prompt: str, number: int) -> EngineChoice:
        if request.tool is not None:
            return EngineChoice("", (), "tool_calls", tool=request.tool)
        words = _words(request, number)
        text = "".join(words)
        finish: Literal["stop", "length"] = (
            "length" if request.limit is not None and request.limit <= len(words) else "stop"
        )
        stop = min((stop for stop in request.stops if stop in text), key=text.find, default=None)
        if stop is not None:
            end = text.find(stop)
            text, finish = text[: end + len(stop) if request.keep_stop else end], "stop"
        kept: list[tuple[str, float | None]] = []
        for word in words:
            if sum(len(token) for token, _ in kept) < len(text):
                kept.append((word, LOGPROBS[number]))
        if request.echo:
            parts = prompt.split(" ")
            prompted = [part if not place else f" {part}" for place, part in enumerate(parts)]
            kept = [(token, -0.1 if place else None) for place, token in enumerate(prompted)] + kept
            text = prompt + text
        return EngineChoice(text, tuple(kept), finish, stop)


def _words(request: EngineRequest, number: int) -> tuple[str, ...]:
    if request.text is not None:
        return (request.text,)
    words = (*WORDS[:-1], LAST[number])
    return words if request.limit is None else words[: request.limit]


def prompt_tokens(request: EngineRequest) -> int:
    """Return the number of words in the prompts."""
    return sum(len(prompt.split()) for prompt in request.prompts)


def constrained(body: JsonObject) -> str | None:
    """Return a text that matches the body's constraint in any form that a server documents; `None` without a
    constraint. A constraint in the prompt takes precedence over a JSON mode, which is less specific."""
    if (told := _constrained_by_prompt(body)) is not None:
        return told
    for name in ("", "structured_outputs", "nvext", "response_format", "output_config"):
        holder = body.get(name) if name else body
        if isinstance(holder, dict) and (text := _kept(holder)) is not None:
            return text
    return None


def _constrained_by_prompt(body: JsonObject) -> str | None:
    """Return a text that satisfies the constraint that the prompt describes."""
    rest: list[JsonValue] = [body]
    while rest:
        match rest.pop():
            case dict(holder):
                rest += holder.values()
            case list(items):
                rest += items
            case str(text) if SCHEMA in text:
                return _WRITERS["json"](orjson.loads(text.partition(SCHEMA)[2]))
            case str(text) if CHOICE in text:
                return _WRITERS["choice"](orjson.loads(text.partition(CHOICE)[2]))
            case str(text) if OBJECT in text:
                return "{}"
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
    """Return the smallest object that a schema allows. The schema may be wrapped, or JSON in a string."""
    if isinstance(value, str):
        value = orjson.loads(value)
    if isinstance(value, dict) and isinstance(value.get("schema"), dict):
        value = value["schema"]
    properties, required = (value.get("properties"), value.get("required")) if isinstance(value, dict) else (None, None)
    members, needed = properties if isinstance(properties, dict) else {}, required if isinstance(required, list) else []
    return orjson.dumps({name: _value(schema) for name, schema in members.items() if name in needed}).decode()


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
"""The writers of a constrained text, by the name of the constraint in a server's API."""
