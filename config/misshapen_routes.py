"""The names in a route that has not the shape of one, so that a wrong name is told in the same run as the wrong shape.

Never what is wrong with the shape.
"""

from collections.abc import Iterator

from config.problems import Path
from config.secrets import has_reference
from config.tree import ListNode, MapNode, Node, ScalarNode

_HOLDERS = ("targets", "target")


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
    elif _is_name(route):
        yield path, route.text


def _is_name(node: ScalarNode) -> bool:
    return node.kind == "text" and bool(node.text) and not has_reference(node.text)
