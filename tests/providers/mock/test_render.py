"""The JSON of the mock's responses and frames."""

from collections.abc import Iterator
from typing import Any

import orjson

from providers.json_types import JsonObject, JsonValue
from providers.mock import render
from providers.mock.generate import MockStyle, generate
from providers.mock.request import parse
from tests.support.looped import looped

CHAT: JsonObject = {"model": "m", "messages": [{"role": "user", "content": "hé there, you"}]}
TEXT: JsonObject = {"model": "m", "prompt": "hé there, you"}
TOOLS: JsonValue = [{"type": "function", "function": {"name": "f", "parameters": {"const": {"city": "Oslo"}}}}]
ECHO = MockStyle(echo=True)
Wire = dict[str, Any]  # Any: a parsed response


def whole(path: str, body: JsonObject) -> JsonObject:
    request = parse(path, orjson.dumps(body))
    answer: JsonObject = orjson.loads(render.non_streaming_body(request, generate(request, ECHO)))
    return answer


def frames(path: str, body: JsonObject) -> Iterator[tuple[bool, JsonObject]]:
    request = parse(path, orjson.dumps({**body, "stream": True}))
    for frame in render.stream(request, generate(request, ECHO)):
        assert frame.data.startswith(b"data: ")
        assert frame.data.endswith(b"\n\n")
        yield frame.token, orjson.loads(frame.data[6:])


def only(answer: JsonObject) -> JsonObject:
    choices = answer["choices"]
    assert isinstance(choices, list)
    assert len(choices) == 1
    assert isinstance(choices[0], dict)
    return choices[0]


def test_a_completion_has_every_member() -> None:
    answer = whole("/completions", TEXT)
    assert only(answer) == {"index": 0, "text": "hé there, you", "logprobs": None, "finish_reason": "stop"}
    assert answer["usage"] == {
        "prompt_tokens": 4,
        "completion_tokens": 4,
        "total_tokens": 8,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }
    assert (answer["object"], answer["model"]) == ("text_completion", "m")
    assert str(answer["id"]).startswith("cmpl-")


