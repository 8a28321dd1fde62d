"""Masks known secrets in a vendor's text, in all common encodings.

A secret of 8 or more characters is found as a whole, and so is any run of `part_length` of its characters. Letter case
is ignored. The secret may be unchanged, escaped for URLs, JSON, Python or HTML (also twice), in base64, or in
hexadecimal. A secret of 4 to 7 characters is found as a whole word. A shorter secret could be any word and is not
masked. This protects against echoes: a vendor that intends to reveal a secret can encode it otherwise.
"""

import base64
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

MASK: Final = "********"

LEAST_WORD_CHARACTERS: Final = 4
"""The least characters of a secret that is searched for as a whole word."""

LEAST_PART_CHARACTERS: Final = 8
"""The least characters of a secret that is searched for anywhere, and at a cut."""

PART_CHARACTERS: Final = 12
"""The number of characters of a part of a longer secret that is masked like the whole secret. The rest of the secret is
too long to guess, but such a part identifies the secret in the vendor's logs, and two parts reveal it."""

MAX_TEXT: Final = 4096
"""The most characters that are searched. The rest of the text is cut off."""

MAX_COMPARISONS: Final = 10_000
"""The most characters that are compared one by one. Only a text that is constructed for this purpose needs more."""

_BLOCK_CHARACTERS: Final = PART_CHARACTERS // 2
"""The number of characters of each block into which a text is split to search for a part of a secret."""

_MOST_ENCODED_CHARACTERS: Final = 512
"""The most bytes of a secret whose base64 and hexadecimal forms are searched for. Of a longer secret, the forms of its
first bytes are searched for."""

_LOWER: Final = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_ESCAPE: Final = re.compile(
    r"%([0-9A-Fa-f]{2})|\\u([0-9A-Fa-f]{4})|\\x([0-9A-Fa-f]{2})|&#[xX]([0-9A-Fa-f]{1,4});"
    r"|&#([0-9]{1,5});|&(amp|lt|gt|quot|apos);|\\([^0-9A-Za-z])"
)
_NAMED: Final = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}

Span = tuple[int, int]


def redact(text: str, secrets: Iterable[str]) -> str:
    """Return the text with each secret masked. The time is proportional to the lengths of the text and the secrets."""
    if len(text) > MAX_TEXT:
        text = f"{text[: MAX_TEXT - 1]}…"
    wanted = [secret for secret in secrets if len(secret) >= LEAST_WORD_CHARACTERS]
    if not wanted or len(text) < LEAST_WORD_CHARACTERS:
        return text
    spans: list[Span] = []
    forms = [_forms(secret) for secret in wanted]
    try:
        for letters, positions in _views(_lower(text)):
            view = _View(letters)
            spans += [(positions[start], positions[end]) for each in forms for start, end in view.found(each)]
    except _TooManyComparisons:
        # No real message repeats a secret's characters so often, so the whole text is masked.
        return MASK
    return _masked(text, spans) if spans else text


