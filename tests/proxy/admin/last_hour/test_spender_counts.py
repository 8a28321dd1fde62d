"""The spending in an hour by name: a bounded number of names, with the highest spenders among them."""

from proxy.admin.last_hour.hour_figures import MINUTES, NOTHING, Spent, spent_of
from proxy.admin.last_hour.spender_counts import MOST_NAMES, NAMES_LEFT, SpenderCounts, SpentRing
from proxy.request_record import OTHER


def totals(counts: SpenderCounts, newest: int) -> dict[str, Spent]:
    return {name: ring.total() for name, ring in counts.taken(newest).items()}


def test_a_ring_has_what_was_spent_in_the_last_sixty_minutes() -> None:
    ring = SpentRing(100)
    ring.add(100, (1, 10, 0.5, 0))
    ring.add(100, (1, 0, 0.25, 1))
    ring.add(130, (2, 20, 1.0, 0))
    assert dict(ring.minutes()) == {100: Spent(2, 10, 0.75, 1), 130: Spent(2, 20, 1.0)}
    assert ring.total() == Spent(4, 30, 1.75, 1)
    ring.advance(100 + MINUTES)
    assert dict(ring.minutes()) == {130: Spent(2, 20, 1.0)}
    ring.advance(10_000)
    assert (dict(ring.minutes()), ring.total()) == ({}, NOTHING)


def test_rings_that_end_in_different_minutes_are_added_minute_by_minute() -> None:
    old, new = SpentRing(100), SpentRing(130)
    for minute in (100, 120):
        old.add(minute, (1, 1, 1.0, 0))
    new.add(130, (1, 5, 0.0, 1))
    new.add(165, (1, 7, 2.0, 0))
    old.add_all(new)
    # 100 is over an hour before 165.
    assert dict(old.minutes()) == {120: Spent(1, 1, 1.0), 130: Spent(1, 5, 0.0, 1), 165: Spent(1, 7, 2.0)}


def test_a_copy_does_not_change() -> None:
    counts = SpenderCounts()
    counts.add("search", 100, (1, 1, 1.0, 0))
    taken = counts.taken(100)
    counts.add("search", 100, (1, 1, 1.0, 0))
    assert taken["search"].total() == Spent(1, 1, 1.0)
    assert totals(counts, 100) == {"search": Spent(2, 2, 2.0)}


def test_names_that_spent_nothing_for_an_hour_are_forgotten() -> None:
    counts = SpenderCounts()
    counts.add("old", 100, (1, 1, 1.0, 0))
    counts.add("new", 110, (1, 1, 1.0, 0))
    counts.begin(100 + MINUTES)
    assert list(counts.taken(100 + MINUTES)) == ["new"]


def test_names_beyond_the_most_are_counted_together_and_nothing_is_lost() -> None:
    counts = SpenderCounts()
    for number in range(MOST_NAMES + 30):
        counts.add(f"t{number}", 100, (1, 2, 0.5, 0))
    found = totals(counts, 100)
    assert len(found) == MOST_NAMES + 1
    assert found[OTHER] == Spent(30, 60, 15.0)


def test_a_spender_that_comes_late_is_named_and_the_least_make_room() -> None:
    counts = SpenderCounts()
    for number in range(MOST_NAMES):
        counts.add(f"t{number:03}", 100, (1, 1, float(number), 0))
    counts.add("late", 100, (1, 1, 5000.0, 0))
    counts.begin(101)
    counts.add("late", 101, (1, 1, 5000.0, 0))
    found = totals(counts, 101)
    assert (len(found), found["late"].cost) == (NAMES_LEFT + 2, 5000.0)
    assert {f"t{number:03}" for number in range(MOST_NAMES - NAMES_LEFT, MOST_NAMES)} < set(found)
    whole = spent_of(found.values())
    assert (whole.requests, whole.cost) == (MOST_NAMES + 2, sum(range(MOST_NAMES)) + 10_000.0)


def test_with_new_names_every_minute_there_are_never_more() -> None:
    counts, sizes = SpenderCounts(), set()
    for minute in range(80):
        counts.begin(minute)
        for number in range(100):
            counts.add(f"t{minute}-{number}", minute, (1, 1, 1.0, 0))
        sizes.add(len(counts.taken(minute)))
    assert max(sizes) <= MOST_NAMES + 1
    assert spent_of(totals(counts, 79).values()).requests == 100 * MINUTES
