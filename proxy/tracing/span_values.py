"""The spans of one finished request as plain values: one for the request, and one for each of its attempts.

Pure. Sources: OpenTelemetry's conventions for generative AI (semantic-conventions-genai, client inference, November
2026; still in development) for `gen_ai.*`; OpenTelemetry's conventions for HTTP spans and for errors for all other
attributes. Attributes of the gateway begin with `dragoman.`. A span never contains a key, and contains no text of a
prompt, a response or an error unless the configuration allows it.
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
"""The most characters of a value that a client chose: the path and the model."""

FIRST_CONTENT: Final = "gen_ai.first_content"
"""The event at which the content of a streamed response began."""

_FAULTLESS: Final[frozenset[Outcome]] = frozenset({"ok", "client_error", "client_gone", "denied", "limited"})
"""Outcomes that do not count as errors of the gateway: errors of clients, and refusals that the operator configured."""

_NANO: Final = 1_000_000_000


class Side(Enum):
    """The side of a call: the gateway is the server of a request, and the client of an attempt."""

    SERVER = "server"
    CLIENT = "client"


class SpanEvent(NamedTuple):
    """An event at a time in nanoseconds since 1970."""

    name: str
    time: int


@dataclass(frozen=True, slots=True, eq=False)
class SpanLabels:
    """Labels that many spans share. The spans have the same object, so it is encoded once. `attributes` are its
    attributes."""

    name: str
    side: Side
    attributes: Mapping[str, NoteValue]


@dataclass(frozen=True, slots=True, eq=False)
class SpanCounts:
    """Attributes that two spans of one request share. Both spans have the same object, so it is encoded once."""

    attributes: Mapping[str, NoteValue]


class SpanValues(NamedTuple):
    """One span. Times are in nanoseconds since 1970. `parent_id` is 0 for the first span of a trace; `remote` is true
    if the parent is a span of another process. `own` are the attributes that are not in its `labels` and `counts`."""

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
        """The name of the span."""
        return self.labels.name

    @property
    def side(self) -> Side:
        """The side of the call."""
        return self.labels.side

    @property
    def attributes(self) -> Mapping[str, NoteValue]:
        """All attributes of the span."""
        counts = {} if self.counts is None else self.counts.attributes
        return {**self.labels.attributes, **self.own, **counts}


class FinishedRequest(NamedTuple):
    """A request that has ended: its record, its trace, its notes, its cost in USD, and the offset in seconds from the
    loop's clock to unix time."""

    record: RequestRecord
    trace: SampledTrace
    notes: SpanNotes
    cost: float | None
    offset: float


