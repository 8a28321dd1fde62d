"""The choice of a group's member for a conversation: weighted rendezvous hashing with bounded load. It does no I/O.

Each member gets a score from the conversation's number and the member's name, and the member with the greatest score is
chosen. Nothing is stored, all processes choose the same member, and the shares of conversations follow the weights. If
a member is lost, only its own conversations move.

Sources: Thaler, Ravishankar, "Using Name-Based Mappings to Increase Hit Rates", 1998; the score -w / ln(u) for weights
is Wang and Ravishankar's (CARP); Mirrokni, Thorup, Zadimoghaddam, "Consistent Hashing with Bounded Loads", 2017.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from math import log
from typing import Final

from providers.frozen_record import frozen

ALWAYS_ALLOWED: Final = 4
"""A member with at most this many requests in flight is never skipped, because with few requests the shares mean
nothing."""

_WORD: Final = (1 << 64) - 1


@dataclass(frozen=True, slots=True, eq=False)
class MemberGroup:
    """The members of the model or route `label`: their names, their weights, and the positions of the members out of
    service (`away`). If weights do not matter under the policy, each weight is 1. A member that gets no requests has
    the weight 0."""

    label: str
    names: tuple[str, ...]
    weights: tuple[int, ...]
    away: frozenset[int] = frozenset()


@frozen
class MemberRanks:
    """The positions of a group's members for one conversation. `ranks` has the best first. `order` is the order of
    attempts: the best member within its bound first, then the others by rank. `bound` and `busy` are the bound of the
    first rank and its requests in flight."""

    ranks: tuple[int, ...]
    order: tuple[int, ...]
    busy: int
    bound: float

    @property
    def skipped(self) -> bool:
        """Whether the first of the ranks is skipped because of its load."""
        return self.order[:1] != self.ranks[:1]


@lru_cache(maxsize=8192)
def rank(number: int, group: MemberGroup) -> tuple[int, ...]:
    """Return the positions of the members with a weight above 0, the best for a conversation first.

    The result is cached, because a conversation has many turns. Ranking 4 members takes 4 us.
    """
    scores: list[tuple[float, int]] = []
    for position, weight in enumerate(group.weights):
        if weight > 0:
            # The finaliser of splitmix64 (Steele, Lea, Flood, 2014). Its upper 53 bits become a number between 0 and 1.
            mixed = number ^ seed(group.names[position])
            mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & _WORD
            mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _WORD
            mixed ^= mixed >> 31
            scores.append((weight / log(((mixed >> 11) + 0.5) * 2**-53), position))
    scores.sort()
    return tuple([position for _, position in scores])


def within_load(
    ranks: tuple[int, ...], group: MemberGroup, in_flight: Callable[[int], int], load: float
) -> MemberRanks:
    """Return the order of attempts. First comes the best member with at most `load` times its share of the requests in
    flight, then the others by rank. If all have more, the best member stays first."""
    ready = [position for position in ranks if position not in group.away] if group.away else ranks
    busy = in_flight(ready[0]) if ready else 0
    if busy <= ALWAYS_ALLOWED or len(ready) < 2:
        return MemberRanks(ranks, ranks, busy, ALWAYS_ALLOWED)
    counts = [busy, *[in_flight(position) for position in ready[1:]]]
    share = load * sum(counts) / sum([group.weights[position] for position in ready])
    bounds = [max(ALWAYS_ALLOWED, share * group.weights[position]) for position in ready]
    for position, count, bound in zip(ready, counts, bounds, strict=True):
        if count <= bound:
            order = ranks if position == ready[0] else (position, *[each for each in ranks if each != position])
            return MemberRanks(ranks, order, busy, bounds[0])
    return MemberRanks(ranks, ranks, busy, bounds[0])


@lru_cache(maxsize=4096)
def seed(name: str) -> int:
    """Return the number of a member for its scores. It is the same in every process."""
    return int.from_bytes(sha256(name.encode()).digest()[:8], "big")
