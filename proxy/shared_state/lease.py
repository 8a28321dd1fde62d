"""What a process asks of whoever counts for several, and what it is told. Flat lists of numbers and text, so that one
form goes to Redis and to a supervisor alike.

What comes back is read as something that anybody may have written.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

AT_ONCE: Final = 50
"""Entries in one exchange: Redis is busy for 0.5 ms with so many."""

WIDTH: Final = 16
"""Numbers of an entry."""

ANSWER: Final = 8
"""Numbers of the answer to one."""

TRIP: Final = 0.002
"""Seconds before its time at which a unit of a rate is granted: who has to ask for each one would otherwise lose the
round trip of each."""

LARGEST: Final = 1e15
"""No number of a reply is larger. Up to here whole numbers are exact."""


@dataclass(frozen=True, slots=True)
class RateAsk:
    """Units of a rate: up to `want`, or none if there are fewer than `least`. `back` were not used (below 0: were used
    beyond what was granted). `demand` is what this process would use, in units a second, and `holds` for how many
    seconds that is to be believed.

    So that an answer which is lost counts nothing twice, `total` is all that ever came back in the `life` of a lease
    (0: it has none), of which `back` is what no answer has confirmed. `epoch` is that of the key which this process
    knows, 0 for none: where the key has another, its memory was lost, and at least `owed` units count as used, and
    what the process paid for with its part since then.

    What it uses when it hears no answer is set aside for it: `again` are the seconds after which its silence says so
    (0: silence says nothing), `share` the part of the limit that it believes to have then, `equal` that of a process
    which used nothing. `paid` are the units that it took alone, and paid for with its part in that time."""

    key: str
    per_second: float
    burst: int
    want: int
    least: int
    back: int
    demand: float
    holds: float = 3.0
    life: int = 0
    total: int = 0
    epoch: int = 0
    owed: int = 0
    paid: int = 0
    again: float = 0.0
    share: float = 0.0
    equal: float = 0.0


@dataclass(frozen=True, slots=True)
class PlacesAsk:
    """Places: `held` are, and `want` more are asked for; requests use `used` of all these, or wait for them. Holds for
    10 seconds."""

    key: str
    capacity: int
    held: int
    want: int
    used: int = 0


@dataclass(frozen=True, slots=True)
class SpentAsk:
    """What this process knows to be spent that no ledger holds yet, beside the ledger's sum `base` that it has read,
    and what it claims of what is left of `most`: `held` more units are claimed already, or settled and maybe in `base`;
    up to `want` more are asked for, or none if there are fewer than `least`. Of `amount`, `reserved` units are held by
    requests in flight, and so in no ledger's sum. Holds for 10 seconds."""

    key: str
    amount: int
    base: int = 0
    most: int = 0
    held: int = 0
    want: int = 0
    least: int = 0
    reserved: int = 0


LeaseAsk: TypeAlias = RateAsk | PlacesAsk | SpentAsk


@dataclass(frozen=True, slots=True)
class LeaseGrant:
    """The answer to an entry. `level` is, of a rate, the units left; of places, those that requests of all use; of
    spending, what the other processes know of, as far as it may not be counted twice. `share` is, of a rate, the part
    that this process has alone, and of places its part of all demand; `processes` counts who has any. `epoch` tells a
    key from one of the same name that was lost. `claimed` are, of spending, the units that the other processes may
    still take of what is left, or that may be counted twice; of places, the seconds since the most silent of the others
    was heard of. Of spending, `reserved` units of `level` are held by requests in flight, and `doubtful` are those that
    may be counted twice, and are not in `level`."""

    granted: int
    level: float
    share: float
    processes: int
    epoch: int = 0
    claimed: float = 0.0
    reserved: float = 0.0
    doubtful: float = 0.0


class LeaseSource(Protocol):
    """Who counts for several processes."""

    async def exchange(self, asks: Sequence[LeaseAsk]) -> Sequence[LeaseGrant | None]:
        """Return a grant for each of at most AT_ONCE entries, None where something else is kept in its place. Raises
        ConnectionError where there is no answer in time."""
        ...


