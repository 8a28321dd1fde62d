"""Counts the requests of the last hour by minute: outcomes, times, cached tokens, affinity, and spending.

The memory is bounded: sixty arrays of fixed size, 40 KB, and 200 names each of teams, keys and models, 1.3 MB if all
are in use. A finished request adds to the array of the current minute, and to a sum for its team, key and model. These
sums are added to the spending of each team, key and model when there are MOST_SUMS of them, when the minute ends, and
when the hour is read.
"""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from proxy.admin.last_hour.hour_figures import (
    MINUTES,
    OUTCOME_INDEX,
    OUTCOMES,
    HourFigures,
    MinuteFigures,
    Spent,
    highest,
    highest_by_minute,
)
from proxy.admin.last_hour.spender_counts import SpenderCounts, SpentRing
from proxy.admin.recent_requests import BOUNDS, add_to_span
from proxy.errors import OverloadReason
from proxy.request_outcomes import AFFINITY_OUTCOMES
from proxy.request_record import RequestRecord

MOST_SUMS: Final = 1024
"""The most combinations of a team, a key and a model that are summed before they are distributed."""

MOST_SENT: Final = 50
"""The most names of each kind in the figures; names with less spending are counted as `other`."""

_CLASSES: Final = len(BOUNDS) + 1
_DURATION: Final = len(OUTCOMES)
_FIRST: Final = _DURATION + _CLASSES
_PROMPT: Final = _FIRST + _CLASSES
_CACHED: Final = _PROMPT + 1
_PLACED: Final = _CACHED + 1
_DURATION_SPAN: Final = _PLACED + len(AFFINITY_OUTCOMES)
_FIRST_SPAN: Final = _DURATION_SPAN + 2
_NO_COUNTS: Final = bytes(8 * (_FIRST_SPAN + 2))
_SHED: Final = OUTCOME_INDEX["shed"]
_PLACED_AS: Final = {outcome: _PLACED + index for index, outcome in enumerate(AFFINITY_OUTCOMES)}


EarlyRefusalReport = Callable[[str, int, OverloadReason, int], None]
"""Called with the surface, the status, the reason, and the number of requests that were refused before they were
parsed."""


@dataclass(frozen=True, slots=True)
class HourCopy:
    """A copy of the counts, which may be read on another thread."""

    newest: int
    rows: tuple[tuple[int, "array[float]"], ...]
    teams: Mapping[str, SpentRing]
    keys: Mapping[str, SpentRing]
    models: Mapping[str, SpentRing]

    def figures(self) -> HourFigures:
        """Return the figures of the hour."""
        return HourFigures(
            self.newest,
            tuple(_minute(minute, row) for minute, row in self.rows),
            dict(highest_by_minute({name: dict(ring.minutes()) for name, ring in self.teams.items()}, MOST_SENT)),
            _totals(self.keys),
            _totals(self.models),
        )


