"""Rate limit on wrong keys by client address; valid keys are not limited."""

from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address

from proxy.bounded_dict import BoundedDict

_PREFIX = ~((1 << 64) - 1)


@dataclass(frozen=True, slots=True)
class WrongKeyRules:
    """The limit of each address: `burst` wrong keys at once, then one wrong key in every `every` seconds. The latest
    `addresses` addresses are stored."""

    burst: int = 20
    every: float = 1.0
    addresses: int = 10_000


class WrongKeyLimiter:
    """Counts wrong keys (GCRA): for each address, the time from which its whole burst is available again."""

    __slots__ = ("_full_at", "_rules")

    def __init__(self, rules: WrongKeyRules | None = None) -> None:
        self._rules = rules or WrongKeyRules()
        self._full_at: BoundedDict[str, float] = BoundedDict(self._rules.addresses)

    def count(self, address: str, now: float) -> float:
        """Count a wrong key at the time `now`. Return 0 if the key is within the rules, else the seconds until another
        wrong key is within the rules."""
        rules, source = self._rules, _source(address)
        full_at = max(now, self._full_at.get(source, now))
        wait = full_at - now - (rules.burst - 1) * rules.every
        self._full_at[source] = full_at + rules.every if wait <= 0 else full_at
        return max(0.0, wait)


def _source(address: str) -> str:
    """Return the address for which a wrong key counts. For IPv6 it is the /64 network, because one host has all
    addresses of such a network."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return address
    return str(parsed.ipv4_mapped or IPv6Address(int(parsed) & _PREFIX))
