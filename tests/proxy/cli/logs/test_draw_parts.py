"""The parts of a request's time are drawn as consecutive bars, even if the log line is inconsistent."""

from hypothesis import given
from hypothesis import strategies as st

from proxy.cli.logs.draw_parts import BAR_WIDTH, bars
from proxy.cli.logs.show_lines import LineForm, for_people
from tests.support.looped import looped

PARTS = {"gateway": 10.0, "queue": 0.0, "attempt1": 250.0, "connect": 40.0, "vendor": 700.0}
FAILED = [{"deployment": "v/m/eu", "outcome": "timeout"}]


def test_each_part_is_a_bar_behind_the_one_before() -> None:
    assert list(bars({"parts_ms": PARTS, "attempts": FAILED})) == [
        f"attempt1         250.00 ms  |{'#' * 10:<40}|  v/m/eu timeout",
        f"connect           40.00 ms  |{' ' * 10 + '#':<40}|",
        f"vendor           700.00 ms  |{' ' * 11 + '#' * 28:<40}|",
        f"gateway           10.00 ms  |{' ' * 39 + '#'}|",
    ]


@looped(
    "fields",
    [
        {},
        {"parts_ms": None},
        {"parts_ms": [1]},
        {"parts_ms": {}},
        {"parts_ms": {"gateway": 0}},
        {"parts_ms": {"gateway": "1"}},
        {"parts_ms": {"vendor": -1, "\x1b[2J": 5, "vendor" * 9: 5, "x": float("inf"), "y": float("nan")}},
    ],
    ids=str,
)
def test_what_is_no_part_is_not_drawn(fields: dict[str, object]) -> None:
    assert list(bars(fields)) == []


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
TIMES = st.dictionaries(st.from_regex("[a-z]{1,12}[0-9]{0,3}", fullmatch=True), st.floats(0, 1e11) | json, max_size=40)


@given(TIMES, json)
def test_no_line_makes_a_bar_longer_than_the_others(parts: dict[str, object], attempts: object) -> None:
    for bar in bars({"parts_ms": parts, "attempts": attempts}):
        drawn = bar.split("|")[1]
        assert len(drawn) == BAR_WIDTH
        assert "#" in drawn


def test_they_stand_below_the_request_and_reach_the_terminal_harmless() -> None:
    failed = [{"deployment": "\x1b[2J", "outcome": "server"}]
    fields = {"message": "request", "outcome": "ok", "parts_ms": PARTS, "attempts": failed}
    lines = list(for_people(b"", fields, LineForm(below=bars)))
    assert len(lines) == 6
    assert "\\x1b[2J server" in lines[2]
    assert len(list(for_people(b"", fields, LineForm()))) == 2
