"""The tokens that a request is expected to use, by the requests before it."""

import random

import pytest

from proxy.limits.token_estimate import LEAST_RATIO, MAX_PAIRS, MOST_RATIO, UNKNOWN_RATIO, TokenEstimates

PAIR = ("search", "fast")


def test_the_first_request_reserves_its_bytes_and_all_of_its_limit() -> None:
    assert TokenEstimates().ratio(PAIR).parts(400, 1000) == (100, 1000)


def test_answers_shorter_than_allowed_are_reserved_shorter() -> None:
    estimates = TokenEstimates()
    for _ in range(300):
        estimates.begin(PAIR).learn(4000, 4096, 1100, 250)
    assert estimates.ratio(PAIR).parts(4000, 4096) == (1100, 259)
    assert estimates.ratio(("other", "fast")).parts(4000, 4096) == (1000, 4096)
    assert estimates.ratio(("search", "slow")).parts(4000, 4096) == (1000, 4096)


def test_reservations_of_mixed_traffic_are_near_what_is_used() -> None:
    chance = random.Random(1)
    estimates = TokenEstimates()
    reserved = used = 0
    for number in range(3000):
        prompt, answer = chance.lognormvariate(6.8, 0.8), min(4096.0, chance.lognormvariate(5.5, 0.9))
        if number > 300:
            reserved += sum(estimates.ratio(("t", "m")).parts(int(prompt * 4.6), 4096))
            used += int(prompt + answer)
        estimates.begin(("t", "m")).learn(int(prompt * 4.6), 4096, int(prompt), int(answer))
    assert reserved / used == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize(("used", "ratio"), [((10**9, 10**9), MOST_RATIO), ((0, 0), LEAST_RATIO)])
def test_odd_answers_move_the_ratios_only_so_far(used: tuple[int, int], ratio: float) -> None:
    estimates = TokenEstimates()
    for _ in range(500):
        estimates.begin(("t", "m")).learn(4000, 1000, *used)
    assert estimates.ratio(("t", "m")).parts(4000, 1000) == (round(1000 * ratio), round(1000 * ratio))


def test_requests_without_a_prompt_or_a_limit_teach_nothing_of_it() -> None:
    estimates = TokenEstimates()
    estimates.begin(("t", "m")).learn(0, 0, 50, 50)
    assert estimates.ratio(("t", "m")).parts(400, 100) == (100, 100)


def test_names_that_clients_make_up_are_forgotten() -> None:
    estimates = TokenEstimates()
    for number in range(MAX_PAIRS + 10):
        estimates.begin(("t", f"m{number}")).learn(400, 100, 50, 50)
    assert len(estimates._ratios) == MAX_PAIRS
    assert estimates.ratio(("t", "m0")) is UNKNOWN_RATIO
    assert (UNKNOWN_RATIO.prompt, UNKNOWN_RATIO.answer) == (1.0, 1.0)
