"""The words of limits and budgets, as a table compiles to them, and as the log, errors, status and dry runs tell them.

A *scope* is who or what is limited, as text: `team search`, `key search/ci`, `team search model fast`,
`vendor azure-eu`, `model azure-eu/gpt-4o`, `deployment azure-eu/gpt-4o/sweden`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Literal


class Unit(StrEnum):
    """What is counted. USD are counted in billionths."""

    REQUESTS = "requests"
    TOKENS = "tokens"
    USD = "usd"


INDEX: Final[Mapping[Unit, int]] = {Unit.REQUESTS: 0, Unit.TOKENS: 1, Unit.USD: 2}
"""Where the amount of a unit stands among those that a request takes. Headers speak of the first two."""


class Period(StrEnum):
    """The period of a limit. Seconds and minutes are rates, which flow; longer ones are quotas, by the calendar."""

    SECOND = "second"
    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"


SECONDS: Final[Mapping[Period, float]] = {Period.SECOND: 1.0, Period.MINUTE: 60.0}
"""The length of the periods that flow."""

NANO: Final = 1_000_000_000
"""Billionths of a USD in one: sums of integers are equal in any order."""

MOST_TOKENS: Final = 1 << 40
"""The most tokens that a request counts as, against limits and in the ledger: clients and vendors may write any number,
and sums of all requests have to fit 64 bits."""

MOST_COST: Final = 1 << 44
"""The same in billionths of a USD: about 17,600 USD."""


@dataclass(frozen=True, slots=True)
class Rate:
    """At most `burst + amount / period * t` units in any `t` seconds. `period` is one of SECONDS."""

    unit: Unit
    amount: int
    period: Period
    burst: int


@dataclass(frozen=True, slots=True)
class Quota:
    """At most `amount` units in each calendar period, HOUR or longer, in the table's time zone."""

    unit: Unit
    amount: int
    period: Period


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one scope. `concurrent` is the most requests under way at once, None for any number."""

    rates: tuple[Rate, ...] = ()
    quotas: tuple[Quota, ...] = ()
    concurrent: int | None = None

    def __bool__(self) -> bool:
        return bool(self.rates or self.quotas or self.concurrent is not None)


UNLIMITED: Final = Limits()


@dataclass(frozen=True, slots=True)
class TeamBudget:
    """What a team may spend in each calendar period: `amount` in billionths of a USD, or in tokens.

    `then` says what happens from `at` (0 to 1) of it on: `warn`, `reject`, or `route`, which answers by the name
    `route` instead of the one asked for. `unpriced` says whether models without a price are refused or not counted.
    """

    unit: Unit
    amount: int
    period: Period
    at: float = 1.0
    then: Literal["warn", "reject", "route"] = "reject"
    route: str | None = None
    unpriced: Literal["reject", "ignore"] = "ignore"


@dataclass(frozen=True, slots=True)
class TeamLimits:
    """All that one team is limited to. `models` are limits of the team on single names that clients ask for. `patience`
    is how many seconds a request may wait for a limit (0: refused at once)."""

    own: Limits = UNLIMITED
    models: Mapping[str, Limits] = field(default_factory=dict)
    budgets: tuple[TeamBudget, ...] = ()
    patience: float = 0.0


CENTS: Final = NANO // 10
"""The least amount in USD, in billionths, that is told to the cent."""


def number_words(unit: Unit, amount: int) -> str:
    """Return an amount without its unit; of USD to the cent, or to the first digits of less."""
    if unit is not Unit.USD:
        return str(amount)
    return f"{amount / NANO:.2f}" if amount >= CENTS or not amount else f"{amount / NANO:.6f}"


def amount_words(unit: Unit, amount: int) -> str:
    """Return an amount with its unit."""
    word = "USD" if unit is Unit.USD else unit.value.removesuffix("s") if amount == 1 else unit.value
    return f"{number_words(unit, amount)} {word}"


def period_words(period: Period | None) -> str:
    """Return what follows an amount; None is a limit on what is under way."""
    return "at once" if period is None else f"per {period.value}"


def limit_words(limits: Limits) -> tuple[str, ...]:
    """Return each limit of a scope."""
    every: tuple[Rate | Quota, ...] = (*limits.rates, *limits.quotas)
    amounts = [
        f"{amount_words(each.unit, each.amount)} {period_words(each.period)}"
        + (f", {each.burst} in one go" if isinstance(each, Rate) and each.burst != each.amount else "")
        for each in every
    ]
    return (
        *amounts,
        *([] if limits.concurrent is None else [f"{amount_words(Unit.REQUESTS, limits.concurrent)} at once"]),
    )


def budget_words(budget: TeamBudget) -> str:
    """Return what a budget allows."""
    return f"{amount_words(budget.unit, budget.amount).replace('.00 ', ' ')} {period_words(budget.period)}"
