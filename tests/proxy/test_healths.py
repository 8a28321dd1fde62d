"""The order in which the deployments of a group may be asked, and what happens when none may be."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from pydantic import SecretStr

from providers.auth import Credential, EntraSource
from providers.dialect import CircuitBreaker, Target
from providers.failure import Failure, FailureKind
from proxy.health import Answer, Health, State
from proxy.health_rules import HealthRules
from proxy.healths import Arranged, Healths
from proxy.hearsay import Hearsay, Word, member
from tests.providers.dialects.openai_kit import target
from tests.proxy.health_kit import RULES, fail, middle, succeed

BASE = replace(target("vllm"), row="v/m")
A, B, C = GROUP = tuple(replace(BASE, deployment=name) for name in "abc")


def registry(rules: HealthRules = RULES, draw: Callable[[], float] = middle) -> Healths:
    """Nothing is known."""
    return Healths(rules, draw)


def eject(health: Health, now: float) -> None:
    """Five failures in a row."""
    for _ in range(RULES.failures):
        fail(health, now)


def cool(health: Health, now: float, seconds: float) -> None:
    """A rate limit."""
    fail(health, now, Failure(FailureKind.RATE_LIMITED, "slow down", 429, retry_after=seconds))


def hang(health: Health, now: float) -> None:
    """Enough tries without a first byte, for long enough at `now` + 6."""
    for _ in range(RULES.hanging_least + 1):
        health.begin(now, Answer.STREAM)


def names(arranged: Arranged) -> str:
    """The deployments that may be asked, in order."""
    return "".join(each.deployment for each in arranged.ready)


# The registry --------------------------------------------------------------------------------------------------------


def test_a_deployment_is_its_label_and_its_address() -> None:
    healths = registry()
    health = healths.of(A)
    assert healths.of(replace(A, weight=9, model="other", upstream_model="other")) is health
    assert healths.of(replace(A, base_url="http://other/v1")) is not health
    assert healths.of(replace(A, row="v/*")) is not health
    assert healths.of(B) is not health


def test_a_new_table_keeps_what_is_known_of_the_deployments_that_stay() -> None:
    healths = registry()
    eject(healths.of(A), 0.0)
    eject(healths.of(B), 0.0)
    healths.keep([replace(A, weight=2), C])
    assert dict(healths.states(0.0)) == {"v/m/a": State.OPEN}
    assert healths.of(B).state(0.0) is State.CLOSED


def test_a_deployment_is_judged_by_its_own_settings_and_by_a_new_table_s_once_that_is_there() -> None:
    healths = registry()
    own = replace(A, circuit_breaker=CircuitBreaker(failures=1, cooldown=2.0))
    assert fail(healths.of(own), 0.0)
    assert (healths.of(own).wait(0.0), healths.of(B).wait(0.0)) == (2.0, 0.0)
    healths.keep([replace(own, circuit_breaker=CircuitBreaker(cooldown=9.0)), B])
    assert fail(healths.of(own), 2.0)
    assert healths.of(own).wait(2.0) == 9.0


def test_so_is_every_model_of_a_row_for_any() -> None:
    healths = registry()
    row = replace(A, row="v/*", model="*")
    model = replace(row, model="m")
    healths.of(model)
    healths.keep([replace(row, circuit_breaker=CircuitBreaker(failures=1))])
    assert fail(healths.of(model), 0.0)


def test_a_try_of_a_forgotten_deployment_still_ends() -> None:
    healths = registry()
    health = healths.of(A)
    trial = health.begin(0.0, Answer.STREAM)
    healths.keep([])
    trial.succeeded(1.0)
    assert health.in_flight == 0
    assert list(healths.states(1.0)) == []


def test_states_are_given_by_label() -> None:
    healths = registry()
    succeed(healths.of(A), 0.0)
    eject(healths.of(B), 0.0)
    assert list(healths.states(1.0)) == [("v/m/a", State.CLOSED), ("v/m/b", State.OPEN)]
    assert dict(healths.states(5.0))["v/m/b"] is State.HALF_OPEN


# The order -----------------------------------------------------------------------------------------------------------


def test_the_order_of_healthy_deployments_stays() -> None:
    assert registry().arrange([B, C, A], 0.0) == Arranged((B, C, A), 0.0, False)


def test_blocked_ones_are_left_out() -> None:
    healths = registry()
    eject(healths.of(A), 0.0)
    cool(healths.of(C), 0.0, 5.0)
    assert names(healths.arrange(GROUP, 1.0)) == "b"


def test_a_half_open_one_keeps_its_place_until_it_is_probed() -> None:
    healths = registry()
    eject(healths.of(A), 0.0)
    assert names(healths.arrange(GROUP, 5.0)) == "abc"
    healths.of(A).begin(5.0, Answer.STREAM)
    assert names(healths.arrange(GROUP, 5.0)) == "bc"


@pytest.mark.parametrize(("number", "order"), [(0.09, "abc"), (0.1, "bca"), (0.99, "bca")])
def test_one_that_returned_lately_goes_first_only_for_its_share(number: float, order: str) -> None:
    jitter = [0.5]
    healths = registry(draw=lambda: jitter.pop() if jitter else number)
    eject(healths.of(A), 0.0)
    succeed(healths.of(A), 5.0)
    assert names(healths.arrange(GROUP, 5.0)) == order
    assert names(healths.arrange(GROUP, 15.0)) == "abc"


def test_a_hanging_one_comes_last() -> None:
    healths = registry()
    hang(healths.of(A), 0.0)
    assert names(healths.arrange(GROUP, 5.0)) == "abc"
    assert names(healths.arrange(GROUP, 6.0)) == "bca"


def test_where_all_hang_the_order_stays() -> None:
    healths = registry()
    for each in GROUP:
        hang(healths.of(each), 0.0)
    assert names(healths.arrange(GROUP, 6.0)) == "abc"


# Panic ---------------------------------------------------------------------------------------------------------------


def all_ejected() -> Healths:
    """Every deployment ejected: c until 5, b until 6, a until 7."""
    healths = registry()
    for now, each in enumerate(reversed(GROUP)):
        eject(healths.of(each), float(now))
    return healths


def test_where_none_may_be_asked_one_passes_a_second() -> None:
    healths = all_ejected()
    assert healths.arrange(GROUP, 3.0) == Arranged((C,), 0.0, False)
    assert healths.arrange(GROUP, 3.25) == Arranged((), 0.75, False)
    assert healths.arrange(GROUP, 3.9).ready == ()
    assert healths.arrange(GROUP, 4.0).ready == (C,)


def test_names_over_the_same_deployments_share_that_second() -> None:
    healths = all_ejected()
    assert healths.arrange((A, C), 3.0).ready == (C,)
    assert healths.arrange((C, B), 3.1).ready == ()
    assert healths.arrange((A, B), 3.1).ready == (B,)
    assert healths.arrange((C, B), 4.2).ready == (C,)


def test_one_that_is_being_probed_is_asked_again_only_when_all_are() -> None:
    healths = all_ejected()
    for at, expected in ((2.0, C), (3.0, B), (4.0, A), (4.9, None)):
        ready = healths.arrange(GROUP, at).ready
        assert ready == (() if expected is None else (expected,))
        for each in ready:
            healths.of(each).begin(at, Answer.STREAM)
    assert len(healths.arrange(GROUP, 5.0).ready) == 1


def test_a_single_deployment_is_never_left_alone_for_longer_than_a_second() -> None:
    healths = registry()
    eject(healths.of(A), 0.0)
    passed = [now for now in range(5) if healths.arrange([A], float(now)).ready]
    assert passed == [0, 1, 2, 3, 4]


def test_what_a_vendor_said_is_not_tried_out() -> None:
    healths = registry()
    for each, seconds in zip(GROUP, (7.0, 3.0, 5.0), strict=True):
        cool(healths.of(each), 0.0, seconds)
    assert healths.arrange(GROUP, 1.0) == Arranged((), 2.0, True)
    assert healths.arrange(GROUP, 2.75) == Arranged((), 0.25, True)
    assert healths.arrange(GROUP, 3.0).ready == (B,)


def test_an_ejected_one_is_tried_out_before_one_that_said_wait() -> None:
    healths = registry()
    cool(healths.of(A), 0.0, 2.0)
    eject(healths.of(B), 0.0)
    assert healths.arrange([A, B], 0.5) == Arranged((B,), 0.0, False)
    assert healths.arrange([A, B], 0.75) == Arranged((), 0.75, False)


def test_nothing_comes_of_no_targets() -> None:
    assert registry().arrange([], 0.0) == Arranged((), 0.0, False)


def test_a_new_table_may_try_at_once() -> None:
    healths = all_ejected()
    assert healths.arrange(GROUP, 3.0).ready
    assert not healths.arrange(GROUP, 3.1).ready
    healths.keep(GROUP)
    assert healths.arrange(GROUP, 3.2).ready


def test_who_is_left_alone_is_told_with_how_long() -> None:
    healths = Healths(HealthRules(failures=1, jitter=0.0), lambda: 0.5)
    healths.of(A).begin(0.0, Answer.WHOLE).failed(0.0, Failure(FailureKind.SERVER, "why", 500))
    healths.of(B).begin(0.0, Answer.WHOLE).succeeded(0.0)
    assert dict(healths.waits(1.0)) == {A.label: 4.0}
    assert dict(healths.waits(6.0)) == {}


# What several processes share ----------------------------------------------------------------------------------------


def process(*targets: Target) -> tuple[Healths, Hearsay]:
    """What one of several processes knows that has asked these."""
    healths, hearsay = registry(), Hearsay(lambda: 0.0, lambda: None)
    healths.share(hearsay)
    for each in targets:
        healths.of(each)
    return healths, hearsay


def tell(hearsay: Hearsay, to: Hearsay) -> tuple[Word, ...]:
    """Carry what the one has to say to the other."""
    entries = [part for topic, left in hearsay.outgoing().items() for part in (member(topic).encode(), b"%d" % left)]
    return to.incoming([0, entries], {}).words


def keyed(key: str) -> Credential:
    """A key of the operator's."""
    return Credential("bearer", key=SecretStr(key))


