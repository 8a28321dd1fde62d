"""Bodies that are as expensive as JSON can be within the gateway's limits of elements and depth, as arguments of
calls."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import orjson

from providers.json_types import JsonObject, JsonValue
from tests.bench.agents.bodies import LARGE, PATHS, SMALL
from tests.bench.agents.rows import TRANSLATED, Bound, size_name
from tests.bench.cases import AGENTS
from tests.bench.programs.program import Target
from tests.bench.traffic import Ask, request_bytes

DEPTH = 50
"""Levels of the deepest arguments. The gateway accepts 64, including the levels around them."""

MOST_ELEMENTS = 150_000
"""The most lists, objects and commas of one body. The gateway accepts 200,000."""


def densest(size: int) -> JsonValue:
    """Return as many empty objects as allowed, followed by a text."""
    count = min(size // 3, MOST_ELEMENTS // 2)
    return [[{} for _ in range(count)], "x" * max(size - 3 * count, 0)]


def deepest(size: int) -> JsonValue:
    """Return nested lists, as many side by side as allowed."""
    count = min(size // (2 * DEPTH), MOST_ELEMENTS // (DEPTH + 1))
    nested: JsonValue = []
    for _ in range(DEPTH):
        nested = [nested]
    return [[nested for _ in range(count)], "x" * max(size - 2 * DEPTH * count, 0)]


def longest(size: int) -> JsonValue:
    """Return one text."""
    return "x" * size


def most_keys(size: int) -> JsonValue:
    """Return an object of as many keys as allowed, followed by a text."""
    count = min(size // 11, MOST_ELEMENTS)
    return [{f"k{place:06d}": 1 for place in range(count)}, "x" * max(size - 11 * count, 0)]


def all_escapes(size: int) -> JsonValue:
    """Return a text in which each character is escaped."""
    return '"\\\n' * (size // 6)


KINDS: Mapping[str, Callable[[int], JsonValue]] = {
    "densest": densest,
    "deepest": deepest,
    "longest text": longest,
    "most keys": most_keys,
    "all escapes": all_escapes,
}


@dataclass(frozen=True, slots=True)
class Hostile:
    """One such body in Anthropic's messages, for one vendor. It can be measured as a Row."""

    kind: str
    vendor: str
    size: int

    spaced = False

    @property
    def way(self) -> str:
        return f"hostile, {self.kind} → {self.vendor}"

    @property
    def name(self) -> str:
        return f"{AGENTS} {self.way}, {size_name(self.size)}"

    @property
    def bound(self) -> Bound:
        return TRANSLATED

    def body(self, model: str) -> bytes:
        held: JsonObject = {"held": KINDS[self.kind](self.size)}
        use: JsonObject = {"type": "tool_use", "id": "toolu_1", "name": "tool_1", "input": held}
        result: JsonObject = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "done"}
        said: list[JsonValue] = [
            {"role": "user", "content": Ask().mark},
            {"role": "assistant", "content": [use]},
            {"role": "user", "content": [result]},
        ]
        tool: JsonObject = {"name": "tool_1", "input_schema": {"type": "object"}}
        return orjson.dumps({"model": model, "max_tokens": 4096, "messages": said, "tools": [tool]})

    def request(self, target: Target) -> bytes | None:
        """Return the request to a program, as a Row does."""
        model = target.agents_model("messages", self.vendor)
        return None if model is None else request_bytes(PATHS["messages"], self.body(model), target.client_key)


def hostile_rows() -> list[Hostile]:
    """Return every hostile row."""
    return [
        Hostile(kind, vendor, size) for kind in KINDS for vendor in ("anthropic", "openai") for size in (SMALL, LARGE)
    ]
