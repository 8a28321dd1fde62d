"""The formats of numbers, times, states and tables on the operator's page. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import floor, log10
from typing import Final, NamedTuple

from proxy.admin.markup.html import Markup, element, enclosed, joined, start_tag
from proxy.admin.route_states import Health
from proxy.telemetry.log_format import timestamp

NONE: Final = "–"

STATES: Final[Mapping[Health, tuple[str, str]]] = {
    Health.UP: ("✓ up", "good"),
    Health.LIMITED: ("▲ limited", "warn"),
    Health.FAILING: ("▼ mostly failing", "bad"),
    Health.HALF_OPEN: ("◐ half-open", "warn"),
    Health.COOLING: ("■ cooldown", "warn"),
    Health.OPEN: ("✕ circuit open", "bad"),
    Health.OUT_OF_SERVICE: ("○ out of service", "warn"),
}
"""The label of a state, and its colour. The label alone is enough to distinguish the states."""


def state(health: Health) -> Markup:
    """Return the badge of a state."""
    words, colour = STATES[health]
    return element("span", words, class_=f"state {colour}")


def span(seconds: float | None) -> str:
    """Return a duration as text; a duration below 10 ms has one digit after the decimal point."""
    if seconds is None:
        return NONE
    if 0 < seconds < 0.00995:
        return f"{seconds * 1000:.1f} ms"
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 99.95 else f"{seconds:.0f} s"


def usd(amount: float) -> str:
    """Return USD with two digits after the decimal point; an amount below 1 has its first two non-zero digits."""
    if not 0 < amount < 1:
        return f"{amount:,.2f}"
    if amount < 1e-9:
        return "<0.000000001"
    return f"{amount:.{max(2, 1 - floor(log10(amount)))}f}"


def age(seconds: float) -> str:
    """Return a long duration in its two largest units."""
    left = max(0, int(seconds))
    parts: list[str] = []
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)):
        count, left = divmod(left, length)
        if count or (unit == "s" and not parts):
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2])


def moment(unix: float) -> Markup:
    """Return a time in UTC."""
    written = timestamp(unix)
    return element("time", f"{written[:10]} {written[11:19]}", datetime=written)


def name(text: str) -> Markup:
    """Return the name of a deployment, a model or a scope, with possible line breaks after its slashes."""
    first, *others = text.split("/")
    return joined((first, *(part for other in others for part in (_AFTER_SLASH, other))))


_AFTER_SLASH: Final = joined(("/", element("wbr")))


def counted(count: int, one: str, many: str = "") -> str:
    """Return a number with its noun."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def ratio(part: int, whole: int) -> str:
    """Return a part with its share in per cent; without the share if the part or the whole is zero."""
    return f"{part:,} ({part / whole:.1%})" if part and whole else f"{part:,}"


class Column(NamedTuple):
    """A column of a table: its heading, and the class of its cells. `n` is for numbers, `any` for names with a line
    break anywhere, `full` for cells that are as wide as the table on a narrow screen."""

    heading: str
    look: str = ""


def table(caption: str, columns: Sequence[Column], rows: Iterable[Markup]) -> Markup:
    """Return a table. The roles repeat the meaning of the elements, because a browser ignores the meaning if a style
    lays out the rows as blocks, as on a narrow screen."""
    heads = joined(
        element("th", column.heading, scope="col", role="columnheader", class_=column.look or False)
        for column in columns
    )
    return element(
        "table",
        element("caption", caption),
        element("thead", element("tr", heads, role="row"), role="rowgroup"),
        element("tbody", joined(rows), role="rowgroup"),
        role="table",
    )


def row(columns: Sequence[Column], head: str, *cells: str, name: str = "") -> Markup:
    """Return a row whose first cell names it; an empty cell is left out on a narrow screen. `name` is the id by which
    the script of the page finds the row again after it has moved."""
    parts: list[str] = [start_tag("tr", role="row", id=name) if name else _ROW, enclosed(_ROW_HEAD, head, _TH_END)]
    parts += [enclosed(_cell(*each, not cell), cell, _TD_END) for each, cell in zip(columns[1:], cells, strict=True)]
    return joined((*parts, _TR_END))


_ROW: Final = start_tag("tr", role="row")
_ROW_HEAD: Final = start_tag("th", scope="row", role="rowheader")
_TR_END, _TH_END, _TD_END = Markup("</tr>"), Markup("</th>"), Markup("</td>")


@lru_cache(256)
def _cell(heading: str, look: str, empty: bool) -> Markup:
    looks = f"{look} empty".strip() if empty else look
    return start_tag("td", role="cell", data_label=heading, class_=looks or False)


def section(name: str, heading: str, *parts: str) -> Markup:
    """Return a section under a heading, which is also its name for screen readers."""
    title = element("h2", heading, id=f"{name}-title")
    return element("section", title, *parts, id=name, aria_labelledby=f"{name}-title")


def note(text: str, *more: str) -> Markup:
    """Return a note below a table."""
    return element("p", text, *more, class_="note")
