"""Cache points of Converse."""

from copy import deepcopy
from functools import partial

import pytest

from providers.dialects.bedrock.converse_cache import MAX_CACHE_POINTS, cache_point, limit_points, mark_last
from providers.json_types import JsonObject, JsonValue
from tests.providers.dialects.bedrock.conversations import (
    CLAUDE,
    LLAMA,
    NOVA,
    PNG,
    PNG_BLOCK,
    POINT,
    assistant,
    call,
    file,
    image,
    part,
    read,
    result,
)
from tests.providers.dialects.kit import user
from tests.support.cpu_growth import growth
from tests.support.looped import looped

TEXT: JsonObject = {"text": "a"}


def point(ttl: str | None = None) -> JsonObject:
    return {"cachePoint": {"type": "default", **({"ttl": ttl} if ttl else {})}}


def body(*contents: list[JsonObject], system: list[JsonObject] | None = None) -> JsonObject:
    return {
        "messages": [{"role": "user", "content": [*content]} for content in contents],
        **({"system": [*system]} if system else {}),
    }


@looped(("ttl", "kept"), [("1h", "1h"), ("5m", "5m"), ("1d", None), (None, None)])
def test_a_point_lasts_as_long_as_its_marker_says(ttl: str | None, kept: str | None) -> None:
    marker: JsonObject = {"type": "ephemeral", "ttl": ttl}
    assert cache_point(CLAUDE, marker) == point(kept)
    assert cache_point(NOVA, marker) == point()


def test_a_point_of_its_own_is_nothing_to_cache() -> None:
    blocks: list[JsonObject] = []
    assert not mark_last(blocks, point())
    assert blocks == []
    assert mark_last(blocks := [TEXT], point())
    assert mark_last(blocks, point("1h"))
    assert blocks == [TEXT, point("1h")]


def test_the_oldest_points_of_the_messages_give_way_first() -> None:
    whole = body(*[[TEXT, point()] for _ in range(4)], system=[TEXT, point("5m")])
    assert limit_points(whole)
    contents = [turn["content"] for turn in whole["messages"] if isinstance(turn, dict)]  # type: ignore[union-attr]
    assert contents == [[TEXT], *[[TEXT, point()] for _ in range(3)]]
    assert whole["system"] == [TEXT, point("5m")]


def test_four_points_stay_as_they_are() -> None:
    whole = body(*[[TEXT, point("1h")] for _ in range(MAX_CACHE_POINTS)])
    before = deepcopy(whole)
    assert not limit_points(whole)
    assert whole == before


def test_an_hour_behind_a_shorter_point_is_shortened() -> None:
    whole = body([TEXT, point("1h")], [TEXT, point("1h")], system=[TEXT, point("5m")])
    assert limit_points(whole)
    assert whole == body([TEXT, point()], [TEXT, point()], system=[TEXT, point("5m")])


def test_tens_of_thousands_of_points_are_limited_in_linear_time() -> None:
    def limited(count: int) -> bool:
        return limit_points(body([each for _ in range(count) for each in (TEXT, point())]))

    assert limited(20_000)
    assert growth(partial(limited, 5_000), partial(limited, 20_000)) == ""


# In conversations ---------------------------------------------------------------------------------------------------


def test_cache_markers_stand_behind_what_they_mark() -> None:
    kept: JsonValue = {"type": "ephemeral", "ttl": "1h"}
    plain: JsonValue = {"type": "ephemeral"}
    conversation = read(
        {"role": "system", "content": [part("Be kind.", cache_control=kept)]},
        user([part("a", cache_control=plain), part("b")]),
        assistant(None, call()),
        result([part("c", cache_control=plain)]),
        {"role": "user", "content": "d", "cache_control": kept},
        model=CLAUDE,
    )
    assert conversation.system == [{"text": "Be kind."}, {"cachePoint": {"type": "default", "ttl": "1h"}}]
    assert conversation.turns[0]["content"] == [{"text": "a"}, POINT, {"text": "b"}]
    assert conversation.turns[2]["content"] == [
        {"toolResult": {"toolUseId": "call_1", "content": [{"text": "c"}]}},
        POINT,
        {"text": "d"},
        {"cachePoint": {"type": "default", "ttl": "1h"}},
    ]
    assert conversation.dropped == []


def test_cache_markers_of_models_without_cache_points_are_left_out_and_named() -> None:
    conversation = read(user([part("a", cache_control={"type": "ephemeral"})]), model=LLAMA)
    assert conversation.turns == [{"role": "user", "content": [{"text": "a"}]}]
    assert conversation.dropped == ["cache_control"]


@pytest.mark.parametrize(
    ("media", "place"), [("application/pdf", 2), ("text/csv", 1)], ids=["behind a PDF", "before another document"]
)
def test_no_cache_point_stands_right_behind_a_document_but_a_pdf(media: str, place: int) -> None:
    marked: JsonObject = {**file("a.x", f"data:{media};base64,YQ=="), "cache_control": {"type": "ephemeral"}}
    content = read(user([part("a"), marked]), model=CLAUDE).turns[0]["content"]
    assert isinstance(content, list)
    assert content.index(POINT) == place
    alone = read(user([marked]), model=CLAUDE)
    assert alone.dropped == ([] if place == 2 else ["cache_control"])


@looped(
    ("content", "kinds"),
    [
        ([result("b", cache_control={"type": "ephemeral"})], ["toolResult"]),
        ([result([part("b", cache_control={"type": "ephemeral"})])], ["toolResult"]),
        ([result("b"), user([part("c", cache_control={"type": "ephemeral"})])], ["toolResult", "text", "cachePoint"]),
        ([result("b"), user([{**image(PNG), "cache_control": {"type": "ephemeral"}}])], ["toolResult", "image"]),
    ],
)
def test_on_nova_no_cache_point_stands_right_behind_a_result_or_an_image(
    content: list[JsonValue], kinds: list[str]
) -> None:
    asked = [user("a"), assistant(None, call())]
    for model, left_out in ((NOVA, "cachePoint" not in kinds), (CLAUDE, False)):
        found = read(*asked, *content, model=model)
        blocks = found.turns[-1]["content"]
        assert isinstance(blocks, list)
        expected = kinds if left_out or "cachePoint" in kinds else [*kinds, "cachePoint"]
        assert [next(iter(block)) for block in blocks if isinstance(block, dict)] == expected
        assert found.dropped == (["cache_control"] if left_out else [])
    marked = user([part("b"), {**image(PNG), "cache_control": {"type": "ephemeral"}}])
    assert read(marked, model=NOVA).turns[0]["content"] == [{"text": "b"}, POINT, PNG_BLOCK]


def test_on_nova_no_cache_point_stands_right_behind_any_document() -> None:
    marked: JsonObject = {**file("a.pdf", "data:application/pdf;base64,YQ=="), "cache_control": {"type": "ephemeral"}}
    content = read(user([part("a"), marked]), model=NOVA).turns[0]["content"]
    assert isinstance(content, list)
    assert content.index(POINT) == 1
    assert read(user([marked]), model=NOVA).dropped == ["cache_control"]


def test_a_blank_text_passes_its_cache_marker_to_what_stands_before_it() -> None:
    content = read(user([part("a"), part(" ", cache_control={"type": "ephemeral"})]), model=CLAUDE).turns[0]["content"]
    assert content == [{"text": "a"}, POINT]
