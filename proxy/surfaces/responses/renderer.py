"""Renders responses in the form of OpenAI's Responses API: as one object, as events, and as they are stored.

Sources: OpenAI OpenAPI 2.3.0 `Response`, `ResponseStreamEvent`; the failures after which Codex CLI 0.169.0 repeats a
request, measured in November 2026; a failed stream of OpenAI's, recorded in November 2025 (vercel/ai,
`packages/openai/src/responses/__fixtures__/openai-error.1.chunks.txt`).
"""

from typing import Final

import orjson

from providers.completion import Choice, Chunk, Completion, Extras, TextRun, ToolCallDelta, Usage
from providers.emulation.join_extras import extras_of
from providers.json_types import JsonObject
from providers.unified_request import UnifiedRequest
from proxy.errors import ErrorFacts
from proxy.surfaces.response.choices import NO_USAGE
from proxy.surfaces.response.error_body import error_object
from proxy.surfaces.response.extras import response_fields
from proxy.surfaces.response.write_sse import RunRenderer, ascii_json, utf8_json
from proxy.surfaces.responses.build_output import OutputBuilder
from proxy.surfaces.responses.input_items import with_ids
from proxy.surfaces.responses.native_answer import NativeAnswer
from proxy.surfaces.responses.open_items import IN_PROGRESS, MessageItem
from proxy.surfaces.responses.request_draft import NO_TERMS, ResponsesRequest
from proxy.surfaces.responses.write_events import EventWriter, SilentWriter, framed, response_object, usage_json
from proxy.surfaces.surface import AnswerFacts, EndingRenderer, LiteralWriter, StoredResponse

_INCOMPLETE: Final = {"length": "max_output_tokens", "content_filter": "content_filter"}
"""The reason of an incomplete response, by finish reason."""

_CODES: Final = frozenset({"rate_limit_exceeded", "context_length_exceeded", "insufficient_quota"})
"""Error codes on which clients act. Every other failure is reported as a server error."""


