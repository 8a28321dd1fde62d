"""The counts of the last hour, minute by minute in virtual time, and how little memory they take."""

import tracemalloc

import orjson
import pytest

from providers.completion import Usage
from proxy.admin.last_hour import hour_counter
from proxy.admin.last_hour.hour_counter import HourCounter
from proxy.admin.last_hour.hour_figures import MINUTES, OUTCOMES, HourFigures, Spent, hour_of_all
from proxy.admin.last_hour.hour_json import hour_json
from proxy.errors import OverloadReason
from proxy.request_outcomes import AFFINITY_OUTCOMES, AffinityOutcome
from proxy.request_record import OTHER, Outcome
from tests.proxy.admin.last_hour.kit import NEWEST, Clocks
from tests.support.looped import looped


def figures(counter: HourCounter) -> HourFigures:
    return counter.taken().figures()


class Placed:
    """A request whose conversation did or did not choose its deployment."""

    number = 7

    def __init__(self, outcome: AffinityOutcome | None) -> None:
        self._outcome = outcome

    def outcome(self, label: str) -> AffinityOutcome | None:
        return self._outcome


def test_requests_for_names_with_affinity_count_by_what_became_of_them() -> None:
    clocks = Clocks()
    counter = clocks.counter()
    counter.add(clocks.record(), None)
    assert figures(counter).minutes[0].placed == ()
    for outcome in ("kept", "kept", "spilled_load", "none", None):
        made = clocks.record(usage=Usage(1, 1))
        made.placed = Placed(outcome)
        counter.add(made, None)
    (minute,) = figures(counter).minutes
    assert [minute.placed_as(outcome) for outcome in AFFINITY_OUTCOMES] == [2, 1, 0, 0, 1]
    assert minute.prompt == 5
    assert minute.duration(0.5) == pytest.approx(2.0)
    (both,) = hour_of_all([figures(counter), figures(counter), HourFigures(NEWEST)]).minutes
    assert (both.placed_as("kept"), both.placed_as("spilled_health")) == (4, 0)
    (shown,) = orjson.loads(orjson.dumps(hour_json(figures(counter))))["minutes"]
    assert shown["affinity"] == {"kept": 2, "spilled_load": 1, "none": 1}


def test_a_request_counts_in_its_minute_with_times_tokens_and_cost() -> None:
    clocks = Clocks()
    counter = clocks.counter()
    counter.add(clocks.record(usage=Usage(100, 20, {"cached_tokens": 60})), 0.25)
    clocks.pass_by(60)
    counter.add(clocks.record(usage=Usage(10, 2)), None)
    hour = figures(counter)
    first, second = hour.minutes
    assert (hour.newest, first.minute, second.minute) == (NEWEST + 1, NEWEST, NEWEST + 1)
    assert (first.requests, first.prompt, first.cached, second.prompt, second.cached) == (1, 100, 60, 10, 0)
    assert first.duration(0.5) == pytest.approx(2.0)
    assert first.first(0.5) == pytest.approx(0.5)
    assert hour.teams == {"search": {NEWEST: Spent(1, 120, 0.25), NEWEST + 1: Spent(1, 12, 0.0, 1)}}
    assert hour.keys == {"search/ci": Spent(2, 132, 0.25, 1)}
    assert hour.models == {"v/m": Spent(2, 132, 0.25, 1)}


@looped("outcome", OUTCOMES)
def test_each_outcome_is_counted_as_itself(outcome: Outcome) -> None:
    clocks = Clocks()
    counter = clocks.counter()
    counter.add(clocks.record(outcome), None)
    (minute,) = figures(counter).minutes
    assert {each: minute.of({each}) for each in OUTCOMES if minute.of({each})} == {outcome: 1}
    assert bool(minute.durations) == bool(minute.firsts) == (outcome == "ok")


def test_requests_that_are_refused_before_they_are_parsed_are_counted_too() -> None:
    clocks, reported = Clocks(), list[object]()
    counter = clocks.counter()
    refused = counter.with_refusals(lambda *facts: reported.append(facts))
    refused("openai", 503, OverloadReason.QUEUE, 7)
    clocks.pass_by(90)
    refused("openai", 503, OverloadReason.MEMORY, 2)
    assert reported == [("openai", 503, OverloadReason.QUEUE, 7), ("openai", 503, OverloadReason.MEMORY, 2)]
    assert [each.of({"shed"}) for each in figures(counter).minutes] == [7, 2]


def test_a_request_that_called_nobody_has_no_times_and_spent_nothing() -> None:
    clocks = Clocks()
    counter = clocks.counter()
    record = clocks.record("denied")
    record.attempts = []
    counter.add(record, None)
    hour = figures(counter)
    assert hour.minutes[0].requests == 1
    assert (hour.teams, hour.keys, hour.models) == ({}, {}, {})


