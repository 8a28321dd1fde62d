"""Requests over minutes to deployments behind circuit breakers, on a virtual clock.

Deployments behave as scripted; requests are sent in the order of `Breakers.arrange`.
"""

import heapq
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from providers.failure import Failure, FailureKind
from providers.target import Target
from proxy.deployment_health.breaker_registry import Breakers
from proxy.deployment_health.circuit_breaker import AnswerKind, TrackedAttempt
from proxy.deployment_health.circuit_breaker_rules import HealthRules
from tests.providers.dialects.openai.kit import target

BASE = replace(target("vllm"), model_key="v/m")
GROUP = tuple(replace(BASE, deployment=name) for name in ("a", "b", "c"))
A, B, C = GROUP

DOWN = Failure(FailureKind.OVERLOADED, "no capacity", 503)
LATE = Failure(FailureKind.TIMEOUT, "no content")
MOST_TRIES = 3


@dataclass(frozen=True, slots=True)
class Reaction:
    """A deployment's reaction to one request: a first byte after `seconds` (`None` = never), or a failure then."""

    seconds: float | None
    failure: Failure | None = None
    generating: float = 1.0


Behaviour = Callable[[float], Reaction]
"""The reaction to a request, by its time of arrival."""


def failing(now: float) -> Reaction:
    """Refuse at once."""
    return Reaction(0.02, DOWN)


def silent(now: float) -> Reaction:
    """Accept a request and never respond."""
    return Reaction(None)


def steady(seconds: float) -> Behaviour:
    """Respond after a constant time."""
    return lambda now: Reaction(seconds)


def varied(draw: random.Random, median: float) -> Behaviour:
    """Respond after a time that varies like the time of real models: some take three times the median."""
    return lambda now: Reaction(median * draw.lognormvariate(0, 0.5), None, draw.uniform(0.5, 5))


def during(start: float, end: float, inside: Behaviour, outside: Behaviour) -> Behaviour:
    """Use one behaviour from `start` to `end`, and another before and after."""
    return lambda now: (inside if start <= now < end else outside)(now)


@dataclass(slots=True)
class Request:
    """One client's request: its arrival, its tries with their times, and the time of its first byte."""

    arrived: float
    order: Sequence[Target]
    tries: list[tuple[float, Target]] = field(default_factory=list)
    first_byte: float | None = None
    refused: bool = False

    @property
    def waited(self) -> float:
        """Seconds to the first byte; infinite without one."""
        return float("inf") if self.first_byte is None else self.first_byte - self.arrived


class Simulation:
    """Runs requests to their end. Each starts with the next deployment of the group, so that all get the same share."""

    def __init__(
        self,
        behaviours: dict[Target, Behaviour],
        *,
        rules: HealthRules | None = None,
        draw: Callable[[], float] | None = None,
        limit: float = 60.0,
    ) -> None:
        self.breakers = Breakers(rules or HealthRules(), draw or random.Random(1).random)
        self.requests: list[Request] = []
        self._behaviours = behaviours
        self._limit = limit
        self._numbers = count()
        self._agenda: list[tuple[float, int, Callable[[float], None]]] = []

    def arrive(self, times: Iterable[float], order: Sequence[Target] | None = None) -> None:
        """Let requests arrive at these times, each with `order`, or with the group rotated by one more position."""
        group = tuple(self._behaviours)
        for number, at in enumerate(times):
            turn = number % len(group)
            request = Request(at, order or (*group[turn:], *group[:turn]))
            self.requests.append(request)
            self._at(at, lambda now, request=request: self._try(request, now))  # type: ignore[misc]  # a default binds

    def run(self) -> None:
        """Run until no event is left."""
        while self._agenda:
            now, _, happen = heapq.heappop(self._agenda)
            happen(now)

    def tries_on(self, target: Target, start: float, end: float) -> int:
        """Return how many requests were sent to a deployment in a span of time."""
        return sum(start <= at < end and to is target for each in self.requests for at, to in each.tries)

    def between(self, start: float, end: float) -> list[Request]:
        """Return the requests that arrived in a span of time."""
        return [request for request in self.requests if start <= request.arrived < end]

    def _at(self, when: float, happen: Callable[[float], None]) -> None:
        heapq.heappush(self._agenda, (when, next(self._numbers), happen))

    def _try(self, request: Request, now: float) -> None:
        tried = {id(target) for _, target in request.tries}
        left = [target for target in request.order if id(target) not in tried]
        ready = self.breakers.arrange(left, now).ready if len(tried) < MOST_TRIES else ()
        if not ready:
            request.refused = True
            return
        request.tries.append((now, ready[0]))
        trial = self.breakers.of(ready[0]).begin(now, AnswerKind.STREAM)
        reaction = self._behaviours[ready[0]](now)
        if reaction.seconds is None or reaction.seconds > self._limit:
            self._at(now + self._limit, lambda then: self._fail(request, trial, LATE, then))
        elif (failure := reaction.failure) is not None:
            self._at(now + reaction.seconds, lambda then: self._fail(request, trial, failure, then))
        else:
            self._at(now + reaction.seconds, lambda then: self._answer(request, trial, reaction.generating, then))

    def _fail(self, request: Request, trial: TrackedAttempt, failure: Failure, now: float) -> None:
        trial.failed(now, failure)
        self._try(request, now)

    def _answer(self, request: Request, trial: TrackedAttempt, generating: float, now: float) -> None:
        trial.first_byte(now)
        request.first_byte = now
        self._at(now + generating, trial.succeeded)


def poisson(draw: random.Random, rate: float, start: float, end: float) -> Iterable[float]:
    """Yield arrival times of a Poisson process, `rate` a second."""
    now = start
    while (now := now + draw.expovariate(rate)) < end:
        yield now


def percentile(values: Iterable[float], share: float) -> float:
    """Return the value that `share` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[int(share * (len(ordered) - 1))]
