"""The rules of a name's answer cache, from the sections of the table."""

from dataclasses import dataclass
from typing import Final, Literal

from config.sections.cache_section import CacheSection
from config.table.inheritance import model_inheritance
from config.table.table_schema import GatewayConfig
from providers.vendor_credential import Credential

_SEALED: Final = "answer cache"

ASKED_BY: Final = "requests with a temperature of 0, or with the header x-dragoman-cache: use"
"""Which requests of a name with a cache are answered out of it."""


@dataclass(frozen=True, slots=True)
class CacheRules:
    """For how many seconds an answer is given again, and for how many more while no deployment answers; to whom; where
    it is kept beside this process; how large it may be. `seal` is known only to gateways with the same secret (empty =
    there is none)."""

    ttl: float
    stale: float
    scope: Literal["team", "table"]
    shared: bool
    max_bytes: int
    seal: str = ""

    @property
    def words(self) -> str:
        """The rules for people, such as `600 s for each team, in memory`."""
        more = f" and {self.stale:g} s more while no deployment answers" if self.stale else ""
        who = "for each team" if self.scope == "team" else "for all teams together"
        return f"{self.ttl:g} s{more} {who}, {'at Redis' if self.shared else 'in memory'}"

    @property
    def facts(self) -> dict[str, float | str]:
        """The rules for programs, by the names that the table has for them."""
        where = "redis" if self.shared else "memory"
        return {
            "ttl": self.ttl,
            "stale": self.stale,
            "scope": self.scope,
            "where": where,
            "max_bytes": self.max_bytes,
        }


def cache_rules(section: CacheSection | None) -> CacheRules | None:
    """Return the rules of a section; None where there is no cache."""
    if section is None or section.where == "off":
        return None
    seal = "" if section.secret is None else Credential(static={"secret": section.secret}).seal(_SEALED)
    shared = section.where == "redis"
    return CacheRules(section.ttl, section.stale, section.scope, shared, section.max_bytes, seal)


def model_cache(config: GatewayConfig, name: str) -> CacheRules | None:
    """Return the rules of an entry of `models`: its own, else its vendor's, else the defaults'."""
    return cache_rules(model_inheritance(config, name).first("cache", lambda level: level.cache))
