"""Counts and quantiles of the requests of the last minutes, for all requests and for each deployment.

A deployment that was called recently takes `MINUTES` arrays of `_WIDTH` numbers, 3 KB, however many requests it gets. A
finished request costs 1 us for each attempt. The counts of a past minute no longer change.
"""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Final

from providers.completion import Usage
from providers.failure import COOLDOWN_KINDS
from proxy.request_outcomes import FAULTLESS
from proxy.request_record import OTHER, Outcome, RequestRecord

MINUTES: Final = 5
"""The number of minutes that are stored, the current one included."""

MOST: Final = 4096
"""The most deployments that have their own counts. A configuration may have more deployments."""

BOUNDS: Final = tuple(round(0.01 * 1.4**step, 6) for step in range(33))
"""Upper bounds of the classes of times, in seconds: 10 ms to 8 minutes, each 40 % longer than the one before."""

_CLASSES: Final = len(BOUNDS) + 1
_REQUESTS, _ERRORS, _REFUSED, _TOKENS, _DURATION = range(5)
_FIRST: Final = _DURATION + _CLASSES
_DURATION_SPAN: Final = _FIRST + _CLASSES
_FIRST_SPAN: Final = _DURATION_SPAN + 2
_PROMPT: Final = _FIRST_SPAN + 2
_CACHED: Final = _PROMPT + 1
_WIDTH: Final = _CACHED + 1
_NOTHING: Final = bytes(8 * _WIDTH)
_NO_MINUTE: Final = -(10**9)

FAILED: Final[frozenset[Outcome]] = frozenset({"upstream_error", "timeout", "truncated", "error"})
"""Outcomes that are caused by a vendor or the gateway."""

REFUSED: Final[frozenset[Outcome]] = frozenset({"client_error", "denied", "limited"})
"""Outcomes that are caused by the client or its limits."""

_FAULTS: Final = frozenset(kind.value for kind in COOLDOWN_KINDS)


Span = tuple[float, float]
"""The shortest and the longest of some measured times, in seconds."""

UNMEASURED: Final[Span] = (0.0, 0.0)
"""The span if no time was measured."""


class MeasuredTimes:
    """A base class of counts with times of requests. `durations` and `firsts` count times by the classes of BOUNDS; the
    spans are the shortest and the longest time."""

    __slots__ = ()

    durations: tuple[int, ...]
    firsts: tuple[int, ...]
    duration_span: Span
    first_span: Span

    def duration(self, share: float) -> float | None:
        """Return a quantile of the durations in seconds."""
        return quantile(self.durations, share, self.duration_span)

    def first(self, share: float) -> float | None:
        """Return a quantile of the times to the first content in seconds."""
        return quantile(self.firsts, share, self.first_span)


@dataclass(frozen=True, slots=True)
class RecentUse(MeasuredTimes):
    """Counts of the last minutes.

    `errors` are requests that failed because of a vendor or the gateway, `refused` because of the client; `tokens` are
    generated tokens. `durations` and `firsts` count times by the classes of BOUNDS, without empty classes at the end;
    their spans are the shortest and the longest time. `prompt` are prompt tokens, of which `cached` came from the
    vendor's cache.
    """

    requests: int = 0
    errors: int = 0
    refused: int = 0
    tokens: int = 0
    durations: tuple[int, ...] = ()
    firsts: tuple[int, ...] = ()
    duration_span: Span = UNMEASURED
    first_span: Span = UNMEASURED
    prompt: int = 0
    cached: int = 0

    @property
    def cached_share(self) -> float | None:
        """The share of the prompt tokens that came from the vendor's cache; `None` if there were no prompt tokens."""
        return self.cached / self.prompt if self.prompt else None


NO_USE: Final = RecentUse()


