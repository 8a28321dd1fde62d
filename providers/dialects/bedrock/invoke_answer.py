"""Decodes responses of the text models on Bedrock's InvokeModel, streaming and non-streaming, into the common
completion shape.

A stream is complete if a chunk had a stop reason and afterwards either the service's own counts arrived or the body
ended.

Sources: the sources of `invoke_models`; botocore 1.44.5 service model `bedrock-runtime`, shape `ResponseStream`;
"Supported foundation models" page for `amazon-bedrock-invocationMetrics`, November 2026.
"""

from binascii import a2b_base64
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from providers.completion import (
    Choice,
    Chunk,
    Completion,
    Extras,
    FinishReason,
    StreamEvent,
    Usage,
    count_of,
    partial_usage,
    reported_usage,
)
from providers.dialects.bedrock.invoke_models import InvokeFamily
from providers.dialects.platforms.aws_errors import BEDROCK
from providers.dialects.platforms.aws_events import EventFrames
from providers.dialects.shared.decode_stream import NOTHING, NativeStream, cut, event_object
from providers.dialects.shared.finish_reasons import vendor_finish_reason
from providers.dialects.shared.read_json import json_object, malformed
from providers.emulation.collect_stream import Gatherer
from providers.json_types import JsonObject

METRICS = "amazon-bedrock-invocationMetrics"
GUARDRAIL_ACTION = "amazon-bedrock-guardrailAction"
"""The field whose value is `INTERVENED` if a guardrail has replaced the response."""

INTERVENED = "guardrail_intervened"
_SERVICE_PREFIX = "amazon-bedrock-"

_REASONS: Mapping[str, FinishReason] = {
    "stop": "stop",
    "finish": "stop",
    "complete": "stop",
    "length": "length",
    "max_tokens": "length",
    "content_filtered": "content_filter",
    "error_toxic": "content_filter",
    INTERVENED: "content_filter",
}
_PLAIN = frozenset({"stop", "finish", "complete", "length", "max_tokens"})


_ResponsePart = tuple[str | None, str | None, int | None, int | None]
"""The text, the stop reason, the prompt tokens and the completion tokens of a response or a chunk. A missing value is
`None`."""


def _read(family: InvokeFamily, body: JsonObject) -> _ResponsePart:
    holder = body
    choices = body.get(family.choices) if family.choices else None
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        holder = choices[0]
    text, reason = holder.get(family.text), holder.get(family.reason)
    if GUARDRAIL_ACTION in body and body[GUARDRAIL_ACTION] == "INTERVENED":
        reason = INTERVENED
    return (
        text if isinstance(text, str) else None,
        reason if isinstance(reason, str) else None,
        count_of(body.get(family.prompt_tokens)),
        _completion_tokens_of(family, holder, body),
    )


def _completion_tokens_of(family: InvokeFamily, holder: JsonObject, body: JsonObject) -> int | None:
    for name in family.completion_tokens:
        if (count := count_of(holder.get(name, body.get(name)))) is not None:
            return count
    return None


def _finish(reason: str) -> tuple[str, str | None]:
    """Return the common finish reason, and the maker's own reason if it is more precise.

    An unknown reason is returned unchanged. Raises UpstreamError for a reason that means failure.
    """
    name = reason.lower()
    return _REASONS.get(name) or vendor_finish_reason(reason), None if name in _PLAIN else reason


def decode_whole(family: InvokeFamily, body: bytes) -> Completion:
    """Decode a complete 2xx body. Raises UpstreamError."""
    answer = json_object(body)
    text, reason, prompt, completion = _read(family, answer)
    if text is None or reason is None:
        raise malformed("has no text or no stop reason")
    finish, native = _finish(reason)
    usage = reported_usage(prompt, completion)
    return Completion((Choice(0, text, finish, native),), usage, extra=_service_fields_of(answer) or None)


def _service_fields_of(body: JsonObject) -> JsonObject:
    """Return the fields that the service adds to a model's response, such as a guardrail's trace."""
    return {name: value for name, value in body.items() if name.startswith(_SERVICE_PREFIX) and value not in (None, {})}


