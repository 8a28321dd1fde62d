"""The mock's language: its tokens, its sentences, and numbers that depend only on a key."""

import hashlib
import re
from collections.abc import Callable, Iterator

_TOKEN = re.compile(r"\s*+(?:\w{1,12}|[^\w\s])|\s+")

_SUBJECTS = (
    "The interpreter",
    "A patient envoy",
    "The old caravan",
    "The harbour clerk",
    "A young scribe",
    "The last courier",
    "Every merchant",
    "The court poet",
    "A careful guide",
    "The lighthouse keeper",
    "One of the translators",
    "The keeper of the seals",
)
_VERBS = (
    "carries",
    "reads",
    "studies",
    "copies",
    "guards",
    "describes",
    "remembers",
    "translates",
    "delivers",
    "answers",
    "explains",
    "compares",
)
_OBJECTS = (
    "the sealed letter",
    "a map of the coast",
    "three short messages",
    "the names of the ships",
    "an old treaty",
    "the morning news",
    "a list of questions",
    "the words of both sides",
    "a song from the north",
    "the price of salt",
    "every line of the report",
    "what was said at noon",
)
_ENDINGS = (
    "before the gates open",
    "across the river",
    "beside the market",
    "in two languages",
    "without losing a word",
    "by the light of a lamp",
    "on the way to the harbour",
    "as if it were new",
    "for anyone who asks",
    "while the tide is low",
    "between two courts",
    "and goes home early",
)
_WORDS = tuple(
    sorted({word for phrases in (_SUBJECTS, _VERBS, _OBJECTS, _ENDINGS) for p in phrases for word in p.split()})
)


class Draw:
    """An endless sequence of numbers, which is the same for the same key on every machine and in every run."""

    __slots__ = ("_state",)

    def __init__(self, *key: str | int) -> None:
        self._state = int.from_bytes(hashlib.blake2b(repr(key).encode(), digest_size=8).digest())

    @classmethod
    def each(cls, *key: str | int) -> "Callable[[int], Draw]":
        """Return a function that makes the sequence for this key with one more number at its end. The key, which may be
        long, is hashed once."""
        start = hashlib.blake2b(repr(key).removesuffix(")").removesuffix(",").encode() + b", ", digest_size=8)

        def of(last: int) -> Draw:
            hasher = start.copy()
            hasher.update(f"{last})".encode())
            draw = cls.__new__(cls)
            draw._state = int.from_bytes(hasher.digest())
            return draw

        return of

    def below(self, limit: int) -> int:
        """Return the next number, from 0 to `limit` - 1."""
        # Knuth's MMIX constants. The upper half is used because the low bits of such a generator repeat early.
        self._state = (self._state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self._state >> 32) % limit


def tokenize(text: str) -> list[str]:
    """Return the tokens of a text: up to 12 letters or digits, or one punctuation mark, each with the white space
    before it. The joined tokens are `text`."""
    return _TOKEN.findall(text)


def sentences(draw: Draw) -> Iterator[str]:
    """Yield an endless sequence of English-looking sentences, without white space around them."""
    while True:
        yield " ".join([phrases[draw.below(len(phrases))] for phrases in (_SUBJECTS, _VERBS, _OBJECTS, _ENDINGS)]) + "."


def word(number: int) -> str:
    """Return the text of a token id. Ids wrap around a list of words."""
    return " " + _WORDS[number % len(_WORDS)]


def alternatives(start: int, token: str, count: int) -> list[str]:
    """Return `count` different tokens other than `token`. `count` must be far below the number of words."""
    others = [other for number in range(count + 1) if (other := word(start + number)) != token]
    return others[:count]
