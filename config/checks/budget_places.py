"""The places of a table with budgets: whose they are, which names their requests may ask for, and which budgets hold
too."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from config.problem import Path
from config.sections.limits_section import AnyBudget
from config.sections.route_section import RouteSection
from config.sections.team_section import TeamKey, TeamSection
from config.table.table_schema import GatewayConfig

WrittenBudgets: TypeAlias = tuple[Path, Sequence[AnyBudget]]
"""The path of a list of budgets, and the budgets."""


@dataclass(frozen=True, slots=True)
class BudgetPlace:
    """The budgets of one scope. They count the requests of `who`, or those that reach it. Clients may name the models
    that the patterns `names` allow; `routes` are the team's own. `key` is the digest of the key, if the scope is a
    key's. `around` are budgets of wider scopes, which the same requests count in."""

    path: Path
    budgets: Sequence[AnyBudget]
    who: str
    names: tuple[str, ...] = ("*",)
    routes: Mapping[str, RouteSection] = field(default_factory=dict)
    around: tuple[WrittenBudgets, ...] = ()
    key: str = ""


def budget_places(config: GatewayConfig) -> Iterator[BudgetPlace]:
    """Yield every scope with budgets."""
    return (each for each in _every_place(config) if each.budgets)


def _every_place(config: GatewayConfig) -> Iterator[BudgetPlace]:
    of_all: WrittenBudgets = (("budget",), config.budget)
    yield BudgetPlace(*of_all, "a client")
    if config.each_user is not None:
        yield BudgetPlace(("each_user", "budget"), config.each_user.budget, "a client", around=(of_all,))
    yield from _of_targets(config)
    for name, team in config.teams.items():
        of_team: WrittenBudgets = (("teams", name, "budget"), team.budget)
        yield BudgetPlace(*of_team, "this team", tuple(team.models), team.routes, (of_all,))
        if team.each_user is not None:
            of_user: Path = ("teams", name, "each_user", "budget")
            reached = tuple(team.models), team.routes, (of_team, of_all)
            yield BudgetPlace(of_user, team.each_user.budget, "this team", *reached)
        for kind, index, key in team.every_key():
            path: Path = ("teams", name, kind, index, "budget")
            yield BudgetPlace(path, key.budget, "this key", *_of_key(team, key), (of_team, of_all), key.digest)


def _of_targets(config: GatewayConfig) -> Iterator[BudgetPlace]:
    """Yield the budgets of vendors, models and deployments."""
    for vendor, section in config.vendors.items():
        yield BudgetPlace(("vendors", vendor, "budget"), section.budget, "this vendor")
    for name, model in config.models.items():
        vendor = name.partition("/")[0]
        above = config.vendors.get(vendor)
        around: tuple[WrittenBudgets, ...] = () if above is None else ((("vendors", vendor, "budget"), above.budget),)
        of_model: WrittenBudgets = (("models", name, "budget"), model.budget)
        yield BudgetPlace(*of_model, "this model", around=around)
        for each, deployment in model.deployments.items():
            path: Path = ("models", name, "deployments", each, "budget")
            yield BudgetPlace(path, deployment.budget, "this deployment", around=(of_model, *around))


def _of_key(team: TeamSection, key: TeamKey) -> tuple[tuple[str, ...], Mapping[str, RouteSection]]:
    """Return the names that a key may ask for, and the own routes among them."""
    if key.models is None:
        return tuple(team.models), team.routes
    return tuple(key.models), {name: route for name, route in team.routes.items() if name in key.models}