def spans_of(request: FinishedRequest, deployments: CalledDeployments) -> Iterator[SpanValues]:
    """Yield the spans of a sampled request; `deployments` are the deployments of the configuration. The request's span
    counts the tokens of all its calls, as the log does; the span of the successful attempt counts the tokens of its
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
"""The most combinations of labels that are cached. Clients choose some of the labels, of at most MOST_TEXT characters
each."""


class _RequestKind(NamedTuple):
    """The attributes that many requests share. `entry` is the configuration's name for the requested model."""

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
    attributes: dict[str, NoteValue] = {
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
        attributes["gen_ai.request.model"] = clean(kind.asked)
        attributes["gen_ai.request.stream"] = kind.stream
    if kind.called is not None:
        attributes["gen_ai.provider.name"] = kind.called.provider
        attributes["gen_ai.response.model"] = kind.model
        attributes["dragoman.deployment"] = clean(kind.deployment)
    if kind.finish_reasons:
        attributes["gen_ai.response.finish_reasons"] = [*kind.finish_reasons]
    name = kind.operation if kind.entry == OTHER else f"{kind.operation} {kind.entry}"
    return SpanLabels(name, Side.SERVER, attributes)


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
    attributes: dict[str, NoteValue] = {
        "client.address": clean(record.client),
        "dragoman.request_id": record.request_id,
    }
    for name, value in notes.params.items() if notes.params else ():
        attributes[name] = clean(value) if isinstance(value, str) else value
    if record.first_content is not None:
        attributes["gen_ai.response.time_to_first_chunk"] = record.first_content - record.started
    if record.receipt is not None:
        attributes.update(_receipt(record))
    if record.cache is not None:
        attributes["dragoman.cache"] = record.cache.result
    if record.emulated:
        attributes["dragoman.emulated"] = [clean(name) for name in record.emulated]
    if record.dropped:
        attributes["dragoman.dropped"] = [clean(name) for name in record.dropped]
    if request.cost is not None:
        attributes["dragoman.cost_usd"] = request.cost
    if record.outcome != "ok":
        attributes["error.type"] = record.code or record.outcome
    if notes.keeps_content:
        attributes.update({name: value for name, value in _contents(notes) if value})
    base = int(request.offset * _NANO)
    start, end = base + int(record.started * _NANO), base + int(record.finished * _NANO)
    failed = record.outcome not in _FAULTLESS
    ids = (trace.span_id, trace.parent_id, True)
    return SpanValues(labels, trace, *ids, start, end, attributes, _first_content(record, base), failed, None, counts)


def _receipt(record: RequestRecord) -> Iterator[tuple[str, NoteValue]]:
    """Yield the parts of the request's duration, in seconds. Attempts without a response are left out, because they
    have their own spans."""
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
    attributes: dict[str, NoteValue] = {
        "gen_ai.usage.input_tokens": usage.prompt_tokens,
        "gen_ai.usage.output_tokens": usage.completion_tokens,
    }
    for details, names in (
        (usage.prompt_details, _PROMPT_DETAILS),
        (usage.completion_details, _COMPLETION_DETAILS),
    ):
        if details:
            attributes.update({name: details[field] for field, name in names.items() if details.get(field) is not None})
    return attributes


def _contents(notes: SpanNotes) -> Iterator[tuple[str, NoteValue]]:
    yield "gen_ai.input.messages", notes.prompt
    yield "gen_ai.output.messages", notes.answer


class _AttemptKind(NamedTuple):
    """The attributes that many attempts share. `label` is the configuration's name of the deployment."""

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
    attributes: dict[str, NoteValue] = {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": called.provider,
        "gen_ai.request.model": model,
        "dragoman.deployment": clean(deployment),
        "dragoman.attempt": number,
    }
    if called.address:
        attributes["server.address"] = called.address
        attributes["server.port"] = called.port or 0
    if status is not None:
        attributes["http.response.status_code"] = status
    # The model's name may come from the client under a wildcard entry; the span's name comes from the configuration.
    return SpanLabels(f"{operation} {label.rpartition('/')[0]}", Side.CLIENT, attributes)


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
    attributes = _failed(attempt) if failed or attempt.repeats or attempt.number else _NOTHING
    message = clean(attempt.message) if request.notes.keeps_content and attempt.message else None
    base = int(request.offset * _NANO)
    start, end = base + int(attempt.started * _NANO), base + int((attempt.finished or record.finished) * _NANO)
    events = _first_content(record, base) if attempt is record.attempts[-1] else ()
    ids = (trace.span_id + number, trace.span_id, False)
    return SpanValues(labels, trace, *ids, start, end, attributes, events, failed, message, counts)


_NOTHING: Final[Mapping[str, NoteValue]] = {}


def _failed(attempt: Attempt) -> Mapping[str, NoteValue]:
    """Return the attributes of an attempt that failed, whose calls were repeated, or that ran concurrently with
    another."""
    attributes: dict[str, NoteValue] = {}
    if attempt.hedge:
        attributes["dragoman.hedge"] = True
    if attempt.outcome == SUPERSEDED:
        attributes["dragoman.superseded"] = True
    elif attempt.outcome != "ok":
        attributes["error.type"] = attempt.outcome if attempt.cause is None else f"{attempt.outcome}.{attempt.cause}"
        attributes["dragoman.maybe_executed"] = attempt.maybe_executed
    if attempt.repeats:
        attributes["http.request.resend_count"] = len(attempt.repeats)
        attributes["dragoman.repeats"] = [*attempt.repeats]
    return attributes


def model_of(attempt: Attempt, called: CalledDeployment) -> str:
    """Return the vendor's name of the model that an attempt called."""
    return called.model or clean(attempt.full_name.partition("/")[2].rpartition("/")[0])


def _first_content(record: RequestRecord, base: int) -> tuple[SpanEvent, ...]:
    first = record.first_content
    return () if first is None else (SpanEvent(FIRST_CONTENT, base + int(first * _NANO)),)


def clean(text: str) -> str:
    """Return a text cut to MOST_TEXT characters and as valid UTF-8, because a client's bytes may be invalid."""
    text = text[:MOST_TEXT]
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
