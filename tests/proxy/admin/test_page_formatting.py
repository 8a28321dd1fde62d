"""Numbers, times and tables as a page writes them."""

from proxy.admin.markup.html import element
from proxy.admin.page_formatting import (
    STATES,
    Column,
    age,
    counted,
    moment,
    name,
    note,
    ratio,
    row,
    section,
    span,
    state,
    table,
)
from proxy.admin.route_states import Health
from tests.support.looped import looped


@looped(
    ("seconds", "words"),
    [
        (None, "–"),
        (0.0, "0 ms"),
        (0.0022, "2.2 ms"),
        (0.00996, "10 ms"),
        (0.0123, "12 ms"),
        (0.9999, "1.0 s"),
        (12.34, "12.3 s"),
        (300.4, "300 s"),
    ],
)
def test_a_time_is_short(seconds: float | None, words: str) -> None:
    assert span(seconds) == words


@looped(
    ("seconds", "words"),
    [(-5, "0 s"), (59.9, "59 s"), (60, "1 min"), (61, "1 min 1 s"), (3600, "1 h"), (90_061, "1 d 1 h")],
)
def test_an_age_has_two_units(seconds: float, words: str) -> None:
    assert age(seconds) == words


def test_a_moment_is_in_utc_for_people_and_programs() -> None:
    assert moment(1_790_000_000.25) == '<time datetime="2026-09-21T14:13:20.250Z">2026-09-21 14:13:20</time>'


def test_a_name_is_text_that_may_be_broken_after_slashes() -> None:
    assert name("a/<b>/c") == "a/<wbr>&lt;b&gt;/<wbr>c"
    assert name("plain") == "plain"


def test_counts_have_their_noun_and_parts_their_share() -> None:
    assert [counted(1, "limit"), counted(2, "limit"), counted(1234, "reply", "replies")] == [
        "1 limit",
        "2 limits",
        "1,234 replies",
    ]
    assert [ratio(0, 0), ratio(0, 9), ratio(1, 8)] == ["0", "0", "1 (12.5%)"]


def test_every_state_has_words_of_its_own_beside_its_colour() -> None:
    assert STATES.keys() == set(Health)
    assert len({words for words, _ in STATES.values()}) == len(Health)
    assert state(Health.OPEN) == '<span class="state bad">✕ circuit open</span>'


def test_a_table_names_its_columns_and_rows_for_screen_readers() -> None:
    columns = (Column("Name"), Column("Calls", "n"), Column("Why", "full"))
    made = table("A caption.", columns, [row(columns, "<v>", "7", ""), row(columns, "w", element("b", "8"), "why")])
    assert made == (
        '<table role="table"><caption>A caption.</caption><thead role="rowgroup"><tr role="row">'
        '<th scope="col" role="columnheader">Name</th><th scope="col" role="columnheader" class="n">Calls</th>'
        '<th scope="col" role="columnheader" class="full">Why</th></tr></thead><tbody role="rowgroup">'
        '<tr role="row"><th scope="row" role="rowheader">&lt;v&gt;</th><td role="cell" data-label="Calls" class="n">7'
        '</td><td role="cell" data-label="Why" class="full empty"></td></tr>'
        '<tr role="row"><th scope="row" role="rowheader">w</th><td role="cell" data-label="Calls" class="n"><b>8</b>'
        '</td><td role="cell" data-label="Why" class="full">why</td></tr></tbody></table>'
    )


def test_a_row_can_have_a_name_to_be_found_by() -> None:
    assert row((Column("Name"),), "v", name='r-"1').startswith('<tr role="row" id="r-&quot;1"><th scope="row"')


def test_a_section_is_named_by_its_heading() -> None:
    assert section("x", "Things", note("None.")) == (
        '<section id="x" aria-labelledby="x-title"><h2 id="x-title">Things</h2><p class="note">None.</p></section>'
    )
