"""A request's row: its fields, and that no text or number of a client or vendor breaks a line or a database."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.completion import Usage
from proxy.ledger import ledger_row as module
from proxy.ledger.ledger_row import (
    LATEST_MS,
    MAX_TAGS,
    MAX_TEXT_BYTES,
    JournalRow,
    OtherVersionError,
    UnreadableLineError,
    read_line,
    row_line,
    storable_text,
    tags_fragment,
    tags_text,
    truncate_text,
)
from proxy.limits.limit import MOST_COST, MOST_TOKENS
from tests.proxy.ledger.kit import DEPLOYMENT, NOON, line, record
from tests.support.looped import looped


def test_a_row_holds_what_the_record_says() -> None:
    made = record()
    sequence, row = read_line(row_line(made, 7, NOON, "ada", tags_fragment({"b": "2", "a": "1"})), "g1")
    assert sequence == 7
    assert len(row.id) == 16
    assert int.from_bytes(row.id) >> 80 == NOON
    assert row._replace(id=b"") == (
        *(b"", NOON, "req-1", "search", "ci", "ada", '{"a":"1","b":"2"}', "openai", "fast", "fast", DEPLOYMENT),
        *(100, 7, 10, 3, 0, 21_000, 200, "ok", 1500, 1, "g1"),
    )


def test_what_nobody_knows_is_none() -> None:
    made = record()
    made.usage, made.price, made.attempts = None, None, []
    row = read_line(row_line(made, 1, NOON), "g1").row
    assert row[11:15] == (None, None, None, None)
    assert (row.cost, row.deployment, row.user_name, row.tags, row.attempts) == (None, None, None, None, 0)


def test_what_was_billed_counts_and_an_estimate_is_told() -> None:
    made = record()
    made.billed = Usage(300, 30, estimated=True)
    row = read_line(row_line(made, 1, NOON), "g1").row
    assert (row.tokens_in, row.tokens_out, row.estimated, row.cost) == (300, 30, 1, 63_000)


def test_a_key_without_a_name_has_its_label() -> None:
    made = record()
    made.key, made.key_label = "", "77aa4f1e"
    assert read_line(row_line(made, 1, NOON), "g1").row.key_name == "77aa4f1e"


def test_equal_request_ids_are_two_rows() -> None:
    assert read_line(line(), "g").row.id != read_line(line(), "g").row.id


@given(st.text(st.characters(codec=None), max_size=600), st.text(st.characters(codec=None), max_size=600))
def test_any_text_of_a_client_makes_one_line_that_can_be_read(asked: str, user: str) -> None:
    made = record()
    made.asked = asked
    written = row_line(made, 1, NOON, user, tags_fragment({user: asked}))
    assert written.count(b"\n") == 1
    row = read_line(written, "g").row
    for text in (row.asked, row.user_name):
        assert text is not None
        assert len(text.encode()) <= MAX_TEXT_BYTES
        assert "\0" not in text
    if "\0" not in asked and not any(0xD800 <= ord(each) < 0xE000 for each in asked):
        assert asked.startswith(row.asked)


@looped("number", [-1, 1 << 62, 1 << 64, 10**30])
def test_any_count_of_a_vendor_fits_the_databases(number: int) -> None:
    made = record()
    made.usage = Usage(number, 1, {"cached_tokens": number}, {"reasoning_tokens": number})
    row = read_line(row_line(made, 1, NOON), "g").row
    assert all(count is not None and 0 <= count <= MOST_TOKENS for count in row[11:15])
    assert row.cost is not None
    assert 0 <= row.cost <= MOST_COST


@looped(
    "text",
    [
        *(b"", b"\n", b"{}", b"[]", b"[1", b"null", b'["1"]', b"[true]", b"[1]", b"\xff\xfe", b"\0" * 40),
        line()[:-20],
        line()[30:],
        line().replace(b"[1,1,", b'[1,"1",'),
        line().replace(b'"search"', b"5"),
        line().replace(b'"search"', b"null"),
        line().replace(b"200", b"2e2"),
        line().replace(b"1793534400000", b"{}"),
        b"[" * 100_000,
    ],
)
def test_what_is_no_row_is_unreadable(text: bytes) -> None:
    with pytest.raises(UnreadableLineError):
        read_line(text, "g")


@given(st.recursive(st.none() | st.integers() | st.floats() | st.text(), st.lists))
def test_no_json_in_place_of_a_member_raises_anything_else(value: object) -> None:
    members = orjson.loads(line())
    for position in range(1, len(members)):
        changed = [*members[:position], value, *members[position + 1 :]]
        try:
            row = read_line(orjson.dumps(changed), "g").row
        except (TypeError, UnreadableLineError):  # raised by orjson for values that JSON cannot hold
            continue
        assert row.time <= LATEST_MS


def test_another_version_is_told_by_its_number() -> None:
    with pytest.raises(OtherVersionError, match="version 2"):
        read_line(b'[2,"anything",{"at":"all"}]', "g")


def test_tags_are_bounded_and_equal_where_they_mean_the_same() -> None:
    assert tags_text({"b": "2", "a": "1"}) == tags_text({"a": "1", "b": "2"})
    assert tags_text({}) is None
    assert tags_fragment({}) is None
    many = orjson.loads(tags_text({f"{number:02}": "x" * 999 for number in range(99)}) or "")
    assert len(many) == MAX_TAGS
    assert all(len(text) == MAX_TEXT_BYTES for text in many.values())


def test_texts_are_cut_between_characters() -> None:
    assert truncate_text("\U0001f600" * 100) == "\U0001f600" * 64
    assert truncate_text("a" + "\U0001f600" * 100) == "a" + "\U0001f600" * 63
    assert storable_text("a\0b") == "a\ufffdb"


def _either_way(written: bytes, plain: bool) -> JournalRow | type[Exception]:
    with pytest.MonkeyPatch.context() as patch:
        if not plain:
            patch.setattr(module, "_KINDS", frozenset())
        try:
            return read_line(written, "g")
        except UnreadableLineError as error:
            return type(error)


@given(
    st.integers(1, 22),
    st.none()
    | st.integers(-2, 1 << 62)
    | st.text(max_size=70)
    | st.just("a\0b")
    | st.sampled_from([MOST_TOKENS, MOST_COST]),
)
def test_the_short_way_reads_what_the_careful_one_does(position: int, value: object) -> None:
    members = orjson.loads(line())
    members[position] = value
    written = orjson.dumps(members)
    assert _either_way(written, plain=True) == _either_way(written, plain=False)
