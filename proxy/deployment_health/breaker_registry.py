"""The circuit breakers of all deployments, and the order in which the deployments of a group are called.

Pure: time and random numbers are arguments.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, TypeVar

from providers.target import Target
from providers.vendor_credential import Credential
from proxy.bounded_dict import BoundedDict
from proxy.deployment_health.circuit_breaker import NEVER, AnswerKind, Breaker, State, TrackedAttempt
from proxy.deployment_health.circuit_breaker_rules import HealthRules
from proxy.shared_state.shared_cooldowns import Cooldown, SharedCooldowns

Identity = tuple[str, str, str]
"""A deployment's label, its address, and the model if clients choose it. The state of a deployment outlives a reload of
the configuration."""

MOST = 4096
"""The most deployments whose state is stored. The number is limited because clients choose the model names if an entry
of the configuration is for any model."""


class Counted(Protocol):
    """The state of a deployment, with the number of attempts in flight."""

    @property
    def in_flight(self) -> int:
        """The number of attempts that have not ended."""


Known = TypeVar("Known", bound=Counted)


def by_identity() -> BoundedDict[Identity, Known]:
    """Return a dict for the states of deployments. When it is full, it drops the oldest state without a request in
    flight."""
    return BoundedDict(MOST, lambda state: not state.in_flight)


def keep_only(known: BoundedDict[Identity, Known], targets: Iterable[Target]) -> None:
    """Forget the deployments that are not targets of the new configuration. The model is not compared."""
    wanted = {target.identity[:2] for target in targets}
    for identity in [each for each in known if each[:2] not in wanted]:
        del known[identity]


class Order(NamedTuple):
    """The targets that may be called now, best first. If there is none, `wait` is the seconds until there is one, and
    `cooling` is true if cooldowns that vendors asked for are the only reason."""

    ready: tuple[Target, ...]
    wait: float = 0.0
    cooling: bool = False


@dataclass(slots=True, eq=False)
class Breakers:
    """The circuit breaker of each deployment by identity, created when it is first needed."""

    _rules: HealthRules
    _draw: Callable[[], float]
    _known: BoundedDict[Identity, Breaker] = field(default_factory=by_identity)
    _panicked: dict[str, float] = field(default_factory=dict)
    _shared_cooldowns: SharedCooldowns | None = None

    @property
    def shared(self) -> Literal["off", "up", "alone"]:
        """Whether cooldowns are shared with other processes: `off` if they are not, `up` if the other processes can be
        reached, `alone` if they cannot."""
        if self._shared_cooldowns is None:
            return "off"
        return "up" if self._shared_cooldowns.up else "alone"

    def share(self, shared_cooldowns: SharedCooldowns) -> None:
        """Share cooldowns with other processes from now on."""
        self._shared_cooldowns = shared_cooldowns

    def apply_cooldowns(self, cooldowns: Collection[Cooldown], now: float) -> None:
        """Apply cooldowns that other processes learned from vendors."""
        if cooldowns:
            named = {breaker.name: breaker for breaker in self._known.values()}
            for cooldown in cooldowns:
                if (breaker := named.get(cooldown.name)) is not None:
                    breaker.apply_cooldown(now, cooldown.kind, cooldown.seconds)

    def begin(self, target: Target, now: float, answer: AnswerKind, team: str = "") -> TrackedAttempt:
        """Count a team's attempt at a target that is about to be sent."""
        breaker = self._known.get(target.identity)
        return (self.of(target) if breaker is None else breaker).begin(now, answer, team)

    def of(self, target: Target) -> Breaker:
        """Return the circuit breaker of a target's deployment."""
        breaker = self._known.get(target.identity)
        if breaker is None:
            breaker = self._known[target.identity] = Breaker(self._rules.of(target.circuit_breaker), self._draw)
            if self._shared_cooldowns is not None:
                _share_cooldowns(breaker, target.identity, target.credential, self._shared_cooldowns)
        return breaker

    def keep(self, targets: Iterable[Target]) -> None:
        """Forget the deployments that are not among the targets of a new configuration, and update the settings of the
        others."""
        wanted = {target.identity[:2]: target for target in targets}
        keep_only(self._known, wanted.values())
        for identity, breaker in self._known.items():
            target = wanted[identity[:2]]
            breaker.follow(self._rules.of(target.circuit_breaker))
            if self._shared_cooldowns is not None:
                _share_cooldowns(breaker, identity, target.credential, self._shared_cooldowns)
        # Keyed by the labels of a configuration, which must not accumulate over many reloads.
        self._panicked.clear()

    def states(self, now: float) -> Iterator[tuple[str, State]]:
        """Yield the label and the state of each known deployment; for an entry for any model, the worst state."""
        worst: dict[str, State] = {}
        # This iterates over a copy, because metrics are rendered in another thread.
        for (label, _, _), breaker in list(self._known.items()):
            worst[label] = max(worst.get(label, State.CLOSED), breaker.state(now))
        return iter(worst.items())

    def waits(self, now: float) -> Iterator[tuple[str, float]]:
        """Yield the label of each deployment that admits no request now, and the seconds until it does; for an entry
        for any model, the longest wait."""
        longest: dict[str, float] = {}
        for (label, _, _), breaker in self._known.items():
            if wait := breaker.wait(now):
                longest[label] = max(longest.get(label, 0.0), wait)
        return iter(longest.items())

    def cooling(self, now: float) -> Iterator[str]:
        """Yield the label of each deployment that admits no request only because its vendor asked for a cooldown."""
        reasons: dict[str, set[bool]] = {}
        for (label, _, _), breaker in self._known.items():
            if breaker.state(now) is State.OPEN:
                reasons.setdefault(label, set()).add(breaker.only_cooling_down(now))
        return (label for label, only in reasons.items() if only == {True})

    def arrange(self, targets: Sequence[Target], now: float, team: str = "", session: int | None = None) -> Order:
        """Return the targets of a group in the order in which a team should call them.

        The order is unchanged, except that hanging deployments come last, and deployments that closed lately come after
        the healthy ones for all but their share of requests. For a conversation the share is decided by `session`, its
        number of 64 bits, so that the conversation returns to a deployment once and does not alternate. If no
        deployment admits a request, one request in `panic_every` seconds is sent nevertheless, to find out whether a
        deployment has recovered.
        """
        known = self._known
        for target in targets:
            breaker = known.get(target.identity)
            if breaker is None or not breaker.untroubled(now):
                return self._sorted(targets, now, team, session)
        # This is equal to `Order(tuple(targets))`, but does not call the named tuple's own function.
        return tuple.__new__(Order, (tuple(targets), 0.0, False))

    def _sorted(self, targets: Sequence[Target], now: float, team: str, session: int | None) -> Order:
        ready: list[Target] = []
        behind: list[Target] = []
        hanging: list[Target] = []
        for target in targets:
            breaker = self.of(target)
            if not breaker.admits(now, team):
                continue
            if breaker.hanging(now):
                hanging.append(target)
            elif (share := breaker.share(now)) < 1 and (self._draw() if session is None else session / 2**64) >= share:
                behind.append(target)
            else:
                ready.append(target)
        if ready or behind or hanging:
            return Order((*ready, *behind, *hanging))
        return self._panic(targets, now)

    def _panic(self, targets: Sequence[Target], now: float) -> Order:
        known = [(target, self.of(target)) for target in targets]
        # A cooldown that the vendor asked for is never cut short.
        probable = [(target, breaker) for target, breaker in known if not breaker.cooling_down(now)]
        # This is counted by deployment, so that many names for the same deployments do not call them more often than
        # one name does.
        last = max((self._panicked.get(target.label, NEVER) for target in targets), default=NEVER)
        if probable and now - last >= self._rules.panic_every:
            target, _ = min(probable, key=lambda pair: (pair[1].probed, pair[1].wait(now)))
            self._panicked[target.label] = now
            return Order((target,))
        wait = min((breaker.wait(now) for _, breaker in known), default=0.0)
        if probable and last > NEVER:
            wait = min(wait, last + self._rules.panic_every - now)
        return Order((), wait, bool(known) and all(breaker.only_cooling_down(now) for _, breaker in known))


def _share_cooldowns(
    breaker: Breaker, identity: Identity, credential: Credential, shared_cooldowns: SharedCooldowns
) -> None:
    """Set the name that all processes use for a deployment with this credential, and apply the cooldowns that they
    shared."""
    name = credential.seal(*identity)
    if name == breaker.name:
        return
    breaker.name = name
    breaker.publish = shared_cooldowns.publish if credential.source is None else shared_cooldowns.publish_unless_refused
    for cooldown in shared_cooldowns.about(name):
        breaker.apply_cooldown(shared_cooldowns.clock(), cooldown.kind, cooldown.seconds)
