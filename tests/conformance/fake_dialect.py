"""A dialect as a fake vendor speaks it: its endpoints, how it reads their calls, and how it writes responses."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from providers.json_types import JsonObject, JsonValue
from tests.conformance.engine import EngineChoice, EngineRequest

EVENTS = "text/event-stream"


@dataclass(frozen=True, slots=True)
class EngineAnswer:
    """The response to a call: its choices, and the numbers of prompt and generated tokens.

    If `counts_unasked`, a stream of this vendor ends in its usage even without `stream_options`.
    """

    choices: Sequence[EngineChoice]
    prompt_tokens: int
    generated: int
    counts_unasked: bool = False


def switched_on(path: str, body: JsonObject) -> bool:
    """Return whether the body's `stream` is true."""
    return body.get("stream") is True


@dataclass(frozen=True, slots=True)
class FakeEndpoint:
    """One endpoint. `ends` are the ends of its paths, without a query.

    `read_request` reads a body; `whole` and `frames` write a response to it. `streams` returns whether a path and a
    body request a stream, whose content type is `media`.
    """

    ends: tuple[str, ...]
    read_request: Callable[[JsonObject], EngineRequest]
    whole: Callable[[JsonObject, EngineAnswer], JsonValue]
    frames: Callable[[JsonObject, EngineAnswer], list[bytes]]
    streams: Callable[[str, JsonObject], bool] = switched_on
    media: str = EVENTS


@dataclass(frozen=True, slots=True)
class FakeDialect:
    """One dialect: its endpoints; the error for a call that is too large, as status and body; and, by the end of the
    path, the responses to requests for a prompt's size. The body of such a request is empty for a GET."""

    calls: tuple[FakeEndpoint, ...]
    too_large: Callable[[EngineRequest], tuple[int, JsonObject]]
    questions: Mapping[str, Callable[[JsonObject], JsonValue]] = field(default_factory=dict)

    def call(self, path: str) -> FakeEndpoint | None:
        """Return the endpoint of a path without its query; `None` for a request for a prompt's size."""
        if path.endswith(tuple(self.questions)):
            return None
        return next((wire for wire in self.calls if path.endswith(wire.ends)), None)

    def answer(self, path: str, body: JsonObject) -> JsonValue:
        """Return the response to a request for a prompt's size. Raises StopIteration for an unknown path."""
        return next(answer for end, answer in self.questions.items() if path.endswith(end))(body)


def strings(value: JsonValue) -> tuple[str, ...]:
    """Return the strings of a string, a list of strings, or `None`."""
    return tuple(map(str, value)) if isinstance(value, list) else () if value is None else (str(value),)


def whole_number(body: JsonObject, *names: str) -> int | None:
    return next((value for name in names if isinstance(value := body.get(name), int)), None)


def text_of(content: JsonValue) -> str:
    """Return the text of a message's content, with the word `image` for each image."""
    if isinstance(content, list):
        return " ".join(str(part.get("text", "image")) for part in content if isinstance(part, dict))
    return str(content)


def conversation(body: JsonObject) -> str:
    """Return the text of a system prompt and the messages."""
    messages = body["messages"]
    contents = (
        [message["content"] for message in messages if isinstance(message, dict)] if isinstance(messages, list) else []
    )
    return " ".join([*strings(body.get("system")), *map(text_of, contents)])


def tool_of(body: JsonObject) -> str | None:
    """Return the name of the first function, which a model would call unless `tool_choice` forbids it."""
    tools, choice = body.get("tools"), body.get("tool_choice")
    kind = choice.get("type") if isinstance(choice, dict) else choice
    if not isinstance(tools, list) or not isinstance(tools[0], dict) or kind == "none":
        return None
    function = tools[0].get("function", tools[0])
    runs = function is not tools[0] or "input_schema" in function or function.get("type") == "function"
    return str(function["name"]) if runs and isinstance(function, dict) else None


def pieces(written: EngineChoice) -> list[str]:
    """Return the text in chunks of four characters, so that no stop and no choice arrives in one chunk."""
    return [written.text[start : start + 4] for start in range(0, len(written.text), 4)]