def sum_of(uses: Sequence[RecentUse]) -> RecentUse:
    """Return the sum of several counts."""
    if len(uses) == 1:
        return uses[0]
    return RecentUse(
        sum(use.requests for use in uses),
        sum(use.errors for use in uses),
        sum(use.refused for use in uses),
        sum(use.tokens for use in uses),
        tuple(map(sum, zip_longest(*(use.durations for use in uses), fillvalue=0))),
        tuple(map(sum, zip_longest(*(use.firsts for use in uses), fillvalue=0))),
        span_of(use.duration_span for use in uses),
        span_of(use.first_span for use in uses),
        sum(use.prompt for use in uses),
        sum(use.cached for use in uses),
    )


def span_of(spans: Iterable[Span]) -> Span:
    """Return the smallest span that includes all spans."""
    measured = [span for span in spans if span != UNMEASURED]
    return (min(span[0] for span in measured), max(span[1] for span in measured)) if measured else UNMEASURED


def add_to_span(row: "array[float]", index: int, seconds: float) -> None:
    """Widen the span at an index of an array by a measured time. The span is UNMEASURED before the first time."""
    most = row[index + 1]
    if seconds > most:
        row[index + 1] = seconds
        if not most:
            row[index] = seconds
    elif seconds < row[index]:
        row[index] = seconds


@dataclass(frozen=True, slots=True)
class RecentUses:
    """Counts of the last `seconds`: of `whole` requests, and of the calls of each deployment by label."""

    seconds: float = 0.0
    whole: RecentUse = NO_USE
    deployments: Mapping[str, RecentUse] = field(default_factory=dict)


NO_USES: Final = RecentUses()


def quantile(counts: Sequence[int], share: float, span: Span = UNMEASURED) -> float | None:
    """Return a quantile of the counted times in seconds, `None` if nothing was counted. It is interpolated in the part
    of its class that is within `span`, the span of all times. A time beyond the last bound counts as that bound."""
    rank, below, start = share * sum(counts), 0, 0.0
    least, most = span
    for count, end in zip(counts, BOUNDS, strict=False):
        if count and below + count >= rank:
            low, high = max(start, least), min(end, most or end)
            return low + (high - low) * (rank - below) / count
        below, start = below + count, end
    return BOUNDS[-1] if any(counts) else None


def summed(found: Iterable[RecentUses]) -> RecentUses:
    """Return the sum of the counts of several processes."""
    every = list(found)
    parts: dict[str, list[RecentUse]] = {}
    for uses in every:
        for label, use in uses.deployments.items():
            parts.setdefault(label, []).append(use)
    deployments = {label: sum_of(parts_of_label) for label, parts_of_label in parts.items()}
    seconds = max((uses.seconds for uses in every), default=0.0)
    return RecentUses(seconds, sum_of([uses.whole for uses in every]), deployments)


class MinuteRing:
    """Counts of the last minutes. Each minute has an array, which is reused MINUTES later."""

    __slots__ = ("_minutes", "_rows")

    def __init__(self) -> None:
        self._minutes = [_NO_MINUTE] * MINUTES
        self._rows: list[array[float]] = [array("d") for _ in range(MINUTES)]

    def at(self, minute: int) -> "array[float]":
        """Return the array of a minute."""
        index = minute % MINUTES
        if self._minutes[index] != minute:
            # The order matters, because another thread may read.
            self._rows[index] = array("d", _NOTHING)
            self._minutes[index] = minute
        return self._rows[index]

    @property
    def newest(self) -> int:
        """The last minute that has counts."""
        return max(self._minutes)

    def since(self, minute: int) -> RecentUse | None:
        """Return the counts since the start of a minute; `None` if there are none."""
        rows = [row for then, row in zip(self._minutes, self._rows, strict=True) if then >= minute]
        if not rows:
            return None
        total = [int(sum(column)) for column in zip(*rows, strict=True)]
        times = (_trimmed(total[_DURATION:_FIRST]), _trimmed(total[_FIRST:_DURATION_SPAN]))
        duration, first = (span_of((row[at], row[at + 1]) for row in rows) for at in (_DURATION_SPAN, _FIRST_SPAN))
        counts = (total[_REQUESTS], total[_ERRORS], total[_REFUSED], total[_TOKENS])
        return RecentUse(*counts, *times, duration, first, total[_PROMPT], total[_CACHED])


