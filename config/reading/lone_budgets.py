"""Replace a `budget` that is a mapping by a list with this one budget, in every section that may have budgets.

Checks then find budgets in lists only. Problems are reported by the path of the file, which has no list.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from config.problem import Path, Problem, dotted
from config.reading.yaml_tree import Entry, ListNode, MapNode, Node

_BUDGET: Final = "budget"
_FIRST_BUDGET: Final = f"{_BUDGET}.0"

_BUDGET_SECTIONS: Final = (
    (),
    *(("each_user",), ("teams", "*", "each_user")),
    *(("vendors", "*"), ("models", "*"), ("models", "*", "deployments", "*")),
    *(("teams", "*"), ("teams", "*", "keys", "*"), ("teams", "*", "keys_from", "*")),
)
"""Sections with a `budget`. `*` stands for each key of a mapping, or each element of a list."""


@dataclass(slots=True)
class LoneBudgets:
    """Replaces the budgets of one configuration that are mappings by lists, and records their paths."""

    _lone: set[str] = field(default_factory=set)

    def listed(self, root: MapNode) -> MapNode:
        """Return the tree of a configuration in which all budgets are in lists."""
        for section in _BUDGET_SECTIONS:
            changed = self._below(root, section, ())
            if isinstance(changed, MapNode):
                root = changed
        return root

    def as_written(self, problems: Iterable[Problem]) -> tuple[Problem, ...]:
        """Return problems with the paths of the file, in which a lone budget has no list index."""
        return tuple(self._written(each) for each in problems) if self._lone else tuple(problems)

    def _written(self, problem: Problem) -> Problem:
        before, found, below = problem.path.rpartition(_FIRST_BUDGET)
        lone = f"{before}{_BUDGET}"
        if not found or lone not in self._lone or below[:1] not in ("", "."):
            return problem
        return replace(problem, path=f"{lone}{below}")

    def _below(self, node: Node, section: Path, path: Path) -> Node:
        """Return a node whose sections at the path `section` have lists of budgets. Unchanged nodes stay the same
        objects."""
        if not section:
            return self._section(node, path) if isinstance(node, MapNode) else node
        if isinstance(node, ListNode) and section[0] == "*":
            items = tuple(self._below(item, section[1:], (*path, index)) for index, item in enumerate(node.items))
            return node if all(map(_is_same, items, node.items)) else replace(node, items=items)
        if not isinstance(node, MapNode):
            return node
        changed = {
            name: Entry(entry.key_at, made)
            for name, entry in node.entries.items()
            if section[0] in ("*", name)
            and (made := self._below(entry.node, section[1:], (*path, name))) is not entry.node
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


def _is_same(one: Node, other: Node) -> bool:
    return one is other
