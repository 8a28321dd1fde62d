"""Invariants of circuit breakers under random sequences of requests, responses, failures and pauses."""

import random
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from providers.failure import CIRCUIT_OPENING_KINDS, Failure, FailureKind
from providers.target import Target
from proxy.deployment_health.breaker_registry import Breakers
from proxy.deployment_health.circuit_breaker import AnswerKind, Breaker, State, TrackedAttempt
from proxy.deployment_health.circuit_breaker_rules import HealthRules
from tests.proxy.kit.health_simulation import GROUP

RULES = HealthRules(hanging_least=3)
VENDOR_SAYS = (FailureKind.RATE_LIMITED, FailureKind.QUOTA)
CLOSE = 1e-6

kinds = st.sampled_from(sorted(FailureKind))
pauses = st.sampled_from([0.0, 0.05, 0.5, 1.0, 3.0, 7.0, 31.0, 100.0])
picks = st.integers(min_value=0, max_value=1000)
steps_of = st.lists(
    st.one_of(
        st.tuples(st.just("pause"), pauses),
        st.tuples(st.just("ask"), st.integers(min_value=1, max_value=6)),
        st.tuples(st.sampled_from(["first byte", "success", "abandon"]), picks),
        st.tuples(st.just("failure"), st.tuples(picks, kinds, st.sampled_from([None, 0.0, 2.5, 1e6]))),
        st.tuples(st.just("failures"), kinds),
    ),
    max_size=60,
)


@dataclass(slots=True)
class World:
    """A group of deployments, the requests in flight, and the invariants of both."""

    breakers: Breakers
    now: float = 1000.0
    under_way: list[tuple[Target, TrackedAttempt]] = field(default_factory=list)
    probes: dict[str, set[int]] = field(default_factory=lambda: {each.deployment: set() for each in GROUP})
    panicked: float = float("-inf")

    def health(self, target: Target) -> Breaker:
        return self.breakers.of(target)

    def ask(self) -> None:
        """Send one request to the first deployment that may be called."""
        may = [each for each in GROUP if self.health(each).admits(self.now)]
        healthy = [each for each in may if self.health(each).share(self.now) == 1 and not self.hangs(each)]
        untroubled = [each for each in GROUP if self.health(each).untroubled(self.now)]
        assert untroubled == [each for each in healthy if self.health(each).state(self.now) is State.CLOSED]
        arranged = self.breakers.arrange(GROUP, self.now)
        if may:
            assert sorted(each.deployment for each in arranged.ready) == [each.deployment for each in may]
            assert [each for each in arranged.ready if each in healthy] == healthy
            assert not (healthy and self.hangs(arranged.ready[0]))
        elif arranged.ready:
            assert len(arranged.ready) == 1
            assert not self.health(arranged.ready[0]).cooling_down(self.now)
            assert self.now - self.panicked >= RULES.panic_every
            self.panicked = self.now
        else:
            assert arranged.wait > 0
            blocked = [self.health(each) for each in GROUP]
            assert arranged.cooling == all(each.only_cooling_down(self.now) for each in blocked)
            assert arranged.wait <= min(each.wait(self.now) for each in blocked)
            return
        self.begin(arranged.ready[0], admitted=bool(may))

    def hangs(self, target: Target) -> bool:
        """Return whether a deployment of the group is hanging."""
        return self.health(target).hanging(self.now)

    def begin(self, target: Target, *, admitted: bool) -> None:
        health = self.health(target)
        half_open = health.state(self.now) is State.HALF_OPEN
        trial = health.begin(self.now, AnswerKind.STREAM if len(self.under_way) % 2 else AnswerKind.WHOLE)
        self.under_way.append((target, trial))
        if half_open and admitted:
            self.probes[target.deployment].add(id(trial))

    def end(self, pick: int) -> tuple[Target, TrackedAttempt] | None:
        if not self.under_way:
            return None
        target, trial = self.under_way.pop(pick % len(self.under_way))
        self.probes[target.deployment].discard(id(trial))
        return target, trial

    def fail(self, pick: int, failure: Failure) -> None:
        ended = self.end(pick)
        if ended is None:
            return
        target, trial = ended
        health = self.health(target)
        before = health.state(self.now)
        ejected = trial.failed(self.now, failure)
        if ejected and failure.kind not in CIRCUIT_OPENING_KINDS and not health.cooling_down(self.now):
            least, most = RULES.cooldown * (1 - RULES.jitter), RULES.longest_cooldown * (1 + RULES.jitter)
            assert least - CLOSE <= health.wait(self.now) <= most + CLOSE
        if failure.kind in VENDOR_SAYS:
            assert not ejected
            assert health.cooling_down(self.now)
        elif not ejected:
            assert health.state(self.now) in (before, State.CLOSED)

    def check(self) -> None:
        """Check the invariants that hold at any moment."""
        for each in GROUP:
            health = self.health(each)
            state = health.state(self.now)
            assert health.in_flight == sum(target is each for target, _ in self.under_way)
            assert (health.wait(self.now) == 0) == health.admits(self.now)
            assert health.admits(self.now) or state is not State.CLOSED
            assert not (state is State.OPEN and health.admits(self.now))
            assert RULES.slow_start_from <= health.share(self.now) <= 1
            if state is not State.HALF_OPEN:
                self.probes[each.deployment].clear()
            assert len(self.probes[each.deployment]) <= 1


