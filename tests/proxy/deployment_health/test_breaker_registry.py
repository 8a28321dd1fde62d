"""The order in which the deployments of a group are tried, and the behaviour if all of them are unavailable."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from pydantic import SecretStr

from providers.failure import Failure, FailureKind
from providers.target import CircuitBreaker, Target
from providers.vendor_credential import Credential, EntraSource
from proxy.deployment_health.breaker_registry import Breakers, Order
from proxy.deployment_health.circuit_breaker import AnswerKind, Breaker, State
from proxy.deployment_health.circuit_breaker_rules import HealthRules
from proxy.shared_state.shared_cooldowns import Cooldown, SharedCooldowns, encode_topic
from tests.providers.dialects.openai.kit import target
from tests.proxy.kit.breakers import RULES, fail, middle, succeed
from tests.support.looped import looped

BASE = replace(target("vllm"), model_key="v/m")
A, B, C = GROUP = tuple(replace(BASE, deployment=name) for name in "abc")


def registry(rules: HealthRules = RULES, draw: Callable[[], float] = middle) -> Breakers:
    """Return a registry without any history."""
    return Breakers(rules, draw)


def eject(health: Breaker, now: float) -> None:
    """Let five requests in a row fail."""
    for _ in range(RULES.failures):
        fail(health, now)


def cool(health: Breaker, now: float, seconds: float) -> None:
    fail(health, now, Failure(FailureKind.RATE_LIMITED, "slow down", 429, retry_after=seconds))


def hang(health: Breaker, now: float) -> None:
    """Begin enough tries without a first byte. They have waited long enough at `now` + 6."""
    for _ in range(RULES.hanging_least + 1):
        health.begin(now, AnswerKind.STREAM)


def names(arranged: Order) -> str:
    return "".join(each.deployment for each in arranged.ready)


# The registry --------------------------------------------------------------------------------------------------------


@pytest.fixture
def breakers() -> Breakers:
    return registry()


def test_a_deployment_is_its_label_and_its_address(breakers: Breakers) -> None:
    health = breakers.of(A)
    assert breakers.of(replace(A, weight=9, model="other", upstream_model="other")) is health
    assert breakers.of(replace(A, base_url="http://other/v1")) is not health
    assert breakers.of(replace(A, model_key="v/*")) is not health
    assert breakers.of(B) is not health


def test_an_attempt_counts_at_its_deployment(breakers: Breakers) -> None:
    attempts = [breakers.begin(target, 0.0, AnswerKind.WHOLE, "a") for target in (A, A, B)]
    assert (breakers.of(A).in_flight, breakers.of(B).in_flight) == (2, 1)
    attempts[0].succeeded(1.0)
    assert breakers.of(A).in_flight == 1


def test_a_new_table_keeps_what_is_known_of_the_deployments_that_stay(breakers: Breakers) -> None:
    eject(breakers.of(A), 0.0)
    eject(breakers.of(B), 0.0)
    breakers.keep([replace(A, weight=2), C])
    assert dict(breakers.states(0.0)) == {"v/m/a": State.OPEN}
    assert breakers.of(B).state(0.0) is State.CLOSED


def test_a_deployment_is_judged_by_its_own_settings_and_by_a_new_table_s_once_that_is_there(breakers: Breakers) -> None:
    own = replace(A, circuit_breaker=CircuitBreaker(failures=1, cooldown=2.0))
    assert fail(breakers.of(own), 0.0)
    assert (breakers.of(own).wait(0.0), breakers.of(B).wait(0.0)) == (2.0, 0.0)
    breakers.keep([replace(own, circuit_breaker=CircuitBreaker(cooldown=9.0)), B])
    assert fail(breakers.of(own), 2.0)
    assert breakers.of(own).wait(2.0) == 9.0


def test_so_is_every_model_of_a_row_for_any(breakers: Breakers) -> None:
    row = replace(A, model_key="v/*", model="*")
    model = replace(row, model="m")
    breakers.of(model)
    breakers.keep([replace(row, circuit_breaker=CircuitBreaker(failures=1))])
    assert fail(breakers.of(model), 0.0)


def test_a_try_of_a_forgotten_deployment_still_ends(breakers: Breakers) -> None:
    health = breakers.of(A)
    trial = health.begin(0.0, AnswerKind.STREAM)
    breakers.keep([])
    trial.succeeded(1.0)
    assert health.in_flight == 0
    assert list(breakers.states(1.0)) == []


def test_states_are_given_by_label(breakers: Breakers) -> None:
    succeed(breakers.of(A), 0.0)
    eject(breakers.of(B), 0.0)
    assert list(breakers.states(1.0)) == [("v/m/a", State.CLOSED), ("v/m/b", State.OPEN)]
    assert dict(breakers.states(5.0))["v/m/b"] is State.HALF_OPEN


# The order -----------------------------------------------------------------------------------------------------------


def test_the_order_of_healthy_deployments_stays() -> None:
    assert registry().arrange([B, C, A], 0.0) == Order((B, C, A), 0.0, False)


def test_blocked_ones_are_left_out(breakers: Breakers) -> None:
    eject(breakers.of(A), 0.0)
    cool(breakers.of(C), 0.0, 5.0)
    assert names(breakers.arrange(GROUP, 1.0)) == "b"


def test_a_half_open_one_keeps_its_place_until_it_is_probed(breakers: Breakers) -> None:
    eject(breakers.of(A), 0.0)
    assert names(breakers.arrange(GROUP, 5.0)) == "abc"
    breakers.of(A).begin(5.0, AnswerKind.STREAM)
    assert names(breakers.arrange(GROUP, 5.0)) == "bc"


@looped(("number", "order"), [(0.09, "abc"), (0.1, "bca"), (0.99, "bca")])
def test_one_that_returned_lately_goes_first_only_for_its_share(number: float, order: str) -> None:
    jitter = [0.5]
    breakers = registry(draw=lambda: jitter.pop() if jitter else number)
    eject(breakers.of(A), 0.0)
    succeed(breakers.of(A), 5.0)
    assert names(breakers.arrange(GROUP, 5.0)) == order
    assert names(breakers.arrange(GROUP, 15.0)) == "abc"


def test_a_conversation_comes_back_once_and_stays() -> None:
    """The number of the conversation decides when it returns. A change from turn to turn would fill two caches."""
    breakers = registry(draw=lambda: 0.5)
    eject(breakers.of(A), 0.0)
    succeed(breakers.of(A), 5.0)
    firsts = [
        names(breakers.arrange(GROUP, 5.0 + tenth / 10, "", number << 60))[0]
        for number in range(16)
        for tenth in range(101)
    ]
    turns = ["".join(firsts[at : at + 101]) for at in range(0, len(firsts), 101)]
    assert all(sorted(each, reverse=True) == [*each] for each in turns)
    assert [each.count("b") for each in turns] == sorted(each.count("b") for each in turns)
    assert (turns[0].count("b"), turns[8].count("b"), turns[15].count("b")) == (0, 51, 94)


def test_a_hanging_one_comes_last(breakers: Breakers) -> None:
    hang(breakers.of(A), 0.0)
    assert names(breakers.arrange(GROUP, 5.0)) == "abc"
    assert names(breakers.arrange(GROUP, 6.0)) == "bca"


def test_where_all_hang_the_order_stays(breakers: Breakers) -> None:
    for each in GROUP:
        hang(breakers.of(each), 0.0)
    assert names(breakers.arrange(GROUP, 6.0)) == "abc"


# Panic ---------------------------------------------------------------------------------------------------------------


def all_ejected() -> Breakers:
    """Return breakers with every deployment ejected: c until 5, b until 6, a until 7."""
    breakers = registry()
    for now, each in enumerate(reversed(GROUP)):
        eject(breakers.of(each), float(now))
    return breakers


def test_where_none_may_be_asked_one_passes_a_second() -> None:
    breakers = all_ejected()
    assert breakers.arrange(GROUP, 3.0) == Order((C,), 0.0, False)
    assert breakers.arrange(GROUP, 3.25) == Order((), 0.75, False)
    assert breakers.arrange(GROUP, 3.9).ready == ()
    assert breakers.arrange(GROUP, 4.0).ready == (C,)


def test_names_over_the_same_deployments_share_that_second() -> None:
    breakers = all_ejected()
    assert breakers.arrange((A, C), 3.0).ready == (C,)
    assert breakers.arrange((C, B), 3.1).ready == ()
    assert breakers.arrange((A, B), 3.1).ready == (B,)
    assert breakers.arrange((C, B), 4.2).ready == (C,)


def test_one_that_is_being_probed_is_asked_again_only_when_all_are() -> None:
    breakers = all_ejected()
    for at, expected in ((2.0, C), (3.0, B), (4.0, A), (4.9, None)):
        ready = breakers.arrange(GROUP, at).ready
        assert ready == (() if expected is None else (expected,))
        for each in ready:
            breakers.of(each).begin(at, AnswerKind.STREAM)
    assert len(breakers.arrange(GROUP, 5.0).ready) == 1


def test_a_single_deployment_is_never_left_alone_for_longer_than_a_second(breakers: Breakers) -> None:
    eject(breakers.of(A), 0.0)
    passed = [now for now in range(5) if breakers.arrange([A], float(now)).ready]
    assert passed == [0, 1, 2, 3, 4]


def test_what_a_vendor_said_is_not_tried_out(breakers: Breakers) -> None:
    for each, seconds in zip(GROUP, (7.0, 3.0, 5.0), strict=True):
        cool(breakers.of(each), 0.0, seconds)
    assert breakers.arrange(GROUP, 1.0) == Order((), 2.0, True)
    assert breakers.arrange(GROUP, 2.75) == Order((), 0.25, True)
    assert breakers.arrange(GROUP, 3.0).ready == (B,)


def test_an_ejected_one_is_tried_out_before_one_that_said_wait(breakers: Breakers) -> None:
    cool(breakers.of(A), 0.0, 2.0)
    eject(breakers.of(B), 0.0)
    assert breakers.arrange([A, B], 0.5) == Order((B,), 0.0, False)
    assert breakers.arrange([A, B], 0.75) == Order((), 0.75, False)


def test_nothing_comes_of_no_targets() -> None:
    assert registry().arrange([], 0.0) == Order((), 0.0, False)


def test_a_new_table_may_try_at_once() -> None:
    breakers = all_ejected()
    assert breakers.arrange(GROUP, 3.0).ready
    assert not breakers.arrange(GROUP, 3.1).ready
    breakers.keep(GROUP)
    assert breakers.arrange(GROUP, 3.2).ready


def test_who_is_left_alone_is_told_with_how_long() -> None:
    breakers = Breakers(HealthRules(failures=1, jitter=0.0), lambda: 0.5)
    breakers.of(A).begin(0.0, AnswerKind.WHOLE).failed(0.0, Failure(FailureKind.SERVER, "why", 500))
    breakers.of(B).begin(0.0, AnswerKind.WHOLE).succeeded(0.0)
    assert dict(breakers.waits(1.0)) == {A.label: 4.0}
    assert dict(breakers.waits(6.0)) == {}


# Cooldowns of several processes --------------------------------------------------------------------------------------


def process(*targets: Target) -> tuple[Breakers, SharedCooldowns]:
    """Return the breakers of one of several processes that has called `targets`, with its shared cooldowns."""
    breakers, hearsay = registry(), SharedCooldowns(lambda: 0.0, lambda: None)
    breakers.share(hearsay)
    for each in targets:
        breakers.of(each)
    return breakers, hearsay


def tell(hearsay: SharedCooldowns, to: SharedCooldowns) -> tuple[Cooldown, ...]:
    """Send the cooldowns of `hearsay` to another process, and return the accepted ones."""
    entries = [
        part for topic, left in hearsay.outgoing().items() for part in (encode_topic(topic).encode(), b"%d" % left)
    ]
    return to.incoming([0, entries], {}).cooldowns


def keyed(key: str) -> Credential:
    """Return a credential with a key of the operator's."""
    return Credential("bearer", key=SecretStr(key))


