"""Events that differ only in their text: the texts that are read from them, and the events that do not have this
form."""

import orjson
from hypothesis import given
from hypothesis import strategies as st

from providers.completion import RunPart
from providers.framing.text_frames import (
    MARK,
    MAX_FORMS,
    MAX_LEARNED_BYTES,
    FrameLearner,
    TextFrames,
    learn_form,
    part_run,
    text_of_ascii,
    text_run,
    without_first,
)
from providers.json_types import JsonObject
from tests.support.looped import looped

AROUND = (b"data: ", b"\n\n")


def data(text: bytes = b'"a"', /, **members: object) -> bytes:
    """Return an event's data with this literal, and further fields before it."""
    return orjson.dumps({**members, "say": "TEXT"}).replace(b'"TEXT"', text)


def marked(**members: object) -> JsonObject:
    return orjson.loads(orjson.dumps({**members, "say": MARK}))  # type: ignore[no-any-return]


def event(text: bytes, **members: object) -> bytes:
    return b"data: %b\n\n" % data(text, **members)


def form(changing: str = "", **members: object) -> TextFrames:
    found = learn_form(data(b'"a"', **members), "say", marked(**members), changing.split(), AROUND)
    assert found is not None
    return found


def test_the_texts_of_equal_events_are_read_up_to_another_one() -> None:
    piece = event(b'"x"') + event(b'" y"')
    assert form().read(piece) == ([b"x", b" y"], len(piece))
    assert form().read(piece + event(b'"z"', more=1)) == ([b"x", b" y"], len(piece))
    assert form().read(piece + event(b'"z"')[:-1]) == ([b"x", b" y"], len(piece))


def test_what_is_around_the_text_is_told_where_nothing_else_changes() -> None:
    before, middle, after = form().around or (b"", b"", b"")
    assert (before + b"x" + after, middle) == (event(b'"x"'), None)
    assert form("at", at=1).around is None
    assert form("id", id="one").around is None


def test_what_is_around_the_text_and_a_string_behind_it_is_told() -> None:
    marks: JsonObject = {"say": MARK, "pad": "p", "at": 1}
    found = learn_form(b'{"say":"a","pad":"p","at":1}', "say", marks, ["pad"], AROUND)
    assert found is not None
    assert found.around == (b'data: {"say":"', b'","pad":"', b'","at":1}\n\n')
    number = learn_form(b'{"say":"a","pad":"p","at":1}', "say", marks, ["at"], AROUND)
    assert number is not None
    assert number.around is None


@looped("text", [b'""', b"null", b'"a', b'"a"x', b' "a"', b'"a\\"', b'["a"]', b'"a","b":"c"'])
def test_what_is_no_text_of_its_own_is_not_read(text: bytes) -> None:
    assert form().read(event(text)) == ([], 0)


@looped("text", [b'"\\""', b'"\\\\"', b'"\\\\\\""', b'"a\\\\"', b'"\\",\\"b"'])
def test_a_quote_after_a_backslash_ends_no_text(text: bytes) -> None:
    assert form().read(event(text)) == ([text[1:-1]], len(event(text)))


def test_members_that_change_may_be_anything_of_their_kind() -> None:
    found = form("id at", id="one", at=1, kind="k")
    piece = event(b'"x"', id="two", at=20, kind="k") + event(b'"y"', id="", at=0, kind="k")
    assert found.read(piece) == ([b"x", b"y"], len(piece))


@looped(
    "other",
    [
        {"id": "one", "at": -1},
        {"id": "one", "at": 1.5},
        {"id": "one", "at": None},
        {"id": None, "at": 1},
        {"id": 7, "at": 1},
        {"id": 'with "quotes"', "at": 1},
        {"id": "é", "at": 1},
        {"at": 1, "id": "one"},
        {"id": "one", "at": 1, "more": 1},
        {"id": "one"},
    ],
)
def test_members_of_another_kind_are_another_form(other: dict[str, object]) -> None:
    assert form("id at", id="one", at=1).read(event(b'"x"', **other)) == ([], 0)


@looped("number", [b"01", b"1" * 19, b"1e5", b"+1", b""])
def test_what_is_no_whole_number_is_not_read(number: bytes) -> None:
    assert form("at", at=7).read(event(b'"x"', at="AT").replace(b'"AT"', number)) == ([], 0)


@looped(
    ("raw", "holds"),
    [
        (b'{"say":"a","say":"b"}', {"say": MARK}),
        (b'{"x":{"say":"a"},"say":"b"}', {"x": {"say": "a"}, "say": MARK}),
        (b'{"x":{"say":"a"}}', {"say": MARK}),
        (b'{"say":{"say2":"a"}}', {"say": MARK}),
        (b'{"say" :"a"}', {"say": MARK}),
        (b'{"say":["a"]}', {"say": MARK}),
        (b'{"id":"1","id":"2","say":"a"}', {"id": "2", "say": MARK}),
        (b'{"id":{"id":"1"},"say":"a"}', {"id": "1", "say": MARK}),
        (b'{"say":"a"', {"say": MARK}),
        (b'{"say":"a"}', {"say": MARK, "other": 1}),
    ],
)
def test_an_event_that_cannot_be_cut_for_sure_gives_no_form(raw: bytes, holds: JsonObject) -> None:
    assert learn_form(raw, "say", holds, ("id",), AROUND) is None