MINE, OTHERS = replace(A, credential=keyed("mine")), replace(A, credential=keyed("others"))


def test_a_process_alone_tells_nobody() -> None:
    healths = registry()
    cool(healths.of(A), 0.0, 20.0)
    assert (healths.shared, healths.of(A).say, healths.of(A).name) == ("off", None, "")


def test_what_one_process_is_told_holds_for_the_same_deployment_of_the_others() -> None:
    (mine, said), (yours, heard) = process(MINE, B), process(MINE, B)
    cool(mine.of(MINE), 0.0, 20.0)
    yours.hear(tell(said, heard), 1.0)
    assert [yours.of(each).wait(1.0) for each in (MINE, B, C)] == [20.0, 0.0, 0.0]
    assert yours.arrange((MINE, B), 1.0).ready == (B,)
    assert heard.outgoing() == {}


@pytest.mark.parametrize(
    "other",
    [OTHERS, replace(MINE, base_url="https://b.example"), replace(MINE, deployment="b"), replace(MINE, row="v/*")],
)
def test_another_key_address_or_name_is_another_deployment(other: Target) -> None:
    (mine, said), (yours, heard) = process(MINE), process(other)
    cool(mine.of(MINE), 0.0, 20.0)
    yours.hear(tell(said, heard), 1.0)
    assert yours.of(other).admits(1.0)


