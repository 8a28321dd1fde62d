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
