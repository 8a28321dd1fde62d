"""Generator of a text that matches a regular expression of the common subset."""

import string
from collections.abc import Iterable

from providers.constraints.regex_chars import Ranges
from providers.constraints.regex_parse import (
    Alternation,
    Chars,
    MalformedPattern,
    Node,
    Repeat,
    Sequence,
    Special,
    find_unsupported,
    parse,
)
from providers.mock.errors import Unsupported

MAX_LENGTH = 4096
"""The maximum length of a sample in characters, because nested repetition multiplies it."""

_PREFERRED = string.ascii_lowercase + string.ascii_uppercase + string.digits + string.punctuation + " "


def sample(pattern: str) -> str:
    """Return a text with the fewest repetitions and the first branch of each alternation. Raises Unsupported."""
    try:
        tree = parse(pattern)
    except MalformedPattern as error:
        raise Unsupported(f"the pattern {error}") from None
    problem = find_unsupported(tree)
    if problem is not None:
        raise Unsupported(f"the pattern {problem}")
    return _text(tree)


def _text(node: Node) -> str:
    match node:
        case Chars(ranges):
            return _character(ranges)
        case Sequence(parts):
            return _joined(map(_text, parts))
        case Alternation(branches):
            return _text(branches[0])
        case Repeat(body, minimum):
            return _repeated(_text(body), minimum)
        case Special():
            raise TypeError("`find_unsupported` must be called before a pattern is sampled")


def _repeated(text: str, times: int) -> str:
    if len(text) * times > MAX_LENGTH:
        raise Unsupported("the pattern needs too long a text")
    return text * times


def _joined(texts: Iterable[str]) -> str:
    text = ""
    for part in texts:
        text += part
        if len(text) > MAX_LENGTH:
            raise Unsupported("the pattern needs too long a text")
    return text


def _character(ranges: Ranges) -> str:
    for char in _PREFERRED:
        if any(low <= ord(char) <= high for low, high in ranges):
            return char
    if not ranges:
        raise Unsupported("the pattern has a class without a character")
    return chr(ranges[0][0])
