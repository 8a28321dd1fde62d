"""The cooldowns that a process publishes and receives, and which are new, as values on the test's own clock."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.failure import FailureKind
from proxy.shared_state.shared_cooldowns import (
    LONGEST_COOLDOWN,
    MAX_COOLDOWNS,
    MAX_UNSENT,
    Cooldown,
    SharedCooldowns,
    encode_topic,
)
from tests.support.looped import looped

A, B = "a" * 32, "b" * 32
RATE, QUOTA, AUTH = FailureKind.RATE_LIMITED, FailureKind.QUOTA, FailureKind.AUTH
NOW = 1_000_000


class CooldownReceiver:
    """A process's received cooldowns, its time in seconds, and how often it was woken."""

    def __init__(self) -> None:
        self.now = 50.0
        self.woken = 0
        self.hearsay = SharedCooldowns(lambda: self.now, self.wake)

    def wake(self) -> None:
        self.woken += 1

    def hears(self, *entries: tuple[str, int]) -> tuple[Cooldown, ...]:
        """Return the new cooldowns among these members and ends, if the sender's time is NOW."""
        return self.hearsay.incoming(reply(*entries), {}).cooldowns


def reply(*entries: tuple[str, int], now: int = NOW) -> list[object]:
    """Return a response of Redis."""
    return [now, [part for name, end in entries for part in (name.encode(), str(end).encode())]]


@pytest.fixture
def ear() -> CooldownReceiver:
    return CooldownReceiver()


def test_a_word_is_said_once_with_the_time_that_is_left(ear: CooldownReceiver) -> None:
    ear.hearsay.publish(A, RATE, 20.0)
    ear.now += 0.5
    assert ear.hearsay.outgoing() == {(A, RATE): 19_500}
    ear.hearsay.incoming(reply((f"{A}:rate_limited", NOW + 19_500)), {(A, RATE): 19_500})
    assert ear.hearsay.outgoing() == {}
    assert ear.woken == 1


def test_what_was_not_taken_is_said_again_until_it_is_over(ear: CooldownReceiver) -> None:
    ear.hearsay.publish(A, RATE, 2.0)
    assert ear.hearsay.outgoing() == {(A, RATE): 2000}
    ear.now += 1.0
    ear.hearsay.publish(B, QUOTA, 300.0)
    assert ear.hearsay.outgoing() == {(A, RATE): 1000, (B, QUOTA): 300_000}
    ear.now += 1.0
    assert ear.hearsay.outgoing() == {(B, QUOTA): 299_000}


def test_what_is_said_while_other_words_are_on_their_way_is_not_lost(ear: CooldownReceiver) -> None:
    ear.hearsay.publish(A, RATE, 2.0)
    said = ear.hearsay.outgoing()
    ear.hearsay.publish(A, RATE, 20.0)
    ear.hearsay.incoming(reply(), said)
    assert ear.hearsay.outgoing() == {(A, RATE): 20_000}


def test_a_crowd_that_is_told_the_same_says_it_once(ear: CooldownReceiver) -> None:
    for _ in range(100):
        ear.hearsay.publish(A, RATE, 20.0)
        ear.now += 0.001
    said = ear.hearsay.outgoing()
    ear.hearsay.publish(A, RATE, 20.0)
    ear.hearsay.incoming(reply((f"{A}:rate_limited", NOW + 20_000)), said)
    ear.hearsay.publish(A, RATE, 20.0)
    assert ear.hearsay.outgoing() == {}
    assert ear.woken == 1
    ear.hearsay.publish(A, RATE, 21.0)
    assert ear.hearsay.outgoing() == {(A, RATE): 21_000}


def test_what_was_heard_is_not_repeated(ear: CooldownReceiver) -> None:
    assert ear.hears((f"{A}:rate_limited", NOW + 20_000)) == (Cooldown(A, RATE, 20.0),)
    ear.hearsay.publish(A, RATE, 20.0)
    assert ear.hearsay.outgoing() == {}


def test_the_outbox_has_an_end(ear: CooldownReceiver) -> None:
    for number in range(1000):
        ear.hearsay.publish(f"{number:032x}", RATE, 5.0)
    assert len(ear.hearsay.outgoing()) == MAX_UNSENT
    for number in range(1000, 2000):
        ear.hearsay.publish(f"{number:032x}", RATE, 5.0)
    assert len(ear.hearsay.outgoing()) == MAX_UNSENT


def test_a_word_is_new_once_and_again_when_it_ends_later(ear: CooldownReceiver) -> None:
    assert ear.hears((f"{A}:auth", NOW + 60_000)) == (Cooldown(A, AUTH, 60.0),)
    assert ear.hears((f"{A}:auth", NOW + 60_000)) == ()
    assert ear.hears((f"{A}:auth", NOW + 60_001), (f"{A}:quota", NOW + 1)) == (
        Cooldown(A, AUTH, 60.001),
        Cooldown(A, QUOTA, 0.001),
    )