class HourCounter:
    """Counts finished requests; call it on the event loop. `clock` returns the seconds that records use, `wall` unix
    seconds: a minute begins with the minute of the wall clock."""

    def __init__(self, clock: Callable[[], float], wall: Callable[[], float]) -> None:
        self._clock = clock
        self._wall = wall
        self._minute = 0
        self._ends = float("-inf")
        self._rows: dict[int, array[float]] = {}
        self._row = array("d", _NO_COUNTS)
        self._sums: dict[tuple[str, str, str], list[float]] = {}
        self._key_names: dict[tuple[str, str], str] = {}
        self._teams, self._keys, self._models = SpenderCounts(), SpenderCounts(), SpenderCounts()

    def add(self, record: RequestRecord, cost: float | None) -> None:
        """Count a finished request and its cost in USD, `None` if the cost is unknown."""
        if record.finished >= self._ends:
            self._begin()
        row = self._row
        outcome = record.outcome
        row[OUTCOME_INDEX[outcome]] += 1
        if not record.attempts:
            return
        if outcome == "ok":
            started, first = record.started, record.first_content
            seconds = record.finished - started
            row[_DURATION + bisect_left(BOUNDS, seconds)] += 1
            add_to_span(row, _DURATION_SPAN, seconds)
            if first is not None:
                seconds = first - started
                row[_FIRST + bisect_left(BOUNDS, seconds)] += 1
                add_to_span(row, _FIRST_SPAN, seconds)
        if record.placed is not None and (placed := record.affinity) is not None:
            row[_PLACED_AS[placed]] += 1
        spent = self._sums.get((record.team, record.key_label, record.model)) or self._sum_of(record)
        spent[0] += 1
        if (usage := record.billed or record.usage) is None:
            return
        prompt = usage.prompt_tokens
        row[_PROMPT] += prompt
        if details := usage.prompt_details:
            row[_CACHED] += details.get("cached_tokens", 0)
        spent[1] += prompt + usage.completion_tokens
        if cost is None:
            spent[3] += 1
        else:
            spent[2] += cost

    def add_shed(self, count: int) -> None:
        """Count requests that were refused before they were parsed."""
        if self._clock() >= self._ends:
            self._begin()
        self._row[_SHED] += count

    def with_refusals(self, report: EarlyRefusalReport) -> EarlyRefusalReport:
        """Return a function that calls `report` and counts the requests that were refused before they were parsed."""

        def reported(surface: str, status: int, reason: OverloadReason, count: int) -> None:
            report(surface, status, reason, count)
            self.add_shed(count)

        return reported

    def taken(self) -> HourCopy:
        """Return a copy of the counts. This takes at most 2 ms on the event loop."""
        if self._clock() >= self._ends:
            self._begin()
        self._distribute()
        newest = self._minute
        rows = tuple((minute, row[:]) for minute, row in sorted(self._rows.items()) if any(row))
        kinds = (kind.taken(newest) for kind in (self._teams, self._keys, self._models))
        return HourCopy(newest, rows, *kinds)

    def _begin(self) -> None:
        """Make the current minute of the wall clock the minute that is counted from now on."""
        now, wall = self._clock(), self._wall()
        minute = int(wall // 60)
        self._ends = now + 60 * (minute + 1) - wall
        if minute == self._minute:
            return
        self._distribute()
        if minute < self._minute:
            # The wall clock was set back: the minutes counted so far are in the future.
            self._rows.clear()
            self._teams, self._keys, self._models = SpenderCounts(), SpenderCounts(), SpenderCounts()
        self._minute = minute
        self._row = self._rows[minute] = array("d", _NO_COUNTS)
        for old in [each for each in self._rows if each <= minute - MINUTES]:
            del self._rows[old]
        for kind in (self._teams, self._keys, self._models):
            kind.begin(minute)

    def _sum_of(self, record: RequestRecord) -> list[float]:
        """Start a new sum for a team, a key and a model, and return it."""
        if len(self._sums) >= MOST_SUMS:
            self._distribute()
        team, key = record.team, record.key_label
        self._key_names[team, key] = f"{team}/{record.key or key}"
        sums = self._sums[team, key, record.model] = [0, 0, 0.0, 0]
        return sums

    def _distribute(self) -> None:
        """Add the sums to the spending of their teams, keys and models, the highest first, so that these get a name of
        their own."""
        found, minute = sorted(self._sums.items(), key=_cost_of, reverse=True), self._minute
        add_team, add_key, add_model = self._teams.add, self._keys.add, self._models.add
        self._sums = {}
        for (team, key, model), sums in found:
            add_team(team, minute, sums)
            add_model(model, minute, sums)
            if key:
                add_key(self._key_names[team, key], minute, sums)
        self._key_names = {}


def _cost_of(pair: tuple[tuple[str, str, str], list[float]]) -> float:
    return pair[1][2]


def _minute(minute: int, row: "array[float]") -> MinuteFigures:
    counts = [int(count) for count in row]
    times = _trimmed(counts[_DURATION:_FIRST]), _trimmed(counts[_FIRST:_PROMPT])
    spans = (row[_DURATION_SPAN], row[_DURATION_SPAN + 1]), (row[_FIRST_SPAN], row[_FIRST_SPAN + 1])
    prompts, placed = (counts[_PROMPT], counts[_CACHED]), tuple(counts[_PLACED:_DURATION_SPAN])
    return MinuteFigures(minute, tuple(counts[:_DURATION]), *times, *prompts, *spans, placed if any(placed) else ())


def _trimmed(counts: list[int]) -> tuple[int, ...]:
    while counts and not counts[-1]:
        counts.pop()
    return tuple(counts)


def _totals(rings: Mapping[str, SpentRing]) -> Mapping[str, Spent]:
    return dict(highest({name: ring.total() for name, ring in rings.items()}, MOST_SENT))
