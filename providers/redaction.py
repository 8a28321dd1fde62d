"""Masks known secrets in a vendor's text, in whatever form they are written.

A secret of 8 or more characters is found whole, as is any run of its characters of `piece_length`, in any letter case:
unchanged, with escapes of URLs, JSON, Python or HTML (also one within another), in base64, in hexadecimal. One of 4 to
7 characters is found as a word of its own; a shorter one could be any word. This is against echoes: a vendor that means
to reveal a secret can encode it otherwise.
"""

import base64
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

MASK: Final = "********"

SHORTEST: Final = 4
"""The length from which a secret is looked for as a whole word."""

RECOGNISABLE: Final = 8
"""The length from which a secret is looked for anywhere, and at a cut."""

PIECE: Final = 12
"""Characters of a longer secret that are masked like the whole: the rest is too long to guess, but such a piece
identifies the secret in the vendor's logs, and two give it away."""

MAX_TEXT: Final = 4096
"""The most characters that are searched; what follows is cut off."""

MAX_COMPARISONS: Final = 10_000
"""The most characters that are compared one by one; only a text that is made for it takes more."""

_BLOCK: Final = PIECE // 2
"""Characters of the blocks into which a text is cut that may hold a PIECE."""

_ENCODED: Final = 512
"""Characters of a long secret whose base64 and hexadecimal forms are looked for."""

_LOWER: Final = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_ESCAPE: Final = re.compile(
    r"%([0-9A-Fa-f]{2})|\\u([0-9A-Fa-f]{4})|\\x([0-9A-Fa-f]{2})|&#[xX]([0-9A-Fa-f]{1,4});"
    r"|&#([0-9]{1,5});|&(amp|lt|gt|quot|apos);|\\([^0-9A-Za-z])"
)
_NAMED: Final = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}

Span = tuple[int, int]


def redact(text: str, secrets: Iterable[str]) -> str:
    """Return the text with a mask in place of each secret. Takes time in proportion to the lengths of both."""
    if len(text) > MAX_TEXT:
        text = f"{text[: MAX_TEXT - 1]}…"
    wanted = [secret for secret in secrets if len(secret) >= SHORTEST]
    if not wanted or len(text) < SHORTEST:
        return text
    spans: list[Span] = []
    forms = [_forms(secret) for secret in wanted]
    try:
        for letters, places in _views(_lower(text)):
            view = _View(letters)
            spans += [(places[start], places[end]) for each in forms for start, end in view.found(each)]
    except _TooAlike:
        # No real message is: it goes whole.
        return MASK
    return _masked(text, spans) if spans else text


