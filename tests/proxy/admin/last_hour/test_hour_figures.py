"""Figures of several processes merged into one hour, and the highest spenders."""

from typing import get_args

from pydantic import TypeAdapter

from proxy.admin.last_hour.hour_figures import (
    GROUPS,
    MINUTES,
    NO_HOUR,
    NOTHING,
    OUTCOMES,
    HourFigures,
    MinuteFigures,
    Spent,
    highest,
    highest_by_minute,
    hour_of_all,
    spent_of,
    sum_of_minutes,
)
from proxy.request_record import OTHER, Outcome
from tests.proxy.admin.last_hour.kit import NEWEST, hour, minute


def test_each_outcome_is_in_one_group() -> None:
    assert sorted(outcome for group in GROUPS.values() for outcome in group) == sorted(get_args(Outcome))


def test_the_hour_of_several_workers_is_their_sum_minute_by_minute() -> None:
    both = hour_of_all([hour(), hour(), NO_HOUR])
    assert both.newest == NEWEST
    assert [each.minute for each in both.minutes] == [NEWEST - 30, NEWEST]
    assert (both.minutes[1].of({"ok"}), both.minutes[1].of({"limited", "denied"})) == (12, 4)
    assert both.minutes[0].durations == (0,) * 10 + (6, 2)
    assert (both.minutes[0].prompt, both.minutes[0].cached) == (2000, 500)
    assert both.teams["search"] == {NEWEST - 30: Spent(8, 4000, 1.0), NEWEST: Spent(12, 6000, 2.5, 4)}
    assert both.keys["search/ci"] == Spent(20, 10_000, 3.5, 4)
    assert hour_of_all([]) == NO_HOUR


def test_of_workers_that_began_different_minutes_the_newest_ends_the_hour() -> None:
    late = hour_of_all([hour(newest=NEWEST), hour(team="ads2", newest=NEWEST + 40)])
    assert late.newest == NEWEST + 40
    assert [each.minute for each in late.minutes] == [NEWEST, NEWEST + 10, NEWEST + 40]
    assert list(late.teams["search"]) == [NEWEST]
    assert all(each.minute > late.newest - MINUTES for each in late.minutes)


def test_an_hour_goes_from_a_worker_to_its_supervisor_as_it_is() -> None:
    adapter = TypeAdapter(HourFigures)
    assert adapter.validate_json(adapter.dump_json(hour())) == hour()


def test_minutes_and_spending_add_up() -> None:
    whole = sum_of_minutes(5, [minute(1), minute(2, 1, firsts=(1, 1, 1))])
    assert (whole.minute, whole.requests, whole.firsts) == (5, 5 + 2 * (len(OUTCOMES) - 1), (1, 5, 1))
    assert sum_of_minutes(5, []) == MinuteFigures(5)
    spans = sum_of_minutes(5, [minute(1), minute(2, duration_span=(0.1, 0.3)), minute(3, duration_span=(0.2, 0.4))])
    assert (spans.duration_span, spans.first_span) == ((0.1, 0.4), (0.0, 0.0))
    assert MinuteFigures(5).of({"ok"}) == 0
    assert spent_of([]) == NOTHING


def test_the_highest_spenders_come_first_and_all_others_last() -> None:
    spenders = {
        OTHER: Spent(9, 9, 9.0),
        "cheap": Spent(5, 50, 0.0),
        "dear": Spent(1, 1, 2.0),
        "cheaper": Spent(9, 5, 0.0, 9),
        "also": Spent(1, 1, 2.0),
    }
    assert highest(spenders, 3) == [
        ("also", Spent(1, 1, 2.0)),
        ("dear", Spent(1, 1, 2.0)),
        ("cheap", Spent(5, 50, 0.0)),
        (OTHER, Spent(18, 14, 9.0, 9)),
    ]
    assert highest({"one": Spent(1, 1)}, 3) == [("one", Spent(1, 1))]


def test_spending_by_minute_is_ranked_by_its_sum() -> None:
    spenders = {"a": {1: Spent(1, 1, 1.0), 2: Spent(1, 1, 1.0)}, "b": {1: Spent(1, 1, 1.5)}, "c": {1: Spent(1, 1, 0.1)}}
    assert highest_by_minute(spenders, 1) == [
        ("a", {1: Spent(1, 1, 1.0), 2: Spent(1, 1, 1.0)}),
        (OTHER, {1: Spent(2, 2, 1.6)}),
    ]
    assert [name for name, _ in highest_by_minute(spenders, 5)] == ["a", "b", "c"]
