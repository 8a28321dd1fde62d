"""Slots, in one process and leased."""

import pytest

from proxy.limits.concurrency import LeasedSlots, Slots
from proxy.limits.lease_counter import LeaseCounter
from proxy.shared_state.lease import LeaseGrant
from proxy.shared_state.lease_keeper import REFUSAL_PAUSE
from tests.proxy.limits.kit.still_keeper import StillKeeper
from tests.support.not_none import not_none

WALL = 0.0


def exchange(slots: LeasedSlots, counter: LeaseCounter, process: str, now: float) -> None:
    ask = not_none(slots.next_request(now))
    slots.apply_grant(counter.exchange(process, [ask], now * 1e6)[0], now)


def fetch(slots: LeasedSlots, counter: LeaseCounter, process: str, now: float) -> None:
    """Let a request wait for a slot until one is granted."""
    slots.add_waiting(1)
    exchange(slots, counter, process, now)
    slots.remove_waiting(1)


def test_a_place_is_free_again_when_it_is_released() -> None:
    slots, freed = Slots(2), []
    for _ in range(2):
        assert not slots.lacks(1, 0.0, WALL)
        slots.take(1, 0.0, WALL)
    assert slots.lacks(1, 0.0, WALL)
    assert slots.wait(1, 0.0, WALL) > 0
    assert (slots.remaining(0.0, WALL), slots.taken) == (0, 2)
    assert slots.full_in(0.0, WALL) > 0
    slots.freed = lambda: freed.append(1)
    slots.settle(1, 1)
    assert freed == [1]
    assert not slots.lacks(1, 0.0, WALL)
    assert slots.wait(1, 0.0, WALL) == 0
    slots.settle(1, 0)
    assert slots.full_in(0.0, WALL) == 0
    slots.refused(1, 0.0)
    assert not slots.fetchable(1, 0.0)


def test_a_leased_place_is_fetched_and_given_back_at_once() -> None:
    keeper, counter = StillKeeper(rounds=1), LeaseCounter()
    one, two = (LeasedSlots("t", 2, keeper) for _ in range(2))
    for each, name in ((one, "one"), (two, "two")):
        assert each.lacks(1, 0.0, WALL)
        assert each.fetchable(1, 0.0)
        fetch(each, counter, name, 0.0)
        assert not each.lacks(1, 0.0, WALL)
        each.take(1, 0.0, WALL)
    one.add_waiting(1)
    exchange(one, counter, "one", 1.0)
    assert one.lacks(1, 1.0, WALL)
    assert not one.fetchable(1, 1.0)
    assert one.fetchable(1, 1.0 + REFUSAL_PAUSE)
    assert one.taken == 2
    two.settle(1, 1)
    assert keeper.noted[-1] == "wake"
    exchange(two, counter, "two", 1.1)
    exchange(one, counter, "one", 1.1)
    assert not one.lacks(1, 1.1, WALL)
    assert two.needs_renewal(2.0)  # one process holds some
    assert one.needs_renewal(2.0)
    assert not one.may_need_renewal()


def test_who_holds_none_asks_on_until_it_has_heard_that_the_others_released_theirs() -> None:
    counter = LeaseCounter()
    one, two = (LeasedSlots("t", 2, StillKeeper(rounds=1)) for _ in range(2))
    for _ in range(2):
        fetch(one, counter, "one", 0.0)
        one.take(1, 0.0, WALL)
    exchange(two, counter, "two", 0.1)
    assert (two.taken, two.held) == (2, 0)
    assert two.needs_renewal(1.0)
    for _ in range(2):
        one.settle(1, 1)
    exchange(one, counter, "one", 1.1)
    exchange(two, counter, "two", 1.2)
    assert two.taken == 0
    assert not two.needs_renewal(2.0)


def test_large_pools_are_leased_ahead_a_little() -> None:
    keeper, counter = StillKeeper(rounds=1), LeaseCounter()
    slots = LeasedSlots("t", 400, keeper)
    assert slots.spare == 4
    exchange(slots, counter, "one", 0.0)
    assert slots.held == 4
    slots.take(1, 0.0, WALL)
    assert keeper.noted == ["due"]
    exchange(slots, counter, "one", 0.1)
    assert slots.held == 1 + 16


def test_what_others_lease_ahead_and_do_not_use_is_not_told_as_taken() -> None:
    counter = LeaseCounter()
    one, two = (LeasedSlots("t", 400, StillKeeper(rounds=1)) for _ in range(2))
    fetch(one, counter, "one", 0.0)
    assert one.held == 5
    exchange(two, counter, "two", 0.1)
    assert two.taken == 1  # the request that waited for it begins now
    one.take(1, 0.1, WALL)
    one.settle(1, 1)
    exchange(one, counter, "one", 0.2)
    exchange(two, counter, "two", 0.2)
    assert (one.held, one.taken, two.taken) == (16, 0, 0)


