"""Parses regular expressions into trees.

A tree describes the texts that match from end to end, which is how every engine reads a guided pattern. Anchors at the
two ends, laziness and captures do not change which texts match, so the tree does not contain them. A construct that
dialects read differently, or that no grammar can express, stays in the tree as `Special`, so that the pattern can be
sent to an engine that knows it.

Sources: the syntax pages of Python 3.11 `re`, ECMAScript 2025 and Rust's `regex` 1.11, read in November 2026. A pattern
is malformed only if all three refuse it.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from providers.constraints.complexity_limits import MAX_GROUPS, Budget, OverBudget
from providers.constraints.regex_chars import (
    BEYOND_ASCII,
    OTHER_DIGITS,
    OTHER_SPACES,
    Ranges,
    complement,
    merge_ranges,
    ranges_of,
)


class MalformedPattern(ValueError):
    """A pattern that no dialect accepts. The message is the rest of a sentence that begins with "the pattern"."""

    def __init__(self, reason: str, position: int | None = None) -> None:
        super().__init__(reason if position is None else f"{reason} at position {position}")


@dataclass(frozen=True, slots=True)
class Chars:
    """One character. `ranges` holds the characters that every dialect includes, which are only ASCII for `\\d`, `\\w`
    and `\\s`. `more` holds the characters that only some dialects include."""

    ranges: Ranges
    more: Ranges = ()


@dataclass(frozen=True, slots=True)
class Sequence:
    """The tree for parts that follow one another. A sequence without parts matches the empty text."""

    parts: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Alternation:
    """The tree for two or more alternative branches."""

    branches: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Repeat:
    """The tree for `body`, repeated at least `least` and at most `most` times. `most` is `None` if there is no
    limit."""

    body: "Node"
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Special:
    """A construct outside the common subset. `what` names the construct, as in "uses a look-around"."""

    what: str
    position: int


Node = Chars | Sequence | Alternation | Repeat | Special

EMPTY = Sequence(())


class PatternReader:
    """Parses the patterns of one constraint, all within its budget."""

    __slots__ = ("_brackets", "_budget")

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._brackets: _Brackets = {}

    def parse(self, pattern: str) -> Node:
        """Return the tree of a pattern. Raises MalformedPattern, also for a pattern beyond the budget."""
        try:
            self._budget.count_pattern(len(pattern))
            parser = _Parser(pattern, self._budget, self._brackets)
            tree = parser.alternation(0)
        except OverBudget as error:
            raise MalformedPattern(str(error)) from None
        if not parser.at_end:
            raise MalformedPattern("has an unbalanced ')'", parser.position)
        return _without_ends(tree)


def parse(pattern: str) -> Node:
    """Parse one pattern with a budget of its own, and return its tree. Raises MalformedPattern."""
    return PatternReader(Budget()).parse(pattern)


def find_unsupported(tree: Node) -> str | None:
    """Return the first construct that only some dialects know, with its position; `None` if there is none."""
    for node in _walk(tree):
        if isinstance(node, Special):
            return f"uses {node.what} at position {node.position}"
    return None


def _walk(tree: Node) -> Iterator[Node]:
    rest = [tree]
    while rest:
        node = rest.pop()
        yield node
        match node:
            case Sequence(nodes) | Alternation(nodes):
                rest.extend(reversed(nodes))
            case Repeat(body):
                rest.append(body)
            case _:
                pass


# Classes ------------------------------------------------------------------------------------------------------------

_LINE_ENDS = ranges_of("\n\r\u2028\u2029")
_CLASSES: Mapping[str, Chars] = {
    "d": Chars(((0x30, 0x39),), OTHER_DIGITS),
    "w": Chars(merge_ranges(((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))), BEYOND_ASCII),
    "s": Chars(ranges_of(" \t\n\r\f\v"), OTHER_SPACES),
}
# Dialects, and their flags, differ on which line ends a dot matches.
_DOT = Chars(complement(_LINE_ENDS), _LINE_ENDS)


def _negated(chars: Chars) -> Chars:
    """Return the negated class: the characters that no dialect includes, and in `more` the characters that some
    include."""
    return Chars(complement((*chars.ranges, *chars.more)), chars.more)


# Anchors --------------------------------------------------------------------------------------------------------------

_BEGIN, _END = "the anchor '^' inside a pattern", "the anchor '$' inside a pattern"


def _without_ends(tree: Node) -> Node:
    """Return the tree without the anchors at its two ends."""
    return _trimmed(_trimmed(tree, _BEGIN, 0), _END, -1)


def _trimmed(node: Node, anchor: str, at: int) -> Node:
    match node:
        case Special(what) if what == anchor:
            return EMPTY
        case Alternation(branches):
            return Alternation(tuple(_trimmed(branch, anchor, at) for branch in branches))
        case Sequence(parts):
            left = list(parts)
            while left:
                end = _trimmed(left.pop(at), anchor, at)
                if end != EMPTY:
                    left.insert(0 if at == 0 else len(left), end)
                    break
            return Sequence(tuple(left))
        case _:
            return node


# The parser -----------------------------------------------------------------------------------------------------------

_ESCAPES: Mapping[str, Chars | str] = {
    **_CLASSES,
    **{name.upper(): _negated(chars) for name, chars in _CLASSES.items()},
    **{name: Chars(ranges_of(char)) for name, char in zip("ntrfv", "\n\t\r\f\v", strict=True)},
    **{"A": _BEGIN, "Z": _END, "z": _END},
    **dict.fromkeys("bB", "a word boundary"),
    **dict.fromkeys("123456789k", "a back reference"),
    **dict.fromkeys("pP", "a Unicode property"),
}
_ANCHORS: Mapping[str, str] = {"^": _BEGIN, "$": _END}
# Some dialects read a brace without a first number as a count, others as text. Any other brace that does not begin a
# count is text in each dialect that accepts it.
_OPEN_COUNT = re.compile(r",\d*\}", re.ASCII)
_COUNT = re.compile(r"\{(\d+)(?:(,)(\d*))?\}", re.ASCII)
_HEX = re.compile(r"x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|[xu]\{([0-9A-Fa-f]{1,6})\}")
_MARKS: Mapping[str, tuple[int, int | None]] = {"?": (0, 1), "*": (0, None), "+": (1, None)}
_MAX_COUNT = 100_000
# The prefixes of groups, and the name of the construct that each prefix begins. `None` stands for a plain group.
_OPENINGS: tuple[tuple[re.Pattern[str], str | None], ...] = (
    (re.compile(r"\?:|\?P?<[A-Za-z_][A-Za-z0-9_]*>"), None),
    (re.compile(r"\?<?[=!]"), "a look-around"),
    (re.compile(r"\?>"), "an atomic group"),
    (re.compile(r"\?P=[^)]*"), "a back reference"),
    (re.compile(r"\?\([^)]*\)"), "a conditional"),
    (re.compile(r"\?#[^)]*"), "a comment"),
    (re.compile(r"\?[^():]*:?"), "inline flags"),
)
_SET_OPERATORS = ("&&", "--", "~~")


_Brackets = dict[tuple[bool, frozenset[Chars]], Chars]
"""A cache of merged brackets. Its key has the negation of a bracket and its distinct characters and classes. Merging
hundreds of ranges for each `[^\\Da]` of a long pattern would take longer than all the rest."""


@lru_cache(maxsize=1024)
def _literal(char: str) -> Chars:
    return Chars(ranges_of(char))


class _Parser:
    """A recursive descent over the pattern. `position` is the index of the next character."""

    def __init__(self, pattern: str, budget: Budget, brackets: _Brackets) -> None:
        self._pattern = pattern
        self._budget = budget
        self._brackets = brackets
        self.position = 0

    @property
    def at_end(self) -> bool:
        return self.position >= len(self._pattern)

    def _peek(self) -> str:
        return self._pattern[self.position : self.position + 1]

    def _take(self, reason: str) -> str:
        if self.at_end:
            raise MalformedPattern(reason, self.position)
        self.position += 1
        return self._pattern[self.position - 1]

    def _match(self, expression: re.Pattern[str]) -> re.Match[str] | None:
        """Return the match of the expression at the position, and move behind it; `None` if it does not match."""
        found = expression.match(self._pattern, self.position)
        if found is not None:
            self.position = found.end()
        return found

    def alternation(self, depth: int) -> Node:
        if depth > MAX_GROUPS:
            raise MalformedPattern("is nested too deeply", self.position)
        branches = [self._branch(depth)]
        while self._peek() == "|":
            self.position += 1
            branches.append(self._branch(depth))
        return branches[0] if len(branches) == 1 else Alternation(tuple(branches))

    def _branch(self, depth: int) -> Node:
        parts: list[Node] = []
        while self._peek() not in ("", "|", ")"):
            start = self.position
            parts.append(self._repeated(self._atom(depth), start))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _atom(self, depth: int) -> Node:
        start = self.position
        char = self._take("ends too early")
        match char:
            case "(":
                return self._group(depth, start)
            case "[":
                return self._bracketed()
            case "\\":
                return self._escape()
            case "^" | "$":
                return Special(_ANCHORS[char], start)
            case "{" if self._match(_OPEN_COUNT):
                return Special("a count without its first number", start)
            case "*" | "+" | "?":
                raise MalformedPattern(f"has {char!r} with nothing to repeat", start)
            case _:
                return _DOT if char == "." else _literal(char)

    def _repeated(self, atom: Node, start: int) -> Node:
        """Return the atom with the quantifier that follows it, if there is one."""
        counts = self._quantifier()
        if counts is None:
            return atom
        least, most = counts
        if most is not None and most < least:
            raise MalformedPattern("has a repetition whose bounds are the wrong way round", self.position)
        special: str | None = None
        behind = self._peek()
        self.position += behind in ("?", "+")  # laziness does not change which texts match from end to end
        if behind == "+":
            special = "a possessive repetition"
        elif self._quantifier() is not None:
            special = "a repetition of a repetition"
        elif max(least, most or 0) > _MAX_COUNT:
            special = "such a large count"
        elif isinstance(atom, Special):
            special = "a repeated anchor" if atom.what in (_BEGIN, _END) else atom.what
        return Repeat(atom, least, most) if special is None else Special(special, start)

    def _quantifier(self) -> tuple[int, int | None] | None:
        mark = self._peek()
        if mark in _MARKS:
            self.position += 1
            return _MARKS[mark]
        found = self._match(_COUNT) if mark == "{" else None
        if found is None:
            return None
        least = int(found[1])
        if found[2] is None:
            return least, least
        return least, int(found[3]) if found[3] else None

    def _group(self, depth: int, start: int) -> Node:
        special: str | None = None
        if self._peek() == "?":
            special = next(name for opening, name in _OPENINGS if self._match(opening))
        inner = self.alternation(depth + 1)
        if self._peek() != ")":
            raise MalformedPattern("has an unbalanced '('", start)
        self.position += 1
        return inner if special is None else Special(special, start)

    def _escape(self) -> Chars | Special:
        start = self.position - 1
        hexadecimal = self._match(_HEX)
        if hexadecimal is not None:
            point = int(next(digits for digits in hexadecimal.groups() if digits), 16)
            ranges = merge_ranges(((point, point),))
            return Chars(ranges) if ranges else Special("the number of no character", start)
        char = self._take("ends with a backslash")
        found = _ESCAPES.get(char)
        if found is None:
            found = f"the escape '\\{char}'" if char.isalnum() else _literal(char)
        return Special(found, start) if isinstance(found, str) else found

    def _bracketed(self) -> Chars | Special:
        negated = self._peek() == "^"
        self.position += negated
        members = [self._member()]
        while self._peek() != "]":
            members.append(self._member())
        self.position += 1
        # Remove duplicates by identity first: the classes are shared objects, and hashing a class reads all its ranges.
        distinct: dict[int, Chars] = {}
        for member in members:
            if isinstance(member, Special):
                return member
            distinct[id(member)] = member
        key = negated, frozenset(distinct.values())
        found = self._brackets.get(key)
        if found is None:
            found = self._brackets[key] = self._merged(*key)
        return found

    def _merged(self, negated: bool, chars: frozenset[Chars]) -> Chars:
        self._budget.count_ranges(sum([len(each.ranges) + len(each.more) for each in chars]))
        ranges = merge_ranges([pair for each in chars for pair in each.ranges])
        more = merge_ranges([pair for each in chars for pair in each.more])
        return _negated(Chars(ranges, more)) if negated else Chars(ranges, more)

    def _member(self) -> Chars | Special:
        """Parse a character, an escape or a range."""
        start = self.position
        if self._pattern[start : start + 2] in _SET_OPERATORS:
            self.position += 1
            return Special("a set operation in a class", start)
        first = self._single()
        following = self._pattern[self.position : self.position + 2]
        if following[:1] != "-" or following in ("-", "-]", "--"):
            return first
        self.position += 1
        last = self._single()
        if isinstance(first, Special) or isinstance(last, Special):
            return first if isinstance(first, Special) else last
        if first.more or last.more:
            return Special("a class as an end of a range", start)
        low, high = first.ranges[0][0], last.ranges[0][0]
        if high < low:
            raise MalformedPattern("has a range whose ends are the wrong way round", start)
        return Chars(merge_ranges(((low, high),)))

    def _single(self) -> Chars | Special:
        start = self.position
        char = self._take("has a class without an end")
        if char == "[":
            return Special("an unescaped '[' in a class", start)
        if char != "\\":
            return _literal(char)
        escaped = self._escape()
        return Special("such an escape in a class", start) if isinstance(escaped, Special) else escaped
