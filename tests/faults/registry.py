"""The faults by their numbers in the failure model, and the tests of each.

Numbers are stable: F50 was folded into F66.
"""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from tests.faults.fault_rig import Rig

NUMBERS: Final = tuple(number for number in range(1, 71) if number != 50)

Test: TypeAlias = Callable[[Rig], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Fault:
    """One test of a fault. `stream` is how the client sends, `None` if it makes no difference."""

    number: int
    name: str
    test: Test
    stream: bool | None
    table: str | None

    @property
    def id(self) -> str:
        way = {True: "-stream", False: "-whole", None: ""}[self.stream]
        return f"F{self.number:02}-{self.name}{way}"


_FAULTS: Final[list[Fault]] = []


def fault(number: int, table: str | None = None) -> Callable[[Test], Test]:
    """Register a test of a fault, once non-streaming and once streamed. `table` replaces the rig's own
    configuration."""
    return _registering(number, (False, True), table)


def single_fault(number: int, table: str | None = None) -> Callable[[Test], Test]:
    """Register a test of a fault that does not depend on streaming."""
    return _registering(number, (None,), table)


def _registering(number: int, ways: tuple[bool | None, ...], table: str | None) -> Callable[[Test], Test]:
    assert number in NUMBERS

    def register(test: Test) -> Test:
        name = getattr(test, "__name__", "")
        _FAULTS.extend(Fault(number, name, test, way, table) for way in ways)
        return test

    return register


def faults() -> Iterator[Fault]:
    """Return every registered test of a fault, by number."""
    return iter(sorted(_FAULTS, key=lambda each: (each.number, each.name, bool(each.stream))))