def test_more_holes_than_are_worth_it_give_no_form() -> None:
    members = {name: name for name in "abcde"}
    assert learn_form(data(b'"a"', **members), "say", marked(**members), members, AROUND) is None


def test_white_space_within_the_event_is_part_of_its_form() -> None:
    raw = b'{"id":   "one", "say":  "a" }'
    found = learn_form(raw, "say", marked(id="one"), ("id",), AROUND)
    assert found is not None
    piece = b'data: {"id":   "two", "say":  "b" }\n\n'
    assert found.read(piece) == ([b"b"], len(piece))
    assert found.read(piece.replace(b"   ", b" ")) == ([], 0)


# Learning ------------------------------------------------------------------------------------------------------------

PIECE = b"data: {"


def learner(*changing: str) -> FrameLearner:
    return FrameLearner(("id", "at"), frozenset(changing))


def test_a_member_that_is_seen_to_change_becomes_a_hole() -> None:
    found = learner()
    found.learn(data(id="one"), "say", marked(id="one"), PIECE)
    assert found.frames is not None
    assert found.frames.read(event(b'"x"', id="two")) == ([], 0)
    found.learn(data(id="two"), "say", marked(id="two"), PIECE)
    assert found.frames.read(event(b'"x"', id="three"))[0] == [b"x"]


def test_another_member_that_changes_does_not() -> None:
    found = learner()
    for name in ("a", "b"):
        found.learn(data(name=name), "say", marked(name=name), PIECE)
    assert found.frames is not None
    assert found.frames.read(event(b'"x"', name="c")) == ([], 0)


@looped(
    ("before", "after"),
    [
        *[(b"data: ", b"\n\n"), (b"data:", b"\n\n"), (b"data: ", b"\r\n\r\n"), (b"data:", b"\r\n\r\n")],
        *[(b"event: say\ndata: ", b"\n\n"), (b"event:say\ndata:", b"\n\n"), (b"event: say\r\ndata: ", b"\r\n\r\n")],
    ],
)
def test_events_are_framed_as_the_next_one_is(before: bytes, after: bytes) -> None:
    piece = before + data(b'"x"') + after
    found = learner()
    found.learn(data(), "say", marked(), piece)
    assert found.frames is not None
    assert found.frames.read(piece) == ([b"x"], len(piece))


def test_lessons_are_few_and_events_to_learn_from_short() -> None:
    found = learner()
    found.learn(data(more="m" * MAX_LEARNED_BYTES), "say", marked(more="m" * MAX_LEARNED_BYTES), PIECE)
    assert (found.frames, found.forms_left) == (None, MAX_FORMS)
    found.learn(b'{"say":\n"a"}', "say", marked(), PIECE)
    assert (found.frames, found.forms_left) == (None, MAX_FORMS)
    for _ in range(MAX_FORMS):
        found.learn(data(), "say", marked(), PIECE)
        assert found.frames is not None
    found.learn(data(), "say", marked(), PIECE)
    assert found.frames is None


# Texts ---------------------------------------------------------------------------------------------------------------


@given(st.lists(st.text(min_size=1)), st.booleans())
def test_a_run_holds_the_texts(texts: list[str], escaped: bool) -> None:
    valid = [text.encode("utf-8", "replace").decode() for text in texts]
    literals = [(_escaped(text) if escaped else orjson.dumps(text))[1:-1] for text in valid]
    run = text_run(3, literals, "fp")
    assert run is not None
    assert [(chunk.index, chunk.text, chunk.system_fingerprint) for chunk in run.chunks()] == [
        (3, text, "fp") for text in valid
    ]
    assert run.characters == sum(map(len, valid))
    assert run.size == sum(len(text.encode()) for text in valid)


def _escaped(text: str) -> bytes:
    return orjson.dumps(text) if text.isascii() else b'"%b"' % "".join(map(_escape, text)).encode()


def _escape(character: str) -> str:
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[place : place + 2].hex()}" for place in range(0, len(units), 2))


@looped("literal", [b"\\ud83d", b"\\x", b"\xff", b"\n", b"\x00", b'a"b', b"a\\", b"\\u12"])
def test_what_is_not_the_inside_of_a_string_makes_no_run(literal: bytes) -> None:
    assert text_run(0, [b"a", literal], None) is None


def test_plain_texts_are_left_as_they_are() -> None:
    run = text_run(0, [b"a b", b"\\n", b"~"], None)
    assert run is not None
    assert (run.literals, run.odd) == ([b"a b", b"\\n", b"~"], {1: "\n"})


def test_the_text_of_a_literal_in_ascii() -> None:
    assert text_of_ascii(b"plain \x7f") == "plain \x7f"
    assert text_of_ascii(b'\\"\\ud83d\\ude00\\n') == '"\U0001f600\n'


@given(st.lists(st.text(min_size=1), min_size=2, max_size=6), st.booleans(), st.sampled_from(["text", "reasoning"]))
def test_a_run_without_its_first_piece_is_the_run_of_the_others(texts: list[str], escaped: bool, part: RunPart) -> None:
    valid = [text.encode("utf-8", "replace").decode() for text in texts]
    literals = [(_escaped(text) if escaped else orjson.dumps(text))[1:-1] for text in valid]
    whole, others = (part_run(1, given, "fp", part, 0) for given in (literals, literals[1:]))
    assert whole is not None
    assert without_first(whole) == others
    assert [*without_first(whole).chunks()] == [*whole.chunks()][1:]
