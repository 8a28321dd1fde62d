"""The cooldowns that vendors requested of this process, which are sent to other processes; and the received cooldowns.

Only cooldowns that a vendor requested are shared, because failures that a process saw may come from its own network.
Received data is checked like untrusted data, because any client of the Redis may have changed it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from providers.failure import FailureKind

MAX_COOLDOWNS: Final = 1024
"""The most cooldowns stored, here and in Redis. The ones that end first are dropped."""

MAX_UNSENT: Final = 256
"""The most cooldowns that wait to be sent. Further ones are not sent, and each process learns them from the vendor."""

LONGEST_COOLDOWN: Final = 3600.0
"""The most seconds of a shared cooldown. Each process also limits it by its own rules."""

LEAST_GAIN: Final = 0.5
"""The least number of seconds by which a cooldown must end later than the former one to be sent again."""

SHARED_KINDS: Final = (FailureKind.RATE_LIMITED, FailureKind.QUOTA, FailureKind.AUTH, FailureKind.NO_MODEL)
"""The failures that hold for all processes which use the deployment with the same credential."""

_MEMBER: Final = re.compile(rf"([0-9a-f]{{32}}):({'|'.join(SHARED_KINDS)})".encode())
_EXPIRY: Final = re.compile(rb"[0-9]{1,15}")

Topic: TypeAlias = tuple[str, FailureKind]
"""The name of the deployment among the processes, and the kind of failure."""


@dataclass(frozen=True, slots=True)
class Cooldown:
    """A cooldown of a deployment that ends in `seconds`."""

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
    """A received cooldown. `expiry` is its end by the clock of Redis in ms, which identifies it. `until` is its end by
    this process's clock in seconds."""

    expiry: int
    until: float


@dataclass(slots=True, eq=False)
class SharedCooldowns:
    """The cooldowns to send and the current ones. `clock` returns seconds. `wake` is called when there is a cooldown to
    send. `up` is true if the other processes can be reached."""

    clock: Callable[[], float]
    _wake: Callable[[], None]
    up: bool = False
    _unsaid: dict[Topic, float] = field(default_factory=dict)
    _saying: dict[Topic, float] = field(default_factory=dict)
    _known: dict[Topic, _Known] = field(default_factory=dict)

    def publish(self, name: str, kind: FailureKind, seconds: float) -> None:
        """Send a cooldown that a vendor requested of this process."""
        topic, until = (name, kind), self.clock() + min(seconds, LONGEST_COOLDOWN)
        known = self._known.get(topic)
        before = max(self._saying.get(topic, 0.0), self._unsaid.get(topic, 0.0), 0.0 if known is None else known.until)
        if until < before + LEAST_GAIN or len(self._unsaid) + len(self._saying) >= MAX_UNSENT:
            return
        self._unsaid[topic] = until
        self._wake()

    def publish_unless_refused(self, name: str, kind: FailureKind, seconds: float) -> None:
        """Send a cooldown unless its kind is a refused credential. This is for deployments whose credential each
        process fetches by itself."""
        if kind is not FailureKind.AUTH:
            self.publish(name, kind, seconds)

    def outgoing(self) -> Mapping[Topic, int]:
        """Return the cooldowns to send now with their remaining milliseconds, including the cooldowns whose sending
        failed."""
        now = self.clock()
        self._saying = {topic: until for topic, until in {**self._saying, **self._unsaid}.items() if until > now}
        self._unsaid = {}
        return {topic: max(1, round(1000 * (until - now))) for topic, until in self._saying.items()}

    def incoming(self, reply: object, said: Mapping[Topic, int]) -> NewCooldowns:
        """Read the reply to the sent cooldowns `said`: the time of Redis in ms, then entries and their ends in ms,
        alternating.

        Raises ValueError for a reply of another form. Single invalid entries are skipped.
        """
        time, entries = _parts(reply)
        self._saying = {}
        now = self.clock()
        known: dict[Topic, _Known] = {}
        cooldowns = []
        foreign = len(entries) % 2 == 1
        for encode_topic, end in zip(entries[::2], entries[1::2], strict=False):
            entry = _entry(encode_topic, end)
            if entry is None:
                foreign = True
                continue
            topic, expiry = entry
            seconds = min((expiry - time) / 1000, LONGEST_COOLDOWN)
            if seconds <= 0:
                continue
            before = self._known.get(topic)
            # An entry that ends at the same time as a sent cooldown is this process's own cooldown.
            if expiry > (before.expiry if before else 0) and expiry > time + said.get(topic, 0):
                cooldowns.append(Cooldown(*topic, seconds))
            known[topic] = _Known(expiry, now + seconds)
        self._known = known
        return NewCooldowns(tuple(cooldowns), foreign)

    def about(self, name: str) -> tuple[Cooldown, ...]:
        """Return the current cooldowns of a deployment that this process has just learned of."""
        now = self.clock()
        held = ((kind, self._known.get((name, kind))) for kind in SHARED_KINDS)
        return tuple(Cooldown(name, kind, known.until - now) for kind, known in held if known and known.until > now)


def encode_topic(topic: Topic) -> str:
    """Return a topic as it is stored in Redis."""
    name, kind = topic
    return f"{name}:{kind}"


def _parts(reply: object) -> tuple[int, Sequence[object]]:
    match reply:
        case [int(time), list(entries)] if len(entries) <= 2 * MAX_COOLDOWNS:
            return time, entries
        case _:
            raise ValueError("not a list of the expected form")


def _entry(encode_topic: object, end: object) -> tuple[Topic, int] | None:
    if not isinstance(encode_topic, bytes) or not isinstance(end, bytes):
        return None
    found = _MEMBER.fullmatch(encode_topic)
    if found is None or not _EXPIRY.fullmatch(end):
        return None
    return (found[1].decode(), FailureKind(found[2].decode())), int(end)
