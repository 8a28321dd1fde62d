"""The state of a request while it is parsed: the values so far, and the problems found."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from providers.json_types import JsonValue
from providers.unified_request import Operation
from proxy.errors import FieldProblem
from proxy.surfaces.request.rule_kinds import Check, Invalid

T = TypeVar("T")

CONFLICT = "conflicting_parameters"


@dataclass(frozen=True, slots=True)
class SurfaceRules:
    """A surface's rules for requests, by operation.

    `fields` are its fields with their checks, `defaults` the values of absent fields, and `default_names` their names.
    For the operations in `bare_zero_tokens`, a limit of 0 tokens is valid even without `echo`.
    """

    fields: Mapping[Operation, Mapping[str, Check]]
    defaults: Mapping[Operation, Mapping[str, object]]
    bare_zero_tokens: frozenset[Operation] = frozenset()
    default_names: Mapping[Operation, frozenset[str]] = field(init=False)

    def __post_init__(self) -> None:
        names = {operation: frozenset(defaults) for operation, defaults in self.defaults.items()}
        object.__setattr__(self, "default_names", names)


@dataclass(slots=True)
class ParsedFields:
    """The fields of a body that is being parsed. `values` holds the checked values of known fields, by name; `unknown`
    holds the other fields.

    `legacy_calls` is true if the client knows calls only in their older form.
    """

    rules: SurfaceRules
    operation: Operation
    values: dict[str, object] = field(default_factory=dict)
    unknown: dict[str, JsonValue] = field(default_factory=dict)
    legacy_calls: bool = False
    problems: list[FieldProblem] = field(default_factory=list)

    def get(self, name: str, kind: type[T]) -> T | None:
        """Return a field's checked value; `None` if it is absent or invalid."""
        value = self.values.get(name)
        return value if isinstance(value, kind) else None

    def take(self, name: str, kind: type[T]) -> T | None:
        """Remove and return a field's checked value; `None` if it is absent or invalid."""
        value = self.values.pop(name, None)
        return value if isinstance(value, kind) else None

    def refuse(self, name: str, bad: Invalid) -> None:
        """Add the problem of a field."""
        loc = (name, *bad.loc)
        path = ".".join(map(str, loc))
        self.problems.append(FieldProblem(loc, f"'{path}' {bad.message}.", bad.code))

    def conflict(self, name: str, message: str) -> None:
        """Add the problem of a field that conflicts with another."""
        self.refuse(name, Invalid(message, code=CONFLICT))

    def refused(self, *names: str) -> bool:
        """Return whether any of these fields has a problem. The absence of such a field must not be reported as another
        problem."""
        return any(problem.loc[:1] == (name,) for problem in self.problems for name in names)
