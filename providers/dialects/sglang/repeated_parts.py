"""Leaves out of SGLang's events the text and the token ids that the event before has had.

An event has the whole text so far and the ids of all its tokens, of which only their number is read: parsed each time,
a stream of n tokens would cost the square of n. The text comes first, the ids are the member after it.

Source: `sglang` 0.5.23 `srt/managers/tokenizer_manager.py`, November 2026.
"""

from providers.dialects.shared.decode_stream import event_object
from providers.dialects.shared.read_json import parse_json
from providers.json_types import JsonObject

_BEGIN, _IDS = b'{"text":"', b'","output_ids":['
_DIGITS = b"0123456789,"


class RepeatedParts:
    """The repeated parts of one stream: `_begun` is the last event that was JSON up to its text's end, `_known` are its
    ids; `_next_begun` and `_next` those of the event that is read. Of that, `text` says whether the text of the event
    before is left out, and `count` is the number of ids that are."""

    __slots__ = ("_begun", "_known", "_next", "_next_begun", "_numbers", "count", "text")

    def __init__(self) -> None:
        self._begun = self._next_begun = _BEGIN
        self._known = self._next = b""
        self._numbers = self.count = 0
        self.text = False

    def without(self, event: bytes) -> bytes:
        """Return an event without the ids of the event before, and without its text if it begins with that too; as it
        is where it does not begin with all of the ids. What is returned is JSON if and only if the event is, and the
        same but for what is left out."""
        known, at = self._known, len(self._begun)
        self.count, self.text = 0, False
        self._next_begun, self._next = _BEGIN, b""
        if not event.startswith(self._begun) or _continues_character(event, at):
            if not event.startswith(_BEGIN):
                return event
            at = len(_BEGIN)
        end = event.find(_IDS, at)
        start = end + len(_IDS)
        if end < 0 or (event.find(b'"', at) != end and not _is_text(event, at, end)):
            return event
        fresh = start + len(known) if event.startswith(known, start) else start
        last = event.find(b"]", fresh)
        ids = event[fresh:last]
        if last < 0 or ids.translate(None, _DIGITS):
            return event
        self._next_begun, self._next = event[:end], event[start:last]
        if fresh == start or (ids and (ids[:1] != b"," or len(ids) == 1)):
            return event
        self.count, self.text = self._numbers, at > len(_BEGIN)
        return _BEGIN + event[at:start] + ids[1:] + event[last:]

    def know(self, ids: int) -> None:
        """Leave text and ids of the last event, which was JSON with so many ids, out of the next."""
        self._begun, self._known, self._numbers = self._next_begun, self._next, ids


def _continues_character(event: bytes, at: int) -> bool:
    """Return whether the text before `at` may end within a character, so that it is another without what follows."""
    return b"\x80" <= event[at : at + 1] < b"\xc0" or event.startswith(b"\\u", at)


def _is_text(event: bytes, start: int, end: int) -> bool:
    """Return whether the text, which is read from `start`, lasts until `end`: no quote in it ends it before."""
    inner = event[start:end].replace(rb"\\", b"")
    return b'"' not in inner.replace(rb"\"", b"") and not inner.endswith(b"\\")


def cumulative_object(payload: bytes) -> JsonObject:
    """Parse the object of an event that holds the whole text so far: half a character at its end is whole in the next
    one. Raises UpstreamError(MALFORMED)."""
    return event_object(payload, parse_json)
