"""How often one address may present keys that are nobody's. Never sees a key, and never refuses one that is a team's.

Pure: time is an argument. Defaults: 20 at once and one a second, for 10,000 addresses.
"""

from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address

_PREFIX = ~((1 << 64) - 1)


@dataclass(frozen=True, slots=True)
class GuessRules:
    """`burst` wrong keys at once, then one every `every` seconds; `addresses` are remembered, the latest."""

    burst: int = 20
    every: float = 1.0
    addresses: int = 10_000


class Guesses:
    """What is left of each address's patience, as the moment at which nothing would be owed any more."""

    __slots__ = ("_even", "_rules")

    def __init__(self, rules: GuessRules | None = None) -> None:
        self._rules = rules or GuessRules()
        self._even: dict[str, float] = {}

    def count(self, address: str, now: float) -> float:
        """Note a wrong key: 0 when it is within the rules, else seconds until the next one would be."""
        rules, source = self._rules, _source(address)
        even = max(now, self._even.pop(source, now))
        early = even - now - (rules.burst - 1) * rules.every
        # Put back at the end, so that the first of them is the one not heard of for longest.
        self._even[source] = even + rules.every if early <= 0 else even
        if len(self._even) > rules.addresses:
            del self._even[next(iter(self._even))]
        return max(0.0, early)


def _source(address: str) -> str:
    """Who is behind an address: a host of IPv6 has 2^64 of them."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return address
    return str(parsed.ipv4_mapped or IPv6Address(int(parsed) & _PREFIX))
