"""Reads of another gateway's configuration: types are checked, and every unread key gets a remark."""

from tests.proxy.cli.imports.kit import section
from tests.support.looped import looped

TEXT = """\
text: a
number: 1_000.5
scientific: 1e-7
flag: "True"
list: [a, 1]
one: a
map: {inner: x, odd: [1]}
maps: [{a: 1}, 7]
empty:
"""


def test_values_are_read_by_their_types() -> None:
    read = section(TEXT)
    assert (read.text("text"), read.number("number"), read.number("scientific")) == ("a", 1000.5, 1e-7)
    assert (read.flag("flag"), read.texts("list"), read.texts("one")) == (True, ["a", "1"], ["a"])
    assert read.section("map").text("inner") == "x"
    assert [each.text("a") for each in read.sections("maps")] == ["1"]
    assert [str(problem) for problem in read.remarks.problems] == ["f.yaml:8:16 maps.1: is not a mapping: not taken"]


def test_what_is_absent_or_null_is_nothing() -> None:
    read = section(TEXT)
    assert (read.text("gone"), read.number("empty"), read.flag("empty"), read.texts("gone")) == (None, None, None, [])
    assert "empty" not in read
    assert read.section("empty").written() == ()
    assert list(read.sections("gone")) == []
    assert read.remarks.problems == []


@looped(
    ("key", "kind"),
    [
        ("map", "text"),
        ("text", "number"),
        ("text", "flag"),
        ("map", "texts"),
        ("text", "section"),
        ("text", "sections"),
    ],
)
def test_a_value_of_another_type_is_told_and_not_taken(key: str, kind: str) -> None:
    read = section(TEXT)
    found = getattr(read, kind)(key)
    if kind == "section":
        found = found.written()
    assert not (list(found) if kind == "sections" else found)
    assert [problem.path for problem in read.remarks.problems] == [key]
    assert read.comments == [f"{key}: {read.remarks.problems[0].message}"]


@looped("number", ["1e400", "1e16", ".nan", ".inf", "-.inf", "'1' ", "''", "--1", "9" * 19])
def test_a_number_is_finite_and_plain(number: str) -> None:
    read = section(f"n: {number}")
    assert read.number("n") in (None, 1.0)


def test_every_key_that_nobody_read_is_told_with_its_reason() -> None:
    read = section("a: 1\nb: 2\nc: 3\n")
    read.text("a")
    read.report_unread({"b": "is no good"})
    assert [str(problem) for problem in read.remarks.problems] == [
        "f.yaml:2:1 b: is no good",
        "f.yaml:3:1 c: has no counterpart",
    ]


def test_a_message_never_repeats_a_value() -> None:
    read = section("a: [sk-canary]\nsk-canary0123456789abcdef: 1\n")
    read.number("a")
    read.report_unread({})
    assert "canary" not in " ".join([*map(str, read.remarks.problems), *read.comments])


def test_comments_may_stand_elsewhere() -> None:
    read = section("a: 1\n")
    other: list[str] = []
    read.apart(other).report_key("a")
    assert (other, read.comments) == (["a: has no counterpart"], [])
    assert read.holds_text("a")
    read.report_unread({})
    assert len(read.remarks.problems) == 1
