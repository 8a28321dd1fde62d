"""Writes a pattern's tree in the syntax of Rust's `regex`, which matches in linear time.

Each class includes the characters of all dialects, since a response may come from an engine of another dialect.

Source: `regex` 1.11 syntax, read in November 2026.
"""

from providers.constraints.regex_chars import Ranges, merge_ranges
from providers.constraints.regex_parse import Alternation, Chars, Node, Repeat, Sequence, Special


def to_rust(tree: Node) -> str:
    """Return the expression that matches a whole text. Raises ValueError for a class without a character. The tree must
    hold no `Special`."""
    return f"^(?:{_written(tree)})$"


def _written(node: Node) -> str:
    match node:
        case Chars(ranges, more):
            return _class(merge_ranges((*ranges, *more)))
        case Sequence(parts):
            return "".join(map(_written, parts))
        case Alternation(branches):
            return f"(?:{'|'.join(map(_written, branches))})"
        case Repeat(body, least, most):
            return f"(?:{_written(body)}){{{least},{'' if most is None else most}}}"
        case Special():
            raise TypeError("a pattern is checked with find_unsupported before it is written")


def _class(ranges: Ranges) -> str:
    if not ranges:
        raise ValueError("has a class without a character")
    return f"[{''.join(f'{_point(low)}-{_point(high)}' for low, high in ranges)}]"


def _point(point: int) -> str:
    return f"\\x{{{point:X}}}"
