"""The last hour as JSON values, for scripts. Pure."""

from collections.abc import Mapping
from typing import Final

from proxy.admin.last_hour.hour_figures import (
    OUTCOMES,
    HourFigures,
    MinuteFigures,
    Spent,
    highest,
    highest_by_minute,
    spent_of,
)
from proxy.request_outcomes import AFFINITY_OUTCOMES
from proxy.telemetry.log_format import timestamp

MOST_NAMES: Final = 20
"""The most teams, keys and models that are named, the highest spenders first; all others follow as `other`."""


def hour_json(hour: HourFigures) -> dict[str, object]:
    """Return the minutes with requests, and the spending by team, key and model. Times are seconds; costs are USD, null
    if unknown."""
    return {
        "minutes": [_minute(each) for each in hour.minutes],
        "teams": [_team(name, minutes) for name, minutes in highest_by_minute(hour.teams, MOST_NAMES)],
        "keys": [_spent(name, spent) for name, spent in highest(hour.keys, MOST_NAMES)],
        "models": [_spent(name, spent) for name, spent in highest(hour.models, MOST_NAMES)],
    }


def _minute(each: MinuteFigures) -> dict[str, object]:
    return {
        "start": timestamp(60 * each.minute),
        "outcomes": {outcome: count for outcome, count in zip(OUTCOMES, each.outcomes, strict=False) if count},
        "first_token_p50_s": _seconds(each.first(0.5)),
        "first_token_p95_s": _seconds(each.first(0.95)),
        "duration_p50_s": _seconds(each.duration(0.5)),
        "duration_p95_s": _seconds(each.duration(0.95)),
        "prompt_tokens": each.prompt,
        "cached_tokens": each.cached,
        "affinity": {outcome: count for outcome, count in zip(AFFINITY_OUTCOMES, each.placed, strict=False) if count},
    }


def _seconds(found: float | None) -> float | None:
    return None if found is None else round(found, 4)


def _usd(spent: Spent) -> float | None:
    cost = spent.known_cost
    return None if cost is None else round(cost, 9)


def _spent(name: str, spent: Spent) -> dict[str, object]:
    return {
        "name": name,
        "cost_usd": _usd(spent),
        "tokens": spent.tokens,
        "requests": spent.requests,
        "requests_of_unknown_cost": spent.unpriced,
    }


def _team(name: str, minutes: Mapping[int, Spent]) -> dict[str, object]:
    spending = [
        {"start": timestamp(60 * minute), "cost_usd": _usd(spent), "tokens": spent.tokens}
        for minute, spent in sorted(minutes.items())
    ]
    return {**_spent(name, spent_of(minutes.values())), "minutes": spending}
