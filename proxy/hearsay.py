"""What vendors said to this process and to others, on its way from one to the other.

Never a socket, and never what a process concluded by itself: failures may be those of its own network. What comes from
outside is read as something that anybody may have written.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from providers.failure import FailureKind

MOST: Final = 1024
"""Words that are kept, here and in what is shared; those that end first are left out."""

MOST_UNSAID: Final = 256
"""Words that wait to be said. More are not said, and every process is told by the vendor itself."""

LONGEST: Final = 3600.0
"""Seconds that a word may hold; each process holds it to its own rules as well."""

SAME: Final = 0.5
"""Seconds by which a word has to hold longer than the same word before it, to be said again."""

KINDS: Final = (FailureKind.RATE_LIMITED, FailureKind.QUOTA, FailureKind.AUTH)
"""What a vendor says that holds for everybody who uses the deployment with the same credential."""

_MEMBER: Final = re.compile(rf"([0-9a-f]{{32}}):({'|'.join(KINDS)})".encode())
_EXPIRY: Final = re.compile(rb"[0-9]{1,15}")

Topic: TypeAlias = tuple[str, FailureKind]
"""The deployment's name among the processes, and what was said of it."""


@dataclass(frozen=True, slots=True)
class Word:
    """A deployment is to be left alone for so many seconds."""

    name: str
    kind: FailureKind
    seconds: float


@dataclass(frozen=True, slots=True)
class Heard:
    """The words that are new to this process, and whether there was something that no gateway wrote."""

    words: tuple[Word, ...]
    foreign: bool


@dataclass(frozen=True, slots=True)
class _Known:
    """A word that has been taken: when it ends by the others' clock (ms), by which it is told from a later one, and
    when by our own (s)."""

    expiry: int
    until: float


class Hearsay:
    """The words to say and the words that hold. `clock` counts seconds; `wake` is called when there is one to say.

    `up` is whether others can be reached.
    """

    __slots__ = ("_known", "_saying", "_unsaid", "_wake", "clock", "up")

    def __init__(self, clock: Callable[[], float], wake: Callable[[], None]) -> None:
        self.clock = clock
        self._wake = wake
        self._unsaid: dict[Topic, float] = {}
        self._saying: dict[Topic, float] = {}
        self._known: dict[Topic, _Known] = {}
        self.up = False

    def say(self, name: str, kind: FailureKind, seconds: float) -> None:
        """A vendor told this process to leave a deployment alone."""
        topic, until = (name, kind), self.clock() + min(seconds, LONGEST)
        known = self._known.get(topic)
        before = max(self._saying.get(topic, 0.0), self._unsaid.get(topic, 0.0), 0.0 if known is None else known.until)
        if until < before + SAME or len(self._unsaid) + len(self._saying) >= MOST_UNSAID:
            return
        self._unsaid[topic] = until
        self._wake()

    def say_unless_refused(self, name: str, kind: FailureKind, seconds: float) -> None:
        """The same for credentials that each process fetches by itself: one that was refused says nothing of others."""
        if kind is not FailureKind.AUTH:
            self.say(name, kind, seconds)

    def outgoing(self) -> Mapping[Topic, int]:
        """What is to be said now, with the milliseconds that it still holds; again what was not taken the last time."""
        now = self.clock()
        self._saying = {topic: until for topic, until in {**self._saying, **self._unsaid}.items() if until > now}
        self._unsaid = {}
        return {topic: max(1, round(1000 * (until - now))) for topic, until in self._saying.items()}

    def incoming(self, reply: object, said: Mapping[Topic, int]) -> Heard:
        """Take the answer to `said`: the others' time in ms, and members by turns with their ends in ms.

        Raises ValueError for one that is nothing of the kind; single entries that make no sense are left out.
        """
        time, entries = _parts(reply)
        self._saying = {}
        now = self.clock()
        known: dict[Topic, _Known] = {}
        words = []
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
            # What ends when our own word ends is our own word.
            if expiry > (before.expiry if before else 0) and expiry > time + said.get(topic, 0):
                words.append(Word(*topic, seconds))
            known[topic] = _Known(expiry, now + seconds)
        self._known = known
        return Heard(tuple(words), foreign)

    def about(self, name: str) -> tuple[Word, ...]:
        """What holds for a deployment that this process meets only now."""
        now = self.clock()
        held = ((kind, self._known.get((name, kind))) for kind in KINDS)
        return tuple(Word(name, kind, known.until - now) for kind, known in held if known and known.until > now)


def member(topic: Topic) -> str:
    """How a topic is written for others."""
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
