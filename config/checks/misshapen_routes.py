"""Find the names in an invalid route, so that unknown names are reported in the same run as the invalid form."""

import re
from collections.abc import Iterator
from typing import Final

from config.problem import Path
from config.reading.yaml_tree import ListNode, MapNode, Node, ScalarNode

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@/-]{0,255}")
_TARGET_KEYS: Final = ("targets", "target")


def written_names(route: Node, path: Path) -> Iterator[tuple[Path, str]]:
    """Yield the path and text of each scalar that can only be a target: in a list instead of the mapping, or below
    `targets` or `target`. References are skipped."""
    if isinstance(route, MapNode):
        for key in _TARGET_KEYS:
            if key in route.entries:
                yield from written_names(route.entries[key].node, (*path, key))
    elif isinstance(route, ListNode):
        for index, item in enumerate(route.items):
            yield from written_names(item, (*path, index))
    elif is_name(route):
        yield path, route.text


def is_name(scalar: ScalarNode) -> bool:
    """Return whether a scalar is a name, so that a message may show it."""
    return scalar.kind == "text" and bool(_NAME.fullmatch(scalar.text))
