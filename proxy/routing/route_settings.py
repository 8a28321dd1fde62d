"""The settings of a route beside its targets, and how a name that stands for one route takes them over."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from config.sections.route_section import ROUTE_SETTINGS, FallbacksSection, RouteSection
from config.table.table_schema import DeploymentSettings
from providers.failure import FailureKind
from proxy.hedging.hedge_rules import HedgeRules, hedge_rules
from proxy.routing.affinity_rules import BUILT_IN, AffinityRules, affinity_rules
from proxy.routing.cache_rules import CacheRules, cache_rules

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
