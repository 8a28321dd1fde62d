"""What the scoreboard is made of: a figure, how it is found, and what came out. Never a figure of its own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, TypeAlias

Tier: TypeAlias = Literal["C", "N", "W"]
"""When it is found: with every change, at night, before a release."""


@dataclass(frozen=True, slots=True)
class Result:
    """What came out, in words, and whether that is good enough."""

    value: str
    good: bool


@dataclass(frozen=True, slots=True)
class Case:
    """One test that was run, as pytest's report has it: `module` with dots, `name` with its parameters, `trouble` the
    first line of what went wrong."""

    module: str
    name: str
    state: Literal["passed", "failed", "skipped"]
    seconds: float
    trouble: str = ""


Judge: TypeAlias = Callable[[Sequence[Case]], Result]
"""What the tests of a figure show, all of which have been run."""


def all_passed(cases: Sequence[Case]) -> Result:
    """Good when every test passed."""
    passed = sum(case.state == "passed" for case in cases)
    return Result(f"{passed} of {len(cases)} tests passed", passed == len(cases))


@dataclass(frozen=True, slots=True)
class Tests:
    """A figure that tests hold. Paths and node ids as pytest takes them; `judge` says what they show together."""

    __test__: ClassVar[bool] = False
    """Not one itself, whatever its name: pytest asks."""

    selection: tuple[str, ...]
    judge: Judge = all_passed


Measure: TypeAlias = Callable[[Path], Result]
"""Finds a figure by itself; it may write into the folder, and stops by itself."""


@dataclass(frozen=True, slots=True)
class NotHeld:
    """A figure that nothing here finds, and why."""

    reason: str


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
    how: Tests | Measure | NotHeld
    sabotage: Sabotage | None = None
    minutes: float = 0.1
