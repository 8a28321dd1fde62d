"""The agent that the fake vendors play: it thinks at each turn, calls tools in four turns, and answers in the fifth."""

import base64
from dataclasses import dataclass, field
from typing import Protocol

from providers.json_types import JsonObject, JsonValue
from tests.support.vendor_script import Received, Script

TRIP: JsonObject = {
    "title": "North",
    "legs": [{"city": "Oslo", "nights": 2, "by": "train", "note": None}],
    "stay": {"kind": "hotel", "stars": 4},
    "budget": 900.5,
}
"""An answer to the structured scenario of `driver.py`."""

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

TOOLS = frozenset({"weather", "compare"})


class Broken(Exception):
    """The conversation breaks a rule; the text is the vendor's."""


@dataclass(frozen=True, slots=True)
class Move:
    """What the agent does in a turn: its number, its thought, and its calls or its text."""

    number: int
    thought: str
    calls: tuple[tuple[str, JsonObject], ...] = ()
    text: str = ""

    @property
    def signature(self) -> str:
        """The signature of the thought, in base64."""
        return base64.b64encode(f"signed:{self.number}:{self.thought}".encode()).decode()


def _plan() -> tuple[Move, ...]:
    made = [{"city": rest[0]} if name == "weather" else {"first": rest[0], "second": rest[1]} for name, *rest in CALLS]
    calls = [(str(call[0]), dict[str, JsonValue](given)) for call, given in zip(CALLS, made, strict=True)]
    return (
        Move(0, "First two cities.", tuple(calls[:2])),
        Move(1, "One is missing.", tuple(calls[2:3])),
        Move(2, "Two of three.", tuple(calls[3:4])),
        Move(3, "The other two.", tuple(calls[4:5])),
        Move(4, "All is known.", text=FINAL),
    )


PLAN = _plan()


@dataclass(slots=True)
class Wire:
    """What one vendor was asked: the thinking that each turn asked for, and what it refused."""

    thinking: list[bool] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


class StrictVendor(Protocol):
    """A fake vendor; `play` is its behaviour for `FakeVendor`."""

    wire: Wire

    def play(self, received: Received) -> Script:
        """Return the answer to one call."""


def objects(value: JsonValue) -> list[JsonObject]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def object_of(value: JsonValue) -> JsonObject:
    return value if isinstance(value, dict) else {}


def move_after(results: int) -> Move:
    """Return the agent's move when it has seen that many results."""
    return PLAN[{0: 0, 2: 1, 3: 2, 4: 3, 5: 4}[results]]


def refused_keyword(schema: JsonValue, refused: frozenset[str]) -> str | None:
    """Return the first keyword of a schema that a vendor refuses, or a place where it must be closed and is not."""
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
            # The names of properties and definitions are no keywords.
            pending += value.values() if name in ("properties", "$defs") and isinstance(value, dict) else [value]
    return None


CLAUDE_REFUSES = frozenset(
    {
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minLength", "maxLength", "maxItems", "uniqueItems", "oneOf", "not", "prefixItems"),
    }
)
