"""The spans of one finished request as plain values: one for the request, and one for each attempt below it.

Pure. Sources: OpenTelemetry's conventions for generative AI (semantic-conventions-genai, client inference, November
2026; still in development) for `gen_ai.*`, its conventions for HTTP spans and for errors for the rest; what is the
gateway's own begins with `dragoman.`. Never a key, and no text of a prompt, an answer or an error unless the table
allows it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Final, NamedTuple

from providers.completion import Usage
from proxy.receipt.request_parts import UNITS, parts_of, tokens_per_second
from proxy.request_outcomes import FAULTLESS, SUPERSEDED
from proxy.request_record import OTHER, Attempt, Outcome, RequestRecord
from proxy.trace_context import NoteValue, SampledTrace, SpanNotes
from proxy.tracing.semantic_conventions import OTHER_OPERATION, CalledDeployment, CalledDeployments, operation_of

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


class SpanEvent(NamedTuple):
    """Something that happened at a moment, in nanoseconds since 1970."""

    name: str
    time: int


@dataclass(frozen=True, slots=True, eq=False)
class SpanLabels:
    """What is the same in many spans, which share this object: it is written once. `said` are attributes."""

    name: str
    side: Side
    said: Mapping[str, NoteValue]


@dataclass(frozen=True, slots=True, eq=False)
class SpanCounts:
    """Attributes that are the same in two spans of one request, which share this object: they are written once."""

    said: Mapping[str, NoteValue]


class SpanValues(NamedTuple):
    """One span. Times are in nanoseconds since 1970; `parent_id` is 0 for the first of a trace, `remote` says that the
    parent is another process's span. `own` are the attributes besides its `labels` and `counts`."""

    labels: SpanLabels
    trace: SampledTrace
    span_id: int
    parent_id: int
    remote: bool
    start: int
    end: int
    own: Mapping[str, NoteValue]
    events: tuple[SpanEvent, ...] = ()
    failed: bool = False
    message: str | None = None
    counts: SpanCounts | None = None

    @property
    def name(self) -> str:
        """Its name."""
        return self.labels.name

    @property
    def side(self) -> Side:
        """Its side of the call."""
        return self.labels.side

    @property
    def attributes(self) -> Mapping[str, NoteValue]:
        """All of its attributes."""
        counts = {} if self.counts is None else self.counts.said
        return {**self.labels.said, **self.own, **counts}


class FinishedRequest(NamedTuple):
    """A request that has ended, with its trace and the notes of it, what it cost, and how far the loop's clock is
    behind unix seconds."""

    record: RequestRecord
    trace: SampledTrace
    notes: SpanNotes
    cost: float | None
    offset: float


def spans_of(request: FinishedRequest, deployments: CalledDeployments) -> Iterator[SpanValues]:
    """Yield the spans of a sampled request; `deployments` are the deployments of the configuration. The request's span
    counts the tokens of all its calls, as the log does; the span of the answering attempt counts the tokens of its
    response."""
    record, trace = request.record, request.trace
    operation = operation_of(record.path, trace.method)
    counts = _counts(record.usage)
    billed = counts if record.counted is record.usage else _counts(record.counted)
    yield _request_span(request, operation, deployments, billed)
    for place, attempt in enumerate(record.attempts, 1):
        number = attempt.number or place
        called = deployments.of(attempt.deployment)
        answered = place == len(record.attempts) and attempt.outcome == "ok"
        yield _attempt_span(request, number, attempt, operation, called, counts if answered else None)


MOST_LABELS: Final = 1024
"""Combinations of labels that are kept. Clients choose some of them, of MOST_TEXT characters each."""


class _RequestKind(NamedTuple):
    """What many requests have in common. `entry` is the table's name of what was asked."""

    operation: str
    entry: str
    method: str
    path: str
    status: int
    team: str
    surface: str
    outcome: str
    attempts: int
    asked: str
    stream: bool
    called: CalledDeployment | None
    model: str
    deployment: str
    finish_reasons: tuple[str, ...]


