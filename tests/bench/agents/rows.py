"""The measured requests of coding agents, and the limits of their cost."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from tests.bench.agents.bodies import LARGE, PATHS, SMALL, SURFACES, Surface, body
from tests.bench.cases import AGENTS
from tests.bench.programs.program import Target
from tests.bench.traffic import request_bytes

Vendor = Literal["openai", "anthropic", "gemini"]
VENDORS: Sequence[Vendor] = ("openai", "anthropic", "gemini")

SAME_FAMILY: frozenset[tuple[Surface, Vendor]] = frozenset(
    {("chat", "openai"), ("messages", "anthropic"), ("responses", "openai")}
)
"""Pairs of surfaces and vendors that speak one API, so that nothing is translated."""


@dataclass(frozen=True, slots=True)
class Bound:
    """The required limit and the desired limit."""

    must: float
    aim: float

    def verdict(self, value: float | None) -> str:
        if value is None:
            return "not measured"
        return "aim met" if value <= self.aim else "must met" if value <= self.must else "missed"


SAME, TRANSLATED = Bound(6, 4), Bound(10, 7)
"""CPU of a request as a multiple of parsing and serializing its JSON once: within one family, and translated."""

GROWTH = Bound(11, 11)
"""CPU of ten times the bytes, as a multiple of the CPU of one."""

LIGHT = Bound(10, 5)
"""Milliseconds that a light request waits beside ten of 3 MB, at the 99th percentile."""

MEMORY = Bound(4, 3)
"""Bytes of memory for each byte of the bodies in flight."""


def size_name(size: int) -> str:
    return {SMALL: "300 KB", LARGE: "3 MB"}[size]


@dataclass(frozen=True, slots=True)
class Row:
    """One request: its API, its vendor, its size, and whether its JSON has spaces."""

    surface: Surface
    vendor: Vendor
    size: int
    spaced: bool

    @property
    def way(self) -> str:
        return f"{self.surface} → {self.vendor}"

    @property
    def name(self) -> str:
        return f"{AGENTS} {self.way}, {size_name(self.size)}, {'spaced' if self.spaced else 'compact'}"

    @property
    def bound(self) -> Bound:
        return SAME if (self.surface, self.vendor) in SAME_FAMILY else TRANSLATED

    def body(self, model: str) -> bytes:
        return body(self.surface, self.size, model, spaced=self.spaced)

    def request(self, target: Target) -> bytes | None:
        """Return the complete HTTP request to a program. Return `None` if the program does not support it."""
        model = target.agents_model(self.surface, self.vendor)
        if model is None:
            return None
        return request_bytes(PATHS[self.surface], self.body(model), target.client_key)


def rows() -> Iterator[Row]:
    """Yield every row."""
    for surface in SURFACES:
        for vendor in VENDORS:
            for size in (SMALL, LARGE):
                for spaced in (False, True):
                    yield Row(surface, vendor, size, spaced)


def chosen_rows(words: Sequence[str]) -> list[Row]:
    """Return the rows whose name contains one of the words. Without words, return all."""
    return [row for row in rows() if not words or any(word in row.name for word in words)]
