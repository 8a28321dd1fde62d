"""The page's section on the last hour: charts with the same figures in words, and the highest spenders."""

from dataclasses import replace

from proxy.admin.hour_section import MOST_SPENDERS, MOST_TEAMS, last_hour
from proxy.admin.last_hour.hour_figures import NO_HOUR, HourFigures, MinuteFigures, Spent
from proxy.admin.page_formatting import NONE, usd
from tests.proxy.admin.kit import HOSTILE, page, status
from tests.proxy.admin.last_hour.kit import NEWEST, hour, minute
from tests.proxy.admin.markup.test_html import read
from tests.proxy.admin.test_page_sections import said
from tests.support.looped import looped


def section_html(figures: HourFigures) -> str:
    return last_hour(page(status=replace(status(), hour=figures)))


def placed_hour() -> HourFigures:
    """Return the hour of the kit, with requests for names with affinity in its two minutes."""
    first, last = hour().minutes
    return replace(hour(), minutes=(replace(first, placed=(1, 1, 0, 7, 3)), replace(last, placed=(3, 0, 1, 0, 0))))


def labels(markup: str) -> list[str]:
    """Return the text that a screen reader reads for each chart."""
    return [str(dict(attributes)["aria-label"]) for tag, attributes in read(markup).elements if tag == "svg"]


def test_each_chart_says_its_figures_in_words_too() -> None:
    made = section_html(hour())
    text = said(made)
    for words in (
        "Requests by outcome 28 requests in the hour; the top is 20 a minute",
        "succeeded 10 (35.7%) ■ client gone 2 (7.1%) ■ refused 6 (21.4%) ■ shed 2 (7.1%) ■ failed 8 (28.6%)",
        "Time to first token p95 is dashed; the top is 20 ms",
        "Cost by team 1.75 USD in the hour without 2 requests of unknown cost; the top is 2.00 USD a minute",
        "Tokens by team 5,050 in the hour; the top is 5,000 a minute",
        "■ search 5,000 ■ ads 50",
        "Prompt tokens from vendors' caches share of each minute; the top is 100% 13:14 13:44 14:13 UTC",
        "500 (25.0%) of 2,000 prompt tokens",
    ):
        assert words in text
    assert labels(made)[0] == (
        "Requests by outcome by minute, 13:14 to 14:13 UTC: succeeded 10 (35.7%); client gone 2 (7.1%);"
        " refused 6 (21.4%); shed 2 (7.1%); failed 8 (28.6%)"
    )
    assert len(labels(made)) == 6


def test_requests_for_names_with_affinity_are_shown_by_where_they_were_served() -> None:
    made = section_html(placed_hour())
    assert len(labels(made)) == 7
    assert labels(made)[-1].endswith(
        ": kept 4 (25.0%); spilled by load 1 (6.2%); spilled by health 1 (6.2%); short 7 (43.8%); none 3 (18.8%)"
    )
    assert "16 requests for names with affinity; the top is 20 a minute" in said(made)
    assert "names with affinity" not in said(section_html(hour()))


def test_the_table_repeats_the_charts_by_five_minutes() -> None:
    made = section_html(placed_hour())
    text = said(made[made.index("<details") :])
    assert "13:40 to 13:44 4 1 3 1 4 " in text
    assert " 2,000 0.50 25.0% 50.0% 14:10 to 14:14 6 1 3 1 4 " in text
    assert " 3,050 1.25 without 2 requests of unknown cost 25.0% 75.0% " in text
    assert "13:45 to 13:49" not in text


def test_those_that_spent_most_are_named_with_their_share() -> None:
    text = said(section_html(hour()))
    known = "1.75 without 2 requests of unknown cost 100.0% 5,000 10"
    assert (
        f"The teams that spent most in the hour. Name Cost in USD Share of cost Tokens Requests search {known}" in text
    )
    assert f"search/ci {known} ads/k 0.00 0.0% 50 1" in text
    assert "v/m 1.75 without 2 requests of unknown cost 100.0% 5,050 11" in text


def test_who_used_nothing_has_not_spent_most() -> None:
    text = said(
        section_html(HourFigures(NEWEST, (minute(NEWEST),), {}, {}, {"v/down": Spent(7), "v/up": Spent(1, 5, 0.5)}))
    )
    assert "v/up 0.50 100.0% 5 1" in text
    assert "v/down" not in text


def test_a_cost_that_is_not_known_is_not_shown_as_nothing() -> None:
    spent, known = Spent(3, 30, 0.0, 3), Spent(1, 1, 2.0)
    models = {"v/m": spent, "v/priced": known}
    text = said(section_html(HourFigures(NEWEST, (minute(NEWEST),), {"search": {NEWEST: spent}}, {}, models)))
    assert "Cost by team none is known in the hour" in text
    assert "search unknown 30 3" in text
    assert f" 30 unknown 25.0% {NONE} The teams" in text
    assert "v/priced 2.00 100.0% 1 1 v/m unknown 30 3" in text


def test_teams_and_spenders_beyond_the_most_are_all_others() -> None:
    spenders = {f"t{number}": Spent(1, 10, float(number + 1)) for number in range(8)}
    teams = {name: {NEWEST: spent} for name, spent in spenders.items()}
    made = section_html(HourFigures(NEWEST, (minute(NEWEST),), teams, {}, spenders))
    assert labels(made)[3].endswith("t3 4.00 USD; all others 6.00 USD")
    assert labels(made)[3].count(" USD") == MOST_TEAMS + 1
    assert said(made).count("all others") == 4
    assert made.count("</tr>") == 2 + 2 * (2 + MOST_SPENDERS)
    assert "bars grey" in made


def test_a_team_has_the_same_colour_in_each_chart() -> None:
    teams = {"dear": {NEWEST: Spent(1, 10, 5.0)}, "long": {NEWEST: Spent(1, 9000, 0.5)}}
    made = section_html(HourFigures(NEWEST, (minute(NEWEST),), teams))
    assert '<span class="blue" aria-hidden="true">■</span> dear 5.00 USD' in made
    assert '<span class="blue" aria-hidden="true">■</span> dear 10<' in made
    assert '<span class="orange" aria-hidden="true">■</span> long 9,000' in made


def test_what_was_not_measured_has_no_chart_and_says_so() -> None:
    refused = MinuteFigures(NEWEST, tuple(int(place == 6) for place in range(10)))
    made = section_html(HourFigures(NEWEST, (refused,)))
    text = said(made)
    assert len(labels(made)) == 1
    assert "Duration none was measured in the hour" in text
    assert "Prompt tokens from vendors' caches no prompt tokens in the hour" in text
    assert "spent most" not in text
    assert said(section_html(NO_HOUR)) == "Last hourNo request has ended in the last hour. "


def test_hostile_names_are_text_and_change_no_element() -> None:
    honest, hostile = section_html(hour("wo/rd")), section_html(hour(HOSTILE))
    assert [tag for tag, _ in read(hostile).elements] == [tag for tag, _ in read(honest).elements]
    assert "<script" not in hostile
    assert "\u202e" not in hostile
    assert hostile.count("alert(1)") > 5


@looped(
    ("amount", "text"),
    [
        *((0.0, "0.00"), (1234.5, "1,234.50"), (1.0, "1.00"), (0.5, "0.50"), (0.012, "0.012"), (0.00042, "0.00042")),
        *((0.0999, "0.100"), (0.0000001234, "0.00000012"), (1e-12, "<0.000000001")),
    ],
)
def test_small_costs_are_not_rounded_to_nothing(amount: float, text: str) -> None:
    assert usd(amount) == text
