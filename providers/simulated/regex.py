"""A text that matches a regular expression of the common subset. Never matches anything itself.

The subset: literals, escapes, character classes, groups, alternation, counted repetition, and anchors at the two ends;
what regular expression dialects disagree about (look-around, back references, word boundaries) is refused.
"""

import re
import string

from providers.simulated.errors import Unsupported

MAX_LENGTH = 4096
"""Characters of a sample; nested repetition multiplies."""
MAX_DEPTH = 32

_COUNTS = re.compile(r"\d{1,6}(?:,(?:\d{1,6})?)?", re.ASCII)
_PRINTABLE = string.ascii_lowercase + string.ascii_uppercase + string.digits + string.punctuation + " "
_WORD = string.ascii_lowercase + string.ascii_uppercase + string.digits + "_"
_CLASSES = {"d": string.digits, "w": _WORD, "s": " \t"}
_CLASSES |= {
    name.upper(): "".join(char for char in _PRINTABLE if char not in members) for name, members in _CLASSES.items()
}
_REPEATS = ("?", "*", "+", "{")
_CONTROL = {"n": "\n", "t": "\t", "r": "\r"}


def sample(pattern: str) -> str:
    """The text with the fewest repetitions, and the first of each choice. Raises Unsupported."""
    parser = _Parser(pattern)
    text = parser.alternation(0)
    if parser.position < len(pattern):
        raise parser.refuse("has an unbalanced ')'")
    return text


class _Parser:
    """Recursive descent that yields the sample of each part instead of a tree."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self.position = 0

    def refuse(self, reason: str) -> Unsupported:
        return Unsupported(f"the pattern {reason} at position {self.position}")

    def _peek(self) -> str:
        return self._pattern[self.position : self.position + 1]

    def _take(self) -> str:
        taken = self._peek()
        if not taken:
            raise self.refuse("ends too early")
        self.position += 1
        return taken

    def alternation(self, depth: int) -> str:
        """Every branch is read, so that each is checked; the first is the sample."""
        if depth > MAX_DEPTH:
            raise self.refuse("is nested too deeply")
        first = self._branch(depth)
        while self._peek() == "|":
            self.position += 1
            self._branch(depth)
        return first

    def _branch(self, depth: int) -> str:
        text = ""
        while self._peek() not in ("", "|", ")"):
            atom = self._atom(depth)
            count = self._repetition()
            if len(text) + len(atom) * count > MAX_LENGTH:
                raise self.refuse("needs too long a text")
            text += atom * count
        return text

    def _atom(self, depth: int) -> str:
        char = self._take()
        match char:
            case "(":
                return self._group(depth)
            case "[":
                return self._character_class()
            case "\\":
                return self._escape()[:1]
            case "^" | "$" if self.position == (1 if char == "^" else len(self._pattern)):
                if self._peek() in _REPEATS:
                    raise self.refuse("repeats an anchor")
                return ""
            case "^" | "$" | "*" | "+" | "?" | "{":
                raise self.refuse(f"has {char!r} where it is not supported")
            case _:
                return "a" if char == "." else char

    def _group(self, depth: int) -> str:
        if self._peek() == "?":
            self.position += 1
            if self._take() != ":":
                raise self.refuse("has a group of an unsupported kind")
        text = self.alternation(depth + 1)
        if self._take() != ")":
            raise self.refuse("has an unbalanced '('")
        return text

    def _escape(self) -> str:
        """The characters an escape stands for."""
        char = self._take()
        if char in _CLASSES:
            return _CLASSES[char]
        if char in _CONTROL:
            return _CONTROL[char]
        if char.isalnum():
            raise self.refuse(f"has the unsupported escape '\\{char}'")
        return char

    def _character_class(self) -> str:
        negated = self._peek() == "^"
        self.position += negated
        members = self._member()
        while self._peek() != "]":
            members += self._member()
        self.position += 1
        if not negated:
            return members[0]
        for char in _PRINTABLE:
            if char not in members:
                return char
        raise self.refuse("has a class that excludes every printable character")

    def _member(self) -> str:
        first = self._single()
        following = self._pattern[self.position : self.position + 2]
        if following[:1] != "-" or following in ("-", "-]"):
            return first
        self.position += 1
        last = self._single()
        if len(first) > 1 or len(last) > 1 or last < first:
            raise self.refuse("has a bad range in a class")
        # Only the printable part of a wide range matters, to know what a negated class leaves.
        return first + "".join(char for char in _PRINTABLE if first < char <= last)

    def _single(self) -> str:
        char = self._take()
        if char == "[":
            raise self.refuse("has an unescaped '[' in a class")
        return self._escape() if char == "\\" else char

    def _repetition(self) -> int:
        """How often the atom before is repeated at least."""
        mark = self._peek()
        if mark not in _REPEATS:
            return 1
        self.position += 1
        count = {"?": 0, "*": 0, "+": 1}.get(mark)
        if count is None:
            count = self._counted()
        if self._peek() == "?":
            self.position += 1
        if self._peek() in _REPEATS:
            raise self.refuse("repeats a repetition")
        return count

    def _counted(self) -> int:
        end = self._pattern.find("}", self.position)
        least, comma, most = self._pattern[self.position : max(end, self.position)].partition(",")
        if not _COUNTS.fullmatch(least + comma + most):
            raise self.refuse("has a repetition of an unsupported form")
        if comma and most and int(most) < int(least):
            raise self.refuse("has a repetition whose bounds are the wrong way round")
        self.position = end + 1
        return int(least)
