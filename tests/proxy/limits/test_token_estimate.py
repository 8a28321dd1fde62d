"""What a request is expected to take, by what came before."""

import random

import pytest

from proxy.limits.token_estimate import LEAST, MOST, PAIRS, TokenEstimates


def test_the_first_request_reserves_its_bytes_and_all_of_its_limit() -> None:
    assert TokenEstimates().tokens("search", "fast", 400, 1000) == 1100
    assert TokenEstimates().tokens("search", "fast", 0, 0) == 1


def test_answers_shorter_than_allowed_are_reserved_shorter() -> None:
    estimates = TokenEstimates()
    for _ in range(300):
        estimates.learn(("search", "fast"), 4000, 4096, (1100, 250))
    assert estimates.parts("search", "fast", 4000, 4096) == (1100, 259)
    assert estimates.tokens("other", "fast", 4000, 4096) == 5096
    assert estimates.tokens("search", "slow", 4000, 4096) == 5096


def test_reservations_of_mixed_traffic_are_near_what_is_used() -> None:
    chance = random.Random(1)
    estimates = TokenEstimates()
    reserved = used = 0
    for number in range(3000):
        prompt, answer = chance.lognormvariate(6.8, 0.8), min(4096.0, chance.lognormvariate(5.5, 0.9))
        if number > 300:
            reserved += estimates.tokens("t", "m", int(prompt * 4.6), 4096)
            used += int(prompt + answer)
        estimates.learn(("t", "m"), int(prompt * 4.6), 4096, (int(prompt), int(answer)))
    assert reserved / used == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize(("used", "ratio"), [((10**9, 10**9), MOST), ((0, 0), LEAST)])
def test_odd_answers_move_the_ratios_only_so_far(used: tuple[int, int], ratio: float) -> None:
    estimates = TokenEstimates()
    for _ in range(500):
        estimates.learn(("t", "m"), 4000, 1000, used)
    assert estimates.parts("t", "m", 4000, 1000) == (round(1000 * ratio), round(1000 * ratio))


def test_requests_without_a_prompt_or_a_limit_teach_nothing_of_it() -> None:
    estimates = TokenEstimates()
    estimates.learn(("t", "m"), 0, 0, (50, 50))
    assert estimates.tokens("t", "m", 400, 100) == 200


def test_names_that_clients_make_up_are_forgotten() -> None:
    estimates = TokenEstimates()
    for number in range(PAIRS + 10):
        estimates.learn(("t", f"m{number}"), 400, 100, (50, 50))
    assert len(estimates._ratios) == PAIRS
