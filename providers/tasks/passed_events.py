"""Streams of events that are relayed unread: whether they are between two events, whether they ended as whole ones, and
whether anything but pings comes.

Source: OpenAI OpenAPI 2.3.0, the events of image generation, transcription and speech.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from providers.unified_request import Task

_ENDS: Final[Mapping[Task, tuple[bytes, bytes]]] = {
    Task.IMAGES: (b"image_generation.partial_image", b"image_generation.completed"),
    Task.TRANSCRIPTIONS: (b"transcript.text.delta", b"transcript.text.done"),
    Task.SPEECH: (b"speech.audio.delta", b"speech.audio.done"),
}
"""By task, the name of an event of OpenAI's streams, and of the one without which a stream that has it is not whole."""

_PINGS: Final = frozenset({b"ping", b"heartbeat", b"keepalive", b"keep-alive"})
"""Names of events that servers send while they generate nothing. Most send comments instead."""

_LONGEST_NAME: Final = 64
_NO_NAMES: Final = (b"", b"")


def watch_events(task: Task) -> "EventWatch":
    """Return a watch over a stream of a task's events."""
    return EventWatch(*_ENDS.get(task, _NO_NAMES))


@dataclass(slots=True, eq=False)
class EventWatch:
    """Sees whether a stream is `between` two events, and whether it is `unfinished`: begun without having ended.

    A stream without the event `begins` is not known, and never unfinished. `content` says whether the bytes seen last
    have data of an event that is no ping.
    """

    begins: bytes
    ends: bytes
    between: bool = True
    unfinished: bool = False
    content: bool = False
    _over: bool = False
    _tail: bytes = b""
    _line: bytes = b""
    _pings: bool = False

    def see(self, piece: bytes) -> None:
        """Look at the next bytes of the stream."""
        window = self._tail + piece
        self._over = self._over or (bool(self.ends) and self.ends in window)
        self.unfinished = not self._over and (self.unfinished or (bool(self.begins) and self.begins in window))
        self.between = window.endswith((b"\n\n", b"\r\n\r\n"))
        self._tail = window[-_LONGEST_NAME:]
        self.content = self._has_content(piece)

    def _has_content(self, piece: bytes) -> bool:
        """Return whether a piece has data of an event that is no ping. It may begin and end within a line."""
        found = False
        for number, part in enumerate(piece.split(b"\n")):
            if number:
                self._end_line()
            self._line += part[: _LONGEST_NAME - len(self._line)]
            found = found or (not self._pings and self._line.startswith(b"data") and bool(part.strip()))
        return found

    def _end_line(self) -> None:
        """Note what a line says of those that follow it."""
        line, self._line = self._line.strip(), b""
        if not line:
            self._pings = False
        elif line.startswith(b"event:"):
            self._pings = line.removeprefix(b"event:").strip() in _PINGS
