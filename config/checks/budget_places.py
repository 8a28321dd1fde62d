"""The scopes of a configuration that have budgets. For each: the clients it counts, the names that their requests may
use, and the wider scopes whose budgets apply too."""

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
class BudgetScope:
    """The budgets of one scope: of clients, or of a vendor, model or deployment.

    `who` is how messages name the scope. Clients may request the names that the patterns `names` match, and the team's
    `routes`. `key` is the digest of the key if the scope is a key. `around` are the budgets of wider scopes, which
    count the same requests too.
    """

    path: Path
    budgets: Sequence[AnyBudget]
    who: str
    names: tuple[str, ...] = ("*",)
    routes: Mapping[str, RouteSection] = field(default_factory=dict)
    around: tuple[WrittenBudgets, ...] = ()
    key: str = ""


def budget_scopes(config: GatewayConfig) -> Iterator[BudgetScope]:
    """Yield every scope with budgets."""
    return (each for each in _every_scope(config) if each.budgets)


def _every_scope(config: GatewayConfig) -> Iterator[BudgetScope]:
    of_all: WrittenBudgets = (("budget",), config.budget)
    yield BudgetScope(*of_all, "a client")
    if config.each_user is not None:
        yield BudgetScope(("each_user", "budget"), config.each_user.budget, "a client", around=(of_all,))
    yield from _target_scopes(config)
    for name, team in config.teams.items():
        of_team: WrittenBudgets = (("teams", name, "budget"), team.budget)
        yield BudgetScope(*of_team, "this team", tuple(team.models), team.routes, (of_all,))
        if team.each_user is not None:
            of_user: Path = ("teams", name, "each_user", "budget")
            reached = tuple(team.models), team.routes, (of_team, of_all)
            yield BudgetScope(of_user, team.each_user.budget, "this team", *reached)
        for kind, index, key in team.every_key():
            path: Path = ("teams", name, kind, index, "budget")
            yield BudgetScope(path, key.budget, "this key", *_names_of_key(team, key), (of_team, of_all), key.digest)


def _target_scopes(config: GatewayConfig) -> Iterator[BudgetScope]:
    """Yield the scopes of vendors, models and deployments, with or without budgets."""
    for vendor, section in config.vendors.items():
        yield BudgetScope(("vendors", vendor, "budget"), section.budget, "this vendor")
    for name, model in config.models.items():
        vendor = name.partition("/")[0]
        above = config.vendors.get(vendor)
        around: tuple[WrittenBudgets, ...] = () if above is None else ((("vendors", vendor, "budget"), above.budget),)
        of_model: WrittenBudgets = (("models", name, "budget"), model.budget)
        yield BudgetScope(*of_model, "this model", around=around)
        for each, deployment in model.deployments.items():
            path: Path = ("models", name, "deployments", each, "budget")
            yield BudgetScope(path, deployment.budget, "this deployment", around=(of_model, *around))


def _names_of_key(team: TeamSection, key: TeamKey) -> tuple[tuple[str, ...], Mapping[str, RouteSection]]:
    """Return the names that a key may request, and the team's own routes among them."""
    if key.models is None:
        return tuple(team.models), team.routes
    return tuple(key.models), {name: route for name, route in team.routes.items() if name in key.models}
