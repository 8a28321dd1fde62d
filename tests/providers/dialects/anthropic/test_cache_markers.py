"""Cache markers on Anthropic's API. The vendor accepts four, and no one-hour marker after a shorter one."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial

import orjson

from providers.dialects.anthropic.cache_markers import MAX_MARKERS, limit_markers
from providers.json_types import JsonObject, JsonValue
from tests.providers.dialects.anthropic.kit import TARGET, encode
from tests.providers.dialects.kit import chat_request, sent_for, target_of, tool, user
from tests.support.cpu_growth import growth
from tests.support.looped import looped

MARK: JsonObject = {"type": "ephemeral"}
HOUR: JsonObject = {"type": "ephemeral", "ttl": "1h"}


def text(marker: JsonObject | None = None) -> JsonObject:
    return {"type": "text", "text": "a", **({"cache_control": marker} if marker else {})}


def body(*contents: Sequence[JsonObject], **more: JsonValue) -> JsonObject:
    return {**more, "messages": [{"role": "user", "content": [*content]} for content in contents]}


def test_the_oldest_markers_of_the_messages_give_way_first() -> None:
    whole = body(*[[text(MARK)] for _ in range(4)], system=[text(MARK)], tools=[{"name": "a", "cache_control": MARK}])
    assert limit_markers(whole)
    assert whole == body(
        [text()],
        [text()],
        [text(MARK)],
        [text(MARK)],
        system=[text(MARK)],
        tools=[{"name": "a", "cache_control": MARK}],
    )


def test_the_marker_at_the_top_counts() -> None:
    whole = body([text(MARK)], [text(MARK)], [text(MARK)], [text(MARK)], cache_control=MARK)
    assert limit_markers(whole)
    assert whole == body([text()], [text(MARK)], [text(MARK)], [text(MARK)], cache_control=MARK)


def test_four_markers_stay_as_they_are() -> None:
    whole = body(*[[text(HOUR)] for _ in range(MAX_MARKERS)], system="b")
    before = deepcopy(whole)
    assert not limit_markers(whole)
    assert whole == before


def test_an_hour_behind_a_shorter_marker_is_shortened() -> None:
    whole = body([text(HOUR)], system=[text(MARK)], tools=[{"name": "a", "cache_control": HOUR}], cache_control=HOUR)
    assert limit_markers(whole)
    assert whole == body(
        [text(MARK)], system=[text(MARK)], tools=[{"name": "a", "cache_control": HOUR}], cache_control=MARK
    )


def test_what_the_client_sent_is_not_changed() -> None:
    blocks: list[JsonObject] = [text(MARK) for _ in range(6)]
    kept = deepcopy(blocks)
    limit_markers(body(blocks))
    assert blocks == kept


def test_tens_of_thousands_of_markers_are_limited_in_linear_time() -> None:
    def limited(count: int) -> bool:
        return limit_markers(body([text(MARK) for _ in range(count)]))

    assert limited(20_000)
    assert growth(partial(limited, 5_000), partial(limited, 20_000)) == ""


@looped("profile", ["anthropic", "vertex_anthropic", "bedrock_anthropic"])
def test_a_request_keeps_its_last_four_markers_and_names_the_others(profile: str) -> None:
    target = target_of(profile, "claude-haiku-4-5", max_output_tokens=100)
    parts: list[JsonValue] = [text(MARK) for _ in range(6)]
    sent = sent_for(chat_request(user(parts), tools=[tool()]), target)
    marks = ["cache_control" in block for block in orjson.loads(sent.body)["messages"][0]["content"]]
    assert marks == [False, False, True, True, True, True]
    assert sent.dropped == ("cache_control",)


@looped("profile", ["anthropic", "vertex_anthropic", "bedrock_anthropic"])
def test_settings_of_other_vendors_caches_are_left_out_and_named(profile: str) -> None:
    target = target_of(profile, "claude-haiku-4-5", max_output_tokens=100)
    unknown: JsonObject = {"prompt_cache_options": {"mode": "explicit"}, "prompt_cache_breakpoint": {"ttl": "30m"}}
    sent = sent_for(replace(chat_request(), unknown={**unknown, "cache_control": MARK}), target)
    assert b"prompt_cache" not in sent.body
    assert orjson.loads(sent.body)["cache_control"] == MARK
    assert set(sent.dropped) == {"prompt_cache_options", "prompt_cache_breakpoint"}


def test_a_breakpoint_of_openai_s_on_a_part_is_a_marker() -> None:
    part: JsonObject = {"type": "text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "30m"}}
    assert orjson.loads(encode(chat_request(user([part])), TARGET).body)["messages"][0]["content"] == [text(MARK)]
