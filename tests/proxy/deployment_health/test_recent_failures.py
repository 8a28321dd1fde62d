"""Tries are counted over a window that moves in slots."""

from hypothesis import given
from hypothesis import strategies as st

from proxy.deployment_health.recent_failures import SLOTS, Outcomes

WINDOW = 30.0


def test_successes_and_failures_of_the_window_are_counted() -> None:
    outcomes = Outcomes(WINDOW)
    for second in range(8):
        outcomes.succeeded(float(second))
    assert outcomes.failed(8.0) == (9, 1)
    assert outcomes.failed(20.0) == (10, 2)


def test_what_is_older_than_the_window_is_forgotten() -> None:
    outcomes = Outcomes(WINDOW)
    outcomes.failed(0.0)
    outcomes.failed(20.0)
    assert outcomes.failed(20.0 + WINDOW - 0.1) == (2, 2)


def test_a_pause_of_a_window_forgets_everything() -> None:
    outcomes = Outcomes(WINDOW)
    for _ in range(9):
        outcomes.failed(0.0)
    assert outcomes.failed(WINDOW + WINDOW / SLOTS) == (1, 1)


def test_clearing_forgets_everything() -> None:
    outcomes = Outcomes(WINDOW)
    outcomes.succeeded(0.0)
    outcomes.failed(0.0)
    outcomes.clear()
    assert outcomes.failed(0.1) == (1, 1)


@given(st.lists(st.tuples(st.floats(min_value=0, max_value=12), st.booleans()), max_size=60))
def test_the_counts_are_those_of_a_window_less_at_most_one_slot(steps: list[tuple[float, bool]]) -> None:
    outcomes = Outcomes(WINDOW)
    now = 1000.0
    seen: list[tuple[float, bool]] = []
    for pause, good in [*steps, (0.0, False)]:
        now += pause
        seen.append((now, good))
        if good:
            outcomes.succeeded(now)
            continue
        counted = outcomes.failed(now)
        most, least = (_within(seen, now - span) for span in (WINDOW + 1e-6, WINDOW - WINDOW / SLOTS - 1e-6))
        assert least[0] <= counted[0] <= most[0]
        assert least[1] <= counted[1] <= most[1]


def _within(seen: list[tuple[float, bool]], since: float) -> tuple[int, int]:
    kept = [good for at, good in seen if at >= since]
    return len(kept), kept.count(False)
