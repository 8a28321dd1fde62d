"""A tree to plain Python values, with references expanded. Never which keys exist or what they mean.

An expanded word that stood unquoted becomes `Unquoted`, so that its field decides whether it is text or a number.
"""

import pathlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from config.files import SourceFiles, others_may_write
from config.problems import Path, Position, Problem
from config.scalars import Unquoted, scalar_value
from config.secrets import expand, has_reference
from config.tree import ListNode, MapNode, Node, ScalarNode

Value = Mapping[str, "Value"] | list["Value"] | str | int | float | bool | None
"""What a YAML document can hold."""


@dataclass(slots=True)
class Expander:
    """Expands the words of one load and remembers what became of them.

    `referenced` holds the paths of words whose text is not all in the table: their values are never repeated in a
    message. `failed` holds the paths of words that could not be expanded: nothing more is to be said about those.
    """

    env: Mapping[str, str]
    files: SourceFiles
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    referenced: set[Path] = field(default_factory=set)
    failed: set[Path] = field(default_factory=set)

    def mapping(self, node: MapNode, path: Path = ()) -> dict[str, Value]:
        """The values of a mapping and everything under it; recursion is bounded by the tree's depth limit."""
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
        """The expanded text of a word; None when a reference in it failed, which is then a problem at its place."""

        def read_file(name: str) -> str:
            return self._read_secret(name, node.at, path)

        expansion = expand(node.text, self.env, read_file)
        if expansion.by_reference:
            self.referenced.add(path)
        if expansion.faults:
            self.failed.add(path)
            self.problems.extend(Problem.at(node.at, path, fault) for fault in expansion.faults)
            return None
        return Unquoted(expansion.text) if node.plain else expansion.text

    def _read_secret(self, name: str, at: Position, path: Path) -> str:
        file = pathlib.Path(at.file).parent / name
        text = self.files.read_secret(file)
        if others_may_write(file):
            self.warnings.append(Problem.at(at, path, f"any user of this machine may change the file {name}"))
        return text
