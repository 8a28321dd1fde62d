"""Requests of an hour in virtual time, and figures of an hour with every kind of request."""

from providers.completion import Usage
from proxy.admin.last_hour.hour_counter import HourCounter
from proxy.admin.last_hour.hour_figures import OUTCOMES, HourFigures, MinuteFigures, Spent
from proxy.request_record import Attempt, Outcome, RequestRecord

NEWEST = 29_833_333
"""The minute of unix time that begins at 13:53 on 2026-09-21."""


class Clocks:
    """A loop's clock and a wall clock, which stand still until they are set."""

    def __init__(self, now: float = 500.0, wall: float = 60.0 * NEWEST) -> None:
        self.now, self._wall = now, wall - now

    def pass_by(self, seconds: float) -> None:
        """Advance both clocks."""
        self.now += seconds

    def set_wall(self, wall: float) -> None:
        """Set the wall clock only."""
        self._wall = wall - self.now

    def counter(self) -> HourCounter:
        """Return a counter that uses these clocks."""
        return HourCounter(lambda: self.now, lambda: self.now + self._wall)

    def record(
        self,
        outcome: Outcome = "ok",
        team: str = "search",
        key: str = "ci",
        model: str = "v/m",
        usage: Usage | None = None,
    ) -> RequestRecord:
        """Return a request that ends now, after two seconds, with its first content after half a second."""
        made = RequestRecord("r", self.now - 2.0, "openai", "/v1/completions", team=team, model=model, outcome=outcome)
        made.finished, made.first_content = self.now, self.now - 1.5
        made.key = made.key_label = key
        made.attempts, made.usage = [Attempt("v/m/a", self.now - 2.0, self.now)], usage
        return made


def minute(number: int, requests: int = 4, **changes: object) -> MinuteFigures:
    """Return a minute with successful requests, one request of each other outcome, and latencies."""
    outcomes = tuple(requests if outcome == "ok" else 1 for outcome in OUTCOMES)
    facts: dict[str, object] = {"durations": (0,) * 10 + (3, 1), "firsts": (0, 4), "prompt": 1000, "cached": 250}
    return MinuteFigures(number, outcomes, **{**facts, **changes})  # type: ignore[arg-type]  # named as the fields are


def hour(team: str = "search", newest: int = NEWEST) -> HourFigures:
    """Return an hour with requests in two minutes. One of its spenders has a name that the caller passes."""
    return HourFigures(
        newest,
        (minute(newest - 30), minute(newest, 6)),
        {team: {newest - 30: Spent(4, 2000, 0.5), newest: Spent(6, 3000, 1.25, 2)}, "ads": {newest: Spent(1, 50)}},
        {f"{team}/ci": Spent(10, 5000, 1.75, 2), "ads/k": Spent(1, 50)},
        {"v/m": Spent(11, 5050, 1.75, 2)},
    )
