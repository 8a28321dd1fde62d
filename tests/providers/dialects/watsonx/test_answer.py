"""Responses of watsonx.ai to raw prompts and to chats, streaming and not."""

import orjson
import pytest

from providers.completion import Choice, ContentLogprobs, Extras, TokenLogprob, ToolCall, Usage
from providers.dialects.watsonx.answer import classify
from providers.failure import FailureKind
from providers.json_types import JsonObject
from providers.profiles.load_profiles import load_profiles
from providers.unified_request import LogprobsWanted
from tests.providers.dialects.kit import (
    chat_request,
    decoded,
    fixture,
    gathered,
    only,
    reader,
    sent_for,
    stream_failure,
    streamed,
    target_of,
    text_request,
)
from tests.support.looped import looped

stream = reader("watsonx", "streams", "sse")
answer = reader("watsonx", "answers", "json")

TARGET = target_of("watsonx", base_url="https://host/projects/p")
SENT = sent_for(text_request("The sky"), TARGET)
WANTED = {"logprobs": LogprobsWanted(2, "legacy")}
SCORED = sent_for(text_request("The sky", **WANTED), TARGET)
CHAT = sent_for(chat_request(), TARGET)
LOGPROBS = ContentLogprobs(
    (
        TokenLogprob("Oslo", -0.25, None, (TokenLogprob("Oslo", -0.25), TokenLogprob("Rome", -2.5))),
        TokenLogprob(" 👋", -0.5, None, (TokenLogprob(" 👋", -0.5),)),
    )
)
COMMON = {
    "text": (Choice(0, " is blue: 3 °C 👋.", "stop"), Usage(3, 7)),
    "logprobs": (Choice(0, "Oslo 👋", "stop"), Usage(3, 2)),
}
ANSWERS = {
    **COMMON,
    "length": (Choice(0, " is it", "length"), Usage(3, 16)),
    "time": (Choice(0, " is", "length", "time_limit"), Usage(3, 2)),
    "stop": (Choice(0, "one, two", "stop"), Usage(2, 4)),
    "new_word": (Choice(0, "Good night", "sunset", "sunset"), Usage(3, 2)),
    "empty": (Choice(0, "", "stop"), Usage(3, 0)),
    "uncounted": (Choice(0, "Oslo.", "stop"), None),
}
STREAMS = {
    **COMMON,
    "length": (Choice(0, " la la", "length"), Usage(3, 16)),
    "noise": (Choice(0, "Oslo.", "sunset", "sunset"), None),
}
CALL = ToolCall("chatcmpl-tool-1", "look", '{"at": "Oslo"}')
CHATS = {
    "chat": (Choice(0, "It is blue: 3 °C 👋.", "stop"), Usage(12, 7)),
    "chat_tools": (Choice(0, "", "tool_calls", tool_calls=(CALL,)), Usage(12, 7)),
}


@looped("name", ANSWERS)
def test_a_whole_answer_is_one_choice(name: str) -> None:
    completion = decoded(SENT, answer(name))
    assert (only(completion), completion.usage) == ANSWERS[name]


@looped("name", STREAMS)
def test_a_stream_is_one_choice(name: str) -> None:
    completion = gathered(streamed(SENT, stream(name)))
    assert (only(completion), completion.usage) == STREAMS[name]


@pytest.mark.parametrize("name", CHATS)
def test_a_chat_is_one_choice_whole_and_streamed(name: str) -> None:
    for completion in (decoded(CHAT, answer(name)), gathered(streamed(CHAT, stream(name)))):
        assert (only(completion), completion.usage) == CHATS[name]


def test_a_chats_stream_that_is_cut_before_its_reason_is_never_a_success() -> None:
    data = stream("chat")
    for place in range(data.index(b'"stop"')):
        assert stream_failure(CHAT, data[:place])[1].failure.kind is FailureKind.TRUNCATED, place


def test_a_chats_event_over_several_lines_is_one_event() -> None:
    spread = stream("chat").replace(b', "object"', b',\ndata:  "object"')
    assert streamed(CHAT, spread) == streamed(CHAT, stream("chat"))


def test_log_probabilities_come_only_where_they_are_wanted() -> None:
    assert only(decoded(SENT, answer("logprobs"))).logprobs is None
    assert only(decoded(SCORED, answer("logprobs"))).logprobs == LOGPROBS
    assert only(gathered(streamed(SCORED, stream("logprobs")))).logprobs == LOGPROBS


def test_a_code_means_more_than_its_status() -> None:
    body = fixture("watsonx", "errors", "error_403_quota.json")
    assert classify(load_profiles()["watsonx"], 403, {}, body).kind is FailureKind.QUOTA


def test_warnings_and_moderations_are_passed_on_whole_and_streamed() -> None:
    result: JsonObject = {"generated_text": "Hi", "stop_reason": "eos_token", "moderations": {"hap": [{"score": 0.9}]}}
    body: JsonObject = {"model_id": "m", "results": [result], "system": {"warnings": [{"message": "Old model."}]}}
    whole = decoded(SENT, orjson.dumps(body))
    assert whole.extra == {"system": body["system"]}
    assert only(whole).extras == Extras(choice={"moderations": result["moderations"]})
    assert gathered(streamed(SENT, b"event: message\ndata: " + orjson.dumps(body) + b"\n\n"), 1) == whole