MINE, OTHERS = replace(A, credential=keyed("mine")), replace(A, credential=keyed("others"))


def test_who_only_cools_down_is_told_apart_from_who_failed() -> None:
    breakers, wild = registry(), replace(BASE, model_key="v/*")
    cool(breakers.of(A), 0.0, 50)
    eject(breakers.of(B), 0.0)
    cool(breakers.of(C), 0.0, 5)
    cool(breakers.of(replace(wild, model="one", upstream_model="one")), 0.0, 50)
    eject(breakers.of(replace(wild, model="two", upstream_model="two")), 0.0)
    assert list(breakers.cooling(1.0)) == [A.label, C.label]
    # The failed deployments may be tried by now.
    assert list(breakers.cooling(6.0)) == [A.label, wild.label]


def test_a_process_alone_tells_nobody(breakers: Breakers) -> None:
    cool(breakers.of(A), 0.0, 20.0)
    assert (breakers.shared, breakers.of(A).publish, breakers.of(A).name) == ("off", None, "")


def test_what_one_process_is_told_holds_for_the_same_deployment_of_the_others() -> None:
    (mine, said), (yours, heard) = process(MINE, B), process(MINE, B)
    cool(mine.of(MINE), 0.0, 20.0)
    yours.apply_cooldowns(tell(said, heard), 1.0)
    assert [yours.of(each).wait(1.0) for each in (MINE, B, C)] == [20.0, 0.0, 0.0]
    assert yours.arrange((MINE, B), 1.0).ready == (B,)
    assert heard.outgoing() == {}


