"""Merge the vendors, models, routes and teams of the files under `include:` into the tree of the including file.

The same name in two files is a problem that reports both positions, unless one of the two files only adds facts about a
model.
"""

import os
import pathlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from config.problem import Path, Position, Problem
from config.reading.other_gateways import foreign_key, import_hint
from config.reading.table_files import UnreadableError
from config.reading.tree_values import Expander
from config.reading.yaml_tree import Entry, ListNode, MapNode, Node, Parsed, ScalarNode, parse

INCLUDE: Final = "include"
MERGED: Final = ("vendors", "models", "routes", "teams")
"""The sections that an included file may hold, besides `version: 1` and its own `include`."""

FACTS: Final = frozenset({"context_window", "max_output_tokens", "price"})
"""The settings that a file may add to another file's model: facts about the model, such as imported prices."""

_MOST_FILES: Final = 1000
_MOST_LEVELS: Final = 10


def as_configuration(parsed: Parsed, name: str, keys: Sequence[str]) -> Parsed:
    """Return `parsed` if it has any of the outermost `keys` of a configuration, or neither keys nor problems. Any other
    file may hold secrets: return its problems without names, and no tree."""
    if not parsed.keys.isdisjoint(keys) or not (parsed.keys or parsed.problems):
        return parsed
    problems = tuple(replace(problem, path="") for problem in parsed.problems)
    foreign = foreign_key(parsed.keys)
    if foreign is not None:
        return Parsed(None, (*problems, Problem.at(Position(name, 1, 1), (), f"this is {import_hint(foreign)}")))
    message = f"this is no configuration of the gateway: none of its keys is {', '.join(keys)}"
    return Parsed(None, problems or (Problem.at(Position(name, 1, 1), (), message),))


@dataclass(slots=True)
class Includer:
    """Merges the files of a configuration. `keys` are the outermost keys of a configuration. `complete` is false if a
    file is missing."""

    expander: Expander
    keys: Sequence[str]
    problems: list[Problem] = field(default_factory=list)
    complete: bool = True
    _seen: set[str] = field(default_factory=set)

    def merged(self, root: MapNode) -> MapNode:
        """Return the tree of a main file with all its includes merged, without the key `include`."""
        main = pathlib.Path(root.at.file)
        self._seen.add(os.path.realpath(main))
        return self._merged(root, (main,))

    def _merged(self, root: MapNode, chain: tuple[pathlib.Path, ...]) -> MapNode:
        entries = {key: entry for key, entry in root.entries.items() if key != INCLUDE}
        for path, node, shown in self._named_files(root, chain[-1].parent):
            included = self._read(path, node, shown, chain)
            if included is not None:
                self._add(entries, included)
        return MapNode(root.at, entries, root.size, root.height)

    def _named_files(self, root: MapNode, folder: pathlib.Path) -> Iterator[tuple[pathlib.Path, ScalarNode, str]]:
        """Yield each included file, the node that names it, and its name with references unexpanded."""
        entry = root.entries.get(INCLUDE)
        items = entry.node.items if entry and isinstance(entry.node, ListNode) else ()
        if entry and not isinstance(entry.node, ListNode):
            self._refuse(entry.node, (INCLUDE,), "expected a list of paths")
        for index, node in enumerate(items):
            if not isinstance(node, ScalarNode) or node.kind != "text":
                self._refuse(node, (INCLUDE, index), "expected a path")
                continue
            name = self.expander.text(node, (INCLUDE, index))
            if name is None:
                self.complete = False
                continue
            if not name or not name.isprintable():
                self._refuse(node, (INCLUDE, index), "expected a path")
                continue
            pattern = str(folder / name)
            by_reference = (INCLUDE, index) in self.expander.referenced
            for path in self.expander.files.matching(pattern):
                yield path, node, node.text if by_reference else str(path)

    def _read(
        self, path: pathlib.Path, node: ScalarNode, shown: str, chain: tuple[pathlib.Path, ...]
    ) -> MapNode | None:
        """Return the tree of an included file; `None` if it has no tree, or if the file is merged already."""
        real_path = os.path.realpath(path)
        if real_path in map(os.path.realpath, chain):
            self._refuse(node, (INCLUDE,), f"circular includes: {' -> '.join(map(str, (*chain, path)))}")
            return None
        if real_path in self._seen:
            return None
        if len(chain) > _MOST_LEVELS or len(self._seen) > _MOST_FILES:
            self._refuse(node, (INCLUDE,), f"more than {_MOST_LEVELS} levels or {_MOST_FILES} files of includes")
            return None
        self._seen.add(real_path)
        try:
            text = self.expander.files.read_yaml(path)
        except UnreadableError as error:
            self._refuse(node, (INCLUDE,), f"cannot read the file {shown}: {error}")
            return None
        parsed = as_configuration(parse(text, str(path)), str(path), self.keys)
        self.problems.extend(parsed.problems)
        if not isinstance(parsed.root, MapNode):
            if parsed.root is not None:
                self._refuse(parsed.root, (), "expected a mapping")
            self.complete = self.complete and not parsed.problems
            return None
        return self._merged(self._allowed(parsed.root), (*chain, path))

    def _allowed(self, root: MapNode) -> MapNode:
        entries = {}
        for key, entry in root.entries.items():
            if key in (*MERGED, INCLUDE):
                entries[key] = entry
            elif key == "version":
                if not (isinstance(entry.node, ScalarNode) and entry.node.kind == "int" and entry.node.text == "1"):
                    self.problems.append(Problem.at(entry.node.at, (key,), "must be 1"))
            else:
                message = f"an included file may only hold {', '.join(MERGED)}, version and include"
                self.problems.append(Problem.at(entry.key_at, (key,), message))
        return MapNode(root.at, entries, root.size, root.height)

    def _add(self, entries: dict[str, Entry], included: MapNode) -> None:
        for section, entry in included.entries.items():
            present = entries.get(section)
            if present is None or not isinstance(present.node, MapNode):
                entries[section] = present or entry
            elif isinstance(entry.node, MapNode):
                entries[section] = Entry(present.key_at, self._joined((section,), present.node, entry.node))
            else:
                self._refuse(entry.node, (section,), "expected a mapping")

    def _joined(self, path: Path, present: MapNode, added: MapNode) -> MapNode:
        entries = {**present.entries, **added.entries, **present.entries}
        for name in present.entries.keys() & added.entries.keys():
            old, new = present.entries[name], added.entries[name]
            if path == ("models",) and (models := _with_facts(old.node, new.node)) is not None:
                entries[name] = Entry(old.key_at, self._joined((*path, name), *models))
            else:
                message = f"written in two files; first at {old.key_at}"
                self.problems.append(Problem.at(new.key_at, (*path, name), message))
        return MapNode(present.at, entries, present.size + added.size, max(present.height, added.height))

    def _refuse(self, node: Node, path: Path, message: str) -> None:
        self.complete = False
        self.problems.append(Problem.at(node.at, path, message))


def _with_facts(old: Node, new: Node) -> tuple[MapNode, MapNode] | None:
    """Return both nodes as mappings if one of them holds only facts, else `None`."""
    present, added = _mapping(old), _mapping(new)
    if present is None or added is None:
        return None
    adds = any(model.entries and model.entries.keys() <= FACTS for model in (present, added))
    return (present, added) if adds else None


def _mapping(node: Node) -> MapNode | None:
    """Return the node as a mapping. An empty value counts as a mapping without entries."""
    if isinstance(node, ScalarNode) and node.kind == "null":
        return MapNode(node.at, {}, node.size, 1)
    return node if isinstance(node, MapNode) else None
