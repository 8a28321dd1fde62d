"""Circuit breakers over minutes of virtual time: outages, hanging deployments, and their recovery."""

import random
from itertools import count

from proxy.deployment_health.circuit_breaker import AnswerKind, State
from tests.proxy.deployment_health.test_breaker_registry import cool
from tests.proxy.kit.breakers import fail
from tests.proxy.kit.health_simulation import (
    GROUP,
    A,
    B,
    C,
    Reaction,
    Simulation,
    during,
    failing,
    percentile,
    poisson,
    silent,
    steady,
    varied,
)
from tests.support.looped import looped
from tests.support.nightly import some

SEEDS = some((1, 2, 3), 3)
every_seed = looped("seed", SEEDS)


@every_seed
def test_after_five_minutes_without_any_deployment_answers_are_back_within_seconds(seed: int) -> None:
    draw = random.Random(seed)
    start, end = 60.0, 360.0
    outage = during(start, end, failing, steady(0.5))
    simulation = Simulation(dict.fromkeys(GROUP, outage), draw=draw.random)
    simulation.arrive(poisson(draw, 20, 0, end + 120))
    simulation.run()
    assert all(request.first_byte is None for request in simulation.between(start + 1, end - 1))
    soon = simulation.between(end + 3, end + 10)
    assert sum(request.first_byte is not None for request in soon) >= 0.99 * len(soon)
    assert all(request.first_byte is not None for request in simulation.between(end + 10, end + 120))
    assert {state for _, state in simulation.breakers.states(end + 120)} == {State.CLOSED}


@every_seed
def test_dead_deployments_get_next_to_nothing_of_the_load(seed: int) -> None:
    draw = random.Random(seed)
    simulation = Simulation(dict.fromkeys(GROUP, failing), draw=draw.random)
    simulation.arrive(poisson(draw, 100, 0, 60))
    simulation.run()
    sent = sum(len(request.tries) for request in simulation.requests)
    assert sent <= 0.1 * len(simulation.requests)


@every_seed
def test_one_dead_deployment_of_three_costs_few_tries_and_no_answer(seed: int) -> None:
    draw = random.Random(seed)
    behaviours = {A: varied(draw, 0.5), B: during(10, 70, failing, steady(0.5)), C: varied(draw, 0.5)}
    simulation = Simulation(behaviours, draw=draw.random)
    simulation.arrive(poisson(draw, 20, 0, 70))
    simulation.run()
    assert all(request.first_byte is not None for request in simulation.requests)
    assert 5 <= simulation.tries_on(B, 10, 70) <= 40


@every_seed
@looped("well", [0.0, 60.0])
def test_one_hanging_deployment_of_three_delays_few_requests(seed: int, well: float) -> None:
    draw = random.Random(seed)
    behaviours = {A: varied(draw, 0.7), B: during(well, 1e9, silent, varied(draw, 0.7)), C: varied(draw, 0.7)}
    simulation = Simulation(behaviours, draw=draw.random)
    simulation.arrive(poisson(draw, 20, 0, well + 400))
    simulation.run()
    requests = simulation.between(well, well + 400)
    assert percentile([request.waited for request in requests], 0.99) <= 5.0
    # A circuit breaker that only counts failures would let these through until the first one ran into its timeout.
    assert simulation.tries_on(B, well, well + 60) <= 70
    assert all(request.first_byte is not None for request in requests)


@every_seed
def test_a_deployment_that_hung_gets_its_share_again(seed: int) -> None:
    draw = random.Random(seed)
    behaviours = {A: varied(draw, 1.0), B: during(0, 120, silent, varied(draw, 1.0)), C: varied(draw, 1.0)}
    simulation = Simulation(behaviours, draw=draw.random)
    simulation.arrive(poisson(draw, 20, 0, 400))
    simulation.run()
    assert simulation.tries_on(B, 300, 400) >= 0.3 * len(simulation.between(300, 400))


@every_seed
def test_a_slow_but_steady_deployment_is_not_taken_for_hanging(seed: int) -> None:
    draw = random.Random(seed)
    behaviours = {A: varied(draw, 1.0), B: varied(draw, 6.0), C: varied(draw, 1.0)}
    simulation = Simulation(behaviours, draw=draw.random)
    simulation.arrive(poisson(draw, 20, 0, 300))
    simulation.run()
    assert simulation.tries_on(B, 100, 300) >= 0.3 * len(simulation.between(100, 300))


def test_of_two_hundred_waiters_one_goes_to_the_deployment_that_returns() -> None:
    numbers = count(1)
    first_bytes = {A: 0.8, B: 0.3}
    simulation = Simulation(
        {each: steady(seconds) for each, seconds in first_bytes.items()},
        # These draws are as evenly spread as possible, so that the share is exact.
        draw=lambda: next(numbers) * 0.6180339887498949 % 1,
    )
    cool(simulation.breakers.of(A), 0.0, 5.0)
    simulation.arrive([5.0] * 200, (A, B))
    simulation.arrive([5.0 + step / 200 for step in range(1, 161)], (A, B))
    simulation.arrive([5.801 + step / 200 for step in range(200)], (A, B))
    simulation.run()
    assert simulation.tries_on(A, 5.0, 5.8) == 1
    assert 0 < simulation.tries_on(A, 5.8, 6.8) <= 0.1 * 200 + 1
    assert all(request.first_byte is not None for request in simulation.requests)


def test_of_two_hundred_waiters_for_one_deployment_one_is_let_through() -> None:
    simulation = Simulation({A: steady(0.5)})
    cool(simulation.breakers.of(A), 0.0, 5.0)
    simulation.arrive([5.0] * 200)
    simulation.run()
    # The second is the standing probe: the outcome of the first is still unknown.
    assert sum(bool(request.tries) for request in simulation.requests) <= 2


@every_seed
def test_a_probe_that_hangs_does_not_keep_the_only_deployment_from_returning(seed: int) -> None:
    draw = random.Random(seed)
    simulation = Simulation({A: during(0, 100, silent, steady(0.5))}, draw=draw.random)
    for _ in range(5):
        fail(simulation.breakers.of(A), 0.0)
    simulation.arrive(poisson(draw, 20, 0, 130))
    simulation.run()
    assert all(request.first_byte is not None for request in simulation.between(103, 130))


def test_nothing_is_in_flight_when_all_is_over() -> None:
    draw = random.Random(1)
    behaviours = {A: varied(draw, 1.0), B: during(5, 90, silent, varied(draw, 1.0)), C: lambda now: Reaction(61.0)}
    simulation = Simulation(behaviours)
    simulation.arrive(poisson(draw, 20, 0, 100))
    simulation.run()
    for each in GROUP:
        health = simulation.breakers.of(each)
        assert (health.in_flight, health.hanging(1e6)) == (0, False)
        health.begin(1e6, AnswerKind.STREAM).succeeded(1e6)
        assert health.state(1e6) is State.CLOSED
