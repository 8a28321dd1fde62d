"""Warn of limits and budgets that are valid but probably not intended: without effect, hardly possible to meet, or lost
at every restart."""

from collections.abc import Iterator, Mapping
from typing import Final

from config.allowed_names import covers
from config.checks.budget_places import BudgetScope, budget_scopes
from config.checks.check_between_sections import CheckContext
from config.checks.check_limits import OuterLimits, counted_by_calendar, limit_sections
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
"""A request of ordinary size and its response together use more tokens than this number."""

_ROLLING_PERIODS: Final[Mapping[LimitPeriod, int]] = {"second": 1, "minute": 60}
"""The periods of limits that refill evenly, in seconds. The other periods follow the calendar."""

_LONG_BURST_SECONDS: Final = 3600.0
"""If a burst takes longer than this number of seconds to refill, a calendar limit was probably intended."""


def doubtful_limits(context: CheckContext) -> tuple[Problem, ...]:
    """Return every warning about limits and budgets."""
    return (
        *_doubtful_amounts(context),
        *_doubtful_team_limits(context),
        *_empty_user_sections(context),
        *(problem for place in budget_scopes(context.config) for problem in _doubtful_budgets(context, place)),
        *_lost_at_restart(context),
    )


# Limits -------------------------------------------------------------------------------------------------------------


def _doubtful_amounts(context: CheckContext) -> Iterator[Problem]:
    for path, section, around in limit_sections(context.config):
        for written in section.amounts():
            if written.unit == "tokens" and written.amount < _FEW_TOKENS:
                message = (
                    "is less than many requests use: a larger request is accepted only if nothing else has been used,"
                    " and the next one waits until the tokens beyond the limit are refilled"
                )
                yield context.at_value((*path, written.key), message)
        yield from _above_outer(context, path, section, around)
        flows = any(each.unit == "requests" and each.period in ("second", "minute") for each in section.amounts())
        if section.burst is not None and not flows:
            message = "has no effect without requests_per_second or requests_per_minute"
            yield context.at_value((*path, "burst"), message)
        yield from _overruled(context, path, section)
        yield from _large_burst(context, path, section)


def _above_outer(context: CheckContext, path: Path, section: LimitsSection, around: OuterLimits) -> Iterator[Problem]:
    for name, outer in around:
        for key in sorted(section.model_fields_set & outer.model_fields_set - {"burst", "models"}):
            amount, outer_amount = getattr(section, key), getattr(outer, key)
            if amount is not None and outer_amount is not None and amount > outer_amount:
                message = f"has no effect: it is above {name}, {outer_amount:,}, which applies too"
                yield context.at_value((*path, key), message)


def _overruled(context: CheckContext, path: Path, section: LimitsSection) -> Iterator[Problem]:
    """Warn of limits that are never reached, since a stricter limit of the same section refuses requests first."""
    written = tuple(section.amounts())
    for each in written:
        longer = (other for other in written if other.unit == each.unit and each.amount > other.amount)
        most = each.amount if each.period not in _ROLLING_PERIODS else _largest_burst(path, section, each)
        for other in longer:
            spans = _longer_periods_touched(each.period, other.period)
            if spans and (most if spans > 1 else each.amount) > spans * other.amount:
                message = f"has no effect: it is above {other.key}, {other.amount:,}, which applies too"
                yield context.at_value((*path, each.key), message)
                break


def _longer_periods_touched(period: LimitPeriod, longer: LimitPeriod) -> int:
    """Return into how many of the longer periods one of the shorter periods may fall; 0 if `period` is the longer one.
    Weeks and rolling periods may begin in one longer period and end in the next."""
    if LIMIT_PERIODS.index(period) > LIMIT_PERIODS.index(longer):
        return 0
    crosses = period == "week" or (period in _ROLLING_PERIODS and longer not in _ROLLING_PERIODS)
    return 2 if crosses and period != longer else 1


def _largest_burst(path: Path, section: LimitsSection, rolling: WrittenLimit) -> int:
    """Return how many requests or tokens may be used at once under a rolling limit."""
    if rolling.unit == "requests" and section.burst is not None:
        return section.burst
    is_target = path[0] in ("vendors", "models")
    return rolling.amount // 6 if is_target and rolling.period == "minute" else rolling.amount


def _large_burst(context: CheckContext, path: Path, section: LimitsSection) -> Iterator[Problem]:
    for each in section.amounts():
        if section.burst is None or each.unit != "requests" or each.period not in _ROLLING_PERIODS:
            continue
        seconds = section.burst / each.amount * _ROLLING_PERIODS[each.period]
        if seconds > _LONG_BURST_SECONDS:
            refill = f"{each.key}, {each.amount:,}, allows in {seconds / 60:,.0f} minutes"
            message = f"accepts as many requests at once as {refill}"
            yield context.at_value((*path, "burst"), message)
            return


