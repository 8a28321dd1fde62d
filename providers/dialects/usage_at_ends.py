"""Reads the usage that a vendor reports in a response that is relayed unread: near its beginning or its end.

Sources: OpenAI OpenAPI 2.3.0, `usage` of images, of transcriptions (which may be a duration), and of the events
`image_generation.completed`, `transcript.text.done` and `speech.audio.done`.
"""

import re
from dataclasses import dataclass
from typing import Final

from providers.completion import Usage
from providers.dialects.usage_in_body import usage_in_body

_READABLE: Final = ("application/json", "text/event-stream")
"""Types whose bytes hold quotes of a text only escaped, so that no text can be taken for a usage."""

_SEEN: Final = 8192
"""Bytes at each end that are searched for a usage."""

_USAGE: Final = re.compile(rb'"usage"\s*:\s*(?:\{(?:[^{}]|\{[^{}]*\})*\})')
"""An object with at most one level of objects below it."""


@dataclass(slots=True, eq=False)
class UsageWatch:
    """Holds the first and the last 8 KiB of a response of the type `content_type`."""

    content_type: str
    _head: bytes = b""
    _tail: bytes = b""

    def see(self, chunk: bytes) -> None:
        """Look at the next bytes of the response."""
        if len(self._head) < _SEEN:
            self._head += chunk[: _SEEN - len(self._head)]
        self._tail = chunk[-_SEEN:] if len(chunk) >= _SEEN else (self._tail + chunk)[-_SEEN:]

    def usage(self) -> Usage | None:
        """Return the last usage at an end of the response, `None` if there is none in tokens."""
        if not self.content_type.strip().lower().startswith(_READABLE):
            return None
        for end in (self._tail, self._head):
            if found := _USAGE.findall(end):
                return usage_in_body(b"{%b}" % found[-1])
        return None
