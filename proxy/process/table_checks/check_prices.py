"""Checks budgets in USD against the prices, configured or listed, of the deployments whose costs count in the
budgets."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from typing import Final

from config.allowed_names import covers
from config.checks.budget_places import BudgetScope, budget_scopes
from config.load_config import Loaded
from config.problem import Path, Problem, shown
from config.sections.limits_section import BudgetSection, ClientSpendingSection, SpendingSection
from providers.target import Target
from proxy.routing.resolve_model import reached
from proxy.routing.snapshot import ANYONE, WILDCARD, Snapshot, Team

_MOST_LISTED: Final = 4


@dataclass(frozen=True, slots=True)
class ModelPrices:
    """The prices behind some names: the models without a price, whether other models have a price, and the highest and
    the lowest of these prices. A price is for a million tokens of prompt and completion together, in USD; `None` if it
    depends on the requested name."""

    unpriced: frozenset[str] = frozenset()
    priced: bool = False
    highest: float | None = None
    lowest: float | None = None

    def __or__(self, other: "ModelPrices") -> "ModelPrices":
        high = [each for each in (self.highest, other.highest) if each is not None]
        low = [each for each in (self.lowest, other.lowest) if each is not None]
        priced = self.priced or other.priced
        return ModelPrices(self.unpriced | other.unpriced, priced, max(high, default=None), min(low, default=None))


def _combined(every: Iterable[ModelPrices]) -> ModelPrices:
    return reduce(ModelPrices.__or__, every, ModelPrices())


def _of_target(target: Target) -> ModelPrices:
    price = target.price
    if price is None:
        if target.list_price is not None and target.model == WILDCARD:
            return ModelPrices(priced=True)
        by_client = target.model_key.endswith(f"/{WILDCARD}")
        name = f"{target.vendor}/{target.model}" if by_client else target.model_key
        return ModelPrices(frozenset({name}))
    both = price.input + (price.output or 0)
    return ModelPrices(frozenset(), True, both, both)


@dataclass(slots=True, eq=False)
class PriceIndex:
    """Looks up the prices behind names. Results are cached, because many teams may use the same names."""

    snapshot: Snapshot
    _found: dict[tuple[str, str], ModelPrices] = field(default_factory=dict)
    _models: dict[str, ModelPrices] = field(default_factory=dict)
    _lists: dict[tuple[str, tuple[str, ...]], ModelPrices] = field(default_factory=dict)

    def of_scope(self, scope: BudgetScope) -> ModelPrices:
        """Return the prices of everything that counts in the budgets of a scope."""
        team = self.team_of(scope)
        return (
            _combined(map(_of_target, _targets_at(self.snapshot, scope.path))) if team is None else self.of_team(team)
        )

    def team_of(self, scope: BudgetScope) -> Team | None:
        """Return the team, or the part of it that a key may use, whose requests count in a scope; `None` for a scope of
        targets."""
        if scope.path[0] in ("budget", "each_user"):
            return ANYONE
        if scope.path[0] != "teams":
            return None
        if scope.key:
            return self.snapshot.keys[scope.key.removeprefix("sha256:")].team
        return self.snapshot.teams[str(scope.path[1])]

    def of_team(self, team: Team) -> ModelPrices:
        """Return the prices of everything that a team may request."""
        cache_key = (_own(team), team.allow)
        if cache_key not in self._lists:
            self._lists[cache_key] = _combined(self._of_pattern(team, pattern) for pattern in team.allow)
        return self._lists[cache_key] | _combined(self.of_name(team, name) for name in team.routes)

    def of_name(self, team: Team, name: str) -> ModelPrices:
        """Return the prices behind a name that a team requests."""
        cache_key = (_own(team), name)
        if cache_key not in self._found:
            self._found[cache_key] = _combined(map(_of_target, reached(self.snapshot, team, name)))
        return self._found[cache_key]

    def _of_pattern(self, team: Team, pattern: str) -> ModelPrices:
        if pattern != WILDCARD and not pattern.endswith(f"/{WILDCARD}"):
            return self.of_name(team, pattern)
        routes = (self.of_name(team, name) for name in self.snapshot.routes if covers(pattern, name))
        return _combined([self._of_models(pattern), *routes])

    def _of_models(self, pattern: str) -> ModelPrices:
        if pattern not in self._models:
            every = (*self.snapshot.models.values(), *self.snapshot.wildcards.values())
            targets = (target for model in every if covers(pattern, model.name) for target in model.targets)
            self._models[pattern] = _combined(map(_of_target, targets))
        return self._models[pattern]


def _own(team: Team) -> str:
    """Return the team whose own routes may change the meaning of names; empty if it has no such routes."""
    return team.name if team.inner_routes else ""


def _targets_at(snapshot: Snapshot, path: Path) -> Iterator[Target]:
    """Yield the deployments that count in the budgets of a vendor, a model or a deployment."""
    match path:
        case ("vendors", vendor, _):
            return (target for target in snapshot.targets() if target.vendor == vendor)
        case ("models", model, "deployments", deployment, _):
            return (target for target in snapshot.targets() if target.label == f"{model}/{deployment}")
        case _:
            return (target for target in snapshot.targets() if target.model_key == path[1])


def budgets_that_refuse_everything(loaded: Loaded, snapshot: Snapshot) -> Iterator[Problem]:
    """Yield a problem for each budget that refuses every request: it refuses requests without a price, and none of its
    models has a price."""
    prices = PriceIndex(snapshot)
    for scope in budget_scopes(loaded.config):
        for index, budget in enumerate(scope.budgets):
            if not _rejects_unpriced(budget):
                continue
            found = prices.of_scope(scope)
            if found.unpriced and not found.priced:
                path: Path = (*scope.path, index, "unpriced")
                message = f"refuses everything: none of the models that {scope.who} may request has a price"
                yield loaded.problem(path, message)


def missing_prices(loaded: Loaded, snapshot: Snapshot) -> Iterator[Problem]:
    """Yield a warning for each scope whose budgets in USD lack prices, and for budgets whose route is not cheaper."""
    prices = PriceIndex(snapshot)
    for scope in budget_scopes(loaded.config):
        if any(budget.usd is not None for budget in scope.budgets):
            yield from _of_budgets(loaded, scope, prices)


def _of_budgets(loaded: Loaded, scope: BudgetScope, prices: PriceIndex) -> Iterator[Problem]:
    found, team = prices.of_scope(scope), prices.team_of(scope)
    for index, budget in enumerate(scope.budgets):
        if team is None or budget.usd is None or not isinstance(budget, BudgetSection) or budget.route is None:
            continue
        path: Path = (*scope.path, index, "then", "route")
        if message := _of_route(loaded, scope.who, found, prices.of_name(team, budget.route)):
            yield loaded.problem(path, message)
    if message := _unpriced(loaded, scope, found):
        # Once for a scope, because all its budgets in USD lack the same prices.
        index = next(index for index, budget in enumerate(scope.budgets) if budget.usd is not None)
        path = (*scope.path, index, "usd")
        yield loaded.problem(path, message)


def _of_route(loaded: Loaded, who: str, found: ModelPrices, route: ModelPrices) -> str:
    if route.unpriced:
        return f"no price is known for {_listed(loaded, route)}, so that this budget cannot count what it spends"
    if route.highest is not None and found.highest is not None and route.highest >= found.highest:
        return f"is not cheaper than anything that {who} may request"
    return ""


def _rejects_unpriced(budget: SpendingSection) -> bool:
    return isinstance(budget, ClientSpendingSection) and budget.usd is not None and budget.unpriced == "reject"


def _unpriced(loaded: Loaded, scope: BudgetScope, found: ModelPrices) -> str:
    rejects = any(map(_rejects_unpriced, scope.budgets))
    if not found.unpriced or (rejects and not found.priced):
        return ""
    what = "requests for them are refused (unpriced: reject)" if rejects else "their cost counts as zero"
    known = "write `price`, or `price: auto` and `base_model` for a list price"
    return f"no price is known for {_listed(loaded, found)}: {what}; {known}"


def _listed(loaded: Loaded, prices: ModelPrices) -> str:
    order = {name: scope for scope, name in enumerate(loaded.config.models)}
    names = [shown(name) for name in sorted(prices.unpriced, key=lambda name: (order.get(name, len(order)), name))]
    more = len(names) - _MOST_LISTED
    return ", ".join(names[:_MOST_LISTED]) + (f" and {more} more" if more > 0 else "")