def _trimmed(counts: list[int]) -> tuple[int, ...]:
    while counts and not counts[-1]:
        counts.pop()
    return tuple(counts)


class RecentRequests:
    """Counts finished requests and their attempts. `clock` returns the seconds that records use."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._started = clock()
        self._whole = MinuteRing()
        self._deployments: dict[str, MinuteRing] = {}
        self._minute = _NO_MINUTE
        self._rows: dict[str, array[float]] = {}
        self._row = array("d")

    def add(self, record: RequestRecord, cost: float | None) -> None:
        """Count a finished request. A shed request is not counted: shedding has to be cheap, and it has a metric."""
        outcome = record.outcome
        if outcome == "shed":
            return
        if (minute := int(record.finished // 60)) != self._minute:
            self._begin(minute)
        row = self._row
        row[_REQUESTS] += 1
        if outcome in FAILED:
            row[_ERRORS] += 1
        elif outcome in REFUSED:
            row[_REFUSED] += 1
        if not record.attempts:
            return
        first, (tokens, prompt, cached) = record.first_content, _tokens_of(record.billed or record.usage)
        if outcome == "ok":
            _add_times(row, record.started, first, record.finished)
        row[_TOKENS] += tokens
        row[_PROMPT] += prompt
        row[_CACHED] += cached
        for attempt in record.attempts:
            row = self._rows.get(attempt.deployment) or self._row_of(attempt.deployment)
            row[_REQUESTS] += 1
            if attempt.outcome in FAULTLESS:
                continue
            row[_ERRORS if attempt.outcome in _FAULTS else _REFUSED] += 1
        row[_TOKENS] += tokens
        row[_PROMPT] += prompt
        row[_CACHED] += cached
        if attempt.outcome == "ok":
            _add_times(row, attempt.started, first, attempt.finished or record.finished)

    def uses(self) -> RecentUses:
        """Return the counts of the last minutes. For a thousand deployments this takes 25 ms. It may be called on
        another thread: a request that ends meanwhile is counted in part."""
        now = self._clock()
        oldest = _oldest(int(now // 60))
        found = {label: ring.since(oldest) for label, ring in list(self._deployments.items())}
        used = {label: use for label, use in found.items() if use is not None}
        seconds = min(now - 60 * oldest, now - self._started)
        return RecentUses(seconds, self._whole.since(oldest) or NO_USE, used)

    def _begin(self, minute: int) -> None:
        """Make another minute the counted one, and remove the deployments that are no longer called."""
        self._minute, self._rows, self._row = minute, {}, self._whole.at(minute)
        oldest = _oldest(minute)
        for label in [label for label, ring in self._deployments.items() if ring.newest < oldest]:
            del self._deployments[label]

    def _row_of(self, label: str) -> "array[float]":
        """Return the array of a deployment for the current minute. It is looked up once a minute."""
        ring = self._deployments.get(label)
        if ring is None:
            known = label if len(self._deployments) < MOST else OTHER
            ring = self._deployments.setdefault(known, MinuteRing())
        row = self._rows[label] = ring.at(self._minute)
        return row


def _oldest(minute: int) -> int:
    """Return the oldest minute of the window that ends with the given one."""
    return minute - MINUTES + 1


def _tokens_of(usage: Usage | None) -> tuple[int, int, int]:
    """Return the completion tokens, the prompt tokens, and the prompt tokens from the vendor's cache."""
    if usage is None:
        return 0, 0, 0
    details = usage.prompt_details
    return usage.completion_tokens, usage.prompt_tokens, details.get("cached_tokens", 0) if details else 0


def _add_times(row: "array[float]", started: float, first: float | None, finished: float) -> None:
    seconds = finished - started
    row[_DURATION + bisect_left(BOUNDS, seconds)] += 1
    add_to_span(row, _DURATION_SPAN, seconds)
    if first is not None:
        seconds = first - started
        row[_FIRST + bisect_left(BOUNDS, seconds)] += 1
        add_to_span(row, _FIRST_SPAN, seconds)
