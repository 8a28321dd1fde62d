"""A tree in the syntax of Rust's `regex`, which matches in linear time. Never compiles it, nor parses a pattern.

It is the widest reading: each class with what any dialect counts in. An answer is not at fault for being made by an
engine of another dialect than ours.

Source: `regex` 1.11 syntax, read in November 2026.
"""

from providers.regex_chars import Ranges, merged
from providers.regex_tree import Chars, Choice, Node, Repeat, Sequence, Special


def linear(tree: Node) -> str:
    """The expression that matches a whole text. Raises ValueError for a class without a character; the tree must hold
    nothing special."""
    return f"^(?:{_written(tree)})$"


def _written(node: Node) -> str:
    match node:
        case Chars(ranges, more):
            return _class(merged((*ranges, *more)))
        case Sequence(parts):
            return "".join(map(_written, parts))
        case Choice(branches):
            return f"(?:{'|'.join(map(_written, branches))})"
        case Repeat(body, least, most):
            return f"(?:{_written(body)}){{{least},{'' if most is None else most}}}"
        case Special():
            raise TypeError("a pattern is asked about before it is written")


def _class(ranges: Ranges) -> str:
    if not ranges:
        raise ValueError("has a class without a character")
    return f"[{''.join(f'{_point(low)}-{_point(high)}' for low, high in ranges)}]"


def _point(point: int) -> str:
    return f"\\x{{{point:X}}}"
