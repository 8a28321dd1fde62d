"""What a fake needs to know of a wire: which calls there are, what they ask, and how an answer is written.

Never decides what is written, and never one wire's shape.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from providers.unified import JsonObject, JsonValue
from tests.conformance.engine import Ask, Written

EVENTS = "text/event-stream"


@dataclass(frozen=True, slots=True)
class Answered:
    """What was written for a call: its choices, and the tokens read and generated. `counts_unasked` says that a stream
    of this vendor's ends in its usage even if nobody asks."""

    choices: Sequence[Written]
    prompt_tokens: int
    generated: int
    counts_unasked: bool = False


def switched_on(path: str, body: JsonObject) -> bool:
    """Whether the body's own switch asks for a stream."""
    return body.get("stream") is True


@dataclass(frozen=True, slots=True)
class WireFormat:
    """One kind of call. `ends` are the ends of the paths it goes to, without their query.

    `ask` reads a body; `whole` and `frames` write an answer to it. `streams` says whether a path and a body ask for a
    stream, whose content type is `media`.
    """

    ends: tuple[str, ...]
    ask: Callable[[JsonObject], Ask]
    whole: Callable[[JsonObject, Answered], JsonValue]
    frames: Callable[[JsonObject, Answered], list[bytes]]
    streams: Callable[[str, JsonObject], bool] = switched_on
    media: str = EVENTS


@dataclass(frozen=True, slots=True)
class Spoken:
    """One dialect: its calls; the error that refuses one for its size, as status and body; and by the end of the path
    what it answers to questions about a prompt's size, whose body is empty for a GET."""

    calls: tuple[WireFormat, ...]
    too_large: Callable[[Ask], tuple[int, JsonObject]]
    questions: Mapping[str, Callable[[JsonObject], JsonValue]] = field(default_factory=dict)

    def call(self, path: str) -> WireFormat | None:
        """The kind of call that a path (without a query) is; None for a question."""
        if path.endswith(tuple(self.questions)):
            return None
        return next((wire for wire in self.calls if path.endswith(wire.ends)), None)

    def answer(self, path: str, body: JsonObject) -> JsonValue:
        """What is said to a question. Raises KeyError for one that nobody expected."""
        return next(answer for end, answer in self.questions.items() if path.endswith(end))(body)


def strings(value: JsonValue) -> tuple[str, ...]:
    """A string, or a list of them."""
    return tuple(map(str, value)) if isinstance(value, list) else () if value is None else (str(value),)


def whole_number(body: JsonObject, *names: str) -> int | None:
    """The first of the members that is there."""
    return next((value for name in names if isinstance(value := body.get(name), int)), None)


def text_of(content: JsonValue) -> str:
    """The words of a message's content; an image is a word."""
    if isinstance(content, list):
        return " ".join(str(part.get("text", "image")) for part in content if isinstance(part, dict))
    return str(content)


def conversation(body: JsonObject) -> str:
    """The words of the messages, and of a system prompt beside them."""
    messages = body["messages"]
    contents = (
        [message["content"] for message in messages if isinstance(message, dict)] if isinstance(messages, list) else []
    )
    return " ".join([*strings(body.get("system")), *map(text_of, contents)])


def tool_of(body: JsonObject) -> str | None:
    """The function that a model calls which likes to call: the first, unless the choice forbids it."""
    tools, choice = body.get("tools"), body.get("tool_choice")
    kind = choice.get("type") if isinstance(choice, dict) else choice
    if not isinstance(tools, list) or not isinstance(tools[0], dict) or kind == "none":
        return None
    function = tools[0].get("function", tools[0])
    return str(function["name"]) if isinstance(function, dict) else None


def pieces(written: Written) -> list[str]:
    """The text a few characters at a time, so that no stop and no choice comes in one piece."""
    return [written.text[start : start + 4] for start in range(0, len(written.text), 4)]