def test_the_places_of_a_process_that_died_come_back_after_ten_seconds() -> None:
    keeper, counter = StillKeeper(rounds=1), LeaseCounter()
    one, two = (LeasedSlots("t", 1, keeper) for _ in range(2))
    one.add_waiting(1)
    exchange(one, counter, "one", 0.0)
    two.add_waiting(1)
    exchange(two, counter, "two", 9.9)
    assert two.lacks(1, 9.9, WALL)
    exchange(two, counter, "two", 10.1)
    assert not two.lacks(1, 10.1, WALL)


def test_alone_it_goes_on_with_its_part_and_at_least_one_place() -> None:
    keeper = StillKeeper(rounds=1, alone=True)
    slots = LeasedSlots("t", 40, keeper)
    for _ in range(10):
        assert not slots.lacks(1, 0.0, WALL)
        slots.take(1, 0.0, WALL)
    assert slots.lacks(1, 0.0, WALL)
    assert slots.exceeded("team t", 1, 0.0, WALL).alone == 0
    assert not slots.fetchable(1, 0.0)
    assert not LeasedSlots("t", 1, keeper).lacks(1, 0.0, WALL)
    keeper.alone = False
    assert not_none(slots.next_request(0.0)).held == 10
    assert slots.exceeded("team t", 1, 0.0, WALL).alone is None


def test_those_who_used_none_when_all_was_lost_have_no_more_together_than_there_are() -> None:
    counter, keeper = LeaseCounter(), StillKeeper(rounds=1, has_answered=True)
    every = [LeasedSlots("t", 40, keeper) for _ in range(4)]
    for number, each in enumerate(every):
        exchange(each, counter, str(number), 5.0)
    for lost_at, most in (
        (6.0, 10),
        (8.0, 2),
    ):  # first the others are known to be idle, then their use since is unknown
        keeper.alone, keeper.lost_at = True, lost_at
        for each in every:
            each.used = 0
            while each.attempt():
                pass
            assert each.used == most


def test_the_only_process_there_is_has_all_places_alone() -> None:
    slots = LeasedSlots("t", 40, StillKeeper(rounds=1, has_answered=True, expected=1, alone=True, lost_at=5.0))
    while slots.attempt():
        pass
    assert slots.used == 40


def test_where_something_else_is_kept_it_goes_on_with_its_part() -> None:
    slots = LeasedSlots("t", 40, StillKeeper(rounds=1))
    slots.apply_grant(None, 0.0)
    slots.exchange_failed()
    assert not slots.lacks(1, 0.0, WALL)
    assert slots.needs_renewal(0.0)
    slots.apply_grant(LeaseGrant(0, 0.0, 1.0, 1), 0.0)
    assert slots.lacks(1, 0.0, WALL)


def test_a_place_that_an_attempt_took_is_put_back_without_waking_who_waits() -> None:
    for slots in (Slots(1), held_place()):
        told: list[None] = []
        slots.freed = lambda told=told: told.append(None)
        assert slots.attempt()
        assert not slots.attempt()
        slots.undo()
        assert (slots.used, told) == (0, [])
        assert slots.attempt()


def held_place() -> LeasedSlots:
    slots = LeasedSlots("t", 1, StillKeeper(rounds=1))
    slots.held = 1
    return slots


def test_a_division_is_told_while_it_is_known_and_assumed_until_somebody_counts() -> None:
    keeper = StillKeeper(rounds=1, has_answered=True, expected=2)
    slots = LeasedSlots("t", 40, keeper)
    assert slots.division(0.0) is None
    slots.take(1, 0.0, WALL)
    slots.next_request(0.0)
    slots.apply_grant(LeaseGrant(0, 1.0, 0.75, 2), 0.0)
    assert [slots.division(now) for now in (9.0, 11.0)] == [(0.75, 2), None]
    keeper.alone, keeper.lost_at = True, 9.0
    assert slots.division(1000.0) == (0.75, 2)
    again = StillKeeper(rounds=1, alone=True, other_gateways=True, expected=2)
    for assumed, taken in (((0.75, 2), 30), (None, 5)):
        slots = LeasedSlots("t", 40, again)
        if assumed is not None:
            slots.assume(*assumed)
        assert slots.division(0.0) == assumed
        assert sum([slots.attempt() for _ in range(40)]) == pytest.approx(taken, abs=2)
    assert LeasedSlots("t", 1, again).attempt()
