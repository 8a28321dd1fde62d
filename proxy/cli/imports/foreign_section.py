"""Read another gateway's configuration key by key. Keys that no code reads are reported as lost, with their positions.

A value of the wrong type is reported and ignored. Messages and comments name keys and never repeat a value, because it
may be a credential.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from config.problem import Path, Problem, dotted
from config.reading.yaml_tree import ListNode, MapNode, Node, ScalarNode
from proxy.cli.imports.remarks import Reason, Remarks

MAX_NUMBER: Final = 1e15
"""The largest number that is read. All settings of a configuration are far smaller."""

NO_COUNTERPART: Final = "has no counterpart"

_NUMBER: Final = re.compile(r"[-+]?([0-9]{1,18}(\.[0-9]{0,30})?|\.[0-9]{1,30})([eE][-+]?[0-9]{1,3})?")
_TRUTH: Final = {"true": True, "false": False}


@dataclass(slots=True)
class ForeignSection:
    """A mapping in the file that is imported.

    `comments` gets the remarks on the section; it is written at a place in the new config file. `remarks` has all
    remarks on the file. `taken` are the keys that were read or reported.
    """

    node: MapNode
    path: Path
    remarks: Remarks
    comments: list[str]
    taken: set[str] = field(default_factory=set)

    def __contains__(self, key: str) -> bool:
        entry = self.node.entries.get(key)
        return entry is not None and not _is_null(entry.node)

    def report_key(self, key: str, reason: str = NO_COUNTERPART) -> None:
        """Report that a key of the file is missing or different in the new configuration, and why."""
        if (problem := self._at_key(key, reason)) is not None:
            self.remarks.settings.add(problem)

    def note(self, key: str, reason: str) -> None:
        """Remark on a key without loss, for example on its new form or on a step that the operator must take."""
        self._at_key(key, reason)

    def report_section(self, reason: str) -> None:
        """Report that the whole section is missing in the new configuration, and why."""
        self.remarks.lost_sections.add(self._add_remark(self.path, Problem.at(self.node.at, self.path, reason)))

    def report_part(self, reason: str) -> None:
        """Report that a part of the section is missing in the new configuration, and why."""
        self.remarks.settings.add(self._add_remark(self.path, Problem.at(self.node.at, self.path, reason)))

    def remark(self, reason: str) -> None:
        """Remark on the whole section without loss."""
        self._add_remark(self.path, Problem.at(self.node.at, self.path, reason))

    def report_unread(self, reasons: Mapping[str, str]) -> None:
        """Report every key that was neither read nor reported; `reasons` has the reasons by key."""
        for key in self.node.entries:
            if key not in self.taken:
                self.report_key(key, reasons.get(key, NO_COUNTERPART))

    def explain_rest(self, reason_of: Callable[[str], Reason]) -> None:
        """Remark on every key that was neither read nor reported."""
        for key in self.node.entries:
            if key not in self.taken:
                reason = reason_of(key)
                (self.report_key if reason.kind == "lost" else self.note)(key, reason.text)

    def text(self, key: str) -> str | None:
        """Return a scalar as text."""
        node = self._take(key)
        if node is not None and not isinstance(node, ScalarNode):
            self.report_key(key, "is not text: not taken")
            return None
        return None if node is None else node.text

    def holds_text(self, key: str) -> bool:
        """Return whether a key has a scalar, without marking it as read."""
        return key in self and isinstance(self.node.entries[key].node, ScalarNode)

    def number(self, key: str) -> float | None:
        """Return a number. It may be in any of YAML's decimal notations, or text."""
        node = self._take(key)
        if node is None:
            return None
        text = node.text.replace("_", "") if isinstance(node, ScalarNode) else ""
        value = float(text) if _NUMBER.fullmatch(text) else math.inf
        if abs(value) > MAX_NUMBER:
            self.report_key(key, "is not a number: not taken")
            return None
        return value

    def flag(self, key: str) -> bool | None:
        """Return a boolean."""
        node = self._take(key)
        if node is None:
            return None
        text = node.text.lower() if isinstance(node, ScalarNode) else ""
        if text not in _TRUTH:
            self.report_key(key, "is neither true nor false: not taken")
        return _TRUTH.get(text)

    def texts(self, key: str) -> list[str]:
        """Return a list of texts. A single text is a list of one."""
        node = self._take(key)
        if node is None:
            return []
        items = node.items if isinstance(node, ListNode) else (node,)
        if not all(isinstance(item, ScalarNode) for item in items):
            self.report_key(key, "is not a list of texts: not taken")
        return [item.text for item in items if isinstance(item, ScalarNode)]

    def section(self, key: str) -> "ForeignSection":
        """Return the mapping under a key, or an empty one if there is none. It shares this section's comments."""
        node = self._take(key)
        if node is not None and not isinstance(node, MapNode):
            self.report_key(key, "is not a mapping: not taken")
        known = node if isinstance(node, MapNode) else MapNode(self.node.at, {}, 1, 1)
        return ForeignSection(known, (*self.path, key), self.remarks, self.comments)

    def sections(self, key: str) -> Iterator["ForeignSection"]:
        """Yield the mappings of a list, each with its own comments."""
        node = self._take(key)
        if node is not None and not isinstance(node, ListNode):
            self.report_key(key, "is not a list: not taken")
        for index, item in enumerate(node.items if isinstance(node, ListNode) else ()):
            place = (*self.path, key, index)
            if isinstance(item, MapNode):
                yield ForeignSection(item, place, self.remarks, [])
            else:
                problem = Problem.at(item.at, place, "is not a mapping: not taken")
                self.remarks.lost_sections.add(self._add_remark(place, problem))

    def written(self) -> tuple[str, ...]:
        """Return the keys of the file whose values are not null."""
        return tuple(key for key in self.node.entries if key in self)

    def apart(self, comments: list[str]) -> "ForeignSection":
        """Return the section with another list for its comments. The keys that were read are shared."""
        return ForeignSection(self.node, self.path, self.remarks, comments, self.taken)

    def _take(self, key: str) -> Node | None:
        self.taken.add(key)
        return self.node.entries[key].node if key in self else None

    def _at_key(self, key: str, reason: str) -> Problem | None:
        self.taken.add(key)
        if key not in self:
            return None
        path = (*self.path, key)
        return self._add_remark(path, Problem.at(self.node.entries[key].key_at, path, reason))

    def _add_remark(self, path: Path, problem: Problem) -> Problem:
        self.remarks.problems.append(problem)
        self.comments.append(f"{dotted(path)}: {problem.message}" if path else problem.message)
        return problem


def _is_null(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.kind == "null"
