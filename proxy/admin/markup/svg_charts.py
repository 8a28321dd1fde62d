"""Small charts as inline SVG: stacked bars, and lines. They contain no text; the page sets it beside them. Pure.

A chart is stretched to the available width. Its colours are classes, so that one style serves light and dark pages.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import floor, log10
from typing import Final

from proxy.admin.markup.html import Markup, element

HEIGHT: Final = 100.0
"""Units from the bottom of a chart to its highest value."""

STEP: Final = 10.0
"""Units of width for each value."""

_HEADROOM: Final = 12.0
"""Units above the highest value, for bars that are drawn higher so that they can be seen."""

_MIN_HEIGHT: Final = 3.0
"""Height of the smallest value above zero, in units."""

_GAP: Final = 1.0

LOOKS: Final = ("blue", "orange", "green", "violet", "teal", "grey", "red")
"""Classes of colours. The page also says in words everything that a colour means."""

CHART_STYLE: Final = """
:root { --blue: #1f6fd6; --orange: #b45a00; --green: #1a8047; --violet: #8a4fc4; --teal: #0b7f8a; --grey: #6b7580;
  --red: #c8323c; }
@media (prefers-color-scheme: dark) { :root { --blue: #6fa8ff; --orange: #f0a04b; --green: #5fc98a;
  --violet: #c39bf0; --teal: #4fc4cf; --grey: #97a1ad; --red: #ff8087; } }
.blue { color: var(--blue); } .orange { color: var(--orange); } .green { color: var(--green); }
.violet { color: var(--violet); } .teal { color: var(--teal); } .grey { color: var(--grey); }
.red { color: var(--red); }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); gap: 1.2rem 1.6rem;
  margin: 0 0 1rem; }
.spenders { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr)); gap: 1.2rem 2rem;
  margin: 1rem 0 0; align-items: start; }
figure { margin: 0; min-width: 0; }
figcaption { font-weight: 600; }
figcaption small { display: block; color: var(--soft); font-weight: 400; font-size: .85rem; }
.chart { display: block; width: 100%; height: 5.5rem; border-bottom: 1px solid var(--soft); }
.chart path { vector-effect: non-scaling-stroke; }
.bars { fill: currentColor; stroke: var(--card); stroke-width: 1; }
.line { fill: none; stroke: currentColor; stroke-width: 2; stroke-linecap: round; stroke-linejoin: round; }
.dashed { stroke-dasharray: 5 4; }
.axis { display: flex; justify-content: space-between; color: var(--soft); font-size: .8rem; margin: 0; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .1rem 1rem; margin: .2rem 0 0; padding: 0;
  font-size: .85rem; }
.legend li { overflow-wrap: anywhere; min-width: 0; }
.legend span { font-weight: 700; }
@media (forced-colors: active) { .chart, .legend span { forced-color-adjust: none; } }
"""
"""The style of charts with captions and legends, and of tables in columns. Needs the variables `--card` and
`--soft`."""


@dataclass(frozen=True, slots=True)
class ChartSeries:
    """Values from left to right, `None` for a missing value, in one of LOOKS. `form` is `dashed` for a line that must
    differ from others by more than its colour."""

    look: str
    values: Sequence[float | None]
    form: str = ""


def top_of(values: Iterable[float]) -> float:
    """Return a round number that is at least as high as every value: 1, 2 or 5 times a power of ten; 1 if no value is
    above 0."""
    highest = max(values, default=0.0)
    if highest <= 0:
        return 1.0
    power = 10.0 ** floor(log10(highest))
    return next((step * power for step in (1.0, 2.0, 5.0) if step * power >= highest), 10.0 * power)


def bars(series: Sequence[ChartSeries], top: float, label: str) -> Markup:
    """Return stacked bars, the first series at the bottom; `top` is the value at full height. Every value above 0 is
    visible."""
    length = max((len(each.values) for each in series), default=0)
    below, paths = [0.0] * length, []
    for each in series:
        parts = []
        for index, value in enumerate(each.values):
            if value:
                height = max(_MIN_HEIGHT, HEIGHT * value / top)
                parts.append(_bar(index, below[index], height))
                below[index] += height
        if parts:
            paths.append(element("path", class_=f"bars {each.look}", d="".join(parts)))
    return _chart(paths, length, label)


def _bar(index: int, below: float, height: float) -> str:
    width = STEP - _GAP
    return f"M{_number(STEP * index)} {_number(HEIGHT - below)}v{_number(-height)}h{_number(width)}v{_number(height)}z"


def lines(series: Sequence[ChartSeries], top: float, label: str) -> Markup:
    """Return a line for each series; `top` is the value at full height. A missing value interrupts the line, and a
    single value is a dot."""
    length = max((len(each.values) for each in series), default=0)
    paths = [
        element("path", class_=f"line {each.look} {each.form}".strip(), d=drawn)
        for each in series
        if (drawn := _line(each.values, top))
    ]
    return _chart(paths, length, label)


def _line(values: Sequence[float | None], top: float) -> str:
    parts, joined = [], False
    for index, value in enumerate(values):
        if value is not None:
            at = f"{_number(STEP * (index + 0.5))} {_number(HEIGHT - HEIGHT * value / top)}"
            parts.append(f"L{at}" if joined else f"M{at}h0")
        joined = value is not None
    return "".join(parts)


def _chart(paths: Sequence[Markup], length: int, label: str) -> Markup:
    return element(
        "svg",
        *paths,
        class_="chart",
        viewBox=f"0 {_number(-_HEADROOM)} {_number(STEP * length)} {_number(HEIGHT + _HEADROOM)}",
        preserveAspectRatio="none",
        role="img",
        aria_label=label,
    )


def _number(units: float) -> str:
    """Return units with at most one digit after the decimal point."""
    return f"{units:.1f}".removesuffix(".0")