def test_a_team_without_keys_has_none_among_the_keys() -> None:
    clocks = Clocks()
    counter = clocks.counter()
    counter.add(clocks.record(key="", team="anonymous", usage=Usage(1, 1)), 1.0)
    hour = figures(counter)
    assert (list(hour.teams), hour.keys) == (["anonymous"], {})


def test_minutes_begin_when_those_of_the_wall_clock_do() -> None:
    clocks = Clocks(wall=60.0 * NEWEST + 59.0)
    counter = clocks.counter()
    for _ in range(3):
        counter.add(clocks.record(), None)
        clocks.pass_by(0.75)
    assert [(each.minute, each.requests) for each in figures(counter).minutes] == [(NEWEST, 2), (NEWEST + 1, 1)]


def test_what_is_older_than_an_hour_is_forgotten_minute_by_minute() -> None:
    clocks = Clocks()
    counter = clocks.counter()
    for _ in range(MINUTES + 5):
        counter.add(clocks.record(usage=Usage(1, 0)), 1.0)
        clocks.pass_by(60)
    clocks.pass_by(-60)
    hour = figures(counter)
    assert [each.minute for each in hour.minutes] == list(range(NEWEST + 5, NEWEST + 5 + MINUTES))
    assert list(hour.teams["search"]) == [each.minute for each in hour.minutes]
    assert hour.models["v/m"] == Spent(MINUTES, MINUTES, float(MINUTES))
    clocks.pass_by(60 * 59)
    assert figures(counter).keys["search/ci"].requests == 1
    clocks.pass_by(60)
    assert figures(counter) == HourFigures(NEWEST + MINUTES + 4 + 60)


def test_a_clock_that_is_set_back_begins_a_new_hour() -> None:
    clocks = Clocks()
    counter = clocks.counter()
    counter.add(clocks.record(usage=Usage(1, 1)), 1.0)
    clocks.pass_by(60)
    clocks.set_wall(60.0 * (NEWEST - 600))
    counter.add(clocks.record(team="ads", usage=Usage(1, 1)), 1.0)
    hour = figures(counter)
    assert (hour.newest, [each.minute for each in hour.minutes]) == (NEWEST - 600, [NEWEST - 600])
    assert list(hour.teams) == ["ads"]


def test_a_clock_that_is_set_back_by_seconds_loses_nothing() -> None:
    clocks = Clocks(wall=60.0 * NEWEST + 58.0)
    counter = clocks.counter()
    counter.add(clocks.record(), None)
    clocks.set_wall(60.0 * NEWEST + 30.0)
    clocks.pass_by(3)
    counter.add(clocks.record(), None)
    assert [(each.minute, each.requests) for each in figures(counter).minutes] == [(NEWEST, 2)]


def test_sums_that_are_too_many_are_distributed_and_none_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hour_counter, "MOST_SUMS", 4)
    clocks = Clocks()
    counter, most = clocks.counter(), 0
    for number in range(60):
        counter.add(clocks.record(team=f"t{number % 10}", key=f"k{number % 3}", usage=Usage(1, 1)), 0.5)
        most = max(most, len(counter._sums))
    hour = figures(counter)
    assert most == 4
    assert hour.models["v/m"] == Spent(60, 120, 30.0)
    assert {name: minutes[NEWEST] for name, minutes in hour.teams.items()} == {
        f"t{number}": Spent(6, 12, 3.0) for number in range(10)
    }
    assert sum(spent.requests for spent in hour.keys.values()) == 60


def test_the_figures_name_the_highest_spenders_and_sum_up_the_rest() -> None:
    clocks = Clocks()
    counter = clocks.counter()
    for number in range(80):
        counter.add(clocks.record(team=f"t{number:03}", key="k", model=f"v/{number}", usage=Usage(1, 1)), float(number))
    hour = figures(counter)
    for kind in (hour.teams, hour.keys, hour.models):
        assert len(kind) == hour_counter.MOST_SENT + 1
    assert next(iter(hour.teams)) == "t079"
    assert hour.teams[OTHER] == {NEWEST: Spent(30, 60, float(sum(range(30))))}


@pytest.mark.thorough
def test_thousands_of_teams_take_no_more_memory_than_hundreds() -> None:
    def peak(teams: int) -> int:
        clocks = Clocks()
        tracemalloc.start()
        counter = clocks.counter()
        for number in range(teams):
            counter.add(clocks.record(team=f"t{number}", key=f"k{number}", model=f"v/{number}", usage=Usage(1, 1)), 1.0)
            if number % 250 == 0:
                clocks.pass_by(60)
        counter.taken()
        used, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return used

    assert peak(2_500) < min(2_000_000, 1.5 * peak(500))
