"""The rows: each way in each size and form once, with its limits."""

from tests.bench.agents.bodies import LARGE, SMALL
from tests.bench.agents.rows import GROWTH, SAME, TRANSLATED, Row, chosen_rows, rows, size_name
from tests.bench.programs.gateway import Gateway
from tests.bench.programs.program import Other


def test_each_row_has_a_name_of_its_own() -> None:
    names = [row.name for row in rows()]
    assert len(names) == len(set(names)) == 3 * 3 * 2 * 2
    assert [row.name for row in chosen_rows(["chat → openai, 3 MB, c"])] == ["agents chat → openai, 3 MB, compact"]


def test_what_is_translated_may_cost_more() -> None:
    assert Row("chat", "openai", SMALL, spaced=False).bound is SAME
    assert Row("chat", "gemini", LARGE, spaced=False).bound is TRANSLATED


def test_a_value_has_its_verdict() -> None:
    assert [SAME.verdict(value) for value in (None, 4, 5, 7)] == ["not measured", "aim met", "must met", "missed"]
    assert GROWTH.verdict(11.5) == "missed"
    assert size_name(LARGE) == "3 MB"


def test_other_gateways_are_asked_for_one_way() -> None:
    other, gateway = Other("other", 1, 2, "their-model", "key"), Gateway("gateway", 1, 2)
    assert Row("messages", "openai", SMALL, spaced=False).request(other) is None
    asked = Row("chat", "openai", SMALL, spaced=False).request(other)
    assert asked is not None
    assert b"Bearer key" in asked
    assert b'"their-model"' in asked
    assert all(row.request(gateway) for row in chosen_rows(["300 KB, compact"]))
