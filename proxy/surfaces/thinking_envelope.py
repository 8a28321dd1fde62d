"""An opaque envelope for the reasoning of any vendor, for APIs that have one opaque text beside the reasoning.

Clients send this text back unread: as the `signature` of each thinking block of the Messages API, or as the
`encrypted_content` of each reasoning item of the Responses API. The envelope carries the data that another vendor needs
in the next turn, in the form of `Extras.reasoning_details`. A vendor's own signatures are base64 and never have the
beginning of an envelope.

An envelope is neither secret nor signed: a client could also send `reasoning_details` on another surface.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from collections.abc import Sequence
from typing import Final

from providers.json_types import JsonObject
from proxy.surfaces.request.parse_json import MAX_ELEMENTS, InvalidJson, decode
from proxy.surfaces.response.write_sse import utf8_json

PREFIX: Final = "dragoman.thinking.1:"
"""The beginning of an envelope of this version. Envelopes of other versions are not opened."""

MAX_ENVELOPE_CHARS: Final = 8 * 2**20
"""The most characters of an envelope; a longer one is not opened."""

_MARKS: Final = (b"{", b"[", b",")


def seal(details: Sequence[JsonObject]) -> str:
    """Return an envelope with these details."""
    return PREFIX + urlsafe_b64encode(utf8_json({"details": list(details)})).decode()


def is_sealed(text: str) -> bool:
    """Return whether a text is an envelope of this gateway, of any version and with any content."""
    return text.startswith("dragoman.thinking.")


class EnvelopeOpener:
    """Opens the envelopes of one request. The size of their JSON is bounded for all of them together, like the size of
    the body."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = MAX_ELEMENTS

    def open(self, text: str) -> list[JsonObject] | None:
        """Return the details of an envelope; `None` for any other text, for a damaged envelope, and beyond the
        bound."""
        if not text.startswith(PREFIX) or len(text) > MAX_ENVELOPE_CHARS:
            return None
        try:
            payload = urlsafe_b64decode(text[len(PREFIX) :])
        except (Error, ValueError):
            return None
        # Marks inside strings count too: reasoning has few of them for its length.
        self._left -= sum([payload.count(mark) for mark in _MARKS])
        if self._left < 0:
            return None
        try:
            details = decode(payload).get("details")
        except InvalidJson:
            return None
        if not isinstance(details, list) or not details:
            return None
        found = [detail for detail in details if isinstance(detail, dict)]
        return found if len(found) == len(details) else None


def open_sealed(text: str) -> list[JsonObject] | None:
    """Return the details of a single envelope, as `EnvelopeOpener.open` does."""
    return EnvelopeOpener().open(text)
