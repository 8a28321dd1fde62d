"""The spans of one finished request as plain values: one for the request, and one for each attempt below it.

Pure. Sources: OpenTelemetry's conventions for generative AI (semantic-conventions-genai, client inference, November
2026; still in development) for `gen_ai.*`, its conventions for HTTP spans and for errors for the rest; what is the
gateway's own begins with `dragoman.`. Never a key, and no text of a prompt, an answer or an error unless the table
allows it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from providers.completion import Usage
from proxy.request_record import OTHER, Attempt, Outcome, RequestRecord
from proxy.trace_context import NoteValue, Trace
from proxy.tracing.gen_ai_words import OTHER_OPERATION, CalledDeployment, CalledDeployments, operation_of

MOST_TEXT: Final = 256
"""Characters of what a client chose: its path and its model."""

FIRST_CONTENT: Final = "gen_ai.first_content"
"""The event at which the content of a streamed answer began."""

_FAULTLESS: Final[frozenset[Outcome]] = frozenset({"ok", "client_error", "client_gone", "denied", "limited"})
"""Outcomes that are no error of the gateway's: those of clients, and what the operator wanted."""

_NANO: Final = 1_000_000_000


class Side(Enum):
    """Which side of a call a span is: the gateway answers a request, and makes an attempt."""

    SERVER = "server"
    CLIENT = "client"


@dataclass(frozen=True, slots=True)
class SpanEvent:
    """Something that happened at a moment, in nanoseconds since 1970."""

    name: str
    time: int


@dataclass(frozen=True, slots=True)
class SpanValues:
    """One span. Times are in nanoseconds since 1970; `parent_id` is 0 for the first of a trace, `remote` says that the
    parent is another process's span."""

    name: str
    side: Side
    trace: Trace
    span_id: int
    parent_id: int
    remote: bool
    start: int
    end: int
    attributes: Mapping[str, NoteValue]
    events: tuple[SpanEvent, ...] = ()
    failed: bool = False
    message: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class FinishedRequest:
    """A request that has ended, with its trace, what it cost, and how far the loop's clock is behind unix seconds."""

    record: RequestRecord
    trace: Trace
    cost: float | None
    offset: float


def spans_of(request: FinishedRequest, deployments: CalledDeployments) -> Iterator[SpanValues]:
    """Yield the spans of a sampled request; `deployments` are those of the table."""
    record, trace = request.record, request.trace
    operation = operation_of(record.path, trace.method)
    yield _request_span(request, operation, deployments)
    for number, attempt in enumerate(record.attempts, 1):
        called = deployments.of(attempt.deployment)
        yield _attempt_span(request, number, attempt, operation, called)


def _request_span(request: FinishedRequest, operation: str, deployments: CalledDeployments) -> SpanValues:
    record, trace = request.record, request.trace
    said: dict[str, NoteValue] = {
        "gen_ai.operation.name": operation,
        "http.request.method": trace.method,
        "url.path": clean(record.path),
        "http.response.status_code": record.status,
        "client.address": clean(record.client),
        "dragoman.request_id": record.request_id,
        "dragoman.team": record.team,
        "dragoman.surface": record.surface,
        "dragoman.outcome": record.outcome,
        "dragoman.attempts": len(record.attempts),
    }
    if operation != OTHER_OPERATION:
        said["gen_ai.request.model"] = clean(record.asked)
        said["gen_ai.request.stream"] = record.stream
        said.update(
            {name: clean(value) if isinstance(value, str) else value for name, value in (trace.params or {}).items()}
        )
    if record.attempts:
        last = record.attempts[-1]
        called = deployments.of(last.deployment)
        said["gen_ai.provider.name"] = called.provider
        said["gen_ai.response.model"] = model_of(last, called)
        said["dragoman.deployment"] = clean(last.full_name)
    said.update(_answered(record, trace))
    if request.cost is not None:
        said["dragoman.cost_usd"] = request.cost
    if record.outcome != "ok":
        said["error.type"] = record.code or record.outcome
    said.update({name: value for name, value in _contents(trace) if value})
    name = operation if record.model == OTHER else f"{operation} {record.model}"
    start, end = _nanoseconds(request, record.started), _nanoseconds(request, record.finished)
    failed = record.outcome not in _FAULTLESS
    events = _first_content(request)
    return SpanValues(name, Side.SERVER, trace, trace.span_id, trace.parent_id, True, start, end, said, events, failed)


