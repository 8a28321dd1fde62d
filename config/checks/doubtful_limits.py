"""Warn of limits and budgets that work but are hardly intended: without effect, without prices, hardly to be met, or
forgotten at every restart."""

from collections.abc import Iterator
from typing import Final

from config.allowed_names import covers
from config.checks.asked_prices import AskedPrices, PriceBook
from config.checks.check_between_sections import CheckContext
from config.checks.check_limits import Around, counted, limit_sections
from config.problem import Path, Problem, shown
from config.reading.yaml_tree import value_position
from config.sections.limits_section import BudgetSection, LimitsSection
from config.sections.team_section import TeamSection

_FEW_TOKENS: Final = 1000
"""A request of ordinary size takes more, with its answer."""

_MOST_LISTED: Final = 4


def doubtful_limits(context: CheckContext) -> tuple[Problem, ...]:
    """Return every warning about limits and budgets."""
    prices = PriceBook(context.config)
    return (
        *_amounts(context),
        *_teams(context),
        *(problem for name, team in context.config.teams.items() for problem in _budgets(context, name, team, prices)),
        *_forgotten(context),
    )


# Limits -------------------------------------------------------------------------------------------------------------


def _amounts(context: CheckContext) -> Iterator[Problem]:
    for path, section, around in limit_sections(context.config):
        for written in section.amounts():
            if written.unit == "tokens" and written.amount < _FEW_TOKENS:
                message = (
                    "is less than many a request takes: one that is larger is let through only where nothing else has"
                    " been used, and what it takes beyond the limit is paid off before the next"
                )
                yield context.at_value((*path, written.key), message)
        yield from _above(context, path, section, around)
        flows = any(each.unit == "requests" and each.period in ("second", "minute") for each in section.amounts())
        if section.burst is not None and not flows:
            message = "has no effect without requests_per_second or requests_per_minute"
            yield context.at_value((*path, "burst"), message)


def _above(context: CheckContext, path: Path, section: LimitsSection, around: Around) -> Iterator[Problem]:
    for words, outer in around:
        for key in sorted(section.model_fields_set & outer.model_fields_set - {"burst", "models"}):
            own, most = getattr(section, key), getattr(outer, key)
            if own is not None and most is not None and own > most:
                message = f"has no effect: it is above the {words}, {most:,}, which holds too"
                yield context.at_value((*path, key), message)


def _teams(context: CheckContext) -> Iterator[Problem]:
    for name, team in context.config.teams.items():
        path: Path = ("teams", name)
        for model in team.limits.models:
            if not _may_ask(context, team, model) and context.names.knows(model):
                yield context.at_key((*path, "limits", "models", model), "this team may not ask for this name")
        if team.on_limit != "reject" and not _is_limited(team):
            yield context.at_key((*path, "on_limit"), "has no effect: neither this team nor its keys have limits")


def _may_ask(context: CheckContext, team: TeamSection, name: str) -> bool:
    model = name.rpartition("/")[0]
    names = (name, model) if context.names.is_deployment(name) else (name,)
    return name in team.routes or any(covers(pattern, each) for pattern in team.models for each in names)


def _is_limited(team: TeamSection) -> bool:
    sections = (team.limits, *team.limits.models.values(), *(own.limits for _, _, own in team.every_key()))
    return any(section.any for section in sections)


# Budgets ------------------------------------------------------------------------------------------------------------


def _budgets(context: CheckContext, name: str, team: TeamSection, prices: PriceBook) -> Iterator[Problem]:
    seen: dict[tuple[object, ...], Path] = {}
    for index, budget in enumerate(team.budget):
        path: Path = ("teams", name, "budget", index)
        same = seen.setdefault((budget.usd, budget.tokens, budget.per, budget.at, str(budget.then)), path)
        if same is not path:
            place = value_position(context.root, same)
            yield context.at_value(path, f"says the same as the budget at {place}")
        if budget.then == "warn" and budget.at == 1:
            yield context.at_value((*path, "then"), "warns when all is spent and not before: write `at: 80%` too")
        if budget.usd is None and budget.unpriced == "reject":
            yield context.at_value((*path, "unpriced"), "has no effect on a budget in tokens")
        if budget.route is not None and budget.usd is not None:
            yield from _route(context, (*path, "then", "route"), prices.of_team(team), _of_route(prices, team, budget))
    yield from _unpriced(context, name, team, prices)


def _of_route(prices: PriceBook, team: TeamSection, budget: BudgetSection) -> AskedPrices:
    return prices.of_name(budget.route or "", team.routes)


def _route(context: CheckContext, path: Path, asked: AskedPrices, route: AskedPrices) -> Iterator[Problem]:
    if route.unpriced:
        message = f"no price is known for {_listed(context, route)}, so that this budget cannot count what it spends"
        yield context.at_value(path, message)
    elif route.highest is not None and asked.highest is not None and route.highest >= asked.highest:
        yield context.at_value(path, "is not cheaper than anything that this team may ask for")


def _unpriced(context: CheckContext, name: str, team: TeamSection, prices: PriceBook) -> Iterator[Problem]:
    """Warn once a team: all its budgets in USD lack the same prices."""
    index = next((index for index, budget in enumerate(team.budget) if budget.usd is not None), None)
    if index is None:
        return
    asked = prices.of_team(team)
    rejects = any(budget.unpriced == "reject" and budget.usd is not None for budget in team.budget)
    if asked.unpriced and not (rejects and asked.highest is None):
        what = "requests for them are refused (unpriced: reject)" if rejects else "what they cost counts as nothing"
        message = f"no price is known for {_listed(context, asked)}: {what}"
        yield context.at_value(("teams", name, "budget", index, "usd"), message)


def _listed(context: CheckContext, prices: AskedPrices) -> str:
    names = [shown(key) for key in context.config.models if key in prices.unpriced]
    more = len(names) - _MOST_LISTED
    return ", ".join(names[:_MOST_LISTED]) + (f" and {more} more" if more > 0 else "")


# The ledger ---------------------------------------------------------------------------------------------------------


def _forgotten(context: CheckContext) -> Iterator[Problem]:
    config = context.config
    first = next(counted(config), None)
    if first is None:
        return
    ledger, written = config.server.ledger, "ledger" in config.server.model_fields_set
    if ledger.is_off or (ledger.url is None and not config.teams):
        message = "without a ledger limits and budgets of the calendar begin anew with every start of the gateway"
        yield context.at_value(("server", "ledger") if written else first[0], message)
    elif config.server.shared is not None and not ledger.is_postgres:
        message = (
            "a ledger in a file is one gateway's alone: limits and budgets of the calendar need postgresql:// where"
            " several share Redis"
        )
        yield context.at_value(("server", "ledger" if written else "shared"), message)