@lru_cache(maxsize=MOST_LABELS)
def _request_labels(kind: _RequestKind) -> SpanLabels:
    said: dict[str, NoteValue] = {
        "gen_ai.operation.name": kind.operation,
        "http.request.method": kind.method,
        "url.path": clean(kind.path),
        "http.response.status_code": kind.status,
        "dragoman.team": kind.team,
        "dragoman.surface": kind.surface,
        "dragoman.outcome": kind.outcome,
        "dragoman.attempts": kind.attempts,
    }
    if kind.operation != OTHER_OPERATION:
        said["gen_ai.request.model"] = clean(kind.asked)
        said["gen_ai.request.stream"] = kind.stream
    if kind.called is not None:
        said["gen_ai.provider.name"] = kind.called.provider
        said["gen_ai.response.model"] = kind.model
        said["dragoman.deployment"] = clean(kind.deployment)
    if kind.finish_reasons:
        said["gen_ai.response.finish_reasons"] = [*kind.finish_reasons]
    name = kind.operation if kind.entry == OTHER else f"{kind.operation} {kind.entry}"
    return SpanLabels(name, Side.SERVER, said)


def _request_kind(request: FinishedRequest, operation: str, deployments: CalledDeployments) -> _RequestKind:
    record = request.record
    called, model, deployment = None, "", ""
    if record.attempts:
        last = record.attempts[-1]
        called = deployments.of(last.deployment)
        model, deployment = model_of(last, called), last.full_name[:MOST_TEXT]
    reasons = request.notes.finish_reasons
    return _RequestKind(
        operation,
        record.model,
        request.trace.method,
        record.path[:MOST_TEXT],
        record.status,
        record.team,
        record.surface,
        record.outcome,
        len(record.attempts),
        record.asked[:MOST_TEXT],
        record.stream,
        called,
        model,
        deployment,
        tuple(map(clean, reasons)) if reasons else reasons,
    )


def _request_span(
    request: FinishedRequest, operation: str, deployments: CalledDeployments, counts: SpanCounts | None
) -> SpanValues:
    record, trace, notes = request.record, request.trace, request.notes
    labels = _request_labels(_request_kind(request, operation, deployments))
    said: dict[str, NoteValue] = {"client.address": clean(record.client), "dragoman.request_id": record.request_id}
    for name, value in notes.params.items() if notes.params else ():
        said[name] = clean(value) if isinstance(value, str) else value
    if record.first_content is not None:
        said["gen_ai.response.time_to_first_chunk"] = record.first_content - record.started
    if record.receipt is not None:
        said.update(_receipt(record))
    if record.cache is not None:
        said["dragoman.cache"] = record.cache.result
    if record.emulated:
        said["dragoman.emulated"] = [clean(name) for name in record.emulated]
    if record.dropped:
        said["dragoman.dropped"] = [clean(name) for name in record.dropped]
    if request.cost is not None:
        said["dragoman.cost_usd"] = request.cost
    if record.outcome != "ok":
        said["error.type"] = record.code or record.outcome
    if notes.keeps_content:
        said.update({name: value for name, value in _contents(notes) if value})
    base = int(request.offset * _NANO)
    start, end = base + int(record.started * _NANO), base + int(record.finished * _NANO)
    failed = record.outcome not in _FAULTLESS
    ids = (trace.span_id, trace.parent_id, True)
    return SpanValues(labels, trace, *ids, start, end, said, _first_content(record, base), failed, None, counts)


def _receipt(record: RequestRecord) -> Iterator[tuple[str, NoteValue]]:
    """Yield the parts of the duration, in seconds. The attempts that gave no response have spans of their own."""
    for part in parts_of(record, record.finished):
        if part.attempt is None:
            yield f"dragoman.time.{part.name}", part.units / UNITS
    if (pace := tokens_per_second(record, record.finished)) is not None:
        yield "dragoman.tokens_per_second", pace
    if record.marks is not None and record.marks.stalls:
        yield "dragoman.stalls", record.marks.stalls
        yield "dragoman.time.stalled", record.marks.stalled


_PROMPT_DETAILS: Final = {
    "cached_tokens": "gen_ai.usage.cache_read.input_tokens",
    "cache_write_tokens": "gen_ai.usage.cache_write.input_tokens",
}
_COMPLETION_DETAILS: Final = {"reasoning_tokens": "gen_ai.usage.reasoning.output_tokens"}


