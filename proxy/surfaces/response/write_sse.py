"""Writes responses as bytes: JSON, and the server-sent events of a stream.

An event never has a newline in its data, an `id:` line or an empty `data:`, because each of these breaks a vendor's
SDK.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import orjson

from providers.completion import FinishReason, TextRun, Usage
from providers.emulation.join_extras import overlay
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import UnifiedRequest
from proxy.errors import ErrorFacts
from proxy.surfaces.surface import FramingRenderer

DONE = b"data: [DONE]\n\n"
_ESCAPING = json.JSONEncoder(separators=(",", ":"))


def utf8_json(value: object) -> bytes:
    """Return compact JSON in UTF-8. Values with lone surrogates or integers beyond 64 bits are written by the standard
    library, because orjson refuses them."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        return _escaped(value)


def ascii_json(value: object) -> bytes:
    """Return compact JSON in ASCII. Line-based clients (httpx `iter_lines`) would also split unescaped text at U+2028
    and U+0085."""
    data = utf8_json(value)
    return data if data.isascii() else _escaped(value)


def _escaped(value: object) -> bytes:
    return _ESCAPING.encode(value).encode()


class RunRenderer(FramingRenderer):
    """Base of renderers that write a run as one event for each literal. A literal is the inside of a JSON string, as
    `ascii_json` writes it. The literal is put between constants, or passed to a function that writes events."""

    __slots__ = ()

    def run(self, run: TextRun) -> bytes | None:
        constants = self.around(run)
        write = self.literal_writer(run) if constants is None else None
        if constants is None and write is None:
            return None
        literals = run.literals
        if run.odd:
            literals = [*literals]
            for index, text in run.odd.items():
                literals[index] = self.literal(text, literals[index])
        if constants is None:
            return b"" if write is None else b"".join([write(literal) for literal in literals])
        if len(literals) == 1:
            return literals[0].join(constants)
        if len(constants) > 2:
            return b"".join([literal.join(constants) for literal in literals])
        before, after = constants
        return before + (after + before).join(literals) + after

    def literal(self, text: str, written: bytes) -> bytes:
        return ascii_json(text)[1:-1]


def event(data: bytes) -> bytes:
    """Return an event with one data line."""
    return b"data: %b\n\n" % data


def usage_json(usage: Usage) -> dict[str, object]:
    """Return OpenAI's usage object, with the vendor's details if there are any, and `estimated` if the gateway
    estimated it."""
    body: dict[str, object] = {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
    }
    if usage.prompt_details:
        body["prompt_tokens_details"] = dict(usage.prompt_details)
    if usage.completion_details:
        body["completion_tokens_details"] = dict(usage.completion_details)
    if usage.estimated:
        body["estimated"] = True
    return {**usage.extra, **body} if usage.extra else body


class SseWriter:
    """Writes the events of one stream around its choices. This class sends no usage.

    `head` is the response's object without its choices; it is encoded only once. `done` is the terminator. An event
    with one choice consists of `prefix`, the choice and `suffix`; `prefix` and `suffix` may change during the stream.
    """

    __slots__ = ("_common_fields", "_done", "_fingerprint", "_late", "_tier", "prefix", "suffix")

    def __init__(self, head: Mapping[str, object], request: UnifiedRequest, done: bytes) -> None:
        self.prefix = b"data: " + ascii_json(head)[:-1] + b',"choices":['
        self._late: JsonObject = {}
        self._done = done
        self._fingerprint = self._tier = b""
        self._set_common_fields(b"")

    def event(self, choice: bytes) -> bytes:
        """Return an event with one choice."""
        return self.prefix + choice + self.suffix

    def event_with(self, choice: bytes, fields: Mapping[str, object]) -> bytes:
        """Return an event with one choice and further fields of the response, at least one."""
        return self.prefix + choice + self.suffix[:-3] + b"," + ascii_json(fields)[1:] + b"\n\n"

    def finish(self, choice: bytes) -> bytes:
        """Return the event that ends a choice; empty if it is held back."""
        return self.event(choice)

    def set_fingerprint(self, fingerprint: str) -> None:
        """Put the vendor's system fingerprint into every event from now on."""
        self._fingerprint = b',"system_fingerprint":' + ascii_json(fingerprint)
        self._set_common_fields(self._common_fields)

    def set_service_tier(self, tier: str) -> None:
        """Put the service tier that the vendor used into every event from now on."""
        self._tier = b',"service_tier":' + ascii_json(tier)
        self._set_common_fields(self._common_fields)

    def usage(self, usage: Usage) -> bytes:
        """Return no event: this class sends no usage."""
        return b""

    def add_late(self, fields: Mapping[str, JsonValue]) -> None:
        """Store fields of the response that came after its last choice ended, for the event that has the usage.

        A client that requested no usage does not get them. They would need an event without choices, and clients that
        read the first choice of every event fail on it. Vendors send these fields beside the usage, which in this case
        only the gateway requested.
        """
        overlay(self._late, fields)

    def end(self) -> bytes:
        """Return the held-back event, if there is one, and the terminator."""
        return self._done

    def bare(self, fields: Mapping[str, object]) -> bytes:
        """Return an event with further fields but without choices."""
        return self.prefix + b"]," + ascii_json(fields)[1:] + b"\n\n"

    def _set_common_fields(self, fields: bytes) -> None:
        self._common_fields = fields
        self.suffix = self._close(fields)

    def _late_fields(self) -> bytes:
        return b"," + ascii_json(self._late)[1:-1] if self._late else b""

    def _close(self, fields: bytes) -> bytes:
        return b"]" + self._fingerprint + self._tier + fields + b"}\n\n"


