"""The types of the scoreboard: a figure, how it is found, and its result."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, TypeAlias

Tier: TypeAlias = Literal["C", "N", "W"]
"""When a figure is found: with every change, at night, before a release."""


@dataclass(frozen=True, slots=True)
class Result:
    """A figure's value in words, and whether it is good enough."""

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
"""The result that a figure's tests show together, once all of them have run."""


def all_passed(cases: Sequence[Case]) -> Result:
    """Good when every test passed."""
    passed = sum(case.state == "passed" for case in cases)
    return Result(f"{passed} of {len(cases)} tests passed", passed == len(cases))


@dataclass(frozen=True, slots=True)
class Tests:
    """A figure that tests decide. Paths and node ids as pytest takes them; `judge` makes one result of theirs."""

    __test__: ClassVar[bool] = False
    """Not a test class, whatever its name."""

    selection: tuple[str, ...]
    judge: Judge = all_passed


Measure: TypeAlias = Callable[[Path], Result]
"""Finds a figure by itself; it may write into the folder, and stops by itself."""


@dataclass(frozen=True, slots=True)
class NotHeld:
    """A figure that no run finds, and why."""

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
