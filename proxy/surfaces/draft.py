"""A request while it is being checked: its values so far and everything found wrong. Never knows a field's rule."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from providers.unified import Operation
from proxy.errors import Problem
from proxy.surfaces.checks import Check, Invalid

T = TypeVar("T")

CONFLICT = "conflicting_parameters"


@dataclass(frozen=True, slots=True)
class Rules:
    """What one surface holds differently from the others.

    `fields` is its table, `defaults` what it fills in when the client says nothing, `bare_zero_tokens` the operations
    where a limit of 0 tokens needs no `echo`.
    """

    fields: Mapping[Operation, Mapping[str, Check]]
    defaults: Mapping[Operation, Mapping[str, object]]
    bare_zero_tokens: frozenset[Operation] = frozenset()


@dataclass(slots=True)
class Draft:
    """One body in work. `values` holds the checked values of known fields, by name."""

    rules: Rules
    operation: Operation
    values: dict[str, object] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def get(self, name: str, kind: type[T]) -> T | None:
        """A field's checked value; None when it was absent or bad."""
        value = self.values.get(name)
        return value if isinstance(value, kind) else None

    def take(self, name: str, kind: type[T]) -> T | None:
        """The same, and it is no longer among the values."""
        value = self.values.pop(name, None)
        return value if isinstance(value, kind) else None

    def refuse(self, name: str, bad: Invalid) -> None:
        """Note that a field's value broke a rule."""
        loc = (name, *bad.loc)
        path = ".".join(map(str, loc))
        self.problems.append(Problem(loc, f"'{path}' {bad.message}.", bad.code))

    def conflict(self, name: str, message: str) -> None:
        """Note that a field cannot go with another."""
        self.refuse(name, Invalid(message, code=CONFLICT))

    def refused(self, *names: str) -> bool:
        """Whether any of these fields was found bad, so that their absence means nothing."""
        return any(problem.loc[:1] == (name,) for problem in self.problems for name in names)
