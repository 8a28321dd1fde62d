"""Streams of events that are relayed unread: whether they are between two events, and whether they ended as whole ones.

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

_LONGEST_NAME: Final = 64
_NO_NAMES: Final = (b"", b"")


def watch_events(task: Task) -> "EventWatch":
    """Return a watch over a stream of a task's events."""
    return EventWatch(*_ENDS.get(task, _NO_NAMES))


@dataclass(slots=True, eq=False)
class EventWatch:
    """Sees whether a stream is `between` two events, and whether it is `unfinished`: begun without having ended.

    A stream without the event `begins` is not known, and never unfinished.
    """

    begins: bytes
    ends: bytes
    between: bool = True
    unfinished: bool = False
    _over: bool = False
    _tail: bytes = b""

    def see(self, piece: bytes) -> None:
        """Look at the next bytes of the stream."""
        window = self._tail + piece
        self._over = self._over or (bool(self.ends) and self.ends in window)
        self.unfinished = not self._over and (self.unfinished or (bool(self.begins) and self.begins in window))
        self.between = window.endswith((b"\n\n", b"\r\n\r\n"))
        self._tail = window[-_LONGEST_NAME:]
