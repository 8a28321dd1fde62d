"""Convert a tree to plain Python values, with references expanded.

An expanded scalar without quotes becomes `Unquoted`, so that its field decides whether it is text or a number.
"""

import pathlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from config.problem import Path, Position, Problem
from config.reading.expand_references import expand, has_reference
from config.reading.table_files import SourceFiles, others_may_write
from config.reading.yaml_scalars import Unquoted, scalar_value
from config.reading.yaml_tree import ListNode, MapNode, Node, ScalarNode

Value = Mapping[str, "Value"] | list["Value"] | str | int | float | bool | None
"""Any value of a YAML document."""


@dataclass(slots=True)
class Expander:
    """Expands the scalars of one load.

    `referenced` holds the paths of scalars whose text comes from outside the configuration: no message repeats their
    values.
    """

    env: Mapping[str, str]
    files: SourceFiles
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    referenced: set[Path] = field(default_factory=set)

    def mapping(self, node: MapNode, path: Path = ()) -> dict[str, Value]:
        """Return the values of a mapping and of everything below it. The tree's depth limit bounds the recursion."""
        return {key: self._value(entry.node, (*path, key)) for key, entry in node.entries.items()}

    def _value(self, node: Node, path: Path) -> Value:
        if isinstance(node, MapNode):
            return self.mapping(node, path)
        if isinstance(node, ListNode):
            return [self._value(item, (*path, index)) for index, item in enumerate(node.items)]
        if node.kind != "text" or not has_reference(node.text):
            return scalar_value(node.kind, node.text)
        return self.text(node, path)

    def text(self, node: ScalarNode, path: Path) -> str | None:
        """Return the expanded text of a scalar; `None`, and record a problem at its position, if a reference failed."""

        def read_file(name: str) -> str:
            return self._read_secret(name, node.at, path)

        expansion = expand(node.text, self.env, read_file)
        if expansion.by_reference:
            self.referenced.add(path)
        if expansion.faults:
            self.problems.extend(Problem.at(node.at, path, fault) for fault in expansion.faults)
            return None
        return Unquoted(expansion.text) if node.plain else expansion.text

    def _read_secret(self, name: str, at: Position, path: Path) -> str:
        file = pathlib.Path(at.file).parent / name
        text = self.files.read_secret(file)
        if others_may_write(file):
            self.warnings.append(Problem.at(at, path, f"any user of this machine may change the file {name}"))
        return text
