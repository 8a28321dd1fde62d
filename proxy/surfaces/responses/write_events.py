"""Writes the events of one streamed response, each with its number, and the response object that the last event
repeats.

Source: OpenAI OpenAPI 2.3.0 `ResponseStreamEvent`, `Response`; openai 3.54.0 `types/responses`, November 2026.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from providers.completion import Usage
from providers.framing.text_frames import MARK
from providers.json_types import JsonObject, JsonValue
from proxy.surfaces.response.write_sse import ascii_json
from proxy.surfaces.surface import AnswerFacts

_DETAILS: Final = ("cached_tokens", "cache_write_tokens")


_MARK: Final = MARK.encode()
_NUMBER: Final = b'"sequence_number":0,'

EventForm = tuple[bytes, bytes, bytes]
"""The parts of an event before its number, between the number and a text, and after the text."""


class EventWriter:
    """Numbers and writes the events of one stream."""

    __slots__ = ("number",)

    def __init__(self) -> None:
        self.number = 0
        """The number of the next event."""

    def event(self, kind: str, fields: Mapping[str, object]) -> bytes:
        """Return one event with its number."""
        number = self.number
        self.number = number + 1
        return framed(kind, ascii_json({"type": kind, "sequence_number": number, **fields}))

    def form(self, kind: str, fields: Mapping[str, object]) -> EventForm:
        """Return the form of events with these fields. MARK stands for the text in one of them."""
        data = framed(kind, ascii_json({"type": kind, "sequence_number": 0, **fields}))
        before, number, rest = data.partition(_NUMBER)
        middle, _, after = rest.rpartition(_MARK)
        return before + number[:-2], number[-1:] + middle, after


class SilentWriter(EventWriter):
    """Writes nothing, for a non-streaming response."""

    __slots__ = ()

    def event(self, kind: str, fields: Mapping[str, object]) -> bytes:
        """Return no event."""
        return b""


def framed(kind: str, data: bytes) -> bytes:
    """Return an event with one data line."""
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), data)


def response_object(
    facts: AnswerFacts,
    echoes: Mapping[str, JsonValue],
    status: str,
    output: Sequence[JsonObject] = (),
    **fields: object,
) -> dict[str, object]:
    """Return a response object. `fields` replace the corresponding fields of a response that has just begun."""
    return {
        "id": f"resp_{facts.unique}",
        "object": "response",
        "created_at": facts.created,
        "status": status,
        "model": facts.model,
        "output": list(output),
        "error": None,
        "incomplete_details": None,
        "usage": None,
        "service_tier": None,
        **echoes,
        **fields,
    }


def usage_json(usage: Usage) -> dict[str, object]:
    """Return the usage. Its details are always present in this API; `estimated` is added if the gateway estimated
    it."""
    prompt, completion = dict(usage.prompt_details or {}), dict(usage.completion_details or {})
    body: dict[str, object] = {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {**dict.fromkeys(_DETAILS, 0), **prompt},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": 0, **completion},
        "total_tokens": usage.total_tokens,
    }
    if usage.estimated:
        body["estimated"] = True
    return {**usage.extra, **body} if usage.extra else body