@looped(
    "other",
    [
        OTHERS,
        replace(MINE, base_url="https://b.example"),
        replace(MINE, deployment="b"),
        replace(MINE, model_key="v/*"),
    ],
)
def test_another_key_address_or_name_is_another_deployment(other: Target) -> None:
    (mine, said), (yours, heard) = process(MINE), process(other)
    cool(mine.of(MINE), 0.0, 20.0)
    yours.apply_cooldowns(tell(said, heard), 1.0)
    assert yours.of(other).admits(1.0)


def test_a_deployment_that_is_met_later_is_left_alone_from_the_start() -> None:
    (mine, said), (yours, heard) = process(MINE), process()
    cool(mine.of(MINE), 0.0, 20.0)
    yours.apply_cooldowns(tell(said, heard), 0.0)
    assert yours.arrange((MINE, B), 0.0).ready == (B,)


def test_a_key_that_a_new_table_brings_is_another_s_word_no_more() -> None:
    (mine, said), (yours, heard) = process(MINE), process(OTHERS)
    yours.keep([MINE])
    cool(mine.of(MINE), 0.0, 20.0)
    yours.apply_cooldowns(tell(said, heard), 0.0)
    assert yours.of(MINE).wait(0.0) == 20.0
    cool(yours.of(MINE), 0.0, 50.0)
    assert {name for name, _ in heard.outgoing()} == {mine.of(MINE).name}


def test_that_a_fetched_credential_was_refused_is_not_told() -> None:
    for source, kinds in ((None, {FailureKind.AUTH}), (EntraSource("scope"), set())):
        each = replace(A, credential=Credential(source=source))
        breakers, hearsay = process(each)
        fail(breakers.of(each), 0.0, Failure(FailureKind.AUTH, "no", 401))
        assert {kind for _, kind in hearsay.outgoing()} == kinds
        cool(breakers.of(each), 0.0, 20.0)
        assert {kind for _, kind in hearsay.outgoing()} == {*kinds, FailureKind.RATE_LIMITED}


def test_whether_others_can_be_reached_is_shown() -> None:
    breakers, hearsay = process()
    for up, shown in ((False, "alone"), (True, "up"), (False, "alone")):
        hearsay.up = up
        assert breakers.shared == shown