class ResponsesRenderer(EndingRenderer, RunRenderer):
    """Renders one response, as StoringRenderer describes.

    `_plain` is the message whose text grows, as long as only text arrives.
    """

    __slots__ = (
        *("_begun", "_facts", "_finish", "_native", "_output", "_plain", "_response", "_streams", "_terms", "_tier"),
        *("_usage", "_writer"),
    )

    def __init__(self, request: UnifiedRequest, facts: AnswerFacts) -> None:
        self._facts = facts
        self._terms = request.terms if isinstance(request, ResponsesRequest) else NO_TERMS
        self._streams = request.stream
        self._writer = EventWriter() if request.stream else SilentWriter()
        self._output = OutputBuilder(request, self._terms, self._writer, facts.unique)
        self._plain: MessageItem | None = None
        self._native: NativeAnswer | None = None
        self._begun = False
        self._finish: str | None = None
        self._usage: Usage | None = None
        self._tier: str | None = None
        self._response: JsonObject | None = None

    # Non-streaming responses ---------------------------------------------------------------------------------------

    def completion(self, completion: Completion) -> bytes:
        if completion.native is not None:
            native = NativeAnswer(self._facts, self._terms)
            body = native.whole(completion.native)
            self._response = native.response
            return body
        for choice in completion.choices[:1]:
            self._add(_as_chunk(choice, extras_of(completion, choice)))
        self._tier = completion.service_tier
        self._usage = completion.usage
        extra_fields = self._output.extra_fields
        if completion.system_fingerprint is not None:
            extra_fields["system_fingerprint"] = completion.system_fingerprint
        self._response = self._final()
        return utf8_json(self._response)

    # Streams -------------------------------------------------------------------------------------------------------

    def chunk(self, chunk: Chunk) -> bytes:
        message = self._plain
        if message is not None and _only_text(chunk):
            text = chunk.text
            if not text:
                return b""
            # The event is formatted by hand, because nearly every token is sent in this form.
            message.chunks.append(text)
            writer, output = self._writer, self._output
            number = writer.number
            writer.number = number + 1
            output.chars_left -= len(text)
            if output.chars_left < 0:
                output.grow(0)
            return (
                b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","sequence_number":%d,'
                b'%b,"delta":%b,"logprobs":[]}\n\n' % (number, message.head, ascii_json(text))
            )
        if chunk.native is not None:
            if self._native is None:
                self._native = NativeAnswer(self._facts, self._terms)
            return self._native.event(chunk.native)
        if self._native is not None:
            # The event to which this field belongs has already been sent.
            return b""
        begin = b"" if self._begun else self._begin()
        return begin + self._add(chunk)

    def literal_writer(self, run: TextRun) -> LiteralWriter | None:
        if self._native is not None or run.native is not None:
            return None
        write = self._output.literal_writer(run)
        if write is not None and run.part != "text" and run.system_fingerprint is not None:
            self._output.extra_fields["system_fingerprint"] = run.system_fingerprint
        return write

    def usage(self, usage: Usage) -> bytes:
        """Store the usage for the last event."""
        self._usage = usage
        return b""

    def end(self) -> bytes:
        if self._native is not None:
            self._response = self._native.response
            return self._native.last
        begin = b"" if self._begun else self._begin()
        response = self._response = self._final()
        return begin + self._writer.event(f"response.{response['status']}", {"response": response})

    def error(self, facts: ErrorFacts) -> bytes:
        """Return two events, as OpenAI does: the SDKs for Node and LangChain raise only at `error`, and Codex reads
        only `response.failed`."""
        self._response = None
        code = facts.code if facts.code in _CODES else "server_error"
        native, terms = self._native, self._terms
        if native is None:
            begin = b"" if self._begun else self._begin()
            error = {"code": code, "message": facts.message}
            failed = response_object(self._facts, terms.echoes, "failed", self._output.items, error=error)
            return begin + self._error_event(facts, code) + self._writer.event("response.failed", {"response": failed})
        self._writer.number = native.number
        if native.failed is not None:
            error_event = self._error_event(facts, code)
            return error_event + self._writer.event("response.failed", _without_place(native.failed))
        response = native.response or response_object(self._facts, terms.echoes, "failed")
        failed = {**response, "status": "failed", "error": {"code": code, "message": facts.message}}
        return self._error_event(facts, code) + self._writer.event("response.failed", {"response": failed})

    def _error_event(self, facts: ErrorFacts, code: str) -> bytes:
        """Return the event `error`, with the fields of OpenAI's specification and the object of OpenAI's streams."""
        error = {**error_object(facts), "code": code}
        fields = {"code": code, "message": facts.message, "param": facts.param, "error": error}
        return self._writer.event("error", fields)

    def stored(self) -> StoredResponse | None:
        response = self._response
        name = None if response is None else response.get("id")
        if response is None or not isinstance(name, str) or not self._terms.store:
            return None
        if response.get("status") not in ("completed", "incomplete"):
            return None
        return StoredResponse(name, self._terms.ancestors, with_ids(self._terms.input, self._facts.unique), response)

    def unstored(self, rendered: bytes) -> bytes:
        if not self._streams:
            return utf8_json({**orjson.loads(rendered), "store": False})
        before, line, data = rendered.rpartition(b"\ndata: ")
        last = orjson.loads(data)
        last["response"]["store"] = False
        return before + line + ascii_json(last) + b"\n\n"

    def _begin(self) -> bytes:
        self._begun = True
        body = ascii_json(response_object(self._facts, self._terms.echoes, IN_PROGRESS))
        kinds = ("response.created", "response.in_progress")
        self._writer.number = len(kinds)
        return b"".join(
            [
                framed(kind, b'{"type":"%b","sequence_number":%d,"response":%b}' % (kind.encode(), number, body))
                for number, kind in enumerate(kinds)
            ]
        )

    def _add(self, chunk: Chunk) -> bytes:
        output = self._output
        events = output.add(chunk)
        if chunk.service_tier is not None:
            self._tier = chunk.service_tier
        extra_fields = output.extra_fields
        for name, value in (
            ("system_fingerprint", chunk.system_fingerprint),
            ("native_finish_reason", chunk.native_finish_reason),
            ("stop_reason", chunk.matched_stop),
        ):
            if value is not None:
                extra_fields[name] = value
        if chunk.finish_reason is not None:
            self._finish = chunk.finish_reason
            events += output.finish("incomplete" if chunk.finish_reason in _INCOMPLETE else "completed")
        self._plain = output.message
        return events

    def _final(self) -> JsonObject:
        """Return the final response."""
        reason = _INCOMPLETE.get(self._finish or "")
        fields: dict[str, object] = {
            "incomplete_details": None if reason is None else {"reason": reason},
            "usage": usage_json(self._usage or NO_USAGE),
            "service_tier": self._tier,
        }
        status = "completed" if reason is None else "incomplete"
        body = response_object(self._facts, self._terms.echoes, status, self._output.items, **fields)
        return {**response_fields(self._output.extra_fields), **body}  # type: ignore[dict-item]


def _only_text(chunk: Chunk) -> bool:
    return (
        chunk.finish_reason is None
        and chunk.logprobs is None
        and chunk.reasoning is None
        and chunk.refusal is None
        and not chunk.tool_calls
        and chunk.signature is None
        and chunk.extras is None
        and chunk.native is None
    )


def _as_chunk(choice: Choice, extras: Extras | None) -> Chunk:
    """Return a complete choice as the single chunk of a stream."""
    calls = tuple(
        [
            ToolCallDelta(number, call.id, call.name, call.arguments, call.kind, call.extra)
            for number, call in enumerate(choice.tool_calls)
        ]
    )
    return Chunk(
        text=choice.text,
        finish_reason=choice.finish_reason,
        native_finish_reason=choice.native_finish_reason,
        logprobs=choice.logprobs,
        refusal=choice.refusal,
        reasoning=choice.reasoning,
        tool_calls=calls,
        matched_stop=choice.matched_stop,
        signature=choice.signature,
        extras=extras,
    )


def _without_place(fields: JsonObject) -> dict[str, object]:
    """Return the fields of a vendor's event without its type and its number."""
    return {name: value for name, value in fields.items() if name not in ("type", "sequence_number")}
