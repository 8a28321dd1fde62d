"""`docs/reference/log.md` is generated from the tables of fields."""

from tests.observe.log_page import FILE, log_page


def test_the_page_is_made_of_the_tables() -> None:
    assert FILE.read_text(encoding="utf-8") == log_page()


def test_no_cell_of_the_page_ends_its_row() -> None:
    rows = [line for line in log_page().splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in rows} == {7}
