"""Charts by their values: the position of each part, and colours that stand out from the page in light and dark
mode.
"""

import re

import pytest

from proxy.admin.markup.svg_charts import CHART_STYLE, HEIGHT, LOOKS, ChartSeries, bars, lines, top_of
from proxy.admin.page_assets import STYLE
from tests.proxy.admin.markup.test_html import read
from tests.support.looped import looped


@looped(
    ("values", "top"),
    [
        *(((), 1.0), ((0.0, 0.0), 1.0), ((1.0,), 1.0), ((1.01,), 2.0), ((3, 17, 4), 20.0), ((201,), 500.0)),
        *(((501,), 1000.0), ((0.0003,), 0.0005), ((1e12 + 1,), 2e12)),
    ],
)
def test_the_top_is_a_round_number_that_no_value_is_above(values: tuple[float, ...], top: float) -> None:
    assert top_of(values) == pytest.approx(top)


def paths(markup: str) -> dict[str, str]:
    """Return the paths that are drawn in each look."""
    found = [dict(attributes) for tag, attributes in read(markup).elements if tag == "path"]
    return {str(each["class"]): str(each["d"]) for each in found}


def test_bars_stand_one_on_another_up_to_the_top() -> None:
    drawn = paths(bars([ChartSeries("red", [1, 0, None]), ChartSeries("green", [3, 2, 0])], 4, "label"))
    assert drawn == {
        "bars red": "M0 100v-25h9v25z",
        "bars green": "M0 75v-75h9v75zM10 100v-50h9v50z",
    }


def test_a_bar_of_one_in_a_million_is_seen() -> None:
    drawn = paths(bars([ChartSeries("red", [1]), ChartSeries("green", [1_000_000])], 1_000_000, "label"))
    assert drawn["bars red"] == "M0 100v-3h9v3z"


def test_a_line_is_broken_where_values_are_missing_and_one_alone_is_a_dot() -> None:
    drawn = paths(
        lines([ChartSeries("blue", [1, 2, None, 4]), ChartSeries("orange", [None] * 4, "dashed")], 4, "label")
    )
    assert drawn == {"line blue": "M5 75h0L15 50M35 0h0"}
    assert list(paths(lines([ChartSeries("orange", [1], "dashed")], 4, "label"))) == ["line orange dashed"]


def test_a_chart_is_one_picture_with_its_words_and_nothing_in_it_is_text() -> None:
    drawn = read(bars([ChartSeries("red", [1, 2])], 2, '<script>"&'))
    (svg,) = (dict(attributes) for tag, attributes in drawn.elements if tag == "svg")
    assert (svg["role"], svg["aria-label"], svg["viewbox"]) == ("img", '<script>"&', "0 -12 20 112")
    assert [tag for tag, _ in drawn.elements] == ["svg", "path"]
    assert drawn.text == ""


def luminance(colour: str) -> float:
    """Return the relative luminance (WCAG 2.2, "relative luminance")."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@looped("scheme", [0, 1])
def test_each_colour_stands_out_from_the_page_in_both_schemes(scheme: int) -> None:
    # WCAG 2.2, 1.4.11: a contrast of 3 to 1 for graphics that carry information.
    card = re.findall(r"--card: (#\w+)", STYLE)[scheme]
    for look in LOOKS:
        colour = re.findall(rf"--{look}: (#\w+)", CHART_STYLE)[scheme]
        assert contrast(colour, card) >= 3, (look, colour)
    assert contrast("#fff", "#000") == 21


def test_no_bar_is_wider_than_its_place_nor_a_chart_than_its_column() -> None:
    assert "width: 100%" in CHART_STYLE
    assert "minmax(min(100%, 20rem), 1fr)" in CHART_STYLE
    assert HEIGHT == 100