def _counts(usage: Usage | None) -> SpanCounts | None:
    return None if usage is None else SpanCounts(_used(usage))


def _used(usage: Usage) -> Mapping[str, NoteValue]:
    said: dict[str, NoteValue] = {
        "gen_ai.usage.input_tokens": usage.prompt_tokens,
        "gen_ai.usage.output_tokens": usage.completion_tokens,
    }
    for details, names in (
        (usage.prompt_details, _PROMPT_DETAILS),
        (usage.completion_details, _COMPLETION_DETAILS),
    ):
        if details:
            said.update({name: details[field] for field, name in names.items() if details.get(field) is not None})
    return said


def _contents(notes: SpanNotes) -> Iterator[tuple[str, NoteValue]]:
    yield "gen_ai.input.messages", notes.prompt
    yield "gen_ai.output.messages", notes.answer


class _AttemptKind(NamedTuple):
    """What many attempts have in common. `label` is the table's name of the deployment."""

    operation: str
    label: str
    called: CalledDeployment
    model: str
    deployment: str
    number: int
    status: int | None


@lru_cache(maxsize=MOST_LABELS)
def _attempt_labels(kind: _AttemptKind) -> SpanLabels:
    operation, label, called, model, deployment, number, status = kind
    said: dict[str, NoteValue] = {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": called.provider,
        "gen_ai.request.model": model,
        "dragoman.deployment": clean(deployment),
        "dragoman.attempt": number,
    }
    if called.address:
        said["server.address"] = called.address
        said["server.port"] = called.port or 0
    if status is not None:
        said["http.response.status_code"] = status
    # What the model is called may be the client's word under an entry for any model; the span's name is the table's.
    return SpanLabels(f"{operation} {label.rpartition('/')[0]}", Side.CLIENT, said)


def _attempt_span(
    request: FinishedRequest,
    number: int,
    attempt: Attempt,
    operation: str,
    called: CalledDeployment,
    counts: SpanCounts | None,
) -> SpanValues:
    record, trace = request.record, request.trace
    of = operation, attempt.deployment, called, model_of(attempt, called), attempt.full_name[:MOST_TEXT]
    labels = _attempt_labels(_AttemptKind(*of, number, attempt.status))
    failed = attempt.outcome not in FAULTLESS
    said = _failed(attempt) if failed or attempt.repeats or attempt.number else _NOTHING
    message = clean(attempt.message) if request.notes.keeps_content and attempt.message else None
    base = int(request.offset * _NANO)
    start, end = base + int(attempt.started * _NANO), base + int((attempt.finished or record.finished) * _NANO)
    events = _first_content(record, base) if attempt is record.attempts[-1] else ()
    ids = (trace.span_id + number, trace.span_id, False)
    return SpanValues(labels, trace, *ids, start, end, said, events, failed, message, counts)


_NOTHING: Final[Mapping[str, NoteValue]] = {}


def _failed(attempt: Attempt) -> Mapping[str, NoteValue]:
    """Return the attributes of an attempt that failed, whose calls were repeated, or that ran beside another."""
    said: dict[str, NoteValue] = {}
    if attempt.hedge:
        said["dragoman.hedge"] = True
    if attempt.outcome == SUPERSEDED:
        said["dragoman.superseded"] = True
    elif attempt.outcome != "ok":
        said["error.type"] = attempt.outcome if attempt.cause is None else f"{attempt.outcome}.{attempt.cause}"
        said["dragoman.maybe_executed"] = attempt.maybe_executed
    if attempt.repeats:
        said["http.request.resend_count"] = len(attempt.repeats)
        said["dragoman.repeats"] = [*attempt.repeats]
    return said


def model_of(attempt: Attempt, called: CalledDeployment) -> str:
    """Return the vendor's name of the model that an attempt called."""
    return called.model or clean(attempt.full_name.partition("/")[2].rpartition("/")[0])


def _first_content(record: RequestRecord, base: int) -> tuple[SpanEvent, ...]:
    first = record.first_content
    return () if first is None else (SpanEvent(FIRST_CONTENT, base + int(first * _NANO)),)


def clean(text: str) -> str:
    """Return a text that is valid UTF-8, cut to MOST_TEXT: a client's bytes may not have been."""
    text = text[:MOST_TEXT]
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
