"""Amounts, limits and budgets in words, for the log, errors, status and dry runs."""

from typing import Final

from proxy.limits.limit import NANO, Limits, Period, Quota, Rate, TeamBudget, Unit

CENTS: Final = NANO // 10
"""The least amount in USD, in billionths, that is told to the cent."""


def number_words(unit: Unit, amount: int) -> str:
    """Return an amount without its unit; of USD to the cent, or to the first digits of less."""
    if unit is not Unit.USD:
        return str(amount)
    return f"{amount / NANO:.2f}" if amount >= CENTS or not amount else f"{amount / NANO:.6f}"


def amount_words(unit: Unit, amount: int) -> str:
    """Return an amount with its unit."""
    return f"{number_words(unit, amount)} {'USD' if unit is Unit.USD else unit.value}"


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
    return (*amounts, *([] if limits.concurrent is None else [f"{limits.concurrent} requests at once"]))


def budget_words(budget: TeamBudget) -> str:
    """Return what a budget allows."""
    return f"{amount_words(budget.unit, budget.amount).replace('.00 ', ' ')} {period_words(budget.period)}"
