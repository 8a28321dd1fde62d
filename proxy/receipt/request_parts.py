"""Splits the time of a request into parts that do not overlap, by the marks of its record. Pure.

| part | from, to |
|---|---|
| `gateway` | the gateway's own work: the rest of the time |
| `client` | waits for the client to send its body, or to read |
| `queue` | waits for a limit of the team, and for a slot in the process or at a deployment |
| `guards` | checks of the request and the response by the operator's plugins, before the first content |
| `cache` | waits of the response cache, for an equal request or its store |
| `attempt1` … | an attempt that gave no response, from its slot to its end; `attempts`: several of them |
| `backoff` | waits between two attempts |
| `connect` | of the attempt that gave the response: making a connection, with name resolution and TLS |
| `vendor` | of the same attempt: from then to the first content of a stream, or to the non-streaming response |
| `body` | of the same attempt: the rest of a response whose body came after its head, or of a stream for guards |
| `stream` | from the first content to the end, without waits for the client |

The sum of the parts is the time up to the requested moment. If two attempts run concurrently, only the attempt that
gave the response counts. If neither gave it, the one that began last counts for as long as it runs.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from proxy.request_outcomes import WaitMarks
from proxy.request_record import Attempt, RequestRecord

UNITS: Final = 100_000
"""Units of time in a second: hundredths of a millisecond, so that rounded parts have an exact sum."""

_NO_MARKS: Final = WaitMarks()


class Part(NamedTuple):
    """A part: `units` are hundredths of a millisecond. `attempt` is set if the part is an attempt that gave no
    response; `hidden` is the number of such attempts that the part sums up."""

    name: str
    units: int
    attempt: Attempt | None = None
    hidden: int = 0


def units_of(seconds: float) -> int:
    """Return a time in whole units, 0 if it is negative."""
    return int(seconds * UNITS + 0.5) if seconds > 0 else 0


def parts_of(record: RequestRecord, end: float) -> list[Part]:
    """Return the parts of a request up to `end`, seconds of the loop's clock. Parts that took no time are left out,
    except `gateway`, the attempts, `vendor`, and the `cache` if it gave the response."""
    waits = record.marks or _NO_MARKS
    parts = [
        Part("client", units_of(record.client_waited)),
        Part("queue", units_of(record.limit_waited + waits.queued)),
        Part("cache", units_of(waits.cached)),
    ]
    answering = answering_attempt(record)
    parts += _failed_attempts(record.attempts, answering, end)
    parts.append(Part("backoff", units_of(waits.paused)))
    if answering is not None:
        parts += _answering(record, answering, end)
    if record.first_content is not None:
        parts.append(Part("stream", _stream_units(record, waits, end)))
    always = {"vendor", "cache"} if record.from_cache else {"vendor"}
    parts = [each for each in parts if each.units or each.attempt is not None or each.name in always]
    own = max(0, units_of(end - record.started) - sum([each.units for each in parts]))
    guards = min(own, units_of(waits.guarded))
    if guards:
        parts.insert(0, Part("guards", guards))
    return [Part("gateway", own - guards), *parts]


def answering_attempt(record: RequestRecord) -> Attempt | None:
    """Return the attempt that gives the response, or that still runs; `None` if no attempt does, for example for a
    cached response. The stream of this attempt may break later."""
    if not record.attempts or record.from_cache:
        return None
    last = record.attempts[-1]
    return last if last.outcome == "ok" or record.first_content is not None else None


def _failed_attempts(attempts: Sequence[Attempt], answering: Attempt | None, end: float) -> list[Part]:
    if not attempts or (len(attempts) == 1 and answering is not None):
        return []
    ordered = sorted(attempts, key=lambda attempt: attempt.started)
    parts = []
    for number, attempt in enumerate(ordered, 1):
        if attempt is answering:
            continue
        later = ordered[number:]
        if answering is not None and answering.started <= attempt.started:
            later = [answering, *later]
        parts.append(Part(f"attempt{number}", units_of(_seconds_alone(attempt, later, end)), attempt))
    return parts


def _seconds_alone(attempt: Attempt, later: Sequence[Attempt], end: float) -> float:
    """Return the seconds of an attempt in which no later attempt ran. `later` is ordered by the start."""
    stop, alone, since = attempt.finished or end, 0.0, attempt.started
    for other in later:
        if other.started >= stop:
            break
        alone += max(0.0, other.started - since)
        since = max(since, other.finished or end)
    return alone + max(0.0, stop - since)


def _answering(record: RequestRecord, attempt: Attempt, end: float) -> list[Part]:
    """Return the parts of the attempt that gives the response. Each part is cut off at `end`."""
    first = record.first_content
    streams = first is not None
    stop = min(attempt.finished or end if first is None else attempt.begun or first, end)
    all_units, connect = units_of(stop - attempt.started), units_of(attempt.connect)
    body = 0 if streams or not attempt.begun else units_of(stop - attempt.begun)
    body = min(body, all_units)
    connect = min(connect, all_units - body)
    vendor = all_units - connect - body
    if record.marks is not None and record.marks.held:  # the time from `begun` until the guards have the content
        body = units_of(record.marks.held)
    return [Part("connect", connect), Part("vendor", vendor), Part("body", body)]


def _stream_units(record: RequestRecord, waits: WaitMarks, end: float) -> int:
    """Return the units from a stream's first content to `end`, without the waits for a client that does not read."""
    first = end if record.first_content is None else record.first_content
    return units_of(end - first) - min(units_of(record.client_waited - waits.upload), units_of(end - first))


