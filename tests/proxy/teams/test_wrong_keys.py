"""Wrong keys from an address: a burst is allowed, then a fixed rate, and the number of stored addresses is bounded."""

from hypothesis import given
from hypothesis import strategies as st

from proxy.teams.wrong_keys import WrongKeyLimiter, WrongKeyRules
from tests.support.looped import looped

HERE, ELSEWHERE = "192.0.2.1", "192.0.2.2"


def test_twenty_wrong_keys_at_once_and_then_one_a_second() -> None:
    guesses = WrongKeyLimiter()
    assert [guesses.count(HERE, 5.0) for _ in range(20)] == [0.0] * 20
    assert guesses.count(HERE, 5.0) == 1.0
    assert guesses.count(HERE, 5.25) == 0.75
    assert guesses.count(HERE, 6.0) == 0.0
    assert guesses.count(HERE, 6.0) == 1.0


def test_what_was_refused_does_not_lengthen_the_wait() -> None:
    guesses = WrongKeyLimiter()
    waits = [guesses.count(HERE, 0.0) for _ in range(1000)]
    assert waits == [0.0] * 20 + [1.0] * 980


def test_a_quiet_minute_brings_all_twenty_back_and_no_more() -> None:
    guesses = WrongKeyLimiter()
    for _ in range(30):
        guesses.count(HERE, 0.0)
    assert [guesses.count(HERE, 60.0) for _ in range(21)] == [0.0] * 20 + [1.0]


def test_another_address_has_its_own() -> None:
    guesses = WrongKeyLimiter()
    for _ in range(30):
        guesses.count(HERE, 0.0)
    assert guesses.count(ELSEWHERE, 0.0) == 0.0


@looped(
    ("one", "other", "same"),
    [
        ("2001:db8::1", "2001:db8::ffff:2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("", "", True),
        ("unix", "other", False),
    ],
)
def test_the_addresses_of_one_host_count_together(one: str, other: str, same: bool) -> None:
    guesses = WrongKeyLimiter(WrongKeyRules(burst=1))
    assert guesses.count(one, 0.0) == 0.0
    assert (guesses.count(other, 0.0) > 0) is same


def test_the_address_not_heard_of_for_longest_is_forgotten_first() -> None:
    guesses = WrongKeyLimiter(WrongKeyRules(burst=1, every=60.0, addresses=2))
    for address in ("a", "b", "a", "c"):
        guesses.count(address, 0.0)
    assert guesses.count("a", 0.0) == 60.0
    assert guesses.count("b", 0.0) == 0.0


@given(st.lists(st.floats(0, 3), max_size=200))
def test_no_more_pass_than_the_burst_and_the_pace_allow(gaps: list[float]) -> None:
    guesses, now, passed = WrongKeyLimiter(WrongKeyRules(burst=5)), 0.0, 0
    for gap in gaps:
        now += gap
        wait = guesses.count(HERE, now)
        assert 0.0 <= wait <= 1.0
        passed += wait == 0.0
    assert passed <= 5 + now
