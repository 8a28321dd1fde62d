"""Warn of limits and budgets that work but are hardly intended: without effect, hardly to be met, or forgotten at
every restart."""

from collections.abc import Iterator, Mapping
from typing import Final

from config.allowed_names import covers
from config.checks.budget_places import BudgetPlace, budget_places
from config.checks.check_between_sections import CheckContext
from config.checks.check_limits import Around, counted, limit_sections
from config.problem import Path, Problem
from config.reading.yaml_tree import value_position
from config.sections.limits_section import (
    LIMIT_PERIODS,
    AnyBudget,
    ClientSpendingSection,
    EachUserSection,
    LimitPeriod,
    LimitsSection,
    WrittenLimit,
)
from config.sections.team_section import TeamSection
from config.table.table_schema import GatewayConfig

_FEW_TOKENS: Final = 1000
"""A request of ordinary size takes more, with its answer."""

_FLOWING: Final[Mapping[LimitPeriod, int]] = {"second": 1, "minute": 60}
"""The periods of limits that flow, in seconds. The others are the calendar's."""

_LONG_BURST: Final = 3600.0
"""Seconds. Whoever lets more come at once than flows in such a time has the limits of the calendar for it."""


def doubtful_limits(context: CheckContext) -> tuple[Problem, ...]:
    """Return every warning about limits and budgets."""
    return (
        *_amounts(context),
        *_teams(context),
        *_each_user(context),
        *(problem for place in budget_places(context.config) for problem in _budgets(context, place)),
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
        yield from _overruled(context, path, section)
        yield from _large_burst(context, path, section)


def _above(context: CheckContext, path: Path, section: LimitsSection, around: Around) -> Iterator[Problem]:
    for words, outer in around:
        for key in sorted(section.model_fields_set & outer.model_fields_set - {"burst", "models"}):
            own, most = getattr(section, key), getattr(outer, key)
            if own is not None and most is not None and own > most:
                message = f"has no effect: it is above {words}, {most:,}, which holds too"
                yield context.at_value((*path, key), message)


def _overruled(context: CheckContext, path: Path, section: LimitsSection) -> Iterator[Problem]:
    """Warn of limits that another one of the same section never lets a request come to."""
    written = tuple(section.amounts())
    for each in written:
        longer = (other for other in written if other.unit == each.unit and each.amount > other.amount)
        most = each.amount if each.period not in _FLOWING else _at_once(path, section, each)
        for other in longer:
            spans = _spans(each.period, other.period)
            if spans and (most if spans > 1 else each.amount) > spans * other.amount:
                message = f"has no effect: it is above {other.key}, {other.amount:,}, which holds too"
                yield context.at_value((*path, each.key), message)
                break


def _spans(period: LimitPeriod, longer: LimitPeriod) -> int:
    """Return how many of the longer periods one of the others may fall into; 0 where it is no shorter or equal one.
    Weeks and what flows begin in one and end in the next."""
    if LIMIT_PERIODS.index(period) > LIMIT_PERIODS.index(longer):
        return 0
    crosses = period == "week" or (period in _FLOWING and longer not in _FLOWING)
    return 2 if crosses and period != longer else 1


def _at_once(path: Path, section: LimitsSection, flowing: WrittenLimit) -> int:
    """Return what may come at once under a limit that flows."""
    if flowing.unit == "requests" and section.burst is not None:
        return section.burst
    is_target = path[0] in ("vendors", "models")
    return flowing.amount // 6 if is_target and flowing.period == "minute" else flowing.amount


def _large_burst(context: CheckContext, path: Path, section: LimitsSection) -> Iterator[Problem]:
    for each in section.amounts():
        if section.burst is None or each.unit != "requests" or each.period not in _FLOWING:
            continue
        seconds = section.burst / each.amount * _FLOWING[each.period]
        if seconds > _LONG_BURST:
            brings = f"{each.key}, {each.amount:,}, brings in {seconds / 60:,.0f} minutes"
            message = f"lets as many requests come at once as {brings}"
            yield context.at_value((*path, "burst"), message)
            return


def _teams(context: CheckContext) -> Iterator[Problem]:
    for name, team in context.config.teams.items():
        path: Path = ("teams", name)
        for model in team.limits.models:
            if not _may_ask(context, team, model) and context.names.knows(model):
                yield context.at_key((*path, "limits", "models", model), "this team may not ask for this name")
        if team.on_limit != "reject" and not _waits_for_any(context.config, team):
            message = "has no effect: neither this team, its keys, its users nor all clients have limits"
            yield context.at_key((*path, "on_limit"), message)


def _each_user(context: CheckContext) -> Iterator[Problem]:
    """Warn of an empty section of end users. A team's own section replaces the section of the config file, so that an
    empty one there turns limits of users off."""
    of_all = context.config.each_user
    if of_all is not None and _is_empty(of_all):
        yield context.at_key(("each_user",), "has no effect: it has neither limits nor a budget")
    for name, team in context.config.teams.items():
        if team.each_user is not None and of_all is None and _is_empty(team.each_user):
            yield context.at_key(("teams", name, "each_user"), "has no effect: it has neither limits nor a budget")


def _is_empty(section: EachUserSection) -> bool:
    return not section.any and not section.required


def _may_ask(context: CheckContext, team: TeamSection, name: str) -> bool:
    model = name.rpartition("/")[0]
    names = (name, model) if context.names.is_deployment(name) else (name,)
    return name in team.routes or any(covers(pattern, each) for pattern in team.models for each in names)


def _waits_for_any(config: GatewayConfig, team: TeamSection) -> bool:
    """Return whether a limit holds for the requests of a team."""
    of_users = config.each_user if team.each_user is None else team.each_user
    return config.limits.any or _is_limited(team) or (of_users is not None and of_users.limits.any)


def _is_limited(team: TeamSection) -> bool:
    sections = (team.limits, *team.limits.models.values(), *(own.limits for _, _, own in team.every_key()))
    return any(section.any for section in sections)


# Budgets ------------------------------------------------------------------------------------------------------------


def _budgets(context: CheckContext, place: BudgetPlace) -> Iterator[Problem]:
    seen: dict[tuple[object, ...], Path] = {}
    for index, budget in enumerate(place.budgets):
        path: Path = (*place.path, index)
        same = seen.setdefault((budget.usd, budget.tokens, budget.per, budget.at, str(budget.then)), path)
        if same is not path:
            yield context.at_value(path, f"says the same as the budget at {value_position(context.root, same)}")
        if budget.then == "warn" and budget.at == 1:
            yield context.at_value((*path, "then"), "warns when all is spent and not before: write `at: 80%` too")
        if isinstance(budget, ClientSpendingSection) and budget.usd is None and budget.unpriced == "reject":
            yield context.at_value((*path, "unpriced"), "has no effect on a budget in tokens")
        yield from _never_reached(context, path, place, budget)


def _never_reached(context: CheckContext, path: Path, place: BudgetPlace, budget: AnyBudget) -> Iterator[Problem]:
    """Warn of a budget before whose share is spent another one of the same unit refuses everything."""
    unit = "tokens" if budget.usd is None else "usd"
    every = ((place.path, place.budgets), *place.around)
    for at, other in (((*where, index), each) for where, budgets in every for index, each in enumerate(budgets)):
        most = getattr(other, unit)
        if other is budget or other.then != "reject" or most is None:
            continue
        spans, refused = _spans(budget.per, other.per), most * other.at
        if spans and getattr(budget, unit) * budget.at > spans * refused:
            amount = f"{refused:,.2f} USD" if unit == "usd" else f"{refused:,.0f} tokens"
            there = value_position(context.root, at)
            message = f"has no effect: from {amount} per {other.per} on everything is refused, by the budget at {there}"
            yield context.at_value((*path, unit), message)
            return


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
