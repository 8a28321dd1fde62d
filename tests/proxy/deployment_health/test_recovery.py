"""How soon a primary is used again after an outage, in virtual time, and the latencies of its clients meanwhile."""

import random
from collections.abc import Callable

from providers.failure import Failure, FailureKind
from tests.proxy.kit.health_simulation import DOWN, A, B, Behaviour, Reaction, Simulation, during, percentile, steady
from tests.support.looped import looped
from tests.support.nightly import some

OUTAGES = 100
ANSWER = 0.5
"""The seconds to a response of either deployment while it is healthy."""

Outage = Callable[[float], Behaviour]
"""The behaviour of the primary until the given end of the outage."""


def fails(failure: Failure) -> Outage:
    return lambda end: lambda now: Reaction(0.02, failure)


def swallows(end: float) -> Behaviour:
    """Drop every connection attempt. The system retries it after 1 and 3 s (Linux), and gives up after 5 s here."""

    def behaviour(now: float) -> Reaction:
        for later in (1.0, 3.0):
            if now + later >= end:
                return Reaction(later + ANSWER)
        return Reaction(5.0, Failure(FailureKind.CONNECT, "no connection", unsent=True))

    return behaviour


OUTAGE: dict[str, Outage] = {
    "unavailable": fails(DOWN),
    "refused": fails(Failure(FailureKind.CONNECT, "refused", unsent=True)),
    "rate limit without a time": fails(Failure(FailureKind.RATE_LIMITED, "slow down", 429)),
    "swallowed": swallows,
}


def recovery_delay(outage: Outage, length: float, gap: float, draw: random.Random) -> float:
    start = draw.uniform(10, 10 + 10 * gap)
    end = start + length
    simulation = Simulation({A: during(start, end, outage(end), steady(ANSWER)), B: steady(ANSWER)}, draw=draw.random)
    simulation.arrive([number * gap for number in range(int((end + 60) / gap))], (A, B))
    simulation.run()
    assert all(request.first_byte is not None for request in simulation.requests)
    return min(
        request.first_byte - end
        for request in simulation.requests
        if request.first_byte is not None and request.first_byte >= end and request.tries[-1][1] is A
    )


@looped("gap", some([2.0, 0.7], 2))
@looped("outage", OUTAGE.values(), ids=OUTAGE)
def test_a_primary_that_is_back_answers_within_ten_seconds(outage: Outage, gap: float) -> None:
    draw = random.Random(12)
    waits = [recovery_delay(outage, draw.uniform(20, 180), gap, draw) for _ in range(OUTAGES)]
    assert percentile(waits, 0.99) <= 10.0
