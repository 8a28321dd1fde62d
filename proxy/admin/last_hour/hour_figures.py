"""The last hour of requests as values by minute, of one process or of several together. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Final, get_args

from proxy.admin.recent_requests import FAILED, REFUSED, UNMEASURED, MeasuredTimes, Span, span_of
from proxy.request_outcomes import AFFINITY_OUTCOMES, AffinityOutcome
from proxy.request_record import OTHER, Outcome

MINUTES: Final = 60
"""The number of minutes in the window, the current one included."""

OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)
OUTCOME_INDEX: Final[Mapping[str, int]] = {outcome: index for index, outcome in enumerate(OUTCOMES)}
"""The index of each outcome in `MinuteFigures.outcomes`."""

GROUPS: Final[Mapping[str, frozenset[Outcome]]] = {
    "failed": FAILED,
    "shed": frozenset({"shed"}),
    "refused": REFUSED,
    "client gone": frozenset({"client_gone"}),
    "succeeded": frozenset({"ok"}),
}
"""Outcomes grouped by their cause, the worst first: `failed` is caused by a vendor or the gateway, `shed` by the load
of the gateway, `refused` by the client or its limits."""


@dataclass(frozen=True, slots=True)
class MinuteFigures(MeasuredTimes):
    """The requests that ended in one minute.

    `minute` counts minutes of unix time; `outcomes` are requests in the order of OUTCOMES. `durations` and `firsts`
    count the requests that succeeded by the classes of `recent_requests.BOUNDS`, without empty classes at the end;
    their spans are the shortest and the longest time. `prompt` are prompt tokens, of which `cached` came from vendors'
    caches. `placed` are requests for names with affinity in the order of AFFINITY_OUTCOMES, empty if there were none.
    """

    minute: int
    outcomes: tuple[int, ...] = ()
    durations: tuple[int, ...] = ()
    firsts: tuple[int, ...] = ()
    prompt: int = 0
    cached: int = 0
    duration_span: Span = UNMEASURED
    first_span: Span = UNMEASURED
    placed: tuple[int, ...] = ()

    @property
    def requests(self) -> int:
        """The number of requests with any outcome."""
        return sum(self.outcomes)

    def of(self, outcomes: Iterable[str]) -> int:
        """Return the number of requests with one of these outcomes."""
        return sum(self.outcomes[OUTCOME_INDEX[outcome]] for outcome in outcomes) if self.outcomes else 0

    def placed_as(self, outcome: AffinityOutcome) -> int:
        """Return the number of requests with an outcome of affinity."""
        return self.placed[AFFINITY_OUTCOMES.index(outcome)] if self.placed else 0


@dataclass(frozen=True, slots=True)
class Spent:
    """The use of requests that called a vendor: prompt and completion tokens, and USD. The cost of `unpriced` requests
    is unknown and not included in `cost`."""

    requests: int = 0
    tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0

    @property
    def known_cost(self) -> float | None:
        """The known cost in USD: `None` if no price is known, a lower bound if some prices are unknown."""
        return None if self.unpriced and not self.cost else self.cost

    @property
    def rank(self) -> tuple[float, int, int]:
        """The sort key of spenders: cost, then tokens, then requests."""
        return (self.cost, self.tokens, self.requests)


NOTHING: Final = Spent()


@dataclass(frozen=True, slots=True)
class HourFigures:
    """The last hour.

    `newest` is the minute of unix time in which the figures were read; `minutes` are the minutes with requests, in
    order. `teams` is the spending of each team by minute, `keys` and `models` the spending of each in the hour. The
    names with the lowest spending are counted as `other`. The name of a key begins with its team and a slash.
    """

    newest: int = 0
    minutes: tuple[MinuteFigures, ...] = ()
    teams: Mapping[str, Mapping[int, Spent]] = field(default_factory=dict)
    keys: Mapping[str, Spent] = field(default_factory=dict)
    models: Mapping[str, Spent] = field(default_factory=dict)


NO_HOUR: Final = HourFigures()


def spent_of(parts: Iterable[Spent]) -> Spent:
    """Return the sum of several amounts."""
    every = list(parts)
    return Spent(
        sum(part.requests for part in every),
        sum(part.tokens for part in every),
        sum(part.cost for part in every),
        sum(part.unpriced for part in every),
    )


def sum_of_minutes(minute: int, parts: Iterable[MinuteFigures]) -> MinuteFigures:
    """Return the sum of several minutes, or of one minute of several processes, as the minute `minute`."""
    every = list(parts)
    return MinuteFigures(
        minute,
        _added(part.outcomes for part in every),
        _added(part.durations for part in every),
        _added(part.firsts for part in every),
        sum(part.prompt for part in every),
        sum(part.cached for part in every),
        span_of(part.duration_span for part in every),
        span_of(part.first_span for part in every),
        _added(part.placed for part in every),
    )


def _added(counts: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(map(sum, zip_longest(*counts, fillvalue=0)))


def hour_of_all(several: Iterable[HourFigures]) -> HourFigures:
    """Return the sum of the hours of several processes. It ends with the newest minute of any process."""
    every = list(several)
    newest = max((hour.newest for hour in every), default=0)
    minutes: dict[int, list[MinuteFigures]] = {}
    for hour in every:
        for each in hour.minutes:
            if each.minute > newest - MINUTES:
                minutes.setdefault(each.minute, []).append(each)
    return HourFigures(
        newest,
        tuple(sum_of_minutes(minute, parts) for minute, parts in sorted(minutes.items())),
        _teams_of_all(every, newest - MINUTES),
        _spent_of_all(hour.keys for hour in every),
        _spent_of_all(hour.models for hour in every),
    )


def _teams_of_all(every: Iterable[HourFigures], before: int) -> Mapping[str, Mapping[int, Spent]]:
    found: dict[str, dict[int, Spent]] = {}
    for hour in every:
        for name, minutes in hour.teams.items():
            known = found.setdefault(name, {})
            for minute, spent in minutes.items():
                if minute > before:
                    known[minute] = spent_of((known.get(minute, NOTHING), spent))
    return found


def _spent_of_all(several: Iterable[Mapping[str, Spent]]) -> Mapping[str, Spent]:
    found: dict[str, Spent] = {}
    for each in several:
        for name, spent in each.items():
            found[name] = spent_of((found.get(name, NOTHING), spent))
    return found


def highest(spenders: Mapping[str, Spent], most: int) -> list[tuple[str, Spent]]:
    """Return the `most` names with the highest spending, the highest first, then all others as OTHER if they spent
    anything."""
    ranked = sorted(spenders.items(), key=lambda pair: (tuple(-each for each in pair[1].rank), pair[0]))
    named = [(name, spent) for name, spent in ranked if name != OTHER][:most]
    shown = {name for name, _ in named}
    rest = spent_of(spent for name, spent in ranked if name not in shown)
    return [*named, (OTHER, rest)] if rest != NOTHING else named


def highest_by_minute(spenders: Mapping[str, Mapping[int, Spent]], most: int) -> list[tuple[str, Mapping[int, Spent]]]:
    """Return the `most` names with the highest spending, the highest first, then all others as OTHER if they spent
    anything."""
    totals = {name: spent_of(minutes.values()) for name, minutes in spenders.items()}
    ranked = [name for name, _ in highest(totals, most)]
    rest: dict[int, list[Spent]] = {}
    for name in set(spenders).difference(each for each in ranked if each != OTHER):
        for minute, spent in spenders[name].items():
            rest.setdefault(minute, []).append(spent)
    others = {minute: spent_of(parts) for minute, parts in sorted(rest.items())}
    return [(name, others if name == OTHER else spenders[name]) for name in ranked]
