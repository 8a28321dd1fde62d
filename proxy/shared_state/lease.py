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

WIDTH: Final = 7
"""Numbers of an entry."""

LARGEST: Final = 1e15
"""No number of a reply is larger. Up to here whole numbers are exact."""


@dataclass(frozen=True, slots=True)
class RateAsk:
    """Units of a rate: up to `want`, or none if there are fewer than `least`. `back` were not used (below 0: were used
    beyond what was granted). `demand` is what this process would use, in units a second."""

    key: str
    per_second: float
    burst: int
    want: int
    least: int
    back: int
    demand: float


@dataclass(frozen=True, slots=True)
class PlacesAsk:
    """Places: `held` are, and `want` more are asked for. Holds for 10 seconds."""

    key: str
    capacity: int
    held: int
    want: int


@dataclass(frozen=True, slots=True)
class SpentAsk:
    """What this process knows to be spent that no ledger holds yet. Holds for 10 seconds."""

    key: str
    amount: int


LeaseAsk: TypeAlias = RateAsk | PlacesAsk | SpentAsk


@dataclass(frozen=True, slots=True)
class LeaseGrant:
    """The answer to an entry. `level` is, of a rate, the units left; of places, those taken by all; of spending, what
    the other processes know of. `share` is this process's part of all demand, and `processes` counts who has any."""

    granted: int
    level: float
    share: float
    processes: int


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
                words.append(repr(ask.demand))
            case PlacesAsk():
                words += ["c", str(ask.capacity), str(ask.held), str(ask.want), "0", "0", "0"]
            case SpentAsk():
                words += ["s", str(ask.amount), "0", "0", "0", "0", "0"]
    return words


def read_asks(keys: Sequence[str], words: Sequence[str]) -> list[LeaseAsk]:
    """Return the entries whose `arguments` are these words, for whoever counts without Redis. Raises ValueError for
    words that are none."""
    if len(words) != WIDTH * len(keys) or len(keys) > AT_ONCE:
        raise ValueError("no entries")
    asks: list[LeaseAsk] = []
    for place, key in enumerate(keys):
        match words[WIDTH * place : WIDTH * place + WIDTH]:
            case ["r", rate, burst, want, least, back, demand]:
                asks.append(RateAsk(key, float(rate), int(burst), int(want), int(least), int(back), float(demand)))
            case ["c", capacity, held, want, *_]:
                asks.append(PlacesAsk(key, int(capacity), int(held), int(want)))
            case ["s", amount, *_]:
                asks.append(SpentAsk(key, int(amount)))
            case _:
                raise ValueError("no such entry")
    return asks


def reply_words(grants: Sequence[LeaseGrant]) -> list[str]:
    """Return the reply that `read_reply` reads, for whoever counts without Redis."""
    return [repr(each) for it in grants for each in (it.granted, it.level, it.share, it.processes)]


def read_reply(reply: object, asks: Sequence[LeaseAsk]) -> list[LeaseGrant | None]:
    """Read a reply: four numbers for each entry, as text. Raises ConnectionError for one of another form."""
    if not isinstance(reply, list) or len(reply) != 4 * len(asks):
        raise ConnectionError("no answer to what was asked")
    numbers = [_number(each) for each in reply]
    grants: list[LeaseGrant | None] = []
    for place, ask in enumerate(asks):
        granted, level, share, processes = numbers[4 * place : 4 * place + 4]
        most = 0 if isinstance(ask, SpentAsk) else max(0, ask.want)
        sound = 0 <= granted <= most and granted == int(granted) and 0 <= share <= 1 and 1 <= processes <= 1e6
        sound = sound and level >= -LARGEST
        grants.append(LeaseGrant(int(granted), level, share, int(processes)) if sound else None)
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