def part_length(secret: str) -> int:
    """Return the least length of a run of a secret's characters that is masked."""
    return max(LEAST_PART_CHARACTERS, min(PART_CHARACTERS, len(secret) * 3 // 4))


def holds_part(text: str, secret: str) -> bool:
    """Return whether a text in lower case holds a whole secret or, of a longer secret, a part of about
    PART_CHARACTERS."""
    if not text or len(secret) < LEAST_WORD_CHARACTERS:
        return False
    whole = _lower(secret)
    if len(whole) < PART_CHARACTERS:
        return whole in text
    # Every run of PART_CHARACTERS characters that both have in common holds at least one whole block of the text.
    return any(
        text[at : at + _BLOCK_CHARACTERS] in whole
        for at in range(0, len(text) - _BLOCK_CHARACTERS + 1, _BLOCK_CHARACTERS)
    )


def _lower(text: str) -> str:
    """Return the text in lower case, with each character at its position."""
    return text.lower() if text.isascii() else text.translate(_LOWER)


def _views(text: str) -> Iterator[tuple[str, Sequence[int]]]:
    """Yield the text unchanged, then with its escapes decoded once and twice. With each come the positions of its
    characters, and of its end, in the original text."""
    positions: Sequence[int] = range(len(text) + 1)
    yield text, positions
    for _ in range(2):
        plain, positions = _unescaped(text, positions)
        if len(plain) == len(text):
            return
        text = _lower(plain)
        yield text, positions


def _unescaped(text: str, positions: Sequence[int]) -> tuple[str, Sequence[int]]:
    characters: list[str] = []
    original_positions: list[int] = []
    done = 0
    for escape in _ESCAPE.finditer(text):
        start, end = escape.span()
        characters += [text[done:start], _meaning(escape)]
        original_positions += [*positions[done:start], positions[start]]
        done = end
    characters.append(text[done:])
    original_positions += positions[done:]
    return "".join(characters), original_positions


def _meaning(escape: re.Match[str]) -> str:
    percent, unicode, byte, html, decimal, name, literal = escape.groups()
    if literal is not None:
        return str(literal)
    if name is not None:
        return _NAMED[name]
    number = int(decimal) if decimal is not None else int(percent or unicode or byte or html, 16)
    return chr(number)


def _forms(secret: str) -> Sequence[tuple[str, int]]:
    """Return the lower-case forms in which a secret may be written, the secret itself first, each with the length of a
    part that is masked."""
    if len(secret) < LEAST_PART_CHARACTERS:
        return ((_lower(secret), len(secret)),)
    length = part_length(secret)
    plain = secret.encode()[:_MOST_ENCODED_CHARACTERS]
    forms = {_lower(secret): length, plain.hex(): 2 * length}
    for shift in range(3):
        # The encoding of a whole group of three bytes does not depend on the bytes around it.
        whole = plain[shift : len(plain) - (len(plain) - shift) % 3]
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            forms.setdefault(encode(whole).decode().lower(), length * 4 // 3)
    return tuple(forms.items())


class _View:
    """A text in lower case that is searched for forms of secrets.

    A form is split into blocks of half the length of a part. Every run of this length that the text and the form have
    in common holds at least one whole block. Only blocks are searched for, and the characters around them are compared.
    """

    __slots__ = ("_blocks", "_comparisons", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._blocks: dict[int, frozenset[str]] = {}
        self._comparisons = MAX_COMPARISONS

    def found(self, forms: Sequence[tuple[str, int]]) -> Iterator[Span]:
        """Yield the ranges of a secret, or of parts of it."""
        secret, length = forms[0]
        if len(secret) < LEAST_PART_CHARACTERS:
            word = rf"(?<![0-9a-z]){re.escape(secret)}(?![0-9a-z])"
            yield from (match.span() for match in re.finditer(word, self._text))
            return
        for form, size in forms:
            yield from self._runs(form, size)
        yield from self._cut_beginning(secret, length)

    def _runs(self, form: str, size: int) -> Iterator[Span]:
        block = (size + 1) // 2
        present = self._blocks.get(block)
        if present is None:
            starts = range(len(self._text) - block + 1)
            present = self._blocks[block] = frozenset([self._text[start : start + block] for start in starts])
        # The end of the last run, by the offset between text and form.
        ends: dict[int, int] = {}
        for at in range(0, len(form) - block + 1, block):
            if form[at : at + block] in present:
                for start in self._positions(form[at : at + block]):
                    if start >= ends.get(start - at, 0):
                        left, right = self._extended(form, start, at, block)
                        ends[start - at] = right
                        if right - left >= size:
                            yield left, right

    def _positions(self, block: str) -> Iterator[int]:
        start = self._text.find(block)
        while start >= 0:
            yield start
            self._count_comparisons(1)
            start = self._text.find(block, start + 1)

    def _extended(self, form: str, start: int, at: int, block: int) -> Span:
        """Return the longest common run around a block that is at `start` in the text and at `at` in the form."""
        text, left, right = self._text, 0, block
        while start - left > 0 and at - left > 0 and text[start - left - 1] == form[at - left - 1]:
            left += 1
        while start + right < len(text) and at + right < len(form) and text[start + right] == form[at + right]:
            right += 1
        self._count_comparisons(left + right)
        return start - left, start + right

    def _count_comparisons(self, comparisons: int) -> None:
        self._comparisons -= comparisons
        if self._comparisons < 0:
            raise _TooManyComparisons

    def _cut_beginning(self, secret: str, length: int) -> Iterator[Span]:
        """Yield the beginning of a secret before the ellipsis of a text that was cut off."""
        text = self._text
        for size in range(length - 1, LEAST_PART_CHARACTERS - 1, -1) if text.endswith("…") else ():
            if text.endswith(f"{secret[:size]}…"):
                yield len(text) - 1 - size, len(text) - 1
                return


class _TooManyComparisons(Exception):
    """Text and secret repeat the same few characters."""


def _masked(text: str, spans: list[Span]) -> str:
    parts: list[str] = []
    done = 0
    for start, end in sorted(spans):
        if start > done or not parts:
            parts += [text[done:start], MASK]
        done = max(done, end)
    return "".join([*parts, text[done:]])
