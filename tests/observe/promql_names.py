"""The names in a PromQL expression: its metrics and labels. Whether the expression is valid is for promtool to check.

Grammar: https://prometheus.io/docs/prometheus/2.42/querying/basics/ and .../operators/ and .../functions/.
"""

import re
from dataclasses import dataclass
from typing import Final

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'')
_SELECTOR = re.compile(r"([a-zA-Z_:][\w:]*)?\s*\{([^}]*)\}")
_MATCHER = re.compile(r"([a-zA-Z_]\w*)\s*(?:=~|!~|!=|=)")
_GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")
_RANGE = re.compile(r"\[[^\]]*\]")
_NAME = re.compile(r"(?<![\w.:])[a-zA-Z_:][\w:]*")
_CALLED = re.compile(r"\s*\(")

WORDS: Final = frozenset({"and", "or", "unless", "bool", "offset", "by", "without", "on", "ignoring", "inf", "nan"})
"""Keywords of the language, which look like names."""


@dataclass(frozen=True, slots=True)
class PromqlNames:
    """The metrics of an expression, each with the labels of its selector, and the labels that are grouped by."""

    metrics: dict[str, frozenset[str]]
    grouped: frozenset[str]


def promql_names(expression: str) -> PromqlNames:
    """Return the names in an expression."""
    text = _STRING.sub('""', expression)
    metrics: dict[str, set[str]] = {}
    for found in _SELECTOR.finditer(text):
        if found[1]:
            metrics.setdefault(found[1], set()).update(_MATCHER.findall(found[2]))
    grouped = {label.strip() for each in _GROUPING.findall(text) for label in each.split(",") if label.strip()}
    rest = _RANGE.sub(" ", _GROUPING.sub(" ", re.sub(r"\{[^}]*\}", " ", text)))
    for found in _NAME.finditer(rest):
        name = found[0]
        if name.lower() not in WORDS and not _CALLED.match(rest, found.end()):
            metrics.setdefault(name, set())
    return PromqlNames({name: frozenset(labels) for name, labels in metrics.items()}, frozenset(grouped))
