"""The settings of a route besides its targets, including its response cache; and the inheritance of these settings by a
name that stands for one route."""

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

_SEAL_PURPOSE: Final = "answer cache"

CACHED_REQUESTS: Final = "requests with a temperature of 0, or with the header x-dragoman-cache: use"
"""The words for the requests that are served from the response cache of a name."""


@dataclass(frozen=True, slots=True)
class CacheRules:
    """The rules of a response cache. `ttl` is the number of seconds for which a response is reused, and `stale` the
    number of further seconds for which it is reused while no deployment responds. `scope` names the clients that share
    a response, `shared` is true if responses are also stored in Redis, and `max_bytes` is the largest cached response.
    Only gateways with the same secret know `seal` (empty: there is no secret)."""

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
        """The rules for programs, by their configured names."""
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
    seal = "" if section.secret is None else Credential(static={"secret": section.secret}).seal(_SEAL_PURPOSE)
    shared = section.where == "redis"
    return CacheRules(section.ttl, section.stale, section.scope, shared, section.max_bytes, seal)


def model_cache(config: GatewayConfig, name: str) -> CacheRules | None:
    """Return the rules of an entry of `models`: its own, otherwise its vendor's, otherwise the defaults'."""
    return cache_rules(model_inheritance(config, name).first("cache", lambda level: level.cache))


FALLBACKS: Mapping[FailureKind, str] = {
    FailureKind.CONTEXT_LENGTH: "context_window",
    FailureKind.CONTENT_FILTER: "content_filter",
}
"""The kinds of failure that have their own fallbacks in a route, and the names of these fallbacks' settings."""


@dataclass(frozen=True, slots=True)
class RouteSettings:
    """The settings of a route that concern its targets as a whole.

    - `fallbacks` are the names to use after a failure of a kind. `same_space`: vectors of all targets may be compared.
    - `cache`, `affinity` and `hedge` are the rules of the response cache (`None`: no cache), of conversations, and of
      second attempts (`None`: no second attempts).
    - `written` are the names of the settings that the operator set at this route. Every other setting has its value
      from `defaults`, or its built-in value.
    - `fallbacks_of` is the route from which the fallbacks were inherited, empty for its own.

    Every field except `written` and `fallbacks_of` has the name of its setting.
    """

    fallbacks: Mapping[FailureKind, tuple[str, ...]] = field(default_factory=dict)
    same_space: bool = False
    cache: CacheRules | None = None
    affinity: AffinityRules = BUILT_IN
    hedge: HedgeRules | None = None
    written: frozenset[str] = frozenset()
    fallbacks_of: str = ""

    def over(self, inner: "RouteSettings", name: str) -> "RouteSettings":
        """Return the settings of a name that stands for one route: its own, and otherwise the settings of that route,
        `name`."""
        taken = {each: getattr(inner, each) for each in ROUTE_SETTINGS if each not in self.written}
        source = name if "fallbacks" in taken and inner.fallbacks else self.fallbacks_of
        return replace(self, **taken, written=self.written | inner.written, fallbacks_of=source)


def route_settings(route: RouteSection, defaults: DeploymentSettings) -> RouteSettings:
    """Return the settings of a route. A setting that it does not have is taken from `defaults`."""
    written = frozenset(route.model_fields_set.intersection(ROUTE_SETTINGS))
    cache = cache_rules(defaults.cache if route.cache is None else route.cache)
    affinity = affinity_rules(defaults.affinity if route.affinity is None else route.affinity)
    hedge = hedge_rules(defaults.hedge if route.hedge is None else route.hedge)
    return RouteSettings(_fallbacks(route.fallbacks), route.same_space, cache, affinity, hedge, written)


def _fallbacks(lists: FallbacksSection) -> dict[FailureKind, tuple[str, ...]]:
    return {kind: tuple(names) for kind, key in FALLBACKS.items() if (names := getattr(lists, key))}
