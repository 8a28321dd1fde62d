"""Which faults there are, by their numbers in the failure model, and the test of each. Never a fault of its own.

Numbers are stable: F50 was folded into F66.
"""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from tests.faults.rig import Rig

NUMBERS: Final = tuple(number for number in range(1, 71) if number != 50)

Test: TypeAlias = Callable[[Rig], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault as one test shows it. `stream` is how the client asks, None where that makes no difference."""

    number: int
    name: str
    test: Test
    stream: bool | None
    table: str | None

    @property
    def id(self) -> str:
        """How it is called in a run."""
        way = {True: "-stream", False: "-whole", None: ""}[self.stream]
        return f"F{self.number:02}-{self.name}{way}"


_FAULTS: Final[list[Fault]] = []


def fault(number: int, table: str | None = None) -> Callable[[Test], Test]:
    """The decorated test shows this fault, asked for whole and as a stream; `table` replaces the rig's own."""
    return _registering(number, (False, True), table)


def single_fault(number: int, table: str | None = None) -> Callable[[Test], Test]:
    """The same for one that does not depend on how the client asks."""
    return _registering(number, (None,), table)


def _registering(number: int, ways: tuple[bool | None, ...], table: str | None) -> Callable[[Test], Test]:
    assert number in NUMBERS

    def register(test: Test) -> Test:
        name = getattr(test, "__name__", "")
        _FAULTS.extend(Fault(number, name, test, way, table) for way in ways)
        return test

    return register


def faults() -> Iterator[Fault]:
    """Every test of a fault that has been imported, by number."""
    return iter(sorted(_FAULTS, key=lambda each: (each.number, each.name, bool(each.stream))))
