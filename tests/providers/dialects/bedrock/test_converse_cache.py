"""Cache points of Converse."""

from copy import deepcopy
from time import process_time

import pytest

from providers.dialects.bedrock.converse_cache import MOST_POINTS, cache_point, limit_points, mark_last
from providers.dialects.bedrock.converse_models import converse_model
from providers.json_types import JsonObject, JsonValue

CLAUDE, NOVA = converse_model("claude-haiku-4-5"), converse_model("amazon.nova-pro-v1:0")
TEXT: JsonObject = {"text": "a"}


def point(ttl: str | None = None) -> JsonObject:
    return {"cachePoint": {"type": "default", **({"ttl": ttl} if ttl else {})}}


def body(*contents: list[JsonValue], system: list[JsonValue] | None = None) -> JsonObject:
    return {
        "messages": [{"role": "user", "content": content} for content in contents],
        **({"system": system} if system else {}),
    }


@pytest.mark.parametrize(("ttl", "kept"), [("1h", "1h"), ("5m", "5m"), ("1d", None), (None, None)])
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
    whole = body(*[[TEXT, point("1h")] for _ in range(MOST_POINTS)])
    before = deepcopy(whole)
    assert not limit_points(whole)
    assert whole == before


def test_an_hour_behind_a_shorter_point_is_shortened() -> None:
    whole = body([TEXT, point("1h")], [TEXT, point("1h")], system=[TEXT, point("5m")])
    assert limit_points(whole)
    assert whole == body([TEXT, point()], [TEXT, point()], system=[TEXT, point("5m")])


def test_tens_of_thousands_of_points_are_limited_in_linear_time() -> None:
    whole = body([each for _ in range(50_000) for each in (TEXT, point())])
    started = process_time()
    assert limit_points(whole)
    assert process_time() - started < 2
