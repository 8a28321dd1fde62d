"""Writes GBNF, the grammars of llama.cpp and Fireworks: a pattern's tree as a grammar, and literals.

Only constructs that both llama.cpp and Fireworks document are used: rules, literals, classes with `\\x`, `\\u` and
`\\U`, groups, `|`, `?` and `+`. Counted repetition is written out, because Fireworks does not document it and llama.cpp
reads a count above 2000 as unlimited.

Sources: llama.cpp `grammars/README.md`, Fireworks "Using grammar mode", read in November 2026. llama.cpp refuses left
recursion, and treats the repetition of a possibly empty text as left recursion. Therefore every `_Fragment` holds its
non-empty texts, and separately whether the empty text is among them.
"""

from dataclasses import dataclass, replace
from itertools import groupby

from providers.constraints.regex_chars import Ranges
from providers.constraints.regex_parse import Alternation, Chars, Node, Repeat, Sequence, Special, find_unsupported

MAX_REPEATS = 2000
"""The most repetitions that a pattern may count, all together. Each becomes a rule or a reference to a rule."""
_SHORT = 16  # a symbol of at most this many characters gets no rule of its own


class Unwritable(ValueError):
    """A pattern that no grammar can express. The message is the rest of a sentence that begins with "the pattern"."""


def to_gbnf(tree: Node) -> str:
    """Return the grammar of the texts that match from end to end. Raises Unwritable."""
    problem = find_unsupported(tree)
    if problem is not None:
        raise Unwritable(problem)
    writer = _Writer()
    return writer.rooted(writer.fragment(tree))


def gbnf_literal(text: str) -> str:
    """Return a text as a GBNF literal, in quotes."""
    return f'"{"".join(_LITERAL_ESCAPES.get(char) or _readable(char) for char in text)}"'


_LITERAL_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _readable(char: str) -> str:
    return char if char.isprintable() else _escaped(ord(char))


def _escaped(point: int) -> str:
    if point < 0x100:
        return f"\\x{point:02X}"
    return f"\\u{point:04X}" if point < 0x10000 else f"\\U{point:08X}"


def _class(ranges: Ranges) -> str:
    """Return ranges in brackets, without code point 0, which the engine reads as the end of a text."""
    parts = []
    for low, high in ranges:
        first = max(low, 1)
        if first <= high:
            parts.append(
                _class_character(first) if first == high else f"{_class_character(first)}-{_class_character(high)}"
            )
    if not parts:
        raise Unwritable("has a class without a character")
    return f"[{''.join(parts)}]"


def _class_character(point: int) -> str:
    char = chr(point)
    return char if char.isascii() and char.isalnum() else _escaped(point)


@dataclass(frozen=True, slots=True)
class _Fragment:
    """A part of the language: its non-empty texts as sequences, and whether the empty text is in it too.

    `atom` is true if the only sequence is a single symbol.
    """

    options: tuple[str, ...]
    empty: bool = False
    atom: bool = False

    @property
    def item(self) -> str:
        """The grammar of the non-empty texts, as one symbol."""
        return self.options[0] if self.atom else f"({' | '.join(self.options)})"

    @property
    def inline(self) -> str:
        """The grammar of all texts, including the empty text, as a part of a sequence."""
        if self.empty:
            return f"{self.item}?"
        return self.options[0] if len(self.options) == 1 else self.item


_EMPTY = _Fragment((), empty=True)


class _Writer:
    """The rules made so far, each a line."""

    def __init__(self) -> None:
        self._rules: list[str] = []
        self._repeats = 0

    def rooted(self, root: _Fragment) -> str:
        """Return the grammar that begins with this fragment."""
        rule = root.inline if root.options and root.empty else " | ".join(root.options) or '""'
        return "\n".join([f"root ::= {rule}", *self._rules])

    def fragment(self, node: Node) -> _Fragment:
        match node:
            case Chars(ranges):
                return _Fragment((_class(ranges),), atom=True)
            case Sequence(parts):
                return self._sequence(parts)
            case Alternation(branches):
                fragments = [self.fragment(branch) for branch in branches]
                options = dict.fromkeys(option for each in fragments for option in each.options)
                return _Fragment(tuple(options), any(each.empty for each in fragments))
            case Repeat(body, least, most):
                return self._repetition(self.fragment(body), least, most)
            case Special():
                raise TypeError("a pattern is checked with find_unsupported before it is written")

    def _rule(self, body: str) -> _Fragment:
        name = f"r{len(self._rules) + 1}"
        self._rules.append(f"{name} ::= {body}")
        return _Fragment((name,), atom=True)

    def _named(self, fragment: _Fragment) -> _Fragment:
        """Return the non-empty texts under a rule's name unless they are short, for texts that are written more than
        once."""
        if fragment.atom and len(fragment.item) <= _SHORT:
            return replace(fragment, empty=False)
        return self._rule(" | ".join(fragment.options))

    def _sequence(self, parts: tuple[Node, ...]) -> _Fragment:
        fragments: list[_Fragment] = []
        for spelled, run in groupby(parts, lambda part: _character(part) != ""):
            if spelled:
                text = "".join(map(_character, run))
                fragments.append(_Fragment((gbnf_literal(text),), atom=len(text) == 1))
            else:
                fragments += map(self.fragment, run)
        joined = _EMPTY
        for each in reversed(fragments):
            joined = self._joined(each, joined)
        return joined

    def _joined(self, first: _Fragment, rest: _Fragment) -> _Fragment:
        if not first.options or not rest.options:
            return first if first.options else rest
        if first.empty and rest.empty:
            tail = self._named(rest).item
            return _Fragment((f"{first.item} {tail}?", tail), empty=True)
        return _Fragment((f"{first.inline} {rest.inline}",))

    def _repetition(self, fragment: _Fragment, least: int, most: int | None) -> _Fragment:
        if not fragment.options or most == 0:
            return _EMPTY
        empty = least == 0 or fragment.empty
        low = 1 if fragment.empty else max(least, 1)
        if most == low == 1:
            return replace(fragment, empty=empty)
        if most is None and low == 1:
            return _Fragment((f"{fragment.item}+",), empty)
        self._count(most or low)
        unit = self._named(fragment)
        last = f"{unit.item}+" if most is None else self._up_to(most - low + 1, unit).item
        return _Fragment((" ".join([unit.item] * (low - 1) + [last]),), empty)

    def _up_to(self, most: int, unit: _Fragment) -> _Fragment:
        """Return one unit or more, with a rule for each count. Optional units in a row would make llama.cpp try every
        subset."""
        some = unit
        for _ in range(most - 1):
            some = self._rule(f"{unit.item} {some.item}?")
        return some

    def _count(self, repeats: int) -> None:
        self._repeats += repeats
        if self._repeats > MAX_REPEATS:
            raise Unwritable(f"counts more than {MAX_REPEATS} repetitions")


def _character(node: Node) -> str:
    """Return the only character of a node; empty text if it is something else."""
    match node:
        case Chars(((low, high),), ()) if low == high != 0:
            return chr(low)
        case _:
            return ""