def test_a_deployment_that_is_met_later_is_left_alone_from_the_start() -> None:
    (mine, said), (yours, heard) = process(MINE), process()
    cool(mine.of(MINE), 0.0, 20.0)
    yours.hear(tell(said, heard), 0.0)
    assert yours.arrange((MINE, B), 0.0).ready == (B,)


def test_a_key_that_a_new_table_brings_is_another_s_word_no_more() -> None:
    (mine, said), (yours, heard) = process(MINE), process(OTHERS)
    yours.keep([MINE])
    cool(mine.of(MINE), 0.0, 20.0)
    yours.hear(tell(said, heard), 0.0)
    assert yours.of(MINE).wait(0.0) == 20.0
    cool(yours.of(MINE), 0.0, 50.0)
    assert {name for name, _ in heard.outgoing()} == {mine.of(MINE).name}


def test_that_a_fetched_credential_was_refused_is_not_told() -> None:
    for source, kinds in ((None, {FailureKind.AUTH}), (EntraSource("scope"), set())):
        each = replace(A, credential=Credential(source=source))
        healths, hearsay = process(each)
        fail(healths.of(each), 0.0, Failure(FailureKind.AUTH, "no", 401))
        assert {kind for _, kind in hearsay.outgoing()} == kinds
        cool(healths.of(each), 0.0, 20.0)
        assert {kind for _, kind in hearsay.outgoing()} == {*kinds, FailureKind.RATE_LIMITED}


def test_whether_others_can_be_reached_is_shown() -> None:
    healths, hearsay = process()
    for up, shown in ((False, "alone"), (True, "up"), (False, "alone")):
        hearsay.up = up
        assert healths.shared == shown
