"""Make a list of one of a lone `budget`, wherever a table may have budgets.

Checks then find budgets in lists alone. Problems of a lone one are reported by the path of the file, which has no list.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from config.problem import Path, Problem, dotted
from config.reading.yaml_tree import Entry, ListNode, MapNode, Node

_BUDGET: Final = "budget"
_FIRST: Final = f"{_BUDGET}.0"

_PLACES: Final = (
    (),
    *(("each_user",), ("teams", "*", "each_user")),
    *(("vendors", "*"), ("models", "*"), ("models", "*", "deployments", "*")),
    *(("teams", "*"), ("teams", "*", "keys", "*"), ("teams", "*", "keys_from", "*")),
)
"""Sections with a `budget`; `*` stands for each key of a mapping, or each element of a list."""


@dataclass(slots=True)
class LoneBudgets:
    """Makes lists of the lone budgets of one configuration, and records their paths."""

    _lone: set[str] = field(default_factory=set)

    def listed(self, root: MapNode) -> MapNode:
        """Return the tree of a table with lists of budgets only."""
        for place in _PLACES:
            changed = self._below(root, place, ())
            if isinstance(changed, MapNode):
                root = changed
        return root

    def as_written(self, problems: Iterable[Problem]) -> tuple[Problem, ...]:
        """Return problems with the paths of the file: a lone budget has no place in a list there."""
        return tuple(self._written(each) for each in problems) if self._lone else tuple(problems)

    def _written(self, problem: Problem) -> Problem:
        before, found, below = problem.path.rpartition(_FIRST)
        lone = f"{before}{_BUDGET}"
        if not found or lone not in self._lone or below[:1] not in ("", "."):
            return problem
        return replace(problem, path=f"{lone}{below}")

    def _below(self, node: Node, place: Path, path: Path) -> Node:
        """Return a node whose sections at a place have lists of budgets. Unchanged nodes stay the same objects."""
        if not place:
            return self._section(node, path) if isinstance(node, MapNode) else node
        if isinstance(node, ListNode) and place[0] == "*":
            items = tuple(self._below(item, place[1:], (*path, index)) for index, item in enumerate(node.items))
            return node if all(map(_is, items, node.items)) else replace(node, items=items)
        if not isinstance(node, MapNode):
            return node
        changed = {
            name: Entry(entry.key_at, made)
            for name, entry in node.entries.items()
            if place[0] in ("*", name) and (made := self._below(entry.node, place[1:], (*path, name))) is not entry.node
        }
        return replace(node, entries={**node.entries, **changed}) if changed else node

    def _section(self, node: MapNode, path: Path) -> MapNode:
        budget = node.entries.get(_BUDGET)
        if budget is None or not isinstance(budget.node, MapNode):
            return node
        lone = budget.node
        self._lone.add(dotted((*path, _BUDGET)))
        made = Entry(budget.key_at, ListNode(lone.at, (lone,), lone.size + 1, lone.height + 1))
        return replace(node, entries={**node.entries, _BUDGET: made})


def _is(one: Node, other: Node) -> bool:
    return one is other
