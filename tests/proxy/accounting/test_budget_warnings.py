"""What the log says of budgets that reach a step."""

import asyncio

import pytest

from proxy.accounting.budget_warnings import budget_warning, tell_of_budgets, watch_budgets
from proxy.limits.limit import NANO, Period, TeamBudget, Unit
from proxy.limits.spending import SpendingNotes

WARNS = TeamBudget(Unit.USD, 40 * NANO, Period.DAY, 0.8, "warn")
ROUTES = TeamBudget(Unit.TOKENS, 5000, Period.MONTH, 1.0, "route", "small")


@pytest.mark.parametrize(
    ("budget", "line"),
    [
        (WARNS, "budget: team t has used or reserved 80% of 40 USD per day"),
        (
            ROUTES,
            "budget: team t has used or reserved 100% of 5000 tokens per month; "
            "its requests are answered by 'small' until the period ends",
        ),
    ],
)
def test_a_step_is_told_with_its_budget(budget: TeamBudget, line: str) -> None:
    assert budget_warning("team t", budget) == line


def test_each_step_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    notes = SpendingNotes()
    notes.reached.extend([("team t", WARNS), ("team u", ROUTES)])
    for _ in range(2):
        tell_of_budgets(notes)
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    assert "team u" in caplog.records[1].getMessage()


async def test_steps_are_looked_for_until_the_process_ends(caplog: pytest.LogCaptureFixture) -> None:
    notes = SpendingNotes()
    notes.reached.append(("team t", WARNS))
    watching = asyncio.create_task(watch_budgets(notes))
    while notes.reached:  # noqa: ASYNC110 - it tells no one
        await asyncio.sleep(0)
    watching.cancel()
    assert len(caplog.records) == 1