class UsageSseWriter(SseWriter):
    """Sends usage as OpenAI does with `include_usage`: `usage` is null in each event, and a separate event without
    choices has the usage.

    If the vendor reports no usage, that event is left out. With vLLM's `continuous_usage_stats` each event has the
    latest usage instead of null.
    """

    __slots__ = ("_running", "_usage")

    def __init__(self, head: Mapping[str, object], request: UnifiedRequest, done: bytes) -> None:
        super().__init__(head, request, done)
        self._usage: Usage | None = None
        self._running = request.stream_options.continuous_usage_stats
        self._set_common_fields(_usage_field(None))

    def usage(self, usage: Usage) -> bytes:
        """Store the usage for the last event, and for each event from now on if the client wants running usage."""
        self._usage = usage
        if self._running:
            self._set_common_fields(_usage_field(usage))
        return b""

    def end(self) -> bytes:
        """Return the usage, if there is one, and the terminator."""
        if self._usage is None:
            return self._done
        return self.prefix + self._close(_usage_field(self._usage) + self._late_fields()) + self._done


class FinishUsageSseWriter(SseWriter):
    """Sends usage in the event that ends the last choice, as Fireworks and Scale do. This event waits for the usage."""

    __slots__ = ("_held", "_open", "_usage")

    def __init__(self, head: Mapping[str, object], request: UnifiedRequest, done: bytes) -> None:
        super().__init__(head, request, done)
        self._open = request.choices
        self._held: bytes | None = None
        self._usage: Usage | None = None

    def finish(self, choice: bytes) -> bytes:
        """Return the event that ends a choice. The event of the last choice is held back until the usage is final."""
        self._open -= 1
        if self._open:
            return self.event(choice)
        self._held = choice
        return b""

    def usage(self, usage: Usage) -> bytes:
        """Store the usage. After the end of the last choice it is final, and completes the held-back event."""
        self._usage = usage
        return b"" if self._held is None else self._release()

    def end(self) -> bytes:
        """Return the held-back event, with the usage if there is any, and the terminator."""
        return (b"" if self._held is None else self._release()) + self._done

    def _release(self) -> bytes:
        choice, self._held = self._held or b"", None
        fields = b"" if self._usage is None else _usage_field(self._usage)
        return self.prefix + choice + self._close(fields + self._late_fields())


def _usage_field(usage: Usage | None) -> bytes:
    return b',"usage":' + (b"null" if usage is None else orjson.dumps(usage_json(usage)))


@dataclass(frozen=True, slots=True)
class AnswerStyle:
    """The form in which a surface writes responses.

    `done` ends a stream. `plain` and `with_usage` write streams for clients that did not and did request usage.
    `broken` writes the end of a stream that failed. `tool_finish` is the finish reason of a text completion that called
    a tool.
    """

    done: bytes
    plain: type[SseWriter]
    with_usage: type[SseWriter]
    broken: Callable[[SseWriter, ErrorFacts], bytes]
    tool_finish: FinishReason

    def writer(self, head: Mapping[str, object], request: UnifiedRequest) -> SseWriter:
        """Return the writer of one stream."""
        kind = self.with_usage if request.stream_options.include_usage else self.plain
        return kind(head, request, self.done)