def test_the_own_word_is_no_news_and_a_longer_one_of_another_is(ear: CooldownReceiver) -> None:
    for end, new in ((NOW + 20_000, ()), (NOW + 20_001, (Cooldown(A, RATE, 20.001),))):
        ear.hearsay.publish(A, RATE, 20.0)
        ear.hearsay._known.clear()
        ear.hearsay.publish(A, RATE, 20.0)
        said = ear.hearsay.outgoing()
        assert said == {(A, RATE): 20_000}
        assert ear.hearsay.incoming(reply((f"{A}:rate_limited", end)), said).cooldowns == new


def test_whoever_comes_later_can_ask_what_holds(ear: CooldownReceiver) -> None:
    ear.hears((f"{A}:quota", NOW + 300_000), (f"{A}:rate_limited", NOW + 1000))
    assert ear.hearsay.about(A) == (Cooldown(A, RATE, 1.0), Cooldown(A, QUOTA, 300.0))
    assert ear.hearsay.about(B) == ()
    ear.now += 1.0
    assert ear.hearsay.about(A) == (Cooldown(A, QUOTA, 299.0),)


def test_a_word_that_is_over_says_nothing_and_none_holds_for_ever(ear: CooldownReceiver) -> None:
    assert ear.hears((f"{A}:quota", NOW), (f"{B}:quota", 5)) == ()
    assert ear.hears((f"{A}:quota", 10**15 - 1)) == (Cooldown(A, QUOTA, LONGEST_COOLDOWN),)
    ear.hearsay.publish(B, RATE, 1e300)
    assert ear.hearsay.outgoing() == {(B, RATE): 3_600_000}


def test_a_credential_that_is_fetched_is_not_called_refused(ear: CooldownReceiver) -> None:
    ear.hearsay.publish_unless_refused(A, AUTH, 60.0)
    ear.hearsay.publish_unless_refused(A, RATE, 5.0)
    ear.hearsay.publish(B, AUTH, 60.0)
    assert ear.hearsay.outgoing() == {(A, RATE): 5000, (B, AUTH): 60_000}


@looped(
    "entries",
    [
        [b"x", b"1"],
        [A.encode() + b":timeout", b"2000000"],
        [A.encode() + b":quota ", b"2000000"],
        [A.upper().encode() + b":quota", b"2000000"],
        [A.encode() + b":quota", b"2e6"],
        [A.encode() + b":quota", b"inf"],
        [A.encode() + b":quota", b"-5"],
        [A.encode() + b":quota", 2_000_000],
        [None, None],
        [[b"nested"], b"1"],
        [b"odd"],
    ],
)
def test_what_no_gateway_wrote_is_left_out_and_the_rest_is_heard(entries: list[object]) -> None:
    good: list[object] = [f"{B}:quota".encode(), b"1300000"]
    heard = CooldownReceiver().hearsay.incoming([NOW, [*good, *entries]], {})
    assert (heard.cooldowns, heard.foreign) == ((Cooldown(B, QUOTA, 300.0),), True)
    assert CooldownReceiver().hearsay.incoming([NOW, good], {}).foreign is False


@looped(
    "answer",
    [None, b"OK", [], [NOW], [b"1", []], [NOW, [], []], [NOW, None], [NOW, [b""] * (2 * MAX_COOLDOWNS + 1)]],
    ids=str,
)
def test_an_answer_that_is_no_list_of_words_is_an_error_and_changes_nothing(answer: object) -> None:
    ear = CooldownReceiver()
    ear.hears((f"{A}:quota", NOW + 300_000))
    ear.hearsay.publish(B, RATE, 5.0)
    said = ear.hearsay.outgoing()
    with pytest.raises(ValueError, match="not a list of the expected form"):
        ear.hearsay.incoming(answer, said)
    assert ear.hearsay.outgoing() == said
    assert ear.hearsay.about(A) == (Cooldown(A, QUOTA, 300.0),)


values = st.recursive(
    st.none() | st.integers() | st.binary(max_size=40) | st.sampled_from([f"{A}:quota".encode(), b"99999999"]),
    lambda inner: st.lists(inner, max_size=6),
)


@given(values | st.tuples(st.integers(), st.lists(values)).map(list))
def test_any_answer_is_heard_or_refused(answer: object) -> None:
    ear = CooldownReceiver()
    try:
        heard = ear.hearsay.incoming(answer, {})
    except ValueError:
        return
    assert all(0 < word.seconds <= LONGEST_COOLDOWN for word in heard.cooldowns)


def test_a_word_is_written_so_that_others_can_read_it() -> None:
    for kind in (RATE, QUOTA, AUTH):
        written = encode_topic((A, kind))
        assert set(written) <= {*string.ascii_lowercase, *string.digits, "_", ":"}
        assert CooldownReceiver().hears((written, NOW + 1000)) == (Cooldown(A, kind, 1.0),)
