"""Compiles the limits and budgets of a configuration to the types of `proxy.limits`.

Equal limits become one object, because a configuration may have thousands of teams with the same limits.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, TypeAlias

from config.sections.limits_section import (
    AnyBudget,
    BudgetSection,
    ClientSpendingSection,
    EachUserSection,
    LimitsSection,
    OnLimitQueue,
    TargetBudgetSection,
    WrittenLimit,
)
from config.sections.team_section import TeamKey, TeamSection
from config.table.table_schema import GatewayConfig
from proxy.limits.limit import (
    NANO,
    SECONDS,
    UNLIMITED,
    EachUser,
    Limits,
    Period,
    Quota,
    Rate,
    ScopeBudget,
    TeamLimits,
    Unit,
)
from proxy.request_record import NO_TEAM

NO_LIMITS: Final = TeamLimits(models=MappingProxyType({}))
"""The limits of a team without limits."""

_UPSTREAM_BURST: Final = 10.0
"""The number of seconds whose part of a limit may be used in one burst. Vendors count within parts of a minute: Azure
OpenAI evaluates a limit per minute over 1 to 10 s (learn.microsoft.com, quota management, November 2026)."""

_Burst: TypeAlias = Callable[[WrittenLimit, float], int]
"""A function that returns the burst of a limit, whose period lasts the given number of seconds, if the configuration
sets no burst."""


def _whole_limit(written: WrittenLimit, _seconds: float) -> int:
    return written.amount


def _part_of_limit(written: WrittenLimit, seconds: float) -> int:
    return max(1, int(written.amount * min(1.0, _UPSTREAM_BURST / seconds)))


def _limits(section: LimitsSection, burst: _Burst) -> Limits:
    rates, quotas = [], []
    for written in section.amounts():
        unit, period = Unit(written.unit), Period(written.period)
        seconds = SECONDS.get(period)
        if seconds is None:
            quotas.append(Quota(unit, written.amount, period))
        elif unit is Unit.REQUESTS and section.burst is not None:
            rates.append(Rate(unit, written.amount, period, section.burst))
        else:
            rates.append(Rate(unit, written.amount, period, burst(written, seconds)))
    return Limits(tuple(rates), tuple(quotas), section.concurrent)


def _budget(section: AnyBudget) -> ScopeBudget:
    then = section.then if isinstance(section.then, str) else "route"
    route = section.route if isinstance(section, BudgetSection) else None
    unpriced = section.unpriced if isinstance(section, ClientSpendingSection) else "ignore"
    spent = (section.at, then, route, unpriced)
    if section.usd is not None:
        return ScopeBudget(Unit.USD, round(section.usd * NANO), Period(section.per), *spent)
    return ScopeBudget(Unit.TOKENS, section.tokens or 0, Period(section.per), *spent)


@dataclass(slots=True, eq=False)
class LimitCompiler:
    """A compiler of the limits of one configuration. `scopes` and `budgets` collect the limits and budgets that exist,
    by the text of their scope."""

    scopes: dict[str, Limits] = field(default_factory=dict)
    budgets: dict[str, tuple[ScopeBudget, ...]] = field(default_factory=dict)
    _equal: dict[Limits, Limits] = field(default_factory=dict)
    _equal_budgets: dict[tuple[ScopeBudget, ...], tuple[ScopeBudget, ...]] = field(default_factory=dict)
    _of_teams: dict[tuple[Limits, float], TeamLimits] = field(default_factory=dict)

    def team(self, name: str, team: TeamSection) -> TeamLimits:
        """Return the limits of a team."""
        own = self.client(f"team {name}", team.limits, team.budget)
        models = {each: self.client(f"team {name} model {each}", made) for each, made in team.limits.models.items()}
        patience = team.on_limit.queue if isinstance(team.on_limit, OnLimitQueue) else 0.0
        if models:
            return TeamLimits(own, MappingProxyType(models), patience)
        if not (own or patience):
            return NO_LIMITS
        return self._of_teams.setdefault((own, patience), TeamLimits(own, NO_LIMITS.models, patience))

    def key(self, team: str, own: TeamKey) -> Limits:
        """Return the limits of a key of a team."""
        return self.client(f"key {team}/{own.label}", own.limits, own.budget)

    def client(self, scope: str, section: LimitsSection, budgets: Sequence[BudgetSection] = ()) -> Limits:
        """Return the limits of a client's scope. A client may use the whole limit in one burst."""
        self._add_budgets(scope, budgets)
        return self._add_limits(scope, _limits(section, _whole_limit))

    def upstream(self, scope: str, section: LimitsSection, budgets: Sequence[TargetBudgetSection] = ()) -> Limits:
        """Return the limits of a vendor, a model or a deployment. Their requests are spread over the minute."""
        self._add_budgets(scope, budgets)
        return self._add_limits(scope, _limits(section, _part_of_limit))

    def _add_budgets(self, scope: str, sections: Sequence[AnyBudget]) -> None:
        if sections:
            made = tuple(_budget(each) for each in sections)
            self.budgets[scope] = self._equal_budgets.setdefault(made, made)

    def _add_limits(self, scope: str, limits: Limits) -> Limits:
        if not limits:
            return UNLIMITED
        shared = self._equal.setdefault(limits, limits)
        self.scopes[scope] = shared
        return shared


def compile_each_user(config: GatewayConfig) -> dict[str, EachUser]:
    """Return the limits of each end user by team. In a configuration without teams they belong to the team of every
    request."""
    of_all = config.each_user
    sections = {name: team.each_user or of_all for name, team in config.teams.items()} or {NO_TEAM: of_all}
    found = {name: _each_user(section) for name, section in sections.items() if section is not None}
    return {name: each for name, each in found.items() if each.limits or each.budgets or each.required}


def _each_user(section: EachUserSection) -> EachUser:
    budgets = tuple(_budget(each) for each in section.budget)
    return EachUser(_limits(section.limits, _whole_limit), budgets, section.required)


ScopeLimits: TypeAlias = tuple[tuple[str, Limits], ...]
"""Scopes and their limits: the scope of the vendor comes first, and the scope of the deployment last."""

TargetLimits: TypeAlias = Mapping[str, ScopeLimits]
"""The scopes that limit requests to a target, by the label of the target."""
