"""Leaves out of SGLang's events the token ids that the event before has had.

An event has the ids of all tokens so far, of which only their number is read: parsed each time, a stream of n tokens
would cost the square of n. The ids are the member after the text, which comes first.

Source: `sglang` 0.5.23 `srt/managers/tokenizer_manager.py`, November 2026.
"""

_BEGIN, _IDS = b'{"text":"', b'","output_ids":['
_DIGITS = b"0123456789,"


class RepeatedIds:
    """The ids of one stream: `_known` are those of the last event that was JSON, `_next` those of the event that is
    read. `count` is the number of those left out of it."""

    __slots__ = ("_known", "_next", "_numbers", "count")

    def __init__(self) -> None:
        self._known = self._next = b""
        self._numbers = self.count = 0

    def without(self, event: bytes) -> bytes:
        """Return an event without the ids of the event before; as it is where it does not begin with all of them. What
        is returned is JSON if and only if the event is, and the same but for its ids."""
        self.count, known = 0, self._known
        self._next = b""
        end = event.find(_IDS)
        start = end + len(_IDS)
        if end < 0 or not event.startswith(_BEGIN) or not _is_text(event, end):
            return event
        fresh = start + len(known) if event.startswith(known, start) else start
        last = event.find(b"]", fresh)
        ids = event[fresh:last]
        if last < 0 or ids.translate(None, _DIGITS):
            return event
        self._next = event[start:last]
        if fresh == start or (ids and (ids[:1] != b"," or len(ids) == 1)):
            return event
        self.count = self._numbers
        return event[:start] + ids[1:] + event[last:]

    def know(self, ids: int) -> None:
        """Leave the ids of the last event, which was JSON with so many of them, out of the next."""
        self._known, self._numbers = self._next, ids


def _is_text(event: bytes, end: int) -> bool:
    """Return whether the text, which begins the event, lasts until `end`: no quote in it ends it before."""
    if event.find(b'"', len(_BEGIN)) == end:
        return True
    inner = event[len(_BEGIN) : end].replace(rb"\\", b"")
    return b'"' not in inner.replace(rb"\"", b"") and not inner.endswith(b"\\")
