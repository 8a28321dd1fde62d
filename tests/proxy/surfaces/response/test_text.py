"""Text completions as clients get them."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.completion import (
    Choice,
    Chunk,
    Completion,
    ContentLogprobs,
    Extras,
    TokenLogprob,
    ToolCall,
    ToolCallDelta,
    Usage,
)
from providers.json_types import JsonObject
from proxy.surfaces.completion_surface import CompletionSurface
from tests.proxy.surfaces.kit import FACTS, ROWS, USAGE, choices, complete, every_row, objects, play
from tests.support.looped import looped

OPENAI, FIREWORKS, SCALE_V4 = ROWS["openai"], ROWS["fireworks"], ROWS["scale_v4"]
HI = ContentLogprobs((TokenLogprob("Hi", -0.5, (72, 105)),))


def whole(row: CompletionSurface, *choices: Choice, usage: Usage | None = USAGE, **fields: bool) -> JsonObject:
    rendered = row.renderer(complete(row, **fields), FACTS).completion(Completion(choices, usage))
    body: JsonObject = orjson.loads(rendered)
    return body


@every_row
def test_a_whole_answer_has_the_common_shape(row: CompletionSurface) -> None:
    details = Usage(6, 1, {"cached_tokens": 0}, {"reasoning_tokens": 0})
    completion = Completion((Choice(0, " Paris", "stop"),), details, "fp_1a2b")
    assert row.renderer(complete(row), FACTS).completion(completion) == (
        b'{"id":"cmpl-1","object":"text_completion","created":1795246123,"model":"openai/gpt-x",'
        b'"system_fingerprint":"fp_1a2b",'
        b'"choices":[{"index":0,"text":" Paris","logprobs":null,"finish_reason":"stop"}],'
        b'"usage":{"prompt_tokens":6,"completion_tokens":1,"total_tokens":7,'
        b'"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}}'
    )


@every_row
def test_usage_is_an_object_even_where_the_vendor_sent_none(row: CompletionSurface) -> None:
    assert whole(row, Choice(0, "", "length"), usage=None)["usage"] == {
        "prompt_tokens": 0,
        "completion_tokens": 0,
        "total_tokens": 0,
    }


def test_the_service_tier_is_passed_on() -> None:
    completion = Completion((Choice(0, "", "stop"),), USAGE, service_tier="flex")
    assert orjson.loads(OPENAI.renderer(complete(), FACTS).completion(completion))["service_tier"] == "flex"


def test_a_refusal_is_the_text_and_said_to_be_one() -> None:
    for text in ("I can't help.", ""):
        (choice,) = choices(whole(OPENAI, Choice(0, text, "stop", refusal="I can't help.")))
        assert choice == {
            "index": 0,
            "text": "I can't help.",
            "logprobs": None,
            "finish_reason": "stop",
            "refusal": "I can't help.",
        }


def test_tool_calls_ride_beside_the_text_and_reasoning_does_not() -> None:
    called = Choice(0, "", "tool_calls", tool_calls=(ToolCall("c1", "f", "{}"),), reasoning="hm")
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    base = {"index": 0, "text": "", "logprobs": None, "tool_calls": [call]}
    assert whole(SCALE_V4, called)["choices"] == [{**base, "finish_reason": "tool_calls"}]
    for name in ("openai", "scale_v5", "fireworks", "pais"):
        told = {**base, "finish_reason": "stop", "native_finish_reason": "tool_calls"}
        assert whole(ROWS[name], called)["choices"] == [told]


def test_streamed_tool_calls_come_whole_with_the_finish() -> None:
    renderer = OPENAI.renderer(complete(stream=True), FACTS)
    assert renderer.chunk(Chunk(tool_calls=(ToolCallDelta(0, "c1", "f", "{"),))) == b""
    assert renderer.chunk(Chunk(text="so", tool_calls=(ToolCallDelta(0, arguments="}"),))) != b""
    (frame,) = objects(renderer.chunk(Chunk(finish_reason="tool_calls")))
    assert frame["choices"] == [
        {
            "index": 0,
            "text": "",
            "logprobs": None,
            "finish_reason": "stop",
            "native_finish_reason": "tool_calls",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        }
    ]


@pytest.mark.parametrize("chunk", [Chunk(refusal="No"), Chunk(text="No", refusal="No")])
def test_a_streamed_refusal_is_the_text(chunk: Chunk) -> None:
    (frame,) = objects(OPENAI.renderer(complete(stream=True), FACTS).chunk(chunk))
    assert frame["choices"] == [{"index": 0, "text": "No", "logprobs": None, "finish_reason": None, "refusal": "No"}]


@looped("chunk", [Chunk(), Chunk(reasoning="hm"), Chunk(system_fingerprint="fp"), Chunk(logprobs=HI)])
def test_a_chunk_that_says_nothing_about_the_text_makes_no_frame(chunk: Chunk) -> None:
    assert OPENAI.renderer(complete(stream=True), FACTS).chunk(chunk) == b""


def test_log_probabilities_may_run_ahead_of_the_text() -> None:
    renderer = OPENAI.renderer(complete(stream=True, logprobs=0), FACTS)
    frames = objects(renderer.chunk(Chunk(logprobs=HI)) + renderer.chunk(Chunk(text="Hi")))
    arrays = {"tokens": ["Hi"], "token_logprobs": [-0.5], "top_logprobs": [{"Hi": -0.5}], "text_offset": [1]}
    assert [frame["choices"] for frame in frames] == [
        [{"index": 0, "text": "", "logprobs": arrays, "finish_reason": None}],
        [{"index": 0, "text": "Hi", "logprobs": None, "finish_reason": None}],
    ]


def test_the_stop_that_matched_is_named() -> None:
    (frame,) = objects(
        OPENAI.renderer(complete(stream=True), FACTS).chunk(Chunk(finish_reason="stop", matched_stop="\n"))
    )
    assert frame["choices"] == [
        {"index": 0, "text": "", "logprobs": None, "finish_reason": "stop", "stop_reason": "\n"}
    ]


@every_row
@given(texts=st.lists(st.text(min_size=1), max_size=5))
def test_every_frame_is_ascii_json_and_the_text_arrives_whole(row: CompletionSurface, texts: list[str]) -> None:
    renderer = row.renderer(complete(row, stream=True), FACTS)
    stream = play(renderer, *(Chunk(text=text) for text in texts), Chunk(finish_reason="stop"), USAGE)
    assert "".join(str(choice["text"]) for choice in choices(*objects(stream))) == "".join(texts)


def test_members_of_the_whole_answer_at_its_end_repeat_nothing_of_it() -> None:
    called = Chunk(tool_calls=(ToolCallDelta(0, "c1", "f", "{}"),))
    ended = Chunk(0, " end", "stop", extras=Extras(choice={"seen": 1}, answer={"metrics": {"a": 1}}))
    events = objects(play(OPENAI.renderer(complete(stream=True), FACTS), called, ended))
    parts = [choice for event in events for choice in choices(event)]
    assert [event["metrics"] for event in events if "metrics" in event] == [{"a": 1}]
    assert "".join(str(part["text"]) for part in parts) == " end"
    found = [part["tool_calls"] for part in parts if "tool_calls" in part]
    assert [len(calls) for calls in found if isinstance(calls, list)] == [1]
    assert [part["finish_reason"] for part in parts if part["finish_reason"]] == ["stop"]
    assert [part["seen"] for part in parts if "seen" in part] == [1]


def test_the_tier_of_a_stream_comes_with_its_end() -> None:
    renderer = OPENAI.renderer(complete(stream=True), FACTS)
    (last,) = objects(renderer.chunk(Chunk(finish_reason="stop", service_tier="flex")))
    assert last["service_tier"] == "flex"