def piece_length(secret: str) -> int:
    """Return the length of a run of a secret's characters that is masked."""
    return max(RECOGNISABLE, min(PIECE, len(secret) * 3 // 4))


def holds_piece(text: str, secret: str) -> bool:
    """Return whether a text in lower case has a whole secret, or of a longer secret about a PIECE."""
    if not text or len(secret) < SHORTEST:
        return False
    whole = _lower(secret)
    if len(whole) < PIECE:
        return whole in text
    # Every run of PIECE characters that both have holds one whole block of those that the text is cut into.
    return any(text[at : at + _BLOCK] in whole for at in range(0, len(text) - _BLOCK + 1, _BLOCK))


def _lower(text: str) -> str:
    """Return the text in lower case, with each character in its place."""
    return text.lower() if text.isascii() else text.translate(_LOWER)


def _views(text: str) -> Iterator[tuple[str, Sequence[int]]]:
    """Yield the text as it is, then with its escapes undone once and twice; with each the positions of its characters
    in the first, and of its end."""
    places: Sequence[int] = range(len(text) + 1)
    yield text, places
    for _ in range(2):
        plain, places = _unescaped(text, places)
        if len(plain) == len(text):
            return
        text = _lower(plain)
        yield text, places


def _unescaped(text: str, places: Sequence[int]) -> tuple[str, Sequence[int]]:
    characters: list[str] = []
    kept: list[int] = []
    done = 0
    for escape in _ESCAPE.finditer(text):
        start, end = escape.span()
        characters += [text[done:start], _meaning(escape)]
        kept += [*places[done:start], places[start]]
        done = end
    characters.append(text[done:])
    kept += places[done:]
    return "".join(characters), kept


def _meaning(escape: re.Match[str]) -> str:
    percent, unicode, byte, html, decimal, name, literal = escape.groups()
    if literal is not None:
        return str(literal)
    if name is not None:
        return _NAMED[name]
    number = int(decimal) if decimal is not None else int(percent or unicode or byte or html, 16)
    return chr(number)


def _forms(secret: str) -> Sequence[tuple[str, int]]:
    """Yield the lower-case forms in which a secret may be written, itself first, and the length of a piece of each."""
    if len(secret) < RECOGNISABLE:
        return ((_lower(secret), len(secret)),)
    length = piece_length(secret)
    plain = secret.encode()[:_ENCODED]
    forms = {_lower(secret): length, plain.hex(): 2 * length}
    for shift in range(3):
        # Only whole groups of three bytes look the same whatever stands around them.
        whole = plain[shift : len(plain) - (len(plain) - shift) % 3]
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            forms.setdefault(encode(whole).decode().lower(), length * 4 // 3)
    return tuple(forms.items())


class _View:
    """A text in lower case that is searched for forms of secrets.

    Every run of `piece` characters that it has in common with a form holds one whole block of half that length, of
    those the form is cut into: only these are looked for, and the characters around them are compared.
    """

    __slots__ = ("_blocks", "_comparisons", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._blocks: dict[int, frozenset[str]] = {}
        self._comparisons = MAX_COMPARISONS

    def found(self, forms: Sequence[tuple[str, int]]) -> Iterator[Span]:
        """Yield the ranges of a secret, or of pieces of it."""
        secret, length = forms[0]
        if len(secret) < RECOGNISABLE:
            word = rf"(?<![0-9a-z]){re.escape(secret)}(?![0-9a-z])"
            yield from (match.span() for match in re.finditer(word, self._text))
            return
        for form, size in forms:
            yield from self._runs(form, size)
        yield from self._cut(secret, length)

    def _runs(self, form: str, size: int) -> Iterator[Span]:
        block = (size + 1) // 2
        present = self._blocks.get(block)
        if present is None:
            starts = range(len(self._text) - block + 1)
            present = self._blocks[block] = frozenset([self._text[start : start + block] for start in starts])
        # Where the last run ends, by how far the form had to be moved for it.
        ends: dict[int, int] = {}
        for at in range(0, len(form) - block + 1, block):
            if form[at : at + block] in present:
                for start in self._places(form[at : at + block]):
                    if start >= ends.get(start - at, 0):
                        left, right = self._extended(form, start, at, block)
                        ends[start - at] = right
                        if right - left >= size:
                            yield left, right

    def _places(self, block: str) -> Iterator[int]:
        start = self._text.find(block)
        while start >= 0:
            yield start
            self._spend(1)
            start = self._text.find(block, start + 1)

    def _extended(self, form: str, start: int, at: int, block: int) -> Span:
        """Return the longest common run around a block that is at `start` in the text and at `at` in the form."""
        text, left, right = self._text, 0, block
        while start - left > 0 and at - left > 0 and text[start - left - 1] == form[at - left - 1]:
            left += 1
        while start + right < len(text) and at + right < len(form) and text[start + right] == form[at + right]:
            right += 1
        self._spend(left + right)
        return start - left, start + right

    def _spend(self, comparisons: int) -> None:
        self._comparisons -= comparisons
        if self._comparisons < 0:
            raise _TooAlike

    def _cut(self, secret: str, length: int) -> Iterator[Span]:
        """Return the beginning of a secret before the ellipsis of a text that was cut off."""
        text = self._text
        for size in range(length - 1, RECOGNISABLE - 1, -1) if text.endswith("…") else ():
            if text.endswith(f"{secret[:size]}…"):
                yield len(text) - 1 - size, len(text) - 1
                return


class _TooAlike(Exception):
    """Text and secret repeat the same few characters."""


def _masked(text: str, spans: list[Span]) -> str:
    pieces: list[str] = []
    done = 0
    for start, end in sorted(spans):
        if start > done or not pieces:
            pieces += [text[done:start], MASK]
        done = max(done, end)
    return "".join([*pieces, text[done:]])
