"""The agent that the fake vendors play: it reasons at each turn, calls tools in four turns, and responds in the
fifth."""

import base64
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

import orjson
from typing_extensions import override

from providers.json_types import JsonObject, JsonValue
from tests.support.http_scripts import json_answer
from tests.support.vendor_script import Received, Script

TRIP: JsonObject = {
    "title": "North",
    "legs": [{"city": "Oslo", "nights": 2, "by": "train", "note": None}],
    "stay": {"kind": "hotel", "stars": 4},
    "budget": 900.5,
}
"""A response to the structured scenario of `driver.py`."""

CALLS = [
    ["weather", "Paris"],
    ["weather", "Rome"],
    ["weather", "Oslo"],
    ["compare", "Paris: 5 degrees", "Rome: 4 degrees"],
    ["compare", "Rome: 4 degrees", "Oslo: 4 degrees"],
]
"""The calls that the agent makes, in order."""

FINAL = "Paris is the warmest."

TURNS = 5


class Broken(Exception):
    """An error in the conversation. The text is the vendor's."""


@dataclass(frozen=True, slots=True)
class Move:
    """The agent's move in a turn: its number, its reasoning, and its calls or its text."""

    number: int
    thought: str
    calls: tuple[tuple[str, JsonObject], ...] = ()
    text: str = ""

    @property
    def signature(self) -> str:
        """Return the signature of the reasoning, in base64."""
        return base64.b64encode(f"signed:{self.number}:{self.thought}".encode()).decode()


@dataclass(frozen=True, slots=True)
class AgentPlan:
    """An agent's moves, in order. `tools` are the tools that it may call, `None` for any. If a request offers other
    tools, the agent gives a `Trip` by the first of them. `untooled` is its text for a request without tools, `None` for
    its move."""

    moves: tuple[Move, ...]
    tools: frozenset[str] | None = None
    untooled: str | None = orjson.dumps(TRIP).decode()

    def after(self, results: int) -> Move:
        """Return the move after the results of that many calls. Raise Broken if there is none."""
        seen = 0
        for move in self.moves:
            if seen == results:
                return move
            seen += len(move.calls)
        raise Broken(f"{results} results of calls do not end a turn")

    def is_own(self, tool: JsonObject) -> bool:
        """Return whether a tool does not belong to the agent's task."""
        return self.tools is not None and tool.get("name") not in self.tools


@dataclass(frozen=True, slots=True)
class MovesInTurn(AgentPlan):
    """The same for an agent whose history has calls and results as text, and which may have no tools."""

    untooled: str | None = None
    _numbers: Iterator[int] = field(default_factory=count)

    @override
    def after(self, results: int) -> Move:
        """Return the next move. Raise Broken if none is left."""
        if (number := next(self._numbers)) >= len(self.moves):
            raise Broken("the last move is made")
        return self.moves[number]


def _moves() -> tuple[Move, ...]:
    made = [{"city": rest[0]} if name == "weather" else {"first": rest[0], "second": rest[1]} for name, *rest in CALLS]
    calls = [(str(call[0]), dict[str, JsonValue](given)) for call, given in zip(CALLS, made, strict=True)]
    return (
        Move(0, "First two cities.", tuple(calls[:2])),
        Move(1, "One is missing.", tuple(calls[2:3])),
        Move(2, "Two of three.", tuple(calls[3:4])),
        Move(3, "The other two.", tuple(calls[4:5])),
        Move(4, "All is known.", text=FINAL),
    )


WEATHER = AgentPlan(_moves(), frozenset({"weather", "compare"}))


@dataclass(slots=True)
class Wire:
    """The requests to one vendor: the reasoning setting of each turn, and the requests that it refused."""

    thinking: list[bool] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


class StrictVendor(ABC):
    """A fake vendor; `play` is its behaviour for `FakeVendor`."""

    def __init__(self, plan: AgentPlan = WEATHER) -> None:
        self.wire = Wire()
        self._plan = plan

    def play(self, received: Received) -> Script:
        """Return the response to one call."""
        try:
            return self._answer(received, object_of(orjson.loads(received.body)))
        except Broken as error:
            self.wire.refused.append(str(error))
            return self._refusal(str(error))

    @abstractmethod
    def _answer(self, received: Received, body: JsonObject) -> Script:
        """Return the response to one call. Raise Broken if the vendor would return 400."""

    @abstractmethod
    def _refusal(self, message: str) -> Script:
        """Return the vendor's response to an invalid conversation."""


class StrictOpenAI(StrictVendor):
    """A vendor with OpenAI's errors."""

    @override
    def _refusal(self, message: str) -> Script:
        told: JsonObject = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
        return json_answer(400, {"error": told})


def objects(value: JsonValue) -> list[JsonObject]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def object_of(value: JsonValue) -> JsonObject:
    return value if isinstance(value, dict) else {}


def refused_keyword(schema: JsonValue, refused: frozenset[str]) -> str | None:
    """Return the first keyword of a schema that a vendor refuses, or the position of an object that must be closed and
    is not."""
    pending = [schema]
    while pending:
        node = pending.pop()
        if isinstance(node, list):
            pending += node
        if not isinstance(node, dict):
            continue
        if found := refused & node.keys():
            return min(found)
        if node.get("type") == "object" and node.get("additionalProperties") is not False:
            return "an open object"
        for name, value in node.items():
            # The names of properties and definitions are not keywords.
            pending += value.values() if name in ("properties", "$defs") and isinstance(value, dict) else [value]
    return None


CLAUDE_REFUSES = frozenset(
    {
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minLength", "maxLength", "maxItems", "uniqueItems", "oneOf", "not", "prefixItems"),
    }
)
