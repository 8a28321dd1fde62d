"""Watches streams of events that are relayed without being parsed: whether the stream is between two events, whether it
ended completely, and whether it has content other than pings.

Source: OpenAI OpenAPI 2.3.0, the events of image generation, transcription and speech.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from providers.unified_request import Task

_BEGIN_AND_END_EVENTS: Final[Mapping[Task, tuple[bytes, bytes]]] = {
    Task.IMAGES: (b"image_generation.partial_image", b"image_generation.completed"),
    Task.TRANSCRIPTIONS: (b"transcript.text.delta", b"transcript.text.done"),
    Task.SPEECH: (b"speech.audio.delta", b"speech.audio.done"),
}
"""By task: the name of an event of OpenAI's streams, and the name of the event that must end a stream with that
event."""

_PINGS: Final = frozenset({b"ping", b"heartbeat", b"keepalive", b"keep-alive"})
"""Names of events that servers send to keep the connection alive. Most servers send comments instead."""

_LONGEST_NAME: Final = 64
_NO_NAMES: Final = (b"", b"")


def watch_events(task: Task) -> "EventWatch":
    """Return a watch for a stream of a task's events."""
    return EventWatch(*_BEGIN_AND_END_EVENTS.get(task, _NO_NAMES))


@dataclass(slots=True, eq=False)
class EventWatch:
    """A watch on one stream.

    `between` says whether the stream is between two events. `unfinished` says whether the event `begins` has come and
    the event `ends` has not. A stream without the event `begins` is of an unknown kind, and never counts as unfinished.
    `content` says whether the last bytes have data of an event that is not a ping.
    """

    begins: bytes
    ends: bytes
    between: bool = True
    unfinished: bool = False
    content: bool = False
    _ended: bool = False
    _tail: bytes = b""
    _line: bytes = b""
    _in_ping: bool = False

    def see(self, chunk: bytes) -> None:
        """Update the state with the next bytes of the stream."""
        window = self._tail + chunk
        self._ended = self._ended or (bool(self.ends) and self.ends in window)
        self.unfinished = not self._ended and (self.unfinished or (bool(self.begins) and self.begins in window))
        self.between = window.endswith((b"\n\n", b"\r\n\r\n"))
        self._tail = window[-_LONGEST_NAME:]
        self.content = self._has_content(chunk)

    def _has_content(self, chunk: bytes) -> bool:
        """Return whether a chunk has data of an event that is not a ping. The chunk may begin and end within a line."""
        found = False
        for number, part in enumerate(chunk.split(b"\n")):
            if number:
                self._end_line()
            self._line += part[: _LONGEST_NAME - len(self._line)]
            found = found or (not self._in_ping and self._line.startswith(b"data") and bool(part.strip()))
        return found

    def _end_line(self) -> None:
        """Update from a complete line whether the data lines after it belong to a ping."""
        line, self._line = self._line.strip(), b""
        if not line:
            self._in_ping = False
        elif line.startswith(b"event:"):
            self._in_ping = line.removeprefix(b"event:").strip() in _PINGS