def decode_stream(family: InvokeFamily, body: bytes) -> Completion:
    """Decode a complete 2xx body that is a stream. Raises UpstreamError."""
    stream, gatherer = InvokeStream(family), Gatherer(1)
    for event in (*stream.feed(body), *stream.finish()):
        gatherer.add(event)
    return gatherer.completion()


def chunk_payload(payload: bytes) -> bytes:
    """Return the model's own bytes in a `chunk` event. Raises UpstreamError."""
    encoded = event_object(payload).get("bytes")
    try:
        return a2b_base64(encoded, strict_mode=True) if isinstance(encoded, str) else b""
    except ValueError:
        raise malformed("holds a chunk that is not base64") from None


class InvokeReader:
    """Reader of the stream events of one maker's models; see providers.dialects.shared.decode_stream.Reader."""

    __slots__ = ("_completion_tokens", "_family", "_prompt_tokens", "_reason", "_service_fields", "complete")

    def __init__(self, family: InvokeFamily) -> None:
        self.complete = False
        self._family = family
        self._service_fields: JsonObject = {}
        self._prompt_tokens: int | None = None
        self._completion_tokens: int | None = None
        self._reason: str | None = None

    def read(self, name: str, payload: bytes) -> Iterable[StreamEvent]:
        if name != "chunk" or not (chunk := chunk_payload(payload)):
            return NOTHING
        return self._chunk(event_object(chunk))

    def finish(self) -> Iterator[StreamEvent]:
        """Yield the last events of a response that lacks the service's own counts. Raises UpstreamError(TRUNCATED) if
        no stop reason has arrived."""
        if self._reason is None:
            raise cut()
        yield from self._end(self._reason)

    def _chunk(self, event: JsonObject) -> Iterable[StreamEvent]:
        text, reason, prompt, completion = _read(self._family, event)
        if reason and self._reason != INTERVENED:
            self._reason = reason
        if prompt is not None or completion is not None:
            self._store_counts(prompt, completion)
        chunks = (Chunk(text=text),) if text else NOTHING
        return self._read_service_fields(event, chunks) if _SERVICE_PREFIX in "".join(event) else chunks

    def _read_service_fields(self, event: JsonObject, chunks: Iterable[StreamEvent]) -> Iterable[StreamEvent]:
        """Read the fields that the service adds to the model's own fields in the last events of a stream."""
        self._service_fields.update(_service_fields_of(event))
        metrics = event.get(METRICS)
        if isinstance(metrics, dict) and metrics:
            self._store_counts(count_of(metrics.get("inputTokenCount")), count_of(metrics.get("outputTokenCount")))
            if self._reason is not None:
                return chain(chunks, self._end(self._reason))
        return chunks

    def _store_counts(self, prompt: int | None, completion: int | None) -> None:
        """Store the counts. Completion counts are cumulative; prompt counts arrive once."""
        self._prompt_tokens = self._prompt_tokens if prompt is None else prompt
        self._completion_tokens = self._completion_tokens if completion is None else completion

    def usage_so_far(self) -> Usage | None:
        return partial_usage(self._prompt_tokens, self._completion_tokens)

    def _end(self, reason: str) -> Iterator[StreamEvent]:
        """Yield the finish reason, which is held back until the end, so that a stream that breaks off does not look
        finished."""
        finish, native = _finish(reason)
        self.complete = True
        extras = Extras(answer=self._service_fields) if self._service_fields else None
        yield Chunk(finish_reason=finish, native_finish_reason=native, extras=extras)
        usage = reported_usage(self._prompt_tokens, self._completion_tokens)
        if usage is not None:
            yield usage


class InvokeStream(NativeStream):
    """The stream decoder for models on InvokeModel; see providers.dialect.StreamDecoder."""

    __slots__ = ("_event_frames", "_invoke_reader")

    def __init__(self, family: InvokeFamily) -> None:
        self._event_frames, self._invoke_reader = EventFrames(BEDROCK), InvokeReader(family)
        super().__init__(self._event_frames, self._invoke_reader)

    def finish(self) -> Iterator[StreamEvent]:
        """Yield the last events. If a stop reason has arrived, the end of the body completes the response."""
        if not self.complete:
            if self._event_frames.unfinished:
                raise cut()
            yield from self._invoke_reader.finish()
