"""What the scoreboard is made of: a figure, how it is found, and what came out. Never a figure of its own."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

Tier: TypeAlias = Literal["C", "N", "W"]
"""When it is found: with every change, at night, before a release."""


@dataclass(frozen=True, slots=True)
class Result:
    """What came out, in words, and whether that is good enough."""

    value: str
    good: bool


@dataclass(frozen=True, slots=True)
class Tests:
    """A figure that tests hold: it is good when all of them passed. Paths and node ids as pytest takes them."""

    selection: tuple[str, ...]


Measure: TypeAlias = Callable[[Path], Result]
"""Finds a figure by itself; it may write into the folder, and stops by itself."""


@dataclass(frozen=True, slots=True)
class Sabotage:
    """One change to one file after which the figure must be red: `old`, which is there once, becomes `new`."""

    file: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the board. `minutes` is about how long it takes."""

    number: str
    title: str
    target: str
    tier: Tier
    how: Tests | Measure
    sabotage: Sabotage | None = None
    minutes: float = 0.1
