"""The canned OpenAI shapes: non-streaming responses and streams have the same content."""

import orjson

from providers.json_types import JsonObject
from tests.support import openai_wire
from tests.support.http_scripts import DONE


def payloads(frames: list[bytes]) -> list[JsonObject]:
    *data, last = frames
    assert last == DONE
    return [orjson.loads(frame.removeprefix(b"data: ")) for frame in data]


def test_a_completion_stream_ends_with_its_finish_reason_and_then_usage() -> None:
    *texts, finish, usage = payloads(openai_wire.completion_frames(["a", "b"], "x", "length"))
    assert [chunk["choices"] for chunk in texts] == [
        [{"index": 0, "text": text, "logprobs": None, "finish_reason": None}] for text in ("a", "b")
    ]
    assert finish["choices"] == [{"index": 0, "text": "", "logprobs": None, "finish_reason": "length"}]
    assert (usage["choices"], usage["usage"], usage["model"]) == ([], openai_wire.USAGE, "x")


def test_a_chat_stream_begins_with_the_role() -> None:
    role, text, finish, usage = payloads(openai_wire.chat_frames(["a"]))
    assert [chunk["choices"] for chunk in (role, text, finish)] == [
        [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": ending}]
        for delta, ending in [
            ({"role": "assistant", "content": ""}, None),
            ({"content": "a"}, None),
            ({}, "stop"),
        ]
    ]
    assert (usage["choices"], usage["usage"]) == ([], openai_wire.USAGE)


def test_whole_answers_carry_the_text_and_the_model() -> None:
    completion, chat = openai_wire.completion("hi", "x"), openai_wire.chat("hi", "x")
    assert completion["choices"] == [{"index": 0, "text": "hi", "logprobs": None, "finish_reason": "stop"}]
    assert (completion["object"], completion["model"], completion["usage"]) == (
        "text_completion",
        "x",
        openai_wire.USAGE,
    )
    assert (chat["object"], chat["model"], chat["usage"]) == ("chat.completion", "x", openai_wire.USAGE)
