"""Tells the operator's log of budgets that came to the point at which something happens."""

import asyncio
import logging
from typing import Final

from proxy.limits.limit import NANO, TeamBudget, Unit
from proxy.limits.spending import SpendingNotes

LOOK_EVERY: Final = 1.0
"""Seconds between two looks."""


def budget_warning(scope: str, budget: TeamBudget) -> str:
    """Return the line about a budget that has reached its step."""
    amount = f"{budget.amount / NANO:g} USD" if budget.unit is Unit.USD else f"{budget.amount} tokens"
    then = "" if budget.route is None else f"; its requests are answered by '{budget.route}' until the period ends"
    return f"budget: {scope} has used or reserved {budget.at * 100:g}% of {amount} per {budget.period.value}{then}"


def tell_of_budgets(notes: SpendingNotes) -> None:
    """Log the steps reached that have not been told yet, once for each period and process."""
    while notes.reached:
        logging.getLogger("dragoman").warning("%s", budget_warning(*notes.reached.popleft()))


async def watch_budgets(notes: SpendingNotes) -> None:
    """Tell of budgets until cancelled."""
    while True:
        tell_of_budgets(notes)
        await asyncio.sleep(LOOK_EVERY)
