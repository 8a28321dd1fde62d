"""Renders responses of OpenAI's own Responses API: the vendor's bytes, with the configuration's name of the model.

Sources: OpenAI OpenAPI 2.3.0 `ResponseStreamEvent`; public reports of final events without items
(NousResearch/hermes-agent 5689, commontoolsinc/labs 5092), November 2026.
"""

from typing import Final

from providers.completion import NativeEvent
from providers.dialects.shared.read_json import parse_json
from providers.json_types import JsonObject, JsonValue
from proxy.surfaces.response.write_sse import ascii_json, utf8_json
from proxy.surfaces.responses.request_draft import ResponseTerms
from proxy.surfaces.responses.write_events import framed
from proxy.surfaces.surface import AnswerFacts

FAILED: Final = frozenset({"response.failed", "error"})
"""Events after which the stream is broken."""

_RESPONSE_EVENTS: Final = frozenset(
    {"response.created", "response.in_progress", "response.queued", "response.completed", "response.incomplete"}
    | {"response.failed"}
)
"""Events that contain the response object itself."""

_FINAL_EVENTS: Final = frozenset({"response.completed", "response.incomplete"})
"""Events that end a response. They are sent once the response is stored, because clients continue it at once."""

_ITEM_DONE: Final = "response.output_item.done"

_ECHOES: Final = ("previous_response_id", "store")
"""Fields of the response that repeat settings of the request which the gateway handles instead of the vendor."""


class NativeAnswer:
    """One response. `response` is its latest state from the vendor, `number` the number of the next event for the
    client, `failed` the fields of the vendor's event that reports a failure, `last` the event that ends the
    response."""

    __slots__ = ("_facts", "_items", "_terms", "failed", "last", "number", "response")

    def __init__(self, facts: AnswerFacts, terms: ResponseTerms) -> None:
        self._facts = facts
        self._terms = terms
        self._items: list[bytes] = []
        self.response: JsonObject | None = None
        self.number = 0
        self.failed: JsonObject | None = None
        self.last = b""

    def whole(self, body: bytes) -> bytes:
        """Return the body of a non-streaming response."""
        self.response = self._shown(parse_json(body))
        return utf8_json(self.response)

    def event(self, event: NativeEvent) -> bytes:
        """Return an event. It is empty for an event after which the stream is broken, which is stored in `failed`, and
        for the event that ends the response, which is stored in `last`."""
        data, failed = event.data, event.name in FAILED
        self.number += not failed
        if event.name == _ITEM_DONE:
            self._items.append(data)
        if event.name in _RESPONSE_EVENTS:
            fields = _fields_of(data)
            self.response = fields["response"] = self._shown(fields.get("response"))
            if event.name in _FINAL_EVENTS and not self.response.get("output"):
                self.response["output"] = self._output()
            self.failed = fields if failed else None
            data = ascii_json(fields)
        elif not data.isascii() or b"\n" in data:
            data = ascii_json(parse_json(data))
        shown = framed(event.name, data)
        if event.name in _FINAL_EVENTS:
            self.last = shown
            return b""
        return b"" if failed else shown

    def _output(self) -> list[JsonValue]:
        """Return the items that have arrived, for a response whose final event has none: ChatGPT's own servers and some
        gateways send each item only once."""
        placed = [(_place(fields), fields.get("item")) for fields in map(_fields_of, self._items)]
        return [item for _, item in sorted(placed, key=_first) if isinstance(item, dict)]

    def _shown(self, given: JsonValue) -> JsonObject:
        response: JsonObject = given if isinstance(given, dict) else {}
        echoes = {name: self._terms.echoes[name] for name in _ECHOES if name in self._terms.echoes}
        return {**response, "model": self._facts.model, **echoes}


def _place(fields: JsonObject) -> int:
    position = fields.get("output_index")
    return position if isinstance(position, int) else 0


def _first(placed: tuple[int, JsonValue]) -> int:
    return placed[0]


def _fields_of(data: bytes) -> JsonObject:
    value = parse_json(data)
    return value if isinstance(value, dict) else {}
