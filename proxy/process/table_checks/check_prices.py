"""Check budgets in USD against the prices of the deployments that their teams may ask for, written or listed."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from typing import Final

from config.allowed_names import covers
from config.load_config import Loaded
from config.problem import Path, Problem, shown
from config.sections.limits_section import BudgetSection
from config.sections.team_section import TeamSection
from providers.target import Target
from proxy.routing.resolve_model import reached
from proxy.routing.snapshot import WILDCARD, Snapshot, Team

_MOST_LISTED: Final = 4


@dataclass(frozen=True, slots=True)
class ModelPrices:
    """The prices behind some names: the models without one, whether others have one, and the highest and the lowest of
    these, a million tokens of prompt and completion together, in USD. `None` if they depend on the name asked for."""

    unpriced: frozenset[str] = frozenset()
    priced: bool = False
    highest: float | None = None
    lowest: float | None = None

    def __or__(self, other: "ModelPrices") -> "ModelPrices":
        high = [each for each in (self.highest, other.highest) if each is not None]
        low = [each for each in (self.lowest, other.lowest) if each is not None]
        priced = self.priced or other.priced
        return ModelPrices(self.unpriced | other.unpriced, priced, max(high, default=None), min(low, default=None))


def _together(every: Iterable[ModelPrices]) -> ModelPrices:
    return reduce(ModelPrices.__or__, every, ModelPrices())


def _of_target(target: Target) -> ModelPrices:
    price = target.price
    if price is None:
        if target.list_price is not None and target.model == WILDCARD:
            return ModelPrices(priced=True)
        by_client = target.table_key.endswith(f"/{WILDCARD}")
        name = f"{target.vendor}/{target.model}" if by_client else target.table_key
        return ModelPrices(frozenset({name}))
    both = price.input + (price.output or 0)
    return ModelPrices(frozenset(), True, both, both)


@dataclass(slots=True, eq=False)
class PriceBook:
    """Looks up the prices behind names; what is found is cached, since many teams may ask for the same."""

    snapshot: Snapshot
    _found: dict[str, ModelPrices] = field(default_factory=dict)
    _lists: dict[tuple[str, ...], ModelPrices] = field(default_factory=dict)

    def of_team(self, team: Team) -> ModelPrices:
        """Return the prices behind all that a team may ask for."""
        if team.allow not in self._lists:
            self._lists[team.allow] = _together(self._of_pattern(team, pattern) for pattern in team.allow)
        return self._lists[team.allow] | _together(self.of_name(team, name) for name in team.routes)

    def of_name(self, team: Team, name: str) -> ModelPrices:
        """Return the prices behind a name as a team asks for it."""
        if team.inner_routes:
            return self._of_name(team, name)
        if name not in self._found:
            self._found[name] = self._of_name(team, name)
        return self._found[name]

    def _of_name(self, team: Team, name: str) -> ModelPrices:
        return _together(_of_target(target) for target in reached(self.snapshot, team, name))

    def _of_pattern(self, team: Team, pattern: str) -> ModelPrices:
        if pattern != WILDCARD and not pattern.endswith(f"/{WILDCARD}"):
            return self.of_name(team, pattern)
        snapshot = self.snapshot
        models = (*snapshot.models.values(), *snapshot.wildcards.values())
        targets = (target for model in models if covers(pattern, model.name) for target in model.targets)
        routes = (self.of_name(team, name) for name in snapshot.routes if covers(pattern, name))
        return _together([*map(_of_target, targets), *routes])


def budgets_that_refuse_everything(loaded: Loaded, snapshot: Snapshot) -> Iterator[Problem]:
    """Yield the problem of each budget that refuses requests without a price, of a team without any price."""
    prices = PriceBook(snapshot)
    for name, section in loaded.config.teams.items():
        for index, budget in enumerate(section.budget):
            if budget.usd is None or budget.unpriced == "ignore":
                continue
            found = prices.of_team(snapshot.teams[name])
            if found.unpriced and not found.priced:
                path: Path = ("teams", name, "budget", index, "unpriced")
                message = "refuses everything: none of the models that this team may ask for has a price"
                yield Problem.at(loaded.locate(path), path, message)


def missing_prices(loaded: Loaded, snapshot: Snapshot) -> Iterator[Problem]:
    """Yield a warning for each team whose budgets in USD lack prices, and for budgets whose route is no cheaper."""
    prices = PriceBook(snapshot)
    for name, section in loaded.config.teams.items():
        if any(budget.usd is not None for budget in section.budget):
            yield from _of_budgets(loaded, snapshot.teams[name], section, prices)


def _of_budgets(loaded: Loaded, team: Team, section: TeamSection, prices: PriceBook) -> Iterator[Problem]:
    found = prices.of_team(team)
    for index, budget in enumerate(section.budget):
        if budget.usd is not None and budget.route is not None:
            path: Path = ("teams", team.name, "budget", index, "then", "route")
            message = _of_route(loaded, found, prices.of_name(team, budget.route))
            if message:
                yield Problem.at(loaded.locate(path), path, message)
    if message := _unpriced(loaded, section.budget, found):
        # Once a team: all its budgets in USD lack the same prices.
        index = next(index for index, budget in enumerate(section.budget) if budget.usd is not None)
        path = ("teams", team.name, "budget", index, "usd")
        yield Problem.at(loaded.locate(path), path, message)


def _of_route(loaded: Loaded, team: ModelPrices, route: ModelPrices) -> str:
    if route.unpriced:
        return f"no price is known for {_listed(loaded, route)}, so that this budget cannot count what it spends"
    if route.highest is not None and team.highest is not None and route.highest >= team.highest:
        return "is not cheaper than anything that this team may ask for"
    return ""


def _unpriced(loaded: Loaded, budgets: Iterable[BudgetSection], found: ModelPrices) -> str:
    rejects = any(budget.unpriced == "reject" and budget.usd is not None for budget in budgets)
    if not found.unpriced or (rejects and not found.priced):
        return ""
    what = "requests for them are refused (unpriced: reject)" if rejects else "what they cost counts as nothing"
    return f"no price is known for {_listed(loaded, found)}: {what}; write `price`, or `base_model` for its list price"


def _listed(loaded: Loaded, prices: ModelPrices) -> str:
    order = {name: place for place, name in enumerate(loaded.config.models)}
    names = [shown(name) for name in sorted(prices.unpriced, key=lambda name: (order.get(name, len(order)), name))]
    more = len(names) - _MOST_LISTED
    return ", ".join(names[:_MOST_LISTED]) + (f" and {more} more" if more > 0 else "")
