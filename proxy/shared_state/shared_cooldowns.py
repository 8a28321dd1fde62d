"""Cooldowns that vendors asked this process for, on their way to other processes, and those from there.

Only what a vendor said: failures that a process saw may be those of its own network. What comes from outside is read as
something that anybody may have written.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from providers.failure import FailureKind

MOST: Final = 1024
"""Cooldowns that are kept, here and in Redis; those that end first are left out."""

MOST_UNSAID: Final = 256
"""Cooldowns that wait to be sent. Further ones are not sent; every process learns them from the vendor."""

LONGEST: Final = 3600.0
"""Seconds that a shared cooldown may last; each process limits it by its own rules as well."""

SAME: Final = 0.5
"""Seconds by which a cooldown has to last longer than the one before it, to be sent again."""

KINDS: Final = (FailureKind.RATE_LIMITED, FailureKind.QUOTA, FailureKind.AUTH, FailureKind.NO_MODEL)
"""Failures that hold for all who use the deployment with the same credential."""

_MEMBER: Final = re.compile(rf"([0-9a-f]{{32}}):({'|'.join(KINDS)})".encode())
_EXPIRY: Final = re.compile(rb"[0-9]{1,15}")

Topic: TypeAlias = tuple[str, FailureKind]
"""The deployment's name among the processes, and the kind of failure."""


@dataclass(frozen=True, slots=True)
class Cooldown:
    """A cooldown of a deployment, `seconds` from now."""

    name: str
    kind: FailureKind
    seconds: float


@dataclass(frozen=True, slots=True)
class NewCooldowns:
    """The cooldowns that are new to this process, and whether there was an entry that no gateway wrote."""

    cooldowns: tuple[Cooldown, ...]
    foreign: bool


@dataclass(frozen=True, slots=True)
class _Known:
    """A cooldown that was read: its end by the clock of Redis (ms), which identifies it, and by our own (s)."""

    expiry: int
    until: float


@dataclass(slots=True, eq=False)
class SharedCooldowns:
    """The cooldowns to send and those in force. `clock` returns seconds; `wake` is called when there is one to send.
    `up` says whether the other processes can be reached."""

    clock: Callable[[], float]
    _wake: Callable[[], None]
    up: bool = False
    _unsaid: dict[Topic, float] = field(default_factory=dict)
    _saying: dict[Topic, float] = field(default_factory=dict)
    _known: dict[Topic, _Known] = field(default_factory=dict)

    def publish(self, name: str, kind: FailureKind, seconds: float) -> None:
        """Send a cooldown that a vendor asked this process for."""
        topic, until = (name, kind), self.clock() + min(seconds, LONGEST)
        known = self._known.get(topic)
        before = max(self._saying.get(topic, 0.0), self._unsaid.get(topic, 0.0), 0.0 if known is None else known.until)
        if until < before + SAME or len(self._unsaid) + len(self._saying) >= MOST_UNSAID:
            return
        self._unsaid[topic] = until
        self._wake()

    def publish_unless_refused(self, name: str, kind: FailureKind, seconds: float) -> None:
        """Send a cooldown unless a credential was refused: for credentials that each process fetches by itself."""
        if kind is not FailureKind.AUTH:
            self.publish(name, kind, seconds)

    def outgoing(self) -> Mapping[Topic, int]:
        """Return the cooldowns to send now, with the milliseconds that are left; those that failed to be sent again."""
        now = self.clock()
        self._saying = {topic: until for topic, until in {**self._saying, **self._unsaid}.items() if until > now}
        self._unsaid = {}
        return {topic: max(1, round(1000 * (until - now))) for topic, until in self._saying.items()}

    def incoming(self, reply: object, said: Mapping[Topic, int]) -> NewCooldowns:
        """Read the reply to `said`: the time of Redis in ms, and members and their ends in ms, alternating.

        Raises ValueError for a reply of another form; single entries that make no sense are left out.
        """
        time, entries = _parts(reply)
        self._saying = {}
        now = self.clock()
        known: dict[Topic, _Known] = {}
        cooldowns = []
        foreign = len(entries) % 2 == 1
        for member, end in zip(entries[::2], entries[1::2], strict=False):
            entry = _entry(member, end)
            if entry is None:
                foreign = True
                continue
            topic, expiry = entry
            seconds = min((expiry - time) / 1000, LONGEST)
            if seconds <= 0:
                continue
            before = self._known.get(topic)
            # One that ends with ours is ours.
            if expiry > (before.expiry if before else 0) and expiry > time + said.get(topic, 0):
                cooldowns.append(Cooldown(*topic, seconds))
            known[topic] = _Known(expiry, now + seconds)
        self._known = known
        return NewCooldowns(tuple(cooldowns), foreign)

    def about(self, name: str) -> tuple[Cooldown, ...]:
        """Return the cooldowns in force for a deployment that this process has only now come to know."""
        now = self.clock()
        held = ((kind, self._known.get((name, kind))) for kind in KINDS)
        return tuple(Cooldown(name, kind, known.until - now) for kind, known in held if known and known.until > now)


def member(topic: Topic) -> str:
    """Return a topic as it is stored in Redis."""
    name, kind = topic
    return f"{name}:{kind}"


def _parts(reply: object) -> tuple[int, Sequence[object]]:
    match reply:
        case [int(time), list(entries)] if len(entries) <= 2 * MOST:
            return time, entries
        case _:
            raise ValueError("no list of words")


def _entry(member: object, end: object) -> tuple[Topic, int] | None:
    if not isinstance(member, bytes) or not isinstance(end, bytes):
        return None
    found = _MEMBER.fullmatch(member)
    if found is None or not _EXPIRY.fullmatch(end):
        return None
    return (found[1].decode(), FailureKind(found[2].decode())), int(end)