def merged(parts: Sequence[Part], shown: int) -> list[Part]:
    """Return the parts with at most `shown` of the attempts that gave no response: the first and the last ones. The
    attempts in between are summed up in one part."""
    failed = [index for index, part in enumerate(parts) if part.attempt is not None]
    hidden = failed[(shown + 1) // 2 : len(failed) - shown // 2]
    if not hidden:
        return [*parts]
    whole = Part("attempts", sum([parts[index].units for index in hidden]), None, len(hidden))
    before, after = parts[: hidden[0]], parts[hidden[-1] + 1 :]
    return [*before, whole, *after]


SHOWN_ATTEMPTS: Final = 5
"""The most attempts without a response that the log names."""


def milliseconds_of_parts(record: RequestRecord, end: float) -> dict[str, float]:
    """Return the parts of a request by name, in milliseconds, with few of the attempts that gave no response."""
    attempts = record.attempts
    if len(attempts) == 1 and record.marks is None and not (record.client_waited or record.limit_waited):
        # The case of nearly every request. The result is the same as from `parts_of`, without its objects.
        attempt, first = attempts[0], record.first_content
        streams = first is not None
        if attempt.outcome == "ok" and not attempt.connect and record.cache is None and streams == bool(attempt.begun):
            stop = attempt.begun or attempt.finished
            vendor = int((stop - attempt.started) * UNITS + 0.5)
            own = int((end - record.started) * UNITS + 0.5) - vendor
            if first is None:
                return {"gateway": max(0, own) / 100, "vendor": vendor / 100}
            stream = int((end - first) * UNITS + 0.5)
            return {"gateway": max(0, own - stream) / 100, "vendor": vendor / 100, "stream": stream / 100}
    return {part.name: part.units / 100 for part in merged(parts_of(record, end), SHOWN_ATTEMPTS)}


SHORTEST_PACE: Final = 0.02
"""The least seconds that a stream must last for its tokens per second to be known. A stream that arrived at once, or
was held back, has no such rate."""


def tokens_per_second(record: RequestRecord, end: float) -> float | None:
    """Return the tokens per second of a stream from its first content to `end`; `None` if that is unknown."""
    first, usage = record.first_content, record.usage
    if first is None or usage is None or end - first < SHORTEST_PACE or record.from_cache:
        return None
    return usage.completion_tokens / (end - first)
