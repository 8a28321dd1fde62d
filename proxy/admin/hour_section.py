"""The section of the operator's page for the last hour: charts, their numbers as text, and the highest spenders.
Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, NamedTuple

from proxy.admin.last_hour.hour_figures import (
    GROUPS,
    MINUTES,
    NOTHING,
    HourFigures,
    MinuteFigures,
    Spent,
    highest,
    highest_by_minute,
    spent_of,
    sum_of_minutes,
)
from proxy.admin.markup.html import Markup, element, joined
from proxy.admin.markup.svg_charts import ChartSeries, bars, lines, top_of
from proxy.admin.page_formatting import NONE, Column, counted, name, note, ratio, row, section, span, table, usd
from proxy.admin.page_model import StatusPage
from proxy.request_outcomes import AffinityOutcome
from proxy.request_record import OTHER
from proxy.telemetry.log_format import timestamp

MOST_TEAMS: Final = 5
"""The most teams that have their own colour."""

MOST_SPENDERS: Final = 5
"""The most teams, keys and models that are listed as the highest spenders."""

STRIDE: Final = 5
"""Minutes in each row of the table."""

_OUTCOME_COLOURS: Final[Mapping[str, str]] = {
    "failed": "red",
    "shed": "violet",
    "refused": "orange",
    "client gone": "grey",
    "succeeded": "green",
}
_AFFINITY_COLOURS: Final[Mapping[AffinityOutcome, str]] = {
    "kept": "green",
    "spilled_load": "orange",
    "spilled_health": "red",
    "short": "blue",
    "none": "grey",
}
_BEST_FIRST: Final = tuple(GROUPS)[::-1]
_TEAM_COLOURS: Final = ("blue", "orange", "green", "violet", "teal")
_QUANTILES: Final = (("p50", 0.5, "blue", ""), ("p95", 0.95, "orange", "dashed"))

_BY_TIME: Final = (
    *(Column("Minutes (UTC)"), *(Column(group.capitalize(), "n") for group in _BEST_FIRST)),
    *(Column("First token p50 / p95", "n"), Column("Duration p50 / p95", "n"), Column("Tokens", "n")),
    *(Column("Cost in USD", "n"), Column("Cached prompt tokens", "n"), Column("Conversations kept", "n")),
)
_SPENDERS: Final = (
    *(Column("Name", "any"), Column("Cost in USD", "n"), Column("Share of cost", "n"), Column("Tokens", "n")),
    Column("Requests", "n"),
)

Quantile = Callable[[MinuteFigures, float], float | None]
"""Returns a quantile of the measured times of a minute in seconds, `None` if there are none."""


class LegendEntry(NamedTuple):
    """A line of a legend, in the colour of its series."""

    look: str
    words: str


@dataclass(frozen=True, slots=True)
class HourWindow:
    """The figures of an hour, and one entry for each of its minutes, also for minutes without requests."""

    hour: HourFigures
    minutes: Sequence[MinuteFigures]

    @classmethod
    def of(cls, hour: HourFigures) -> "HourWindow":
        """Return the window of an hour."""
        known = {each.minute: each for each in hour.minutes}
        every = range(hour.newest - MINUTES + 1, hour.newest + 1)
        return cls(hour, [known.get(minute, MinuteFigures(minute)) for minute in every])

    def clock(self, index: int) -> str:
        """Return the time in UTC of a minute, by its index in the window."""
        return _clock(self.minutes[index].minute)


def _clock(minute: int) -> str:
    return timestamp(60 * minute)[11:16]


def last_hour(page: StatusPage) -> Markup:
    """Return the charts of the last hour with their figures, and the highest spenders."""
    hour = page.status.hour
    if not hour.minutes:
        return section("hour", "Last hour", note("No request has ended in the last hour."))
    window = HourWindow.of(hour)
    charts = (
        _requests(window),
        _times(window, "Time to first token", MinuteFigures.first),
        _times(window, "Duration", MinuteFigures.duration),
        _teams(window, "Cost by team", lambda spent: spent.cost, lambda cost: f"{usd(cost)} USD", _without_price),
        _teams(window, "Tokens by team", lambda spent: spent.tokens, lambda tokens: f"{tokens:,.0f}", lambda _: ""),
        _cached(window),
        *_affinity(window),
    )
    drawn = element("div", *charts, class_="charts")
    return section("hour", "Last hour", drawn, _by_time(window), _spenders(hour))


def _requests(window: HourWindow) -> Markup:
    whole = sum_of_minutes(0, window.minutes)
    used = {group: outcomes for group, outcomes in GROUPS.items() if whole.of(outcomes)}
    words = {group: f"{group} {ratio(whole.of(outcomes), whole.requests)}" for group, outcomes in used.items()}
    top = top_of(each.requests for each in window.minutes)
    series = [
        ChartSeries(_OUTCOME_COLOURS[group], [each.of(outcomes) for each in window.minutes])
        for group, outcomes in used.items()
    ]
    legend = [LegendEntry(_OUTCOME_COLOURS[group], words[group]) for group in reversed(used)]
    detail = f"{counted(whole.requests, 'request')} in the hour; the top is {top:,.0f} a minute"
    return _figure(window, "Requests by outcome", detail, legend, lambda label: bars(series, top, label))


def _times(window: HourWindow, caption: str, quantile: Quantile) -> Markup:
    """Return a chart of p50 and p95 by minute; its legend gives p50 and p95 of the hour."""
    values = [[quantile(each, share) for each in window.minutes] for _, share, _, _ in _QUANTILES]
    seconds = [value for each in values for value in each if value is not None]
    if not seconds:
        return _empty(caption, "none was measured in the hour")
    whole, top = sum_of_minutes(0, window.minutes), top_of(seconds)
    series = [ChartSeries(look, each, form) for each, (_, _, look, form) in zip(values, _QUANTILES, strict=True)]
    legend = [LegendEntry(look, f"{words} {span(quantile(whole, share))}") for words, share, look, _ in _QUANTILES]
    detail = f"p95 is dashed; the top is {span(top)}"
    return _figure(window, caption, detail, legend, lambda label: lines(series, top, label))


def _teams(
    window: HourWindow,
    caption: str,
    amount: Callable[[Spent], float],
    shown: Callable[[float], str],
    lacking: Callable[[Spent], str],
) -> Markup:
    """Return a chart of an amount by team and minute; `lacking` returns a clause about the requests that the amount
    does not include. All charts have the same teams in the same colours."""
    teams = highest_by_minute(window.hour.teams, MOST_TEAMS)
    spent = [spent_of(minutes.values()) for _, minutes in teams]
    sums = list(map(amount, spent))
    if not any(sums):
        return _empty(caption, "none is known in the hour")
    named = iter(_TEAM_COLOURS)
    looks = ["grey" if team == OTHER else next(named) for team, _ in teams]
    values = [[amount(each.get(minute.minute, NOTHING)) for minute in window.minutes] for _, each in teams]
    top = top_of(map(sum, zip(*values, strict=True)))
    legend = [
        LegendEntry(look, f"{_name_of(team)} {shown(total)}")
        for look, (team, _), total in zip(looks, teams, sums, strict=True)
        if total
    ]
    series = list(map(ChartSeries, looks, values))
    detail = f"{shown(sum(sums))} in the hour{lacking(spent_of(spent))}; the top is {shown(top)} a minute"
    return _figure(window, caption, detail, legend, lambda label: bars(series, top, label))


def _without_price(spent: Spent) -> str:
    return f" {_without(spent)}" if spent.unpriced else ""


def _cached(window: HourWindow) -> Markup:
    whole, caption = sum_of_minutes(0, window.minutes), "Prompt tokens from vendors' caches"
    if not whole.prompt:
        return _empty(caption, "no prompt tokens in the hour")
    series = [ChartSeries("teal", [each.cached / each.prompt if each.prompt else None for each in window.minutes])]
    legend = [LegendEntry("teal", f"{ratio(whole.cached, whole.prompt)} of {counted(whole.prompt, 'prompt token')}")]
    return _figure(
        window, caption, "share of each minute; the top is 100%", legend, lambda label: lines(series, 1.0, label)
    )


def _affinity(window: HourWindow) -> Iterator[Markup]:
    """Yield the chart of requests for names with affinity, if there were any."""
    whole = sum_of_minutes(0, window.minutes)
    used = [outcome for outcome in _AFFINITY_COLOURS if whole.placed_as(outcome)]
    if not used:
        return
    asked = sum(whole.placed)
    top = top_of(sum(each.placed) for each in window.minutes)
    series = [
        ChartSeries(_AFFINITY_COLOURS[of], [each.placed_as(of) for each in window.minutes]) for of in reversed(used)
    ]
    legend = [
        LegendEntry(_AFFINITY_COLOURS[of], f"{of.replace('_', ' by ')} {ratio(whole.placed_as(of), asked)}")
        for of in used
    ]
    detail = f"{counted(asked, 'request')} for names with affinity; the top is {top:,.0f} a minute"
    caption = "Conversations by where they were served"
    yield _figure(window, caption, detail, legend, lambda label: bars(series, top, label))


def _share_kept(whole: MinuteFigures) -> str:
    """Return the share of the conversations that their own deployment served."""
    of = sum(whole.placed_as(outcome) for outcome in ("kept", "spilled_load", "spilled_health"))
    return f"{whole.placed_as('kept') / of:.1%}" if of else NONE


def _figure(
    window: HourWindow, caption: str, detail: str, legend: Sequence[LegendEntry], draw: Callable[[str], Markup]
) -> Markup:
    """Return a chart with its description in words. `draw` receives the text for screen readers."""
    times = [window.clock(0), window.clock(MINUTES // 2), f"{window.clock(-1)} UTC"]
    label = f"{caption} by minute, {times[0]} to {times[-1]}: {'; '.join(entry.words for entry in legend)}"
    return element(
        "figure",
        element("figcaption", caption, element("small", detail)),
        draw(label),
        element("p", *(element("span", moment) for moment in times), class_="axis", aria_hidden="true"),
        element("ul", *map(_entry, legend), class_="legend"),
    )


def _entry(entry: LegendEntry) -> Markup:
    return element("li", element("span", "■", class_=entry.look, aria_hidden="true"), f" {entry.words}")


def _empty(caption: str, why: str) -> Markup:
    return element("figure", element("figcaption", caption, element("small", why)))


def _name_of(spender: str) -> str:
    return "all others" if spender == OTHER else spender


def _by_time(window: HourWindow) -> Markup:
    caption = "Times are of requests that succeeded."
    rows = (_stride_row(window, stride, list(each)) for stride, each in groupby(window.minutes, _stride))
    inner = table(caption, _BY_TIME, (each for each in rows if each))
    summary = element("summary", "The same in figures, by five minutes")
    return element("details", summary, inner, id="hour-figures")


def _stride(each: MinuteFigures) -> int:
    return each.minute // STRIDE * STRIDE


def _stride_row(window: HourWindow, stride: int, minutes: Sequence[MinuteFigures]) -> Markup:
    """Return the row of the STRIDE minutes from `stride` on; empty if they had no requests."""
    whole = sum_of_minutes(stride, minutes)
    if not whole.requests:
        return Markup()
    within = {each.minute for each in minutes}
    spent = spent_of(spent for each in window.hour.teams.values() for minute, spent in each.items() if minute in within)
    return row(
        _BY_TIME,
        f"{_clock(stride)} to {_clock(stride + STRIDE - 1)}",
        *(f"{whole.of(GROUPS[group]):,}" for group in _BEST_FIRST),
        _pair(whole, MinuteFigures.first),
        _pair(whole, MinuteFigures.duration),
        f"{spent.tokens:,}",
        _cost(spent),
        f"{whole.cached / whole.prompt:.1%}" if whole.prompt else NONE,
        _share_kept(whole),
    )


def _cost(spent: Spent) -> str:
    """Return a cost in USD, with the number of requests that it does not include; "unknown" if no price is known."""
    cost = spent.known_cost
    if cost is None:
        return "unknown"
    return joined((usd(cost), element("small", _without(spent)))) if spent.unpriced else usd(cost)


def _without(spent: Spent) -> str:
    return f"without {counted(spent.unpriced, 'request')} of unknown cost"


def _pair(whole: MinuteFigures, quantile: Quantile) -> str:
    times = [quantile(whole, share) for _, share, _, _ in _QUANTILES]
    return NONE if None in times else " / ".join(map(span, times))


def _spenders(hour: HourFigures) -> Markup:
    """Return the tables of the teams, the keys and the models with the highest spending; empty if there was no
    spending."""
    return element("div", *_spender_tables(hour), class_="spenders")


def _spender_tables(hour: HourFigures) -> Iterator[Markup]:
    teams = {team: spent_of(minutes.values()) for team, minutes in hour.teams.items()}
    for kind, spenders in (("teams", teams), ("keys", hour.keys), ("models", hour.models)):
        spent_some = {each: spent for each, spent in spenders.items() if spent.tokens or spent.cost}
        ranked, whole = highest(spent_some, MOST_SPENDERS), spent_of(spent_some.values())
        if ranked:
            caption = f"The {kind} that spent most in the hour."
            yield table(caption, _SPENDERS, (_spender(each, spent, whole) for each, spent in ranked))


def _spender(spender: str, spent: Spent, whole: Spent) -> Markup:
    share = f"{spent.cost / whole.cost:.1%}" if whole.cost and spent.known_cost is not None else ""
    return row(_SPENDERS, name(_name_of(spender)), _cost(spent), share, f"{spent.tokens:,}", f"{spent.requests:,}")
