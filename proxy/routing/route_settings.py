"""The settings of a route beside its targets, those of its response cache included, and how a name that stands for one
route inherits them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from config.sections.cache_section import CacheSection
from config.sections.route_section import ROUTE_SETTINGS, FallbacksSection, RouteSection
from config.table.inheritance import model_inheritance
from config.table.table_schema import DeploymentSettings, GatewayConfig
from providers.failure import FailureKind
from providers.vendor_credential import Credential
from proxy.hedging.hedge_rules import HedgeRules, hedge_rules
from proxy.routing.affinity_rules import BUILT_IN, AffinityRules, affinity_rules

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
    """Return the rules of a section; `None` if there is no cache."""
    if section is None or section.where == "off":
        return None
    seal = "" if section.secret is None else Credential(static={"secret": section.secret}).seal(_SEALED)
    shared = section.where == "redis"
    return CacheRules(section.ttl, section.stale, section.scope, shared, section.max_bytes, seal)


def model_cache(config: GatewayConfig, name: str) -> CacheRules | None:
    """Return the rules of an entry of `models`: its own, else its vendor's, else the defaults'."""
    return cache_rules(model_inheritance(config, name).first("cache", lambda level: level.cache))


FALLBACKS: Mapping[FailureKind, str] = {
    FailureKind.CONTEXT_LENGTH: "context_window",
    FailureKind.CONTENT_FILTER: "content_filter",
}
"""The kinds of failure for which a route has fallbacks of their own, with their names in the table."""


@dataclass(frozen=True, slots=True)
class RouteSettings:
    """The settings of a route that are about its targets as a whole.

    `fallbacks` are the names to use after a failure of a kind; `same_space` says that vectors of all targets may be
    compared; `cache` has the rules of the answer cache (`None`: no cache), `affinity` the rules of
    conversations, `hedge` the rules of second attempts (`None`: no second attempts). `written`
    are the names of the settings that the operator wrote at this route: each other one has its built-in value, or that
    of `defaults`. `fallbacks_of` is the route that the fallbacks were taken from, empty for its own. Every field but
    these two has the name that it has in the table.
    """

    fallbacks: Mapping[FailureKind, tuple[str, ...]] = field(default_factory=dict)
    same_space: bool = False
    cache: CacheRules | None = None
    affinity: AffinityRules = BUILT_IN
    hedge: HedgeRules | None = None
    written: frozenset[str] = frozenset()
    fallbacks_of: str = ""

    def over(self, inner: "RouteSettings", name: str) -> "RouteSettings":
        """Return the settings of a name that stands for one route: its own; those that are not
        written are the settings of that route, `name`."""
        taken = {each: getattr(inner, each) for each in ROUTE_SETTINGS if each not in self.written}
        source = name if "fallbacks" in taken and inner.fallbacks else self.fallbacks_of
        return replace(self, **taken, written=self.written | inner.written, fallbacks_of=source)


def route_settings(route: RouteSection, defaults: DeploymentSettings) -> RouteSettings:
    """Return the settings of a route; for those that it does not have, the settings of `defaults`."""
    written = frozenset(route.model_fields_set.intersection(ROUTE_SETTINGS))
    cache = cache_rules(defaults.cache if route.cache is None else route.cache)
    affinity = affinity_rules(defaults.affinity if route.affinity is None else route.affinity)
    hedge = hedge_rules(defaults.hedge if route.hedge is None else route.hedge)
    return RouteSettings(_fallbacks(route.fallbacks), route.same_space, cache, affinity, hedge, written)


def _fallbacks(lists: FallbacksSection) -> dict[FailureKind, tuple[str, ...]]:
    return {kind: tuple(names) for kind, key in FALLBACKS.items() if (names := getattr(lists, key))}