def test_a_chat_answer_has_every_member() -> None:
    answer = whole("/chat/completions", CHAT)
    message = {"role": "assistant", "content": "hé there, you", "refusal": None}
    assert only(answer) == {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    assert answer["object"] == "chat.completion"
    assert str(answer["id"]).startswith("chatcmpl-")


def test_the_matched_stop_string_is_told() -> None:
    assert only(whole("/completions", {**TEXT, "stop": ","}))["stop_reason"] == ","


def test_the_four_arrays_fit_the_text() -> None:
    logprobs = only(whole("/completions", {**TEXT, "logprobs": 2, "echo": True}))["logprobs"]
    assert isinstance(logprobs, dict)
    assert logprobs["tokens"] == ["hé", " there", ",", " you"] * 2
    assert logprobs["text_offset"] == [0, 2, 8, 9, 13, 15, 21, 22]
    tops, chosen = logprobs["top_logprobs"], logprobs["token_logprobs"]
    assert isinstance(tops, list)
    assert isinstance(chosen, list)
    assert (tops[0], chosen[0]) == (None, None)
    assert all(isinstance(top, dict) and len(top) == 2 for top in tops[1:])


def test_without_alternatives_there_are_no_maps() -> None:
    logprobs = only(whole("/completions", {**TEXT, "logprobs": 0}))["logprobs"]
    assert isinstance(logprobs, dict)
    assert logprobs["top_logprobs"] is None


def test_the_content_list_has_tokens_bytes_and_alternatives() -> None:
    logprobs = only(whole("/chat/completions", {**CHAT, "logprobs": True, "top_logprobs": 3}))["logprobs"]
    assert isinstance(logprobs, dict)
    content = logprobs["content"]
    assert isinstance(content, list)
    first = content[0]
    assert isinstance(first, dict)
    assert (first["token"], first["bytes"]) == ("hé", [104, 195, 169])
    assert isinstance(first["top_logprobs"], list)
    assert len(first["top_logprobs"]) == 3


@looped("more", [{}, {"max_tokens": 2}, {"logprobs": 2, "echo": True}, {"stop": "e,"}, {"n": 2}])
def test_streamed_texts_are_the_whole_texts(more: JsonObject) -> None:
    body = {**TEXT, **more}
    texts: dict[JsonValue, str] = {}
    finishes: dict[JsonValue, JsonValue] = {}
    for _, event in frames("/completions", body):
        gained = only(event)
        texts[str(gained["index"])] = texts.get(str(gained["index"]), "") + str(gained["text"])
        if gained["finish_reason"] is not None:
            finishes[str(gained["index"])] = gained["finish_reason"]
    choices = whole("/completions", body)["choices"]
    assert isinstance(choices, list)
    for choice in choices:
        assert isinstance(choice, dict)
        assert texts[str(choice["index"])] == choice["text"]
        assert finishes[str(choice["index"])] == choice["finish_reason"]


def test_each_token_is_one_frame_and_choices_take_turns() -> None:
    indices = [only(event)["index"] for token, event in frames("/completions", {**TEXT, "n": 2}) if token]
    assert indices == [0, 1] * 4


def test_a_chat_stream_begins_with_the_role_and_ends_with_the_reason() -> None:
    events = [only(event) for _, event in frames("/chat/completions", CHAT)]
    assert events[0]["delta"] == {"role": "assistant", "content": ""}
    assert events[1]["delta"] == {"content": "hé"}
    assert (events[-1]["delta"], events[-1]["finish_reason"]) == ({}, "stop")


def test_usage_is_a_frame_of_its_own_when_asked_for() -> None:
    events = [event for _, event in frames("/completions", {**TEXT, "stream_options": {"include_usage": True}})]
    assert all(event["usage"] is None for event in events[:-1])
    assert events[-1]["choices"] == []
    assert events[-1]["usage"] == whole("/completions", TEXT)["usage"]
    assert all("usage" not in event for _, event in frames("/completions", TEXT))


def test_a_call_is_the_same_streamed_or_not() -> None:
    body: JsonObject = {**CHAT, "tools": TOOLS, "tool_choice": "required"}
    choice = only(whole("/chat/completions", body))
    message = choice["message"]
    assert isinstance(message, dict)
    assert (message["content"], choice["finish_reason"]) == (None, "tool_calls")
    assert isinstance(message["tool_calls"], list)
    call = message["tool_calls"][0]
    assert isinstance(call, dict)
    assert call["function"] == {"name": "f", "arguments": '{"city":"Oslo"}'}
    arguments = ""
    for token, event in frames("/chat/completions", body):
        delta = only(event)["delta"]
        assert isinstance(delta, dict)
        for piece in delta.get("tool_calls") or []:  # type: ignore[union-attr]
            assert isinstance(piece, dict)
            function = piece["function"]
            assert isinstance(function, dict)
            assert token or (piece["id"], function["name"]) == (call["id"], "f")
            arguments += str(function["arguments"])
    assert arguments == '{"city":"Oslo"}'


SCRIPTED: JsonObject = {
    "model": "script",
    "n": 2,
    "tools": TOOLS,
    "messages": [
        {
            "role": "user",
            "content": '```script\n[{"thinking": "a b", "text": "c d", "calls": [{"name": "f"}, {"name": "f"}]}]\n```',
        }
    ],
}


def test_a_scripted_turn_has_its_thought_its_text_and_calls_with_ids_of_their_own() -> None:
    answer: Wire = whole("/chat/completions", SCRIPTED)
    messages = [choice["message"] for choice in answer["choices"]]
    assert [(each["content"], each["reasoning_content"]) for each in messages] == [("c d", "a b")] * 2
    calls = [call for each in messages for call in each["tool_calls"]]
    assert [call["function"] for call in calls] == [{"name": "f", "arguments": "{}"}] * 4
    assert len({call["id"] for call in calls}) == 4
    assert answer["usage"]["completion_tokens_details"] == {"reasoning_tokens": 4}


def test_a_scripted_stream_is_the_whole_answer_in_pieces() -> None:
    body = {**SCRIPTED, "n": 1}
    answer: Wire = whole("/chat/completions", body)
    wanted = answer["choices"][0]["message"]
    found: dict[str, str] = {}
    for _, event in frames("/chat/completions", body):
        choice: Wire = only(event)
        delta = choice["delta"]
        for name in ("reasoning_content", "content"):
            found[name] = found.get(name, "") + (delta.get(name) or "")
        for call in delta.get("tool_calls", []):
            place = f"call {call['index']}"
            found[place] = found.get(place, call.get("id", "")) + call["function"]["arguments"]
    assert (found["content"], found["reasoning_content"]) == (wanted["content"], wanted["reasoning_content"])
    assert [found["call 0"], found["call 1"]] == [f"{call['id']}{{}}" for call in wanted["tool_calls"]]


def test_a_scripted_turn_of_calls_alone_has_no_content() -> None:
    block = '```script\n[{"calls": [{"name": "f"}]}]\n```'
    answer: Wire = whole("/chat/completions", {**SCRIPTED, "n": 1, "messages": [{"role": "user", "content": block}]})
    assert answer["choices"][0]["message"]["content"] is None
