"""The types of the scoreboard: a figure, how it is measured, and its result."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, TypeAlias

Tier: TypeAlias = Literal["C", "N", "W"]
"""When a figure is measured: with every change, at night, before a release."""


@dataclass(frozen=True, slots=True)
class Result:
    """A figure's value as text, and whether it is good enough."""

    value: str
    good: bool


@dataclass(frozen=True, slots=True)
class Case:
    """One test that ran, from pytest's report: `module` with dots, `name` with its parameters, `trouble` the first line
    of its failure."""

    module: str
    name: str
    state: Literal["passed", "failed", "skipped"]
    seconds: float
    trouble: str = ""


Judge: TypeAlias = Callable[[Sequence[Case]], Result]
"""A function that combines the tests of a figure into its result, after all of them ran."""


def all_passed(cases: Sequence[Case]) -> Result:
    """Return a good result if every test passed."""
    passed = sum(case.state == "passed" for case in cases)
    return Result(f"{passed} of {len(cases)} tests passed", passed == len(cases))


@dataclass(frozen=True, slots=True)
class Tests:
    """A figure that is measured by tests. `paths` are paths and node ids as pytest takes them. `judge` combines the
    tests into one result."""

    __test__: ClassVar[bool] = False
    """Not a test class, in spite of its name."""

    selection: tuple[str, ...]
    judge: Judge = all_passed


Measure: TypeAlias = Callable[[Path], Result]
"""A function that measures a figure. It may write into the folder, and ends by itself."""


@dataclass(frozen=True, slots=True)
class NotHeld:
    """A figure that no run measures, and the reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class Sabotage:
    """A change to one file that must make the figure bad: `old`, which occurs once, becomes `new`."""

    file: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the board. `minutes` is its approximate duration."""

    number: str
    title: str
    target: str
    tier: Tier
    how: Tests | Measure | NotHeld
    sabotage: Sabotage | None = None
    minutes: float = 0.1
