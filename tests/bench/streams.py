"""Streams with any number of text chunks, made from a dialect's fixture.

Every stream has the same text, with one chunk in each event, as vendors send it.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import orjson

from providers.dialect import UpstreamRequest, encode_native
from providers.unified_request import UnifiedRequest
from tests.providers.dialects.kit import chat_request, fixture, sent_for, target_of, text_request

FAMILY_TIMES = 1.2
WRAPPED_TIMES = 1.5
"""The limit of a chunk's cost, as a multiple of a chunk of the family that is read alone: for a native dialect, and for
a dialect whose text is in Amazon's frames, in JSON in base64, in the family's own form behind another field, or
preceded by all text so far."""

Writer = Callable[[Sequence[str]], list[bytes]]

_WORDS = ("The", " sky", " over", " Oslo", " is", " blue", ":", " 3", " °C", ",", " clear", ".", "\n")


def words(count: int) -> list[str]:
    """Return parts of a text, about as long as tokens are."""
    return [_WORDS[place % len(_WORDS)] for place in range(count)]


@dataclass(frozen=True, slots=True)
class Form:
    """A fixture to be lengthened: its first and last events stay. The event after the first is repeated with each chunk
    in the position of `text`."""

    path: str
    first: int
    last: int
    text: str

    def __call__(self, pieces: Sequence[str]) -> list[bytes]:
        whole = fixture(self.path)
        events = _EVENT.findall(whole) if self.path.endswith(".sse") else whole.splitlines(keepends=True)
        said, written = events[self.first], _json(self.text)
        assert said.count(written) == 1, f"{self.path}: not once {self.text!r} in event {self.first}"
        repeated = [said.replace(written, _json(piece)) for piece in pieces]
        return [*events[: self.first], *repeated, *events[len(events) - self.last :]]


_EVENT = re.compile(rb".+?(?:\r\n\r\n|\n\n)", re.DOTALL)


def _json(text: str) -> bytes:
    return orjson.dumps(text)


@dataclass(frozen=True, slots=True)
class Framed:
    """A stream in which each event is put into a frame."""

    inner: Writer
    put: Callable[[bytes], bytes]

    def __call__(self, pieces: Sequence[str]) -> list[bytes]:
        return [self.put(event) for event in self.inner(pieces)]


@dataclass(frozen=True, slots=True)
class Stream:
    """One kind of stream: its call, its writer, the limit of a chunk's cost as a multiple of the family's, and the
    numbers of chunks to measure. A request with a body in the vendor's own API is sent unchanged."""

    profile: str
    asked: UnifiedRequest
    write: Writer
    limit: float = FAMILY_TIMES
    counts: tuple[int, ...] = (200,)
    model: str = "tiny"

    def sent(self) -> UpstreamRequest:
        asked, target = replace(self.asked, stream=True), target_of(self.profile, self.model)
        native = None if asked.native is None else encode_native(asked, target)
        return native or sent_for(asked, target)


LONG_CHAT = chat_request(max_tokens=1000)
LONG_TEXT = text_request("The sky", max_tokens=1000)