def take(world: World, name: str, value: object) -> None:
    """Take one step of a sequence."""
    match name, value:
        case "pause", float(seconds):
            world.now += seconds
        case "ask", int(times):
            for _ in range(times):
                world.ask()
                world.check()
        case "first byte", int(pick) if world.under_way:
            target, trial = world.under_way[pick % len(world.under_way)]
            trial.first_byte(world.now)
            world.probes[target.deployment].discard(id(trial))
        case "success", int(pick) if ended := world.end(pick):
            ended[1].succeeded(world.now)
        case "abandon", int(pick) if ended := world.end(pick):
            ended[1].abandoned(world.now)
        case "failure", (int(pick), FailureKind() as kind, retry_after):
            assert retry_after is None or isinstance(retry_after, float)
            world.fail(pick, Failure(kind, "x", 500 if pick % 2 else None, retry_after=retry_after))
        case "failures", FailureKind() as kind:
            for _ in range(RULES.failures):
                world.ask()
                world.fail(len(world.under_way) - 1, Failure(kind, "x"))
        case _:
            assert not world.under_way, "only what needs a request under way may have no effect"


def world_after(steps: list[tuple[str, object]]) -> World:
    """Return a world after `steps`, checked after each."""
    world = World(Breakers(RULES, random.Random(len(steps)).random))
    for name, value in steps:
        take(world, name, value)
        world.check()
    return world


@settings(deadline=None)
@given(steps_of)
def test_the_invariants_hold_whatever_happens(steps: list[tuple[str, object]]) -> None:
    world = world_after(steps)
    for _, trial in world.under_way:
        trial.abandoned(world.now)
        assert not trial.failed(world.now, Failure(FailureKind.SERVER, "x"))
    assert [world.health(each).in_flight for each in GROUP] == [0] * len(GROUP)


@settings(deadline=None)
@given(steps_of)
def test_somebody_is_let_through_within_a_second_unless_every_vendor_said_wait(
    steps: list[tuple[str, object]],
) -> None:
    world = world_after(steps)
    world.now += RULES.panic_every
    if not all(world.health(each).cooling_down(world.now) for each in GROUP):
        assert world.breakers.arrange(GROUP, world.now).ready


@settings(deadline=None)
@given(steps_of)
def test_somebody_is_let_through_once_every_wait_is_over(steps: list[tuple[str, object]]) -> None:
    world = world_after(steps)
    world.now += max(RULES.quota, RULES.longest_cooldown) + RULES.panic_every
    assert world.breakers.arrange(GROUP, world.now).ready


@settings(deadline=None)
@given(steps_of)
def test_a_success_while_it_is_away_brings_any_deployment_back(steps: list[tuple[str, object]]) -> None:
    world = world_after(steps)
    world.now += RULES.quota
    for each in GROUP:
        world.health(each).begin(world.now, AnswerKind.STREAM).succeeded(world.now)
        assert world.health(each).state(world.now) is State.CLOSED
