"""Places, in one process and leased."""

import pytest

from proxy.limits.concurrency import LeasedPlaces, Places
from proxy.limits.lease_counter import LeaseCounter
from proxy.shared_state.lease import LeaseGrant
from proxy.shared_state.lease_keeper import REFUSED_FOR
from tests.proxy.limits.kit.still_keeper import StillKeeper
from tests.support.not_none import not_none

WALL = 0.0


def exchange(places: LeasedPlaces, counter: LeaseCounter, process: str, now: float) -> None:
    ask = not_none(places.ask(now))
    places.tell(counter.exchange(process, [ask], now * 1e6)[0], now)


def fetch(places: LeasedPlaces, counter: LeaseCounter, process: str, now: float) -> None:
    """A request waits for a place, until one is granted."""
    places.wait_for(1)
    exchange(places, counter, process, now)
    places.wait_no_more(1)


def test_a_place_is_free_again_when_it_is_released() -> None:
    places, freed = Places(2), []
    for _ in range(2):
        assert not places.lacks(1, 0.0, WALL)
        places.take(1, 0.0, WALL)
    assert places.lacks(1, 0.0, WALL)
    assert places.wait(1, 0.0, WALL) > 0
    assert (places.remaining(0.0, WALL), places.taken) == (0, 2)
    assert places.full_in(0.0, WALL) > 0
    places.freed = lambda: freed.append(1)
    places.settle(1, 1)
    assert freed == [1]
    assert not places.lacks(1, 0.0, WALL)
    assert places.wait(1, 0.0, WALL) == 0
    places.settle(1, 0)
    assert places.full_in(0.0, WALL) == 0
    places.refused(1, 0.0)
    assert not places.fetchable(1, 0.0)


def test_a_leased_place_is_fetched_and_given_back_at_once() -> None:
    keeper, counter = StillKeeper(turns=1), LeaseCounter()
    one, two = (LeasedPlaces("t", 2, keeper) for _ in range(2))
    for each, name in ((one, "one"), (two, "two")):
        assert each.lacks(1, 0.0, WALL)
        assert each.fetchable(1, 0.0)
        fetch(each, counter, name, 0.0)
        assert not each.lacks(1, 0.0, WALL)
        each.take(1, 0.0, WALL)
    one.wait_for(1)
    exchange(one, counter, "one", 1.0)
    assert one.lacks(1, 1.0, WALL)
    assert not one.fetchable(1, 1.0)
    assert one.fetchable(1, 1.0 + REFUSED_FOR)
    assert one.taken == 2
    two.settle(1, 1)
    assert keeper.noted[-1] == "wake"
    exchange(two, counter, "two", 1.1)
    exchange(one, counter, "one", 1.1)
    assert not one.lacks(1, 1.1, WALL)
    assert two.renew(2.0)  # one holds some
    assert one.renew(2.0)
    assert not one.holds()


def test_who_holds_none_asks_on_until_it_has_heard_that_the_others_released_theirs() -> None:
    counter = LeaseCounter()
    one, two = (LeasedPlaces("t", 2, StillKeeper(turns=1)) for _ in range(2))
    for _ in range(2):
        fetch(one, counter, "one", 0.0)
        one.take(1, 0.0, WALL)
    exchange(two, counter, "two", 0.1)
    assert (two.taken, two.held) == (2, 0)
    assert two.renew(1.0)
    for _ in range(2):
        one.settle(1, 1)
    exchange(one, counter, "one", 1.1)
    exchange(two, counter, "two", 1.2)
    assert two.taken == 0
    assert not two.renew(2.0)


def test_large_pools_are_leased_ahead_a_little() -> None:
    keeper, counter = StillKeeper(turns=1), LeaseCounter()
    places = LeasedPlaces("t", 400, keeper)
    assert places.spare == 4
    exchange(places, counter, "one", 0.0)
    assert places.held == 4
    places.take(1, 0.0, WALL)
    assert keeper.noted == ["due"]
    exchange(places, counter, "one", 0.1)
    assert places.held == 1 + 16


def test_what_others_lease_ahead_and_do_not_use_is_not_told_as_taken() -> None:
    counter = LeaseCounter()
    one, two = (LeasedPlaces("t", 400, StillKeeper(turns=1)) for _ in range(2))
    fetch(one, counter, "one", 0.0)
    assert one.held == 5
    exchange(two, counter, "two", 0.1)
    assert two.taken == 1  # who waited for it begins now
    one.take(1, 0.1, WALL)
    one.settle(1, 1)
    exchange(one, counter, "one", 0.2)
    exchange(two, counter, "two", 0.2)
    assert (one.held, one.taken, two.taken) == (16, 0, 0)


