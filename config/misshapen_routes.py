"""The names in a route that has not the shape of one, so that a wrong name is told in the same run as the wrong shape.

Never what is wrong with the shape.
"""

import re
from collections.abc import Iterator
from typing import Final

from config.problems import Path
from config.tree import ListNode, MapNode, Node, ScalarNode

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@/-]{0,255}")
_HOLDERS: Final = ("targets", "target")


def written_names(route: Node, path: Path) -> Iterator[tuple[Path, str]]:
    """The words that can only be meant as targets, each with its path: in a list where the mapping belongs, and what
    stands under `targets` and `target`. Of a reference there is no word."""
    if isinstance(route, MapNode):
        for key in _HOLDERS:
            if key in route.entries:
                yield from written_names(route.entries[key].node, (*path, key))
    elif isinstance(route, ListNode):
        for index, item in enumerate(route.items):
            yield from written_names(item, (*path, index))
    elif is_name(route):
        yield path, route.text


def is_name(word: ScalarNode) -> bool:
    """Whether a word is a name and nothing else, so that a message may show it."""
    return word.kind == "text" and bool(_NAME.fullmatch(word.text))
