"""The messages between a process and the coordinator: requests for leases, and grants. The messages are flat lists of
numbers and text, so Redis and a supervisor receive the same form.

Replies are checked like untrusted data, because any client of the Redis may have changed them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

MAX_ENTRIES: Final = 50
"""The most entries in one exchange. An exchange with this many entries keeps Redis busy for 0.5 ms."""

ENTRY_WORDS: Final = 16
"""The number of words of an encoded entry."""

REPLY_WORDS: Final = 8
"""The number of numbers in the reply to an entry."""

GRANT_EARLY: Final = 0.002
"""The most seconds by which a unit of a rate is granted before its time. Otherwise a process that requests single units
would lose the time of one round trip for each unit."""

LARGEST_NUMBER: Final = 1e15
"""The largest number in a reply. Whole numbers up to it are exact."""


@dataclass(frozen=True, slots=True)
class RateRequest:
    """A request for up to `want` units of a rate, or for no unit if fewer than `least` are available.

    `back` is the number of granted units that were not used (below 0: units used beyond the granted units). `demand` is
    the number of units a second that this process would use; the coordinator relies on it for `holds` seconds.

    `total` and `life` prevent a lost reply from being counted twice: `total` is the sum of all units returned in the
    `life` of a lease (0: no lease yet), of which `back` are not confirmed. `epoch` is the epoch of the key that this
    process knows (0: none). If the key has another epoch, the coordinator lost its memory. Then at least `owed` units
    count as used, and so do the units that the process has since paid for from its own part.

    These fields are for a process that counts alone. `silence` is the number of seconds without a reply after which it
    does so (0: silence means nothing). `share` is the part of the limit that the process would then have, and `equal`
    is the part of an idle process. `paid` is the number of units that the process took alone and paid for from its own
    part in that time.
    """

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
    silence: float = 0.0
    share: float = 0.0
    equal: float = 0.0


@dataclass(frozen=True, slots=True)
class SlotsRequest:
    """A report of `held` slots and a request for `want` more. `used` is the number of slots that requests use or wait
    for. The report holds for 10 seconds."""

    key: str
    capacity: int
    held: int
    want: int
    used: int = 0


@dataclass(frozen=True, slots=True)
class SpendingRequest:
    """A report of this process's spending, and a claim on the remaining units of `most`.

    `base` is the ledger's sum that it has read. `amount` is its spending that no ledger holds yet. Requests in flight
    hold `reserved` units of `amount`, which no ledger's sum includes. `held` units are already claimed, or are settled
    and possibly included in `base`. Up to `want` more are requested, or no unit if fewer than `least` are available.
    The report holds for 10 seconds.
    """

    key: str
    amount: int
    base: int = 0
    most: int = 0
    held: int = 0
    want: int = 0
    least: int = 0
    reserved: int = 0


LeaseRequest: TypeAlias = RateRequest | SlotsRequest | SpendingRequest


@dataclass(frozen=True, slots=True)
class LeaseGrant:
    """The reply to an entry.

    - `level`: of a rate, the units that are left. Of slots, the slots that requests of all processes use. Of spending,
      the units that the other processes know of, without the units that may be counted twice.
    - `share`: of a rate, the part of the limit that this process has alone. Of slots, this process's part of all
      demand. `processes` is the number of processes with a part.
    - `epoch`: distinguishes a key from a lost key of the same name.
    - `claimed`: of spending, the remaining units that the others may still take, or that may be counted twice. Of
      slots, the longest silence of another process in seconds.
    - `reserved`: of spending, the units of `level` that requests in flight hold. `doubtful` units may be counted twice
      and are not in `level`.
    """

    granted: int
    level: float
    share: float
    processes: int
    epoch: int = 0
    claimed: float = 0.0
    reserved: float = 0.0
    doubtful: float = 0.0


class LeaseSource(Protocol):
    """The coordinator, which counts for several processes."""

    async def exchange(self, requests: Sequence[LeaseRequest]) -> Sequence[LeaseGrant | None]:
        """Return a grant for each of at most MAX_ENTRIES entries; a grant is `None` if foreign data is stored in its
        place. Raises ConnectionError if there is no reply in time."""
        ...


def encode_requests(requests: Sequence[LeaseRequest]) -> list[str]:
    """Return the entries as text, ENTRY_WORDS for each."""
    words = []
    for request in requests:
        match request:
            case RateRequest():
                words += [
                    "r",
                    repr(request.per_second),
                    str(request.burst),
                    str(request.want),
                    str(request.least),
                    str(request.back),
                ]
                words += [
                    repr(request.demand),
                    repr(request.holds),
                    str(request.life),
                    str(request.total),
                    str(request.epoch),
                ]
                words += [
                    str(request.owed),
                    str(request.paid),
                    repr(request.silence),
                    repr(request.share),
                    repr(request.equal),
                ]
            case SlotsRequest():
                words += ["c", str(request.capacity), str(request.held), str(request.want), str(request.used)]
                words += _FILL[5:]
            case SpendingRequest():
                words += [
                    "s",
                    str(request.amount),
                    str(request.base),
                    str(request.most),
                    str(request.held),
                    str(request.want),
                ]
                words += [str(request.least), str(request.reserved), *_FILL[8:]]
    return words


_FILL: Final = ("0",) * ENTRY_WORDS


def decode_requests(keys: Sequence[str], words: Sequence[str]) -> list[LeaseRequest]:
    """Return the entries that `encode_requests` encoded as these words. It is for the coordinator without Redis. Raises
    ValueError for words that encode no entries."""
    if len(words) != ENTRY_WORDS * len(keys) or len(keys) > MAX_ENTRIES:
        raise ValueError("no entries")
    requests: list[LeaseRequest] = []
    for index, key in enumerate(keys):
        match words[ENTRY_WORDS * index : ENTRY_WORDS * index + ENTRY_WORDS]:
            case ["r", rate, burst, want, least, back, demand, holds, life, total, epoch, owed, paid, *alone]:
                amounts = int(burst), int(want), int(least), int(back), float(demand), float(holds)
                counts = map(int, (life, total, epoch, owed, paid))
                requests.append(RateRequest(key, float(rate), *amounts, *counts, *map(float, alone)))
            case ["c", capacity, held, want, used, *_]:
                requests.append(SlotsRequest(key, int(capacity), int(held), int(want), int(used)))
            case ["s", amount, base, most, held, want, least, reserved, *_]:
                counts = map(int, (amount, base, most, held, want, least, reserved))
                requests.append(SpendingRequest(key, *counts))
            case _:
                raise ValueError("no such entry")
    return requests


def encode_reply(grants: Sequence[LeaseGrant]) -> list[str]:
    """Return the reply in the form that `decode_reply` reads. It is for the coordinator without Redis."""
    return [
        repr(each)
        for it in grants
        for each in (it.granted, it.level, it.share, it.processes, it.epoch, it.claimed, it.reserved, it.doubtful)
    ]


def decode_reply(reply: object, requests: Sequence[LeaseRequest]) -> list[LeaseGrant | None]:
    """Read a reply of REPLY_WORDS numbers for each entry, as text. Raises ConnectionError for another form."""
    if not isinstance(reply, list) or len(reply) != REPLY_WORDS * len(requests):
        raise ConnectionError("the reply does not fit the request")
    numbers = [_number(each) for each in reply]
    grants: list[LeaseGrant | None] = []
    for index, request in enumerate(requests):
        granted, level, share, processes, epoch, *spent = numbers[
            REPLY_WORDS * index : REPLY_WORDS * index + REPLY_WORDS
        ]
        valid = (
            0 <= granted <= max(0, request.want)
            and granted == int(granted)
            and 0 <= share <= 1
            and 1 <= processes <= 1e6
        )
        valid = valid and level >= -LARGEST_NUMBER and epoch >= 0 and min(spent) >= 0
        grants.append(LeaseGrant(int(granted), level, share, int(processes), int(epoch), *spent) if valid else None)
    return grants


def _number(word: object) -> float:
    """Return a number of a reply. If the word is not a number, return a number that no valid entry has."""
    if not isinstance(word, bytes | str) or len(word) > 32:
        return -math.inf
    try:
        number = float(word)
    except ValueError:
        return -math.inf
    return number if abs(number) <= LARGEST_NUMBER else -math.inf
