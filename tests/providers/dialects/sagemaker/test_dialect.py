"""SageMaker endpoints: each container's own wire behind Amazon's address, and the incoming response."""

from dataclasses import replace

import orjson
import pytest

from providers.completion import Choice, Usage
from providers.failure import FailureKind
from providers.json_types import JsonObject
from providers.target import Target
from providers.unified_request import LogprobsWanted, Operation
from tests.providers.dialects.kit import (
    chat_request,
    decode_failure,
    decoded,
    fixture,
    gathered,
    only,
    refusal_for,
    sent_for,
    streamed,
    target_of,
    text_request,
    user,
)

ORIGIN = "https://runtime.sagemaker.eu-west-1.amazonaws.com"
OPENAI = target_of("sagemaker", "llama/8b", base_url=ORIGIN)
TGI = target_of("sagemaker_tgi", "llama", base_url=ORIGIN)
STREAM = "invocations-response-stream"
WANTED = {"logprobs": LogprobsWanted(1, "legacy")}


def test_an_endpoints_name_is_no_models() -> None:
    sent = sent_for(chat_request(max_tokens=5), OPENAI)
    assert (sent.method, sent.url) == ("POST", f"{ORIGIN}/endpoints/llama%2F8b/invocations")
    assert (sent.operation, sent.headers) == (Operation.CHAT, {"accept": "application/json"})
    assert orjson.loads(sent.body) == {"messages": [user("hi")], "max_tokens": 5}


def test_a_stream_has_an_address_of_its_own_and_asks_the_container_too() -> None:
    sent = sent_for(replace(text_request("Say hi"), stream=True, extra_headers={"X-Trace": "a"}), OPENAI)
    assert sent.url == f"{ORIGIN}/endpoints/llama%2F8b/{STREAM}"
    assert sent.headers == {"x-amzn-sagemaker-accept": "text/event-stream", "x-trace": "a"}
    body = orjson.loads(sent.body)
    assert (body["prompt"], body["stream"]) == ("Say hi", True)


@pytest.mark.parametrize("stream", [False, True])
def test_tgi_is_always_asked_for_a_stream_but_for_a_prompts_log_probabilities(stream: bool) -> None:
    sent = sent_for(replace(text_request("The sky"), stream=stream), TGI)
    assert (sent.url, sent.stream) == (f"{ORIGIN}/endpoints/llama/{STREAM}", stream)
    settings: JsonObject = {"details": True, "return_full_text": False}
    assert orjson.loads(sent.body) == {"inputs": "The sky", "parameters": settings, "stream": True}
    echo = sent_for(replace(text_request("The sky", echo=True, **WANTED), stream=stream), TGI)
    assert echo.url == f"{ORIGIN}/endpoints/llama/invocations"
    assert "stream" not in orjson.loads(echo.body)


def test_what_the_container_does_not_take_is_refused() -> None:
    assert refusal_for(chat_request(), TGI).param == "messages"
    assert refusal_for(text_request(store=True), OPENAI).param == "store"


@pytest.mark.parametrize("target", [TGI, OPENAI], ids=["tgi", "openai"])
def test_what_the_container_has_no_place_for_is_named(target: Target) -> None:
    assert sent_for(text_request(user="u-1", metadata={"a": "b"}), target).dropped == ("user", "metadata")


def test_tgis_answers_come_out_of_the_frames() -> None:
    sent, frames = sent_for(text_request("The sky"), TGI), fixture("sagemaker", "frames", "tgi.bin")
    wanted = (Choice(0, " is blue: 3 °C 👋.", "stop"), Usage(5, 5))
    for completion in (decoded(sent, frames), gathered(streamed(sent, frames, 7))):
        assert (only(completion), completion.usage) == wanted
    echo = sent_for(text_request("The sky", echo=True, **WANTED), TGI)
    # At this address the responses are lists.
    assert only(decoded(echo, fixture("tgi", "answers", "listed.json"))).text == "The sky is blue 👋"


def test_openais_answers_come_whole_and_out_of_the_frames() -> None:
    sent = sent_for(replace(chat_request(), stream=True), OPENAI)
    completion = gathered(streamed(sent, fixture("sagemaker", "frames", "openai.bin"), 7))
    assert (only(completion), completion.usage) == (Choice(0, "It is blue: 3 °C 👋.", "stop"), Usage(12, 7))
    message: JsonObject = {"role": "assistant", "content": "Oslo"}
    whole = orjson.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
    assert only(decoded(sent_for(chat_request(), OPENAI), whole)) == Choice(0, "Oslo", "stop")


def test_a_whole_answer_out_of_cut_frames_is_no_success() -> None:
    data = fixture("sagemaker", "frames", "tgi.bin")
    assert decode_failure(sent_for(text_request("The sky"), TGI), data[:-3]) is FailureKind.TRUNCATED


def test_what_the_container_said_is_its_dialects_to_classify() -> None:
    body = fixture("sagemaker", "errors", "error_424_context.json")
    failure = TGI.dialect.classify(sent_for(text_request(), TGI), 424, {"retry-after": "3"}, body)
    assert (failure.kind, failure.status, failure.retry_after) == (FailureKind.CONTEXT_LENGTH, 422, 3.0)
    assert failure.overflow is not None
    assert (failure.overflow.window, failure.overflow.prompt) == (4096, 4090)
