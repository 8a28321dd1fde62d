"""Answers of the text models on Bedrock's InvokeModel, whole and streamed, to the common completion shape.

A stream is complete when a chunk has a stop reason and either the service's own counts followed it or the body ended.

Sources: as `bedrock_families`; botocore 1.44.5 service model `bedrock-runtime`, shape `ResponseStream`; "Supported
foundation models" page for `amazon-bedrock-invocationMetrics`, November 2026.
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
GUARDED = "amazon-bedrock-guardrailAction"
"""The member that is `INTERVENED` where a guardrail has replaced the answer."""

INTERVENED = "guardrail_intervened"
_SERVICE = "amazon-bedrock-"

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


_AnswerPart = tuple[str | None, str | None, int | None, int | None]
"""Text, reason and the counts of prompt and completion of an answer or a chunk, None where they are missing."""


def _read(family: InvokeFamily, body: JsonObject) -> _AnswerPart:
    holder = body
    listed = body.get(family.choices) if family.choices else None
    if isinstance(listed, list) and listed and isinstance(listed[0], dict):
        holder = listed[0]
    text, reason = holder.get(family.text), holder.get(family.reason)
    if GUARDED in body and body[GUARDED] == "INTERVENED":
        reason = INTERVENED
    return (
        text if isinstance(text, str) else None,
        reason if isinstance(reason, str) else None,
        count_of(body.get(family.prompt_tokens)),
        _generated(family, holder, body),
    )


def _generated(family: InvokeFamily, holder: JsonObject, body: JsonObject) -> int | None:
    for name in family.completion_tokens:
        if (count := count_of(holder.get(name, body.get(name)))) is not None:
            return count
    return None


def _finish(reason: str) -> tuple[str, str | None]:
    """Return the common finish reason, and the maker's own where it says more.

    An unknown reason is passed on. Raises UpstreamError for one that means failure.
    """
    name = reason.lower()
    return _REASONS.get(name) or vendor_finish_reason(reason), None if name in _PLAIN else reason


def decode_whole(family: InvokeFamily, body: bytes) -> Completion:
    """Decode a whole 2xx body. Raises UpstreamError."""
    answer = json_object(body)
    text, reason, prompt, completion = _read(family, answer)
    if text is None or reason is None:
        raise malformed("has no text or does not say why it ended")
    finish, native = _finish(reason)
    usage = reported_usage(prompt, completion)
    return Completion((Choice(0, text, finish, native),), usage, extra=_services_own(answer) or None)


def _services_own(body: JsonObject) -> JsonObject:
    """Return what the service adds to an answer of the model's, such as a guardrail's trace, under its names."""
    return {name: value for name, value in body.items() if name.startswith(_SERVICE) and value not in (None, {})}


def decode_stream(family: InvokeFamily, body: bytes) -> Completion:
    """Decode a whole 2xx body that is a stream. Raises UpstreamError."""
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
        raise malformed("holds a piece that is not base64") from None


class InvokeReader:
    """Reader of the events of one of the makers' models; see providers.dialects.shared.decode_stream.Reader."""

    __slots__ = ("_completion", "_family", "_own", "_prompt", "_reason", "complete")

    def __init__(self, family: InvokeFamily) -> None:
        self.complete = False
        self._family = family
        self._own: JsonObject = {}
        self._prompt: int | None = None
        self._completion: int | None = None
        self._reason: str | None = None

    def read(self, name: str, payload: bytes) -> Iterable[StreamEvent]:
        """See Reader."""
        if name != "chunk" or not (piece := chunk_payload(payload)):
            return NOTHING
        return self._chunk(event_object(piece))

    def finish(self) -> Iterator[StreamEvent]:
        """Yield the end of an answer without the service's own counts. Raises UpstreamError(TRUNCATED) for one that
        has not said why it ended."""
        if self._reason is None:
            raise cut()
        yield from self._end(self._reason)

    def _chunk(self, event: JsonObject) -> Iterable[StreamEvent]:
        text, reason, prompt, completion = _read(self._family, event)
        if reason and self._reason != INTERVENED:
            self._reason = reason
        if prompt is not None or completion is not None:
            self._counted(prompt, completion)
        chunks = (Chunk(text=text),) if text else NOTHING
        return self._more(event, chunks) if _SERVICE in "".join(event) else chunks

    def _more(self, event: JsonObject, chunks: Iterable[StreamEvent]) -> Iterable[StreamEvent]:
        """Read what the service adds to the model's own members, as it does in a stream's last events."""
        self._own.update(_services_own(event))
        metrics = event.get(METRICS)
        if isinstance(metrics, dict) and metrics:
            self._counted(count_of(metrics.get("inputTokenCount")), count_of(metrics.get("outputTokenCount")))
            if self._reason is not None:
                return chain(chunks, self._end(self._reason))
        return chunks

    def _counted(self, prompt: int | None, completion: int | None) -> None:
        """Keep the counts, which are cumulative; those of the prompt come once."""
        self._prompt = self._prompt if prompt is None else prompt
        self._completion = self._completion if completion is None else completion

    def usage_so_far(self) -> Usage | None:
        """See UsageReporter."""
        return partial_usage(self._prompt, self._completion)

    def _end(self, reason: str) -> Iterator[StreamEvent]:
        """Yield the finish, which is held back until now: a stream that breaks must not look finished."""
        finish, native = _finish(reason)
        self.complete = True
        extras = Extras(answer=self._own) if self._own else None
        yield Chunk(finish_reason=finish, native_finish_reason=native, extras=extras)
        usage = reported_usage(self._prompt, self._completion)
        if usage is not None:
            yield usage


class InvokeStream(NativeStream):
    """See providers.dialect.StreamDecoder."""

    __slots__ = ("_events_in_frames", "_invoked")

    def __init__(self, family: InvokeFamily) -> None:
        self._events_in_frames, self._invoked = EventFrames(BEDROCK), InvokeReader(family)
        super().__init__(self._events_in_frames, self._invoked)

    def finish(self) -> Iterator[StreamEvent]:
        """See StreamDecoder. The end of the body ends an answer that has said why it stopped."""
        if not self.complete:
            if self._events_in_frames.unfinished:
                raise cut()
            yield from self._invoked.finish()