def test_the_places_of_a_process_that_died_come_back_after_ten_seconds() -> None:
    keeper, counter = StillKeeper(turns=1), LeaseCounter()
    one, two = (LeasedPlaces("t", 1, keeper) for _ in range(2))
    one.wait_for(1)
    exchange(one, counter, "one", 0.0)
    two.wait_for(1)
    exchange(two, counter, "two", 9.9)
    assert two.lacks(1, 9.9, WALL)
    exchange(two, counter, "two", 10.1)
    assert not two.lacks(1, 10.1, WALL)


def test_alone_it_goes_on_with_its_part_and_at_least_one_place() -> None:
    keeper = StillKeeper(turns=1, alone=True)
    places = LeasedPlaces("t", 40, keeper)
    for _ in range(10):
        assert not places.lacks(1, 0.0, WALL)
        places.take(1, 0.0, WALL)
    assert places.lacks(1, 0.0, WALL)
    assert places.exceeded("team t", 1, 0.0, WALL).alone == 0
    assert not places.fetchable(1, 0.0)
    assert not LeasedPlaces("t", 1, keeper).lacks(1, 0.0, WALL)
    keeper.alone = False
    assert not_none(places.ask(0.0)).held == 10
    assert places.exceeded("team t", 1, 0.0, WALL).alone is None


def test_those_who_used_none_when_all_was_lost_have_no_more_together_than_there_are() -> None:
    counter, keeper = LeaseCounter(), StillKeeper(turns=1, met=True)
    every = [LeasedPlaces("t", 40, keeper) for _ in range(4)]
    for number, each in enumerate(every):
        exchange(each, counter, str(number), 5.0)
    for lost_at, most in ((6.0, 10), (8.0, 2)):  # known to be idle, and not known what others used since
        keeper.alone, keeper.lost_at = True, lost_at
        for each in every:
            each.used = 0
            while each.attempt():
                pass
            assert each.used == most


def test_the_only_process_there_is_has_all_places_alone() -> None:
    places = LeasedPlaces("t", 40, StillKeeper(turns=1, met=True, expected=1, alone=True, lost_at=5.0))
    while places.attempt():
        pass
    assert places.used == 40


def test_where_something_else_is_kept_it_goes_on_with_its_part() -> None:
    places = LeasedPlaces("t", 40, StillKeeper(turns=1))
    places.tell(None, 0.0)
    places.untold()
    assert not places.lacks(1, 0.0, WALL)
    assert places.renew(0.0)
    places.tell(LeaseGrant(0, 0.0, 1.0, 1), 0.0)
    assert places.lacks(1, 0.0, WALL)


def test_a_place_that_an_attempt_took_is_put_back_without_waking_who_waits() -> None:
    for places in (Places(1), held_place()):
        told: list[None] = []
        places.freed = lambda told=told: told.append(None)
        assert places.attempt()
        assert not places.attempt()
        places.undo()
        assert (places.used, told) == (0, [])
        assert places.attempt()


def held_place() -> LeasedPlaces:
    places = LeasedPlaces("t", 1, StillKeeper(turns=1))
    places.held = 1
    return places


def test_a_division_is_told_while_it_is_known_and_assumed_until_somebody_counts() -> None:
    keeper = StillKeeper(turns=1, met=True, expected=2)
    places = LeasedPlaces("t", 40, keeper)
    assert places.division(0.0) is None
    places.take(1, 0.0, WALL)
    places.ask(0.0)
    places.tell(LeaseGrant(0, 1.0, 0.75, 2), 0.0)
    assert [places.division(now) for now in (9.0, 11.0)] == [(0.75, 2), None]
    keeper.alone, keeper.lost_at = True, 9.0
    assert places.division(1000.0) == (0.75, 2)
    again = StillKeeper(turns=1, alone=True, strangers=True, expected=2)
    for assumed, taken in (((0.75, 2), 30), (None, 5)):
        places = LeasedPlaces("t", 40, again)
        if assumed is not None:
            places.assume(*assumed)
        assert places.division(0.0) == assumed
        assert sum([places.attempt() for _ in range(40)]) == pytest.approx(taken, abs=2)
    assert LeasedPlaces("t", 1, again).attempt()