def _answered(record: RequestRecord, trace: Trace) -> Iterator[tuple[str, NoteValue]]:
    if trace.finish_reasons:
        yield "gen_ai.response.finish_reasons", [clean(reason) for reason in trace.finish_reasons]
    if record.first_content is not None:
        yield "gen_ai.response.time_to_first_chunk", record.first_content - record.started
    if record.usage is not None:
        yield from _used(record.usage)
    if record.cache is not None:
        yield "dragoman.cache", record.cache.result
    if record.emulated:
        yield "dragoman.emulated", [clean(name) for name in record.emulated]
    if record.dropped:
        yield "dragoman.dropped", [clean(name) for name in record.dropped]


_PROMPT_DETAILS: Final = {
    "cached_tokens": "gen_ai.usage.cache_read.input_tokens",
    "cache_write_tokens": "gen_ai.usage.cache_write.input_tokens",
}
_COMPLETION_DETAILS: Final = {"reasoning_tokens": "gen_ai.usage.reasoning.output_tokens"}


def _used(usage: Usage) -> Iterator[tuple[str, NoteValue]]:
    yield "gen_ai.usage.input_tokens", usage.prompt_tokens
    yield "gen_ai.usage.output_tokens", usage.completion_tokens
    for details, names in (
        (usage.prompt_details, _PROMPT_DETAILS),
        (usage.completion_details, _COMPLETION_DETAILS),
    ):
        for field, name in names.items() if details else ():
            if (count := details.get(field) if details else None) is not None:
                yield name, count


def _contents(trace: Trace) -> Iterator[tuple[str, NoteValue]]:
    yield "gen_ai.input.messages", trace.prompt
    yield "gen_ai.output.messages", trace.answer


def _attempt_span(
    request: FinishedRequest, number: int, attempt: Attempt, operation: str, called: CalledDeployment
) -> SpanValues:
    record, trace = request.record, request.trace
    model = model_of(attempt, called)
    said: dict[str, NoteValue] = {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": called.provider,
        "gen_ai.request.model": model,
        "dragoman.deployment": clean(attempt.full_name),
        "dragoman.attempt": number,
    }
    if called.address:
        said["server.address"] = called.address
        said["server.port"] = called.port or 0
    failed = attempt.outcome != "ok"
    if failed:
        said["error.type"] = attempt.outcome if attempt.cause is None else f"{attempt.outcome}.{attempt.cause}"
        said["dragoman.maybe_executed"] = attempt.maybe_executed
    if attempt.status is not None:
        said["http.response.status_code"] = attempt.status
    if attempt.repeats:
        said["http.request.resend_count"] = len(attempt.repeats)
        said["dragoman.repeats"] = [*attempt.repeats]
    last = number == len(record.attempts)
    if last and not failed and record.usage is not None:
        said.update(_used(record.usage))
    message = clean(attempt.message) if trace.keeps_content and attempt.message else None
    start, end = _nanoseconds(request, attempt.started), _nanoseconds(request, attempt.finished or record.finished)
    events = _first_content(request) if last else ()
    # What the model is called may be the client's word under an entry for any model; the span's name is the table's.
    name = f"{operation} {attempt.deployment.rpartition('/')[0]}"
    ids = (trace.span_id + number, trace.span_id, False)
    return SpanValues(name, Side.CLIENT, trace, *ids, start, end, said, events, failed, message)


def model_of(attempt: Attempt, called: CalledDeployment) -> str:
    """Return the vendor's name of the model that an attempt called."""
    return called.model or clean(attempt.full_name.partition("/")[2].rpartition("/")[0])


def _first_content(request: FinishedRequest) -> tuple[SpanEvent, ...]:
    first = request.record.first_content
    return () if first is None else (SpanEvent(FIRST_CONTENT, _nanoseconds(request, first)),)


def _nanoseconds(request: FinishedRequest, seconds: float) -> int:
    return int(seconds * _NANO) + int(request.offset * _NANO)


def clean(text: str) -> str:
    """Return a text that is valid UTF-8, cut to MOST_TEXT: a client's bytes may not have been."""
    text = text[:MOST_TEXT]
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
