"""A table in the making: values in the order in which they are to be written, each with its comments."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

SECTIONS: Final = ("server", "defaults", "vendors", "models", "routes", "teams")
"""Sections of a table, in the order in which they are written."""


@dataclass(frozen=True, slots=True)
class Reference:
    """Text with references (`${VAR}`), which is written as it is. In every other text `${` is no reference."""

    text: str


Scalar = str | int | float | bool | Reference


@dataclass(slots=True)
class Block:
    """A mapping. Its comments stand above its entries."""

    entries: "dict[str, DraftValue]" = field(default_factory=dict)
    comments: list[str] = field(default_factory=list)

    def block(self, key: str) -> "Block":
        """Return the mapping under a key, made if need be."""
        inner = self.entries.setdefault(key, Block())
        if not isinstance(inner, Block):
            raise TypeError(f"{key} is no mapping")
        return inner

    def put(self, key: str, value: "DraftValue | None") -> None:
        """Write a value; None is not written."""
        if value is not None:
            self.entries[key] = value


DraftValue: TypeAlias = Scalar | list["DraftValue"] | Block


@dataclass(slots=True)
class TableDraft:
    """The whole table. `samples` has each environment variable that the table refers to, with a value of the kind that
    is wanted there, so that the table can be checked where the variable is not set."""

    root: Block = field(default_factory=lambda: Block({"version": 1} | {name: Block() for name in SECTIONS}))
    samples: dict[str, str] = field(default_factory=dict)

    def section(self, name: str) -> Block:
        """Return a section of the table."""
        return self.root.block(name)

    def refer(self, variable: str, sample: str) -> Reference:
        """Return a reference to an environment variable."""
        self.samples.setdefault(variable, sample)
        return Reference(f"${{{variable}}}")


def mapping(values: Mapping[str, DraftValue | None]) -> Block | None:
    """Return a mapping of the values that there are; None where there is none."""
    known = {key: value for key, value in values.items() if value is not None}
    return Block(known) if known else None
