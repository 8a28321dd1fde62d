"""Removes the text and the token ids that an event of SGLang repeats from the previous event.

An event has the complete text so far and the ids of all its tokens. Parsing all of that in every event would take O(n²)
time for a stream of n tokens. The decoder needs the number of ids, not the ids. The text is the first field of an
event, and the ids are the second.

Source: `sglang` 0.5.23 `srt/managers/tokenizer_manager.py`, November 2026.
"""

from providers.dialects.shared.decode_stream import event_object
from providers.dialects.shared.read_json import parse_json
from providers.json_types import JsonObject

_TEXT_START, _IDS_START = b'{"text":"', b'","output_ids":['
_DIGITS = b"0123456789,"


class RepeatedParts:
    """The repeated parts of one stream.

    `_begun` holds the bytes of the last event that was JSON, from its start to the end of its text. `_known` are the
    ids of that event as bytes, `_known_count` is their number. `_next_begun` and `_next_known` are the same parts of
    the current event. `text` says whether the repeated text was removed from the current event. `count` is the number
    of ids that were removed from it.
    """

    __slots__ = ("_begun", "_known", "_known_count", "_next_begun", "_next_known", "count", "text")

    def __init__(self) -> None:
        self._begun = self._next_begun = _TEXT_START
        self._known = self._next_known = b""
        self._known_count = self.count = 0
        self.text = False

    def without(self, event: bytes) -> bytes:
        """Return an event without the ids of the previous event. If its text begins with the previous text, that is
        removed too.

        The event is returned unchanged if its ids do not begin with all of the previous ids. The returned bytes are
        JSON if and only if the event is JSON, and differ from the event only by the removed parts.
        """
        known, at = self._known, len(self._begun)
        self.count, self.text = 0, False
        self._next_begun, self._next_known = _TEXT_START, b""
        if not event.startswith(self._begun) or _continues_character(event, at):
            if not event.startswith(_TEXT_START):
                return event
            at = len(_TEXT_START)
        end = event.find(_IDS_START, at)
        start = end + len(_IDS_START)
        if end < 0 or (event.find(b'"', at) != end and not _is_text(event, at, end)):
            return event
        new_start = start + len(known) if event.startswith(known, start) else start
        last = event.find(b"]", new_start)
        ids = event[new_start:last]
        if last < 0 or ids.translate(None, _DIGITS):
            return event
        self._next_begun, self._next_known = event[:end], event[start:last]
        if new_start == start or (ids and (ids[:1] != b"," or len(ids) == 1)):
            return event
        self.count, self.text = self._known_count, at > len(_TEXT_START)
        return _TEXT_START + event[at:start] + ids[1:] + event[last:]

    def know(self, ids: int) -> None:
        """Store the current event, so that its text and ids are removed from the next event. It must have been JSON.
        `ids` is the number of its ids."""
        self._begun, self._known, self._known_count = self._next_begun, self._next_known, ids


def _continues_character(event: bytes, at: int) -> bool:
    """Return whether the text before `at` may end in the middle of a character, so that it must not be removed."""
    return b"\x80" <= event[at : at + 1] < b"\xc0" or event.startswith(b"\\u", at)


def _is_text(event: bytes, start: int, end: int) -> bool:
    """Return whether the JSON string lasts from `start` until `end`, that is, has no unescaped quote before `end`."""
    inner = event[start:end].replace(rb"\\", b"")
    return b'"' not in inner.replace(rb"\"", b"") and not inner.endswith(b"\\")


def cumulative_object(payload: bytes) -> JsonObject:
    """Parse the object of an event that holds the complete text so far. An incomplete character at the end of the text
    is accepted, since the next event completes it. Raises UpstreamError(MALFORMED)."""
    return event_object(payload, parse_json)
