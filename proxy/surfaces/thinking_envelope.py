"""An opaque envelope for the thinking of any vendor, for APIs that have one opaque text beside a thought.

Clients of the Messages API send each thinking block back with its `signature`, those of the Responses API each
reasoning item with its `encrypted_content`, both unread. What another vendor needs back in the next turn travels there,
in the form of `Extras.reasoning_details`. A vendor's own signatures are base64 and never begin as an envelope does.

An envelope is not secret and not signed: a client could as well send `reasoning_details` on another surface.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from collections.abc import Sequence
from typing import Final

from providers.json_types import JsonObject
from proxy.surfaces.request.parse_json import MAX_ELEMENTS, InvalidJson, decode
from proxy.surfaces.response.write_sse import utf8_json

PREFIX: Final = "dragoman.thinking.1:"
"""How an envelope of this version begins; another version is foreign and is not opened."""

MAX_SEALED: Final = 8 * 2**20
"""The most characters of an envelope; more is not opened."""

_MARKS: Final = (b"{", b"[", b",")


def seal(details: Sequence[JsonObject]) -> str:
    """Return the envelope with these details."""
    return PREFIX + urlsafe_b64encode(utf8_json({"details": list(details)})).decode()


def is_sealed(text: str) -> bool:
    """Return whether a text is an envelope of ours, of any version, whatever it holds."""
    return text.startswith("dragoman.thinking.")


class EnvelopeOpener:
    """Opens the envelopes of one request, whose JSON is bounded together as that of its body is."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = MAX_ELEMENTS

    def open(self, text: str) -> list[JsonObject] | None:
        """Return the details of an envelope; None for any other text, a spoilt envelope, and beyond the bound."""
        if not text.startswith(PREFIX) or len(text) > MAX_SEALED:
            return None
        try:
            held = urlsafe_b64decode(text[len(PREFIX) :])
        except (Error, ValueError):
            return None
        # Marks inside strings count too: what is thought has few of them for its length.
        self._left -= sum([held.count(mark) for mark in _MARKS])
        if self._left < 0:
            return None
        try:
            details = decode(held).get("details")
        except InvalidJson:
            return None
        if not isinstance(details, list) or not details:
            return None
        found = [detail for detail in details if isinstance(detail, dict)]
        return found if len(found) == len(details) else None


def open_sealed(text: str) -> list[JsonObject] | None:
    """Return the details of a single envelope, as `EnvelopeOpener.open` does."""
    return EnvelopeOpener().open(text)
