"""The texts of prompts and responses in spans: the conventions' form, bounded, and never media."""

import json
from collections.abc import Mapping

from providers.completion import Choice, Chunk, ToolCall, ToolCallDelta
from providers.json_types import JsonObject
from providers.unified_request import ChatPrompt, TextPrompt, TokenPrompt
from proxy.tracing.content_messages import (
    CUT,
    MOST_CHARACTERS,
    MOST_MESSAGES,
    GatheredTexts,
    prompt_json,
    response_json,
)

IMAGE: JsonObject = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
CALL: JsonObject = {"id": "c", "type": "function", "function": {"name": "look", "arguments": '{"a":1}'}}


def chat(*messages: JsonObject) -> list[Mapping[str, object]]:
    found: list[Mapping[str, object]] = json.loads(prompt_json(ChatPrompt(messages)))
    return found


def user(text: str) -> JsonObject:
    return {"role": "user", "content": text}


def test_a_conversation_in_parts() -> None:
    asked: JsonObject = {"role": "user", "content": [{"type": "text", "text": "what?"}, IMAGE]}
    called: JsonObject = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    told: JsonObject = {"role": "tool", "tool_call_id": "c", "content": "seen"}
    assert chat({"role": "system", "content": "terse"}, asked, called, told) == [
        {"role": "system", "parts": [{"type": "text", "content": "terse"}]},
        {"role": "user", "parts": [{"type": "text", "content": "what?"}, {"type": "image_url"}]},
        {"role": "assistant", "parts": [{"type": "tool_call", "name": "look", "arguments": '{"a":1}'}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "response": "seen"}]},
    ]


def test_what_makes_no_sense_is_left_out() -> None:
    odd: JsonObject = {"role": 7, "content": [1, {"text": 2}], "tool_calls": [None, {"function": []}, {}]}
    assert chat(odd, {"content": {}}) == [
        {"role": "user", "parts": [{"type": "None"}]},
        {"role": "user", "parts": []},
    ]


def test_plain_prompts_are_the_users_and_token_ids_are_nothing() -> None:
    assert json.loads(prompt_json(TextPrompt(("one", "two")))) == [
        {"role": "user", "parts": [{"type": "text", "content": text}]} for text in ("one", "two")
    ]
    assert prompt_json(TokenPrompt(((1, 2),))) == ""


def test_of_a_long_conversation_the_latest_messages_are_kept_and_cut() -> None:
    messages = chat(*(user(f"{number} " + "x" * 20_000) for number in range(3)))
    starts = [number for message in messages for number in "012" if f"'content': '{number} x" in str(message["parts"])]
    assert starts == ["1", "2"]
    assert CUT in str(messages[0])
    assert CUT not in str(messages[1])
    assert len(chat(*(user("x") for _ in range(500)))) == MOST_MESSAGES


def test_lone_surrogates_are_escaped() -> None:
    assert prompt_json(TextPrompt(("\udcff",))).isascii()


def test_a_whole_answer() -> None:
    choice = Choice(0, "text", "tool_calls", reasoning="thought", tool_calls=(ToolCall("c", "look", "{}"),))
    assert json.loads(response_json([choice])) == [
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": "thought"},
                {"type": "text", "content": "text"},
                {"type": "tool_call", "name": "look", "arguments": "{}"},
            ],
            "finish_reason": "tool_calls",
        }
    ]


def test_a_stream_gathers_to_the_same_and_what_broke_off_is_no_success() -> None:
    texts = GatheredTexts()
    texts.add(Chunk(0, "te", reasoning="thou"))
    texts.add(Chunk(0, "xt", reasoning="ght", tool_calls=(ToolCallDelta(0, "c", "look", "{"),)))
    texts.add(Chunk(0, tool_calls=(ToolCallDelta(0, arguments="}"),)))
    assert json.loads(texts.json())[0]["finish_reason"] == "error"
    texts.add(Chunk(0, finish_reason="tool_calls"))
    choice = Choice(0, "text", "tool_calls", reasoning="thought", tool_calls=(ToolCall("c", "look", "{}"),))
    assert texts.json() == response_json([choice])


def test_an_endless_stream_takes_no_more_than_its_room() -> None:
    texts = GatheredTexts()
    for _ in range(100):
        texts.add(Chunk(0, "x" * 1000, tool_calls=(ToolCallDelta(0, "c", "look", "y" * 1000),)))
    texts.add(Chunk(0, finish_reason="length"))
    assert len(texts.json()) < MOST_CHARACTERS + 500
    assert json.loads(texts.json())[0]["finish_reason"] == "length"
