"""ARCHITECTURE.md names every package, and the tests that keep each invariant."""

import re

from tests.docs.marked_pages import ROOT
from tests.docs.pages import quoted, rows, section, text_of
from tests.support.looped import looped
from tests.support.rooms import ROOMS

TEXT = text_of(ROOT / "ARCHITECTURE.md")


@looped("package", ROOMS)
def test_every_package_is_named_in_the_order_of_imports(package: str) -> None:
    table = section(TEXT, "Packages").partition(f"\n### `{package}`\n")[2].partition("\n### ")[0]
    named = [name for row in rows(table) for name in quoted(row[0])]
    assert sorted(named) == sorted(set(ROOMS[package]) - {"."})
    order = list(ROOMS[package])
    first = [order.index(quoted(row[0])[0]) for row in rows(table)]
    assert first == sorted(first)


def test_every_invariant_has_a_test_that_is_there() -> None:
    for _, keeper in rows(section(TEXT, "Invariants")):
        names = quoted(keeper)
        assert names
        paths = [name for name in names if "/" in name]
        assert [path for path in paths if not (ROOT / path).exists()] == []
        targets = [name.removeprefix("make ") for name in names if name.startswith("make ")]
        assert [name for name in targets if f"\n{name}:" not in text_of(ROOT / "Makefile")] == []


def test_it_is_short_and_has_no_more_than_one_picture() -> None:
    assert len(TEXT.splitlines()) < 250
    assert len(re.findall("^```", TEXT, re.MULTILINE)) == 2