def arguments(asks: Sequence[LeaseAsk]) -> list[str]:
    """Return the entries as text, WIDTH for each."""
    words = []
    for ask in asks:
        match ask:
            case RateAsk():
                words += ["r", repr(ask.per_second), str(ask.burst), str(ask.want), str(ask.least), str(ask.back)]
                words += [repr(ask.demand), repr(ask.holds), str(ask.life), str(ask.total), str(ask.epoch)]
                words += [str(ask.owed), str(ask.paid), repr(ask.again), repr(ask.share), repr(ask.equal)]
            case PlacesAsk():
                words += ["c", str(ask.capacity), str(ask.held), str(ask.want), str(ask.used)]
                words += _FILL[5:]
            case SpentAsk():
                words += ["s", str(ask.amount), str(ask.base), str(ask.most), str(ask.held), str(ask.want)]
                words += [str(ask.least), str(ask.reserved), *_FILL[8:]]
    return words


_FILL: Final = ("0",) * WIDTH


def read_asks(keys: Sequence[str], words: Sequence[str]) -> list[LeaseAsk]:
    """Return the entries whose `arguments` are these words, for whoever counts without Redis. Raises ValueError for
    words that are none."""
    if len(words) != WIDTH * len(keys) or len(keys) > AT_ONCE:
        raise ValueError("no entries")
    asks: list[LeaseAsk] = []
    for place, key in enumerate(keys):
        match words[WIDTH * place : WIDTH * place + WIDTH]:
            case ["r", rate, burst, want, least, back, demand, holds, life, total, epoch, owed, paid, *alone]:
                amounts = int(burst), int(want), int(least), int(back), float(demand), float(holds)
                counts = map(int, (life, total, epoch, owed, paid))
                asks.append(RateAsk(key, float(rate), *amounts, *counts, *map(float, alone)))
            case ["c", capacity, held, want, used, *_]:
                asks.append(PlacesAsk(key, int(capacity), int(held), int(want), int(used)))
            case ["s", amount, base, most, held, want, least, reserved, *_]:
                counts = map(int, (amount, base, most, held, want, least, reserved))
                asks.append(SpentAsk(key, *counts))
            case _:
                raise ValueError("no such entry")
    return asks


def reply_words(grants: Sequence[LeaseGrant]) -> list[str]:
    """Return the reply that `read_reply` reads, for whoever counts without Redis."""
    return [
        repr(each)
        for it in grants
        for each in (it.granted, it.level, it.share, it.processes, it.epoch, it.claimed, it.reserved, it.doubtful)
    ]


def read_reply(reply: object, asks: Sequence[LeaseAsk]) -> list[LeaseGrant | None]:
    """Read a reply: eight numbers for each entry, as text. Raises ConnectionError for one of another form."""
    if not isinstance(reply, list) or len(reply) != ANSWER * len(asks):
        raise ConnectionError("no answer to what was asked")
    numbers = [_number(each) for each in reply]
    grants: list[LeaseGrant | None] = []
    for place, ask in enumerate(asks):
        granted, level, share, processes, epoch, *spent = numbers[ANSWER * place : ANSWER * place + ANSWER]
        sound = (
            0 <= granted <= max(0, ask.want) and granted == int(granted) and 0 <= share <= 1 and 1 <= processes <= 1e6
        )
        sound = sound and level >= -LARGEST and epoch >= 0 and min(spent) >= 0
        grants.append(LeaseGrant(int(granted), level, share, int(processes), int(epoch), *spent) if sound else None)
    return grants


def _number(word: object) -> float:
    """Return a number of a reply, one that no entry has where there is none."""
    if not isinstance(word, bytes | str) or len(word) > 32:
        return -math.inf
    try:
        number = float(word)
    except ValueError:
        return -math.inf
    return number if abs(number) <= LARGEST else -math.inf
