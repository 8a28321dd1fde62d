"""The contents of chunks besides text and calls, joined and divided again."""

from functools import partial

from providers.completion import Choice, Completion, Extras
from providers.emulation.join_extras import GrowingExtras, extras_of, overlay, shifted_annotations
from providers.json_types import JsonObject, JsonValue
from tests.support.cpu_growth import growth


def joined(*pieces: Extras) -> Extras | None:
    growing = GrowingExtras()
    for piece in pieces:
        growing.add(piece)
    return growing.whole()


def details(*pieces: JsonObject) -> tuple[JsonObject, ...]:
    whole = joined(*[Extras(reasoning_details=(piece,)) for piece in pieces])
    return () if whole is None else whole.reasoning_details


def text(index: int | None, said: str | None = None, **members: JsonValue) -> JsonObject:
    own: JsonObject = {} if said is None else {"text": said}
    return {"type": "reasoning.text", "index": index, **own, **members}


def test_pieces_of_one_block_share_its_type_and_index() -> None:
    first = text(0, "h", format="anthropic-claude-v1")
    assert details(first, text(0, "m"), text(0, signature="s")) == (
        {"type": "reasoning.text", "index": 0, "format": "anthropic-claude-v1", "text": "hm", "signature": "s"},
    )
    assert details(text(0, "a"), text(1, "b"), text(0, "c")) == (text(0, "ac"), text(1, "b"))


def test_an_encrypted_detail_with_the_index_of_a_text_is_its_own() -> None:
    encrypted: JsonObject = {"type": "reasoning.encrypted", "index": 0, "data": "QQ=="}
    assert details(text(0, "a"), encrypted) == (text(0, "a"), encrypted)


def test_a_signature_or_another_id_ends_a_block() -> None:
    one, two = text(0, "a", signature="1"), text(0, "b", signature="2")
    assert details(one, text(1, "x"), two) == (one, text(1, "x"), two)
    first: JsonObject = {"type": "reasoning.encrypted", "index": 0, "data": "QQ==", "id": "c1"}
    second: JsonObject = {"type": "reasoning.encrypted", "index": 0, "data": "Qg==", "id": "c2"}
    assert details(first, second) == (first, second)
    assert details({**first, "data": "Q"}, {**first, "data": "Q=="}) == ({**first, "data": "QQ=="},)


def test_a_detail_without_an_index_is_whole() -> None:
    assert details(text(None, "a"), text(None, "b")) == (text(None, "a"), text(None, "b"))


def test_lists_follow_each_other_and_members_are_replaced() -> None:
    whole = joined(
        Extras(annotations=({"a": 1},), images=({"i": 1},), message={"x": 1, "l": [1]}, choice={"c": "old"}),
        Extras(annotations=({"a": 2},), images=({"i": 2},), message={"x": 2, "l": [2]}, choice={"c": "new"}),
    )
    assert whole == Extras(
        annotations=({"a": 1}, {"a": 2}),
        images=({"i": 1}, {"i": 2}),
        message={"x": 2, "l": [1, 2]},
        choice={"c": "new"},
    )


def test_a_sound_s_pieces_are_joined() -> None:
    whole = joined(
        Extras(audio={"id": "a", "transcript": "h"}),
        Extras(audio={"data": "QQ", "transcript": "i"}),
        Extras(audio={"data": "==", "expires_at": 7}),
    )
    assert whole == Extras(audio={"id": "a", "transcript": "hi", "data": "QQ==", "expires_at": 7})


def test_members_of_the_whole_answer_are_no_choice_s() -> None:
    assert joined(Extras(answer={"citations": ["x"]})) is None


def test_a_list_that_grows_is_not_the_vendor_s() -> None:
    first: JsonObject = {"l": [1]}
    holder: JsonObject = {}
    overlay(holder, first)
    overlay(holder, {"l": [2]})
    overlay(holder, None)
    assert (holder, first) == ({"l": [1, 2]}, {"l": [1]})


def test_the_answer_s_members_come_with_its_first_choice() -> None:
    first, second = Choice(0, "a", "stop", extras=Extras(images=({"i": 1},))), Choice(1, "b", "stop")
    completion = Completion((first, second), None, extra={"citations": ["x"]})
    assert extras_of(completion, first) == Extras(images=({"i": 1},), answer={"citations": ["x"]})
    assert extras_of(completion, second) is None
    assert extras_of(Completion((first,), None), first) is first.extras


def test_citations_move_with_the_text_that_they_are_in() -> None:
    cited: JsonObject = {"type": "url_citation", "url_citation": {"url": "u", "start_index": 1, "end_index": 3}}
    moved: JsonObject = {"type": "url_citation", "url_citation": {"url": "u", "start_index": 6, "end_index": 8}}
    other: JsonObject = {"type": "file", "url_citation": {"start_index": None}}
    assert shifted_annotations(Extras(annotations=(cited, other, {})), 5).annotations == (moved, other, {})


def test_thousands_of_pieces_are_joined_in_linear_time() -> None:
    pieces = [Extras(reasoning_details=(text(0, "x" * 20),), message={"l": [1]}) for _ in range(20_000)]
    assert growth(partial(joined, *pieces[:5_000]), partial(joined, *pieces)) == ""
    whole = joined(*pieces)
    assert whole is not None
    assert whole.reasoning_details == (text(0, "x" * 400_000),)
