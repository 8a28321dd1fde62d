"""The health of every deployment, and the order in which those of a group may be asked.

Never sends anything, reads a clock or draws by itself: what other processes are told and have told is kept elsewhere.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

from providers.auth import Credential
from providers.dialect import Target
from proxy.health import NEVER, Health, State
from proxy.health_rules import HealthRules
from proxy.hearsay import Hearsay, Word

Identity = tuple[str, str, str]
"""Which deployment a target is: its label, its address, and the model where clients name it. What is known of it
outlives the table."""

MOST = 4096
"""Deployments that something is known of. A row for any model takes names from clients, so that there is no natural end
to them."""


class Counted(Protocol):
    """What is known of a deployment."""

    @property
    def in_flight(self) -> int:
        """Tries that have not ended."""


Known = TypeVar("Known", bound=Counted)


def forget_one(known: dict[Identity, Known]) -> None:
    """Forget the deployment that has been known longest and that nobody waits for."""
    for identity, state in known.items():
        if not state.in_flight:
            del known[identity]
            return


def kept(known: Mapping[Identity, Known], targets: Iterable[Target]) -> dict[Identity, Known]:
    """What is known of the deployments that are among a table's; whatever the model is of a row for any."""
    wanted = {target.identity[:2] for target in targets}
    return {identity: state for identity, state in known.items() if identity[:2] in wanted}


@dataclass(frozen=True, slots=True)
class Arranged:
    """Who may be asked now, best first. With nobody: `wait` seconds until somebody may be, and whether it is only that
    every vendor told us to wait (`cooling`)."""

    ready: tuple[Target, ...]
    wait: float = 0.0
    cooling: bool = False


class Healths:
    """The state of each deployment by identity, made when it is first asked for."""

    __slots__ = ("_draw", "_hearsay", "_known", "_panicked", "_rules")

    def __init__(self, rules: HealthRules, draw: Callable[[], float]) -> None:
        self._rules = rules
        self._draw = draw
        self._known: dict[Identity, Health] = {}
        self._panicked: dict[str, float] = {}
        self._hearsay: Hearsay | None = None

    @property
    def shared(self) -> Literal["off", "up", "alone"]:
        """Whether other processes are told what vendors say, and can be reached."""
        if self._hearsay is None:
            return "off"
        return "up" if self._hearsay.up else "alone"

    def share(self, hearsay: Hearsay) -> None:
        """From now on tell other processes what vendors say."""
        self._hearsay = hearsay

    def hear(self, words: Collection[Word], now: float) -> None:
        """Other processes were told this."""
        if words:
            named = {health.name: health for health in self._known.values()}
            for word in words:
                if (health := named.get(word.name)) is not None:
                    health.told(now, word.kind, word.seconds)

    def of(self, target: Target) -> Health:
        """The health of a target's deployment."""
        health = self._known.get(target.identity)
        if health is None:
            health = self._known[target.identity] = Health(self._rules.of(target.circuit_breaker), self._draw)
            if self._hearsay is not None:
                _introduce(health, target.identity, target.credential, self._hearsay)
            if len(self._known) > MOST:
                forget_one(self._known)
        return health

    def keep(self, targets: Iterable[Target]) -> None:
        """Forget the deployments that are not among a new table's; of those that are only the settings change."""
        those = {target.identity[:2]: target for target in targets}
        self._known = kept(self._known, those.values())
        for identity, health in self._known.items():
            target = those[identity[:2]]
            health.follow(self._rules.of(target.circuit_breaker))
            if self._hearsay is not None:
                _introduce(health, identity, target.credential, self._hearsay)
        # Labels are the table's as well, so they must not pile up over many tables.
        self._panicked.clear()

    def states(self, now: float) -> Iterator[tuple[str, State]]:
        """The label and the state of each deployment that was ever asked for; of a row for any model, its worst."""
        worst: dict[str, State] = {}
        # Copied first: whoever renders metrics does so in a thread of its own.
        for (label, _, _), health in list(self._known.items()):
            worst[label] = max(worst.get(label, State.CLOSED), health.state(now))
        return iter(worst.items())

    def waits(self, now: float) -> Iterator[tuple[str, float]]:
        """The label of each deployment that may not be asked, and the seconds until it may be; of a row for any model
        the longest."""
        longest: dict[str, float] = {}
        for (label, _, _), health in self._known.items():
            if wait := health.wait(now):
                longest[label] = max(longest.get(label, 0.0), wait)
        return iter(longest.items())

    def arrange(self, targets: Sequence[Target], now: float, team: str = "") -> Arranged:
        """Put the targets of a group in the order in which a team is to ask them.

        The order stays, but those that hang come last and those that returned lately fall behind for what is not yet
        their share. When none may be asked, one request in `panic_every` seconds may all the same: somebody has to
        find out that it is over.
        """
        ready: list[Target] = []
        behind: list[Target] = []
        hanging: list[Target] = []
        for target in targets:
            health = self.of(target)
            if not health.admits(now, team):
                continue
            if health.hanging(now):
                hanging.append(target)
            elif (share := health.share(now)) < 1 and self._draw() >= share:
                behind.append(target)
            else:
                ready.append(target)
        if ready or behind or hanging:
            return Arranged((*ready, *behind, *hanging))
        return self._panic(targets, now)

    def _panic(self, targets: Sequence[Target], now: float) -> Arranged:
        known = [(target, self.of(target)) for target in targets]
        # What a vendor said is not tried out.
        silent = [(target, health) for target, health in known if not health.told_to_wait(now)]
        # By deployment: a hundred names over the same ones ask them no more often than one name does.
        last = max((self._panicked.get(target.label, NEVER) for target in targets), default=NEVER)
        if silent and now - last >= self._rules.panic_every:
            target, _ = min(silent, key=lambda pair: (pair[1].probed, pair[1].wait(now)))
            self._panicked[target.label] = now
            return Arranged((target,))
        wait = min((health.wait(now) for _, health in known), default=0.0)
        if silent and last > NEVER:
            wait = min(wait, last + self._rules.panic_every - now)
        return Arranged((), wait, bool(known) and all(health.cooling(now) for _, health in known))


def _introduce(health: Health, identity: Identity, credential: Credential, hearsay: Hearsay) -> None:
    """Call a deployment what every process calls it that uses it with this credential, and catch up on what is said."""
    name = credential.seal(*identity)
    if name == health.name:
        return
    health.name = name
    health.say = hearsay.say if credential.source is None else hearsay.say_unless_refused
    for word in hearsay.about(name):
        health.told(hearsay.clock(), word.kind, word.seconds)
