"""Writes GBNF, the grammars of llama.cpp and Fireworks: a pattern's tree as a grammar, and literals.

Only what both document is used: rules, literals, classes with `\\x`, `\\u` and `\\U`, groups, `|`, `?` and `+`. Counted
repetition is written out, because Fireworks' page has none and llama.cpp reads one above 2000 as endless.

Sources: llama.cpp `grammars/README.md`, Fireworks "Using grammar mode", read in November 2026. llama.cpp refuses left
recursion, and treats the repetition of what may be empty as such; hence every piece holds its non-empty texts, and
beside them whether the empty one is among them.
"""

from dataclasses import dataclass, replace
from itertools import groupby

from providers.constraints.regex_chars import Ranges
from providers.constraints.regex_parse import Alternation, Chars, Node, Repeat, Sequence, Special, find_unsupported

MAX_REPEATS = 2000
"""The most repetitions that a pattern may count, all together; each becomes a rule or a reference to one."""
_SHORT = 16  # a symbol of so many characters is not worth a name


class Unwritable(ValueError):
    """A pattern that no grammar can express; the message continues "the pattern ..."."""


def to_gbnf(tree: Node) -> str:
    """Return the grammar of the texts that match from end to end. Raises Unwritable."""
    problem = find_unsupported(tree)
    if problem is not None:
        raise Unwritable(problem)
    writer = _Writer()
    return writer.rooted(writer.piece(tree))


def gbnf_literal(text: str) -> str:
    """Return a text in quotes."""
    return f'"{"".join(_LITERAL_ESCAPES.get(char) or _readable(char) for char in text)}"'


_LITERAL_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _readable(char: str) -> str:
    return char if char.isprintable() else _numbered(ord(char))


def _numbered(point: int) -> str:
    if point < 0x100:
        return f"\\x{point:02X}"
    return f"\\u{point:04X}" if point < 0x10000 else f"\\U{point:08X}"


def _class(ranges: Ranges) -> str:
    """Return ranges in brackets, without code point 0, which the engine takes for the end of a text."""
    parts = []
    for low, high in ranges:
        first = max(low, 1)
        if first <= high:
            parts.append(_member(first) if first == high else f"{_member(first)}-{_member(high)}")
    if not parts:
        raise Unwritable("has a class without a character")
    return f"[{''.join(parts)}]"


def _member(point: int) -> str:
    char = chr(point)
    return char if char.isascii() and char.isalnum() else _numbered(point)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of the language: its non-empty texts as sequences, and whether the empty one is in it too.

    `atom` says that the only sequence is a single symbol.
    """

    options: tuple[str, ...]
    empty: bool = False
    atom: bool = False

    @property
    def item(self) -> str:
        """The non-empty texts, as one symbol."""
        return self.options[0] if self.atom else f"({' | '.join(self.options)})"

    @property
    def inline(self) -> str:
        """All texts, as a part of a sequence."""
        if self.empty:
            return f"{self.item}?"
        return self.options[0] if len(self.options) == 1 else self.item


_EMPTY = _Piece((), empty=True)


class _Writer:
    """The rules made so far, each a line."""

    def __init__(self) -> None:
        self._rules: list[str] = []
        self._repeats = 0

    def rooted(self, piece: _Piece) -> str:
        """Return the grammar that begins with this piece."""
        root = piece.inline if piece.options and piece.empty else " | ".join(piece.options) or '""'
        return "\n".join([f"root ::= {root}", *self._rules])

    def piece(self, node: Node) -> _Piece:
        match node:
            case Chars(ranges):
                return _Piece((_class(ranges),), atom=True)
            case Sequence(parts):
                return self._sequence(parts)
            case Alternation(branches):
                pieces = [self.piece(branch) for branch in branches]
                options = dict.fromkeys(option for piece in pieces for option in piece.options)
                return _Piece(tuple(options), any(piece.empty for piece in pieces))
            case Repeat(body, least, most):
                return self._repetition(self.piece(body), least, most)
            case Special():
                raise TypeError("a pattern is asked about before it is written")

    def _rule(self, body: str) -> _Piece:
        name = f"r{len(self._rules) + 1}"
        self._rules.append(f"{name} ::= {body}")
        return _Piece((name,), atom=True)

    def _named(self, piece: _Piece) -> _Piece:
        """Return the non-empty texts under a name unless they are short, for what is written more than once."""
        if piece.atom and len(piece.item) <= _SHORT:
            return replace(piece, empty=False)
        return self._rule(" | ".join(piece.options))

    def _sequence(self, parts: tuple[Node, ...]) -> _Piece:
        pieces: list[_Piece] = []
        for spelled, run in groupby(parts, lambda part: _character(part) != ""):
            if spelled:
                text = "".join(map(_character, run))
                pieces.append(_Piece((gbnf_literal(text),), atom=len(text) == 1))
            else:
                pieces += map(self.piece, run)
        joined = _EMPTY
        for piece in reversed(pieces):
            joined = self._joined(piece, joined)
        return joined

    def _joined(self, first: _Piece, rest: _Piece) -> _Piece:
        if not first.options or not rest.options:
            return first if first.options else rest
        if first.empty and rest.empty:
            tail = self._named(rest).item
            return _Piece((f"{first.item} {tail}?", tail), empty=True)
        return _Piece((f"{first.inline} {rest.inline}",))

    def _repetition(self, piece: _Piece, least: int, most: int | None) -> _Piece:
        if not piece.options or most == 0:
            return _EMPTY
        empty = least == 0 or piece.empty
        low = 1 if piece.empty else max(least, 1)
        if most == low == 1:
            return replace(piece, empty=empty)
        if most is None and low == 1:
            return _Piece((f"{piece.item}+",), empty)
        self._count(most or low)
        unit = self._named(piece)
        last = f"{unit.item}+" if most is None else self._up_to(most - low + 1, unit).item
        return _Piece((" ".join([unit.item] * (low - 1) + [last]),), empty)

    def _up_to(self, most: int, unit: _Piece) -> _Piece:
        """Return one unit or more, a rule for each count: optional units in a row let llama.cpp try every subset."""
        some = unit
        for _ in range(most - 1):
            some = self._rule(f"{unit.item} {some.item}?")
        return some

    def _count(self, repeats: int) -> None:
        self._repeats += repeats
        if self._repeats > MAX_REPEATS:
            raise Unwritable(f"counts more than {MAX_REPEATS} repetitions")


def _character(node: Node) -> str:
    """Return the only character of a node, or None."""
    match node:
        case Chars(((low, high),), ()) if low == high != 0:
            return chr(low)
        case _:
            return ""
