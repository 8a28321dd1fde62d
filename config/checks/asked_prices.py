"""What the deployments behind the names of a table cost, as far as the table says."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce

from config.allowed_names import covers
from config.sections.route_section import RouteSection
from config.table.inheritance import IMPLICIT_DEPLOYMENT, deployment_inheritance
from config.table.table_schema import GatewayConfig


@dataclass(frozen=True, slots=True)
class AskedPrices:
    """The prices behind some names: the models of which a deployment has none, and the highest and the lowest of the
    others, a million tokens of prompt and answer together, in USD (None: no deployment has a price)."""

    unpriced: frozenset[str] = frozenset()
    highest: float | None = None
    lowest: float | None = None

    def __or__(self, other: "AskedPrices") -> "AskedPrices":
        high = [each for each in (self.highest, other.highest) if each is not None]
        low = [each for each in (self.lowest, other.lowest) if each is not None]
        return AskedPrices(self.unpriced | other.unpriced, max(high, default=None), min(low, default=None))


def _together(every: Iterable[AskedPrices]) -> AskedPrices:
    return reduce(AskedPrices.__or__, every, AskedPrices())


@dataclass(slots=True, eq=False)
class PriceBook:
    """Looks up the prices behind names; what is found is kept, since many teams may ask for the same."""

    config: GatewayConfig
    _models: dict[str, dict[str, AskedPrices]] = field(default_factory=dict)
    _lists: dict[tuple[str, ...], AskedPrices] = field(default_factory=dict)

    def of_names(self, allowed: tuple[str, ...], own: Mapping[str, RouteSection]) -> AskedPrices:
        """Return the prices behind all that these patterns allow, and behind a team's own routes."""
        if allowed not in self._lists:
            self._lists[allowed] = _together(self._of_pattern(pattern) for pattern in allowed)
        return self._lists[allowed] | _together(self.of_name(name, own) for name in own)

    def of_name(self, name: str, own: Mapping[str, RouteSection]) -> AskedPrices:
        """Return the prices behind a name; `own` are the routes of the team that asks for it."""
        return _together(self._of_target(target) for target in self._targets(name, own))

    def _of_pattern(self, pattern: str) -> AskedPrices:
        if pattern != "*" and not pattern.endswith("/*"):
            return self.of_name(pattern, {})
        routes = [name for name in self.config.routes if covers(pattern, name)]
        models = [self._of_target(key) for key in self.config.models if covers(pattern, key)]
        return _together([*models, *(self.of_name(name, {}) for name in routes)])

    def _targets(self, name: str, own: Mapping[str, RouteSection]) -> Iterator[str]:
        """Yield the models and deployments behind a name. Iterative: chains of routes may be long."""
        routes, seen, left = self.config.routes, {name}, [name]
        while left:
            route = own.get(left[-1]) or routes.get(left[-1])
            here = left.pop()
            if route is None:
                yield here
                continue
            following = {target.target for target in route.targets} - seen
            seen |= following
            left.extend(following)

    def _of_target(self, name: str) -> AskedPrices:
        if name in self.config.models:
            return _together(self._of_model(name).values())
        model, _, deployment = name.rpartition("/")
        if model in self.config.models and deployment in self._of_model(model):
            return self._of_model(model)[deployment]
        wildcard = f"{name.partition('/')[0]}/*"
        return _together(self._of_model(wildcard).values()) if wildcard in self.config.models else AskedPrices()

    def _of_model(self, key: str) -> dict[str, AskedPrices]:
        """Return the prices of a model's deployments by name."""
        if key not in self._models:
            vendor = key.partition("/")[0]
            known = self.config.models[key].deployments or (IMPLICIT_DEPLOYMENT,)
            there = known if vendor in self.config.vendors else ()
            self._models[key] = {name: self._of_deployment(vendor, key, name) for name in there}
        return self._models[key]

    def _of_deployment(self, vendor: str, key: str, name: str) -> AskedPrices:
        price = deployment_inheritance(self.config, vendor, key, name).first("price", lambda level: level.price)
        if price is None:
            return AskedPrices(frozenset({key}))
        both = price.input + (price.output or 0)
        return AskedPrices(frozenset(), both, both)
