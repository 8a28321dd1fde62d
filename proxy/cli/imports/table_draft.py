"""The draft of a config file: values in the order of the file, each with its comments."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

SECTIONS: Final = ("server", "defaults", "vendors", "models", "routes", "teams")
"""The sections of a config file, in their order."""


@dataclass(frozen=True, slots=True)
class Reference:
    """Text with references (`${VAR}`), which is written unchanged. In all other texts `${` is escaped."""

    text: str


Scalar = str | int | float | bool | Reference


@dataclass(slots=True)
class Block:
    """A mapping. Its comments are written above its entries."""

    entries: "dict[str, DraftValue]" = field(default_factory=dict)
    comments: list[str] = field(default_factory=list)

    def block(self, key: str) -> "Block":
        """Return the mapping under a key. It is created if it does not exist."""
        inner = self.entries.setdefault(key, Block())
        if not isinstance(inner, Block):
            raise TypeError(f"{key} is no mapping")
        return inner

    def put(self, key: str, value: "DraftValue | None") -> None:
        """Set a value. `None` is ignored."""
        if value is not None:
            self.entries[key] = value


DraftValue: TypeAlias = Scalar | list["DraftValue"] | Block


@dataclass(slots=True)
class TableDraft:
    """The whole config file. `samples` has, for each environment variable in the file, a valid sample value. So the
    file can be checked even if the variable is not set."""

    root: Block = field(default_factory=lambda: Block({"version": 1} | {name: Block() for name in SECTIONS}))
    samples: dict[str, str] = field(default_factory=dict)

    def section(self, name: str) -> Block:
        """Return a section of the config file."""
        return self.root.block(name)

    def refer(self, variable: str, sample: str) -> Reference:
        """Return a reference to an environment variable."""
        self.samples.setdefault(variable, sample)
        return Reference(f"${{{variable}}}")


def mapping(values: Mapping[str, DraftValue | None]) -> Block | None:
    """Return a mapping of the values that are not `None`; `None` if there are none."""
    known = {key: value for key, value in values.items() if value is not None}
    return Block(known) if known else None
