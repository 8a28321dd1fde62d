"""The process log reports each step of a budget once, and reports that the clock was set back."""

import logging
from datetime import UTC

import pytest

from proxy.accounting.limits_and_ledger import LimitEvents, step_message
from proxy.limits.limit import NANO, Period, ScopeBudget, Unit
from proxy.limits.limit_registry import LimitRegistry
from proxy.limits.reservation import Reservation

NOON = 1_793_534_400.0
WARN = ScopeBudget(Unit.USD, 500 * NANO, Period.MONTH, 0.8, "warn")
ROUTE = ScopeBudget(Unit.TOKENS, 1000, Period.DAY, 0.5, "route", "cheap")


def test_a_line_says_what_a_team_has_come_to_and_what_follows() -> None:
    assert step_message("team search", WARN) == "team search has reached 80% of its budget of 500 USD per month"
    assert step_message("team a", ROUTE) == (
        "team a has reached 50% of its budget of 1000 tokens per day; its requests go to cheap"
    )


def test_each_step_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    registry = LimitRegistry(lambda: 0.0, lambda: NOON)
    registry.use({}, {"team search": (WARN,)}, UTC, 0.0)
    events = LimitEvents(registry, lambda: NOON, logging.getLogger("test"))
    for _ in range(3):
        held = registry.admit(["team search"], 10, 450 * NANO, 0.0, NOON)
        events.look()
        assert isinstance(held, Reservation)
        held.settle(10, 450 * NANO)
        events.look()
    assert [each.message for each in caplog.records] == [
        "team search has reached 80% of its budget of 500 USD per month"
    ]
    assert caplog.records[0].levelname == "WARNING"


def test_a_clock_that_was_set_back_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    times = iter([NOON, NOON - 7200, NOON - 7100, NOON, NOON - 7200])
    registry = LimitRegistry(lambda: 0.0, lambda: NOON)
    registry.use({}, {"team search": (WARN,)}, UTC, 0.0)
    events = LimitEvents(registry, lambda: next(times), logging.getLogger("test"))
    events.look()
    assert not caplog.records
    for _ in range(4):
        events.look()
    assert len(caplog.records) == 2
    assert "the clock was set back" in caplog.text