def _doubtful_team_limits(context: CheckContext) -> Iterator[Problem]:
    for name, team in context.config.teams.items():
        path: Path = ("teams", name)
        for model in team.limits.models:
            if not _may_request(context, team, model) and context.names.knows(model):
                yield context.at_key((*path, "limits", "models", model), "this team may not request this name")
        if team.on_limit != "reject" and not _has_any_limit(context.config, team):
            message = "has no effect: neither this team, its keys, its users nor all clients have limits"
            yield context.at_key((*path, "on_limit"), message)


def _empty_user_sections(context: CheckContext) -> Iterator[Problem]:
    """Warn of an empty section of end users. A team's own section replaces the section of the config file, so an empty
    one there has an effect: it turns limits of users off."""
    of_all = context.config.each_user
    if of_all is not None and _is_empty(of_all):
        yield context.at_key(("each_user",), "has no effect: it has neither limits nor a budget")
    for name, team in context.config.teams.items():
        if team.each_user is not None and of_all is None and _is_empty(team.each_user):
            yield context.at_key(("teams", name, "each_user"), "has no effect: it has neither limits nor a budget")


def _is_empty(section: EachUserSection) -> bool:
    return not section.any and not section.required


def _may_request(context: CheckContext, team: TeamSection, name: str) -> bool:
    model = name.rpartition("/")[0]
    names = (name, model) if context.names.is_deployment(name) else (name,)
    return name in team.routes or any(covers(pattern, each) for pattern in team.models for each in names)


def _has_any_limit(config: GatewayConfig, team: TeamSection) -> bool:
    """Return whether a limit applies to the requests of a team."""
    of_users = config.each_user if team.each_user is None else team.each_user
    return config.limits.any or _is_limited(team) or (of_users is not None and of_users.limits.any)


def _is_limited(team: TeamSection) -> bool:
    sections = (team.limits, *team.limits.models.values(), *(own.limits for _, _, own in team.every_key()))
    return any(section.any for section in sections)


# Budgets ------------------------------------------------------------------------------------------------------------


def _doubtful_budgets(context: CheckContext, place: BudgetScope) -> Iterator[Problem]:
    seen: dict[tuple[object, ...], Path] = {}
    for index, budget in enumerate(place.budgets):
        path: Path = (*place.path, index)
        same = seen.setdefault((budget.usd, budget.tokens, budget.per, budget.at, str(budget.then)), path)
        if same is not path:
            yield context.at_value(path, f"equals the budget at {value_position(context.root, same)}")
        if budget.then == "warn" and budget.at == 1:
            yield context.at_value((*path, "then"), "warns only when the budget is spent: write `at: 80%` too")
        if isinstance(budget, ClientSpendingSection) and budget.usd is None and budget.unpriced == "reject":
            yield context.at_value((*path, "unpriced"), "has no effect on a budget in tokens")
        yield from _never_reached(context, path, place, budget)


def _never_reached(context: CheckContext, path: Path, place: BudgetScope, budget: AnyBudget) -> Iterator[Problem]:
    """Warn of a budget that is never reached, since another budget of the same unit refuses all requests before."""
    unit = "tokens" if budget.usd is None else "usd"
    every = ((place.path, place.budgets), *place.around)
    for at, other in (
        ((*path_of_list, index), each) for path_of_list, budgets in every for index, each in enumerate(budgets)
    ):
        most = getattr(other, unit)
        if other is budget or other.then != "reject" or most is None:
            continue
        spans, refused = _longer_periods_touched(budget.per, other.per), most * other.at
        if spans and getattr(budget, unit) * budget.at > spans * refused:
            amount = f"{refused:,.2f} USD" if unit == "usd" else f"{refused:,.0f} tokens"
            there = value_position(context.root, at)
            message = f"has no effect: from {amount} per {other.per} on, the budget at {there} refuses all requests"
            yield context.at_value((*path, unit), message)
            return


# The ledger ---------------------------------------------------------------------------------------------------------


def _lost_at_restart(context: CheckContext) -> Iterator[Problem]:
    config = context.config
    first = next(counted_by_calendar(config), None)
    if first is None:
        return
    ledger, written = config.server.ledger, "ledger" in config.server.model_fields_set
    if ledger.is_off or (ledger.url is None and not config.teams):
        message = "without a ledger, limits and budgets of the calendar start at zero with every start of the gateway"
        yield context.at_value(("server", "ledger") if written else first[0], message)
    elif config.server.shared is not None and not ledger.is_postgres:
        message = (
            "only one gateway can use a ledger in a file: limits and budgets of the calendar need postgresql:// if"
            " several gateways share Redis"
        )
        yield context.at_value(("server", "ledger" if written else "shared"), message)
