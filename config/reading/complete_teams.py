"""Complete the teams of a tree: replace each `keys_from` path by the entries of its file.

The entries keep their positions in that file, so that every later check reports them there.
"""

import pathlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from config.problem import Path, Problem, dotted
from config.reading.expand_references import has_reference
from config.reading.table_files import UnreadableError
from config.reading.tree_values import Expander
from config.reading.yaml_tree import Entry, ListNode, MapNode, Node, Parsed, ScalarNode, parse

KEYS_FROM: Final = "keys_from"
_MOST_FILES: Final = 1000
_NO_LIST: Final = "a file of keys is a list: a digest or a mapping after each dash"


@dataclass(slots=True)
class TeamCompleter:
    """Completes the teams of one load."""

    expander: Expander
    problems: list[Problem] = field(default_factory=list)
    _files: int = 0

    def completed(self, root: MapNode) -> MapNode:
        """Return the tree of a configuration with its teams completed. Its includes must be merged before."""
        teams = root.entries.get("teams")
        if teams is None or not isinstance(teams.node, MapNode):
            return root
        entries = {name: self._team(entry, name) for name, entry in teams.node.entries.items()}
        entry = Entry(teams.key_at, replace(teams.node, entries=entries))
        return replace(root, entries={**root.entries, "teams": entry})

    def _team(self, team: Entry, name: str) -> Entry:
        if not isinstance(team.node, MapNode):
            return team
        keys = team.node.entries.get(KEYS_FROM)
        if keys is None:
            return team
        items = self._keys(keys.node, ("teams", name, KEYS_FROM))
        size, height = 1 + sum(node.size for node in items), 1 + max((node.height for node in items), default=0)
        listed = Entry(keys.key_at, ListNode(keys.node.at, items, size, height))
        return Entry(team.key_at, replace(team.node, entries={**team.node.entries, KEYS_FROM: listed}))

    def _keys(self, node: Node, path: Path) -> tuple[Node, ...]:
        """Return the entries of the file that a node names; empty after a problem."""
        if not isinstance(node, ScalarNode) or node.kind != "text":
            return self._refused(node, path, "expected a path")
        name = self.expander.text(node, path) if has_reference(node.text) else node.text
        if name is None:
            return ()  # the reference has a problem of its own
        if not name or not name.isprintable():
            return self._refused(node, path, "expected a path")
        self._files += 1
        if self._files > _MOST_FILES:
            return self._refused(node, path, f"more than {_MOST_FILES} files of keys")
        file = pathlib.Path(node.at.file).parent / name
        shown = node.text if path in self.expander.referenced else str(file)
        try:
            text = self.expander.files.read_yaml(file)
        except UnreadableError as error:
            return self._refused(node, path, f"cannot read the file {shown}: {error}")
        return self._listed(parse(text, str(file)), path)

    def _listed(self, parsed: Parsed, path: Path) -> tuple[Node, ...]:
        # A file that is no list may be of another kind and hold secrets, so its names are not shown.
        root = parsed.root
        if not isinstance(root, ListNode):
            self.problems.extend(replace(problem, path=dotted(path)) for problem in parsed.problems)
            empty = root is None or (isinstance(root, ScalarNode) and root.kind == "null")
            return () if root is None or empty else self._refused(root, path, _NO_LIST)
        inside = dotted(path)
        self.problems.extend(replace(problem, path=f"{inside}.{problem.path}") for problem in parsed.problems)
        for at, scalar in _scalars(root, path):
            if has_reference(scalar.text):
                return self._refused(
                    scalar, at, "a file of keys may not hold references: its author may not know the values"
                )
        return root.items

    def _refused(self, node: Node, path: Path, message: str) -> tuple[Node, ...]:
        self.problems.append(Problem.at(node.at, path, message))
        return ()


def _scalars(node: Node, path: Path) -> Iterator[tuple[Path, ScalarNode]]:
    """Yield every scalar below a node. The tree's depth limit bounds the recursion."""
    if isinstance(node, ScalarNode):
        yield path, node
    elif isinstance(node, ListNode):
        for index, item in enumerate(node.items):
            yield from _scalars(item, (*path, index))
    else:
        for key, entry in node.entries.items():
            yield from _scalars(entry.node, (*path, key))
