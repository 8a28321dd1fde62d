"""Check limits and budgets against the other sections: unknown names, and a ledger that deletes rows too early."""

from collections.abc import Iterator
from typing import Final, TypeAlias

from config.checks.budget_places import BudgetScope, budget_scopes
from config.checks.check_between_sections import CheckContext, keys_below
from config.problem import Path, Problem
from config.sections.limits_section import BudgetSection, LimitsSection
from config.table.table_schema import GatewayConfig

_DAY: Final = 86400.0
_NEEDED_DAYS: Final = {"hour": 1, "day": 2, "week": 8, "month": 32}
"""By period: the days for which the ledger must keep its rows so that the period can be summed. They are the days of
the longest such period, and one day more."""


def check_limits(context: CheckContext) -> tuple[Problem, ...]:
    """Return every problem of limits and budgets."""
    return (*_limited_names(context), *_budgets(context), *_short_retention(context))


OuterLimits: TypeAlias = tuple[tuple[str, LimitsSection], ...]
"""Wider sections whose limits apply too, each with its name in messages."""


def limit_sections(config: GatewayConfig) -> Iterator[tuple[Path, LimitsSection, OuterLimits]]:
    """Yield the path and value of every section with limits, and the wider sections whose limits apply too."""
    return (each for each in _every_section(config) if each[1].model_fields_set)


def _every_section(config: GatewayConfig) -> Iterator[tuple[Path, LimitsSection, OuterLimits]]:
    path: Path
    of_all: OuterLimits = (("the limit of all clients", config.limits),)
    yield ("limits",), config.limits, ()
    if config.each_user is not None:
        yield ("each_user", "limits"), config.each_user.limits, of_all
    for name, vendor in config.vendors.items():
        yield ("vendors", name, "limits"), vendor.limits, ()
    for key, model in config.models.items():
        above, path = config.vendors.get(key.partition("/")[0]), ("models", key)
        around: OuterLimits = () if above is None else (("the vendor's", above.limits),)
        yield (*path, "limits"), model.limits, around
        for name, deployment in model.deployments.items():
            yield (*path, "deployments", name, "limits"), deployment.limits, (("the model's", model.limits), *around)
    for name, team in config.teams.items():
        path = ("teams", name)
        yield (*path, "limits"), team.limits, of_all
        of_team: OuterLimits = (("the team's", team.limits), *of_all)
        if team.each_user is not None:
            yield (*path, "each_user", "limits"), team.each_user.limits, of_team
        yield from (((*path, "limits", "models", each), made, of_team) for each, made in team.limits.models.items())
        yield from (((*path, kind, index, "limits"), own.limits, of_team) for kind, index, own in team.every_key())


def _limited_names(context: CheckContext) -> Iterator[Problem]:
    for team_name, team in context.config.teams.items():
        own = keys_below(context.root, ("teams", team_name, "routes"))
        for name in team.limits.models:
            path: Path = ("teams", team_name, "limits", "models", name)
            if name not in own and not context.names.knows(name):
                known = [*own, *context.names.all()]
                yield context.at_key(path, context.no_such("model or route", name, (), known))
            elif name not in own and (counted_name := context.names.counted_as(name)) != name:
                instead = f"add '{name}' to models" if counted_name.endswith("/*") else "set the limit there"
                message = f"has no effect: requests for this name are counted as '{counted_name}'; {instead}"
                yield context.at_key(path, message)


def _budgets(context: CheckContext) -> Iterator[Problem]:
    for place in budget_scopes(context.config):
        for index, budget in enumerate(place.budgets):
            if isinstance(budget, BudgetSection) and budget.route is not None:
                yield from _budget_route(context, place, (*place.path, index, "then", "route"), budget.route)


def _budget_route(context: CheckContext, place: BudgetScope, path: Path, name: str) -> Iterator[Problem]:
    own = keys_below(context.root, (*path[:2], "routes")) if path[0] == "teams" else frozenset()
    if name not in own and not context.names.knows(name):
        yield context.at_value(path, context.no_such("model or route", name, path, [*own, *context.names.all()]))
    elif {*place.routes, *place.names} == {name}:
        yield context.at_value(path, f"leads to itself: {place.who} may request no other name")


def _short_retention(context: CheckContext) -> Iterator[Problem]:
    periods = counted_periods(context.config)
    days, period = max(((days, period) for period, days in _NEEDED_DAYS.items() if period in periods), default=(0, ""))
    if context.config.server.ledger.keep < days * _DAY:
        message = f"must be at least {days}d: a limit or a budget per {period} is summed from the ledger"
        yield context.at_value(("server", "ledger", "keep"), message)


def counted_by_calendar(config: GatewayConfig) -> Iterator[tuple[Path, str]]:
    """Yield the path and the period of every limit and budget that is counted by the calendar."""
    for path, section, _ in limit_sections(config):
        yield from (((*path, each.key), each.period) for each in section.amounts() if each.period in _NEEDED_DAYS)
    for place in budget_scopes(config):
        yield from (((*place.path, index), each.per) for index, each in enumerate(place.budgets))


def counted_periods(config: GatewayConfig) -> frozenset[str]:
    """Return the periods of the calendar by which a limit or a budget is counted."""
    return frozenset(period for _, period in counted_by_calendar(config))
