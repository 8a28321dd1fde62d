"""How many processes there are, and since when all of them have reported what they hold."""

import pytest

from proxy.limits.lease_counter import LeaseCounter
from proxy.shared_state.lease_keeper import REJOIN_SECONDS
from proxy.shared_state.membership import LONGEST_SILENCE, Membership

S = 1_000_000


def called(call: Membership, counter: LeaseCounter, name: str, seconds: float) -> None:
    ask = call.next_request(seconds)
    call.apply_grant(counter.exchange(name, [ask], seconds * S)[0], seconds)


def test_each_hears_of_all_that_were_heard_of_lately_and_of_no_fewer_than_its_gateway_has() -> None:
    counter, calls = LeaseCounter(), {name: Membership(2) for name in "abc"}
    for name, call in calls.items():
        called(call, counter, name, 0.0)
    assert [call.processes for call in calls.values()] == [2, 2, 3]
    called(calls["a"], counter, "a", 1.0)
    assert calls["a"].processes == 3
    for seconds in (2.0, 4.0, 6.0, 8.0, 10.0, 12.0):
        called(calls["a"], counter, "a", seconds)
    assert calls["a"].processes == 2


def test_no_answer_and_one_of_somebody_else_change_nothing() -> None:
    call = Membership(0)
    assert call.processes == 1
    call.processes = 5
    call.apply_grant(None, 0.0)
    call.exchange_failed()
    assert call.processes == 5


def test_it_is_always_told_and_never_rests() -> None:
    call = Membership(1)
    assert call.needs_renewal(0.0)
    assert call.may_need_renewal()


def test_all_have_told_since_the_most_silent_of_them_did() -> None:
    counter, calls = LeaseCounter(), {name: Membership(2) for name in "abc"}
    for at, name in ((0.0, "a"), (0.4, "b"), (0.7, "c"), (1.0, "a")):
        called(calls[name], counter, name, at)
    assert calls["a"].all_reported_since == pytest.approx(0.4)


@pytest.mark.parametrize("wiped", [True, False], ids=["memory lost", "lost for long"])
def test_who_was_there_before_is_missed_until_it_tells_or_could_have(wiped: bool) -> None:
    counter, calls = LeaseCounter(), {name: Membership(1) for name in "abc"}
    for name in "abca":
        called(calls[name], counter, name, 0.0)
    call, back = calls["a"], 1.0 if wiped else 20.0
    assert back <= LONGEST_SILENCE or not wiped
    counter = LeaseCounter() if wiped else counter
    for at, name in ((back, "a"), (back + 0.1, "b"), (back + 0.2, "a")):
        called(calls[name], counter, name, at)
    assert (call.processes, call.all_reported_since) == (3, 0.0)
    called(calls["c"], counter, "c", back + 0.3)
    called(call, counter, "a", back + 0.4)
    assert call.all_reported_since == pytest.approx(back + 0.1)
    lone = Membership(1)
    called(lone, counter, "d", back + 0.5)
    called(lone, LeaseCounter(), "d", back + 0.6)
    assert lone.processes == 4
    called(lone, LeaseCounter(), "d", back + 0.6 + REJOIN_SECONDS)


def test_one_who_counts_alone_is_counted_and_has_not_told() -> None:
    counter, one, two = LeaseCounter(), Membership(2), Membership(2)
    called(one, counter, "one", 0.0)
    two.here = False
    called(two, counter, "two", 0.1)
    called(one, counter, "one", 0.2)
    assert one.processes == 2
    assert one.all_reported_since < 0
    two.here = True
    called(two, counter, "two", 0.3)
    called(one, counter, "one", 0.4)
    assert one.all_reported_since == pytest.approx(0.3)


def test_a_guess_holds_until_something_tells_and_is_missed_only_where_nobody_answered() -> None:
    for misses, after in ((0, 1), (1, 4)):
        call = Membership(1)
        call.guess(3)
        call.guess(4)
        assert (call.processes, call.guessed) == (4, True)
        for _ in range(misses):
            call.exchange_failed()
        called(call, LeaseCounter(), "a", 5.0)
        assert (call.processes, call.guessed) == (after, False)
        call.guess(9)
        assert (call.processes, call.guessed) == (after, False)


def test_as_many_as_before_a_restart_are_no_guess_and_never_fewer_than_the_gateway_has() -> None:
    call = Membership(2)
    call.guess(3)
    call.assume(7)
    assert (call.processes, call.guessed) == (7, False)
    call.assume(1)
    assert call.processes == 2
