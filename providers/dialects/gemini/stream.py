"""Decodes Gemini's event stream into chunks of the common shape.

A stream is complete if every choice has a finish reason. The last events are yielded when the body ends, because usage
may follow the last finish reason.

Sources: "streamGenerateContent" of the API reference, November 2026; errors without event framing as quoted in public
issue threads.
"""

from collections.abc import Iterator

import orjson

from providers.completion import Chunk, StreamEvent, Usage
from providers.dialect import UpstreamRequest
from providers.dialects.gemini.answer import GeminiResponse
from providers.dialects.platforms.google_errors import error_in, failure_of
from providers.dialects.platforms.google_events import EventsOrJSON
from providers.dialects.shared.decode_stream import CharacterJoiner, cut, failing
from providers.dialects.shared.read_json import SplitCharacter, malformed, parse_event
from providers.failure import FailureKind, UpstreamError
from providers.framing.parse_sse import EventTooLarge
from providers.json_types import JsonValue

_DONE = b"[DONE]"


class GeminiStream:
    """The stream decoder of Gemini; see providers.dialect.StreamDecoder."""

    __slots__ = ("_characters", "_frames", "_response", "complete")

    def __init__(self, sent: UpstreamRequest) -> None:
        self.complete = False
        self._response = GeminiResponse(sent)
        self._characters: CharacterJoiner | None = None
        self._frames = EventsOrJSON()

    def feed(self, data: bytes) -> Iterator[StreamEvent]:
        event = self._frames.only(data)
        if event is not None and not event[0] and self._characters is None:
            try:
                return self._response.read(parse_event(event[1]))
            except (SplitCharacter, orjson.JSONDecodeError):
                pass  # `_events` reads such events
            except UpstreamError as error:
                return failing(error)
        return self._events(data)

    def _events(self, data: bytes) -> Iterator[StreamEvent]:
        try:
            for event in self._frames.feed(data):
                yield from self._response.read(self._value(*event))
        except EventTooLarge as error:
            raise malformed(f"holds {error}") from None

    def finish(self) -> Iterator[StreamEvent]:
        try:
            for event in self._frames.finish():
                yield from self._response.read(self._value(*event))
        except UpstreamError as error:
            # If the body was cut off within the last event, the event is not JSON.
            raise (cut() if error.failure.kind is FailureKind.MALFORMED else error) from None
        if not self._response.ended:
            raise cut()
        for last in self._response.end():
            joined = self._characters
            yield joined.end(last) if joined is not None and isinstance(last, Chunk) else last
        self.complete = True

    def usage_so_far(self) -> Usage | None:
        return self._response.usage_so_far()

    def _value(self, name: str, payload: bytes) -> JsonValue:
        """Parse an event. Raises UpstreamError for an event named `error`, even if its fields are not an error's."""
        value = self._parsed(payload)
        if name == "error" and isinstance(value, dict) and "candidates" not in value:
            raise UpstreamError(failure_of(error_in(value) or value))
        return value

    def _parsed(self, payload: bytes) -> JsonValue:
        try:
            return parse_event(payload) if self._characters is None else self._characters.parse(payload)
        except SplitCharacter:
            if self._characters is not None:
                raise
            self._characters = CharacterJoiner()
            return self._characters.parse(payload)
        except orjson.JSONDecodeError:
            if payload == _DONE:
                return None  # such an event comes from a proxy; `finish` checks whether the response is complete
            raise malformed("holds an event that is not JSON") from None
