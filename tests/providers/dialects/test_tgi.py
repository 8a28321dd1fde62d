"""The outgoing request of TGI's own endpoints, and the way back."""

from dataclasses import replace

import orjson
import pytest

from providers.failure import FailureKind
from providers.unified import JsonObject, LogprobsWanted, Operation, TextPrompt, TokenPrompt
from tests.providers.dialects.native_kit import (
    body_for,
    chat_request,
    decoded,
    fixture,
    names_in,
    only,
    refusal_for,
    sent_for,
    streamed,
    target_of,
    text_of,
    text_request,
)

TARGET = target_of("tgi_native")
PNG = "data:image/png;base64,AA=="
SCORED = {"logprobs": LogprobsWanted(1, "legacy")}


def test_a_prompt_goes_raw_and_its_answer_is_asked_for_as_a_stream() -> None:
    for stream in (False, True):
        sent = sent_for(replace(text_request("The sky"), stream=stream), TARGET)
        assert (sent.method, sent.url, sent.stream) == ("POST", "http://localhost:8080/generate_stream", stream)
        assert (sent.operation, sent.emulated) == (Operation.COMPLETIONS, ())
        assert orjson.loads(sent.body) == {
            "inputs": "The sky",
            "parameters": {"details": True, "return_full_text": False},
        }


@pytest.mark.parametrize("stream", [False, True])
def test_a_prompt_with_its_log_probabilities_is_answered_whole(stream: bool) -> None:
    sent = sent_for(replace(text_request("The sky", echo=True, **SCORED), stream=stream), TARGET)
    assert sent.url == "http://localhost:8080/generate"
    assert orjson.loads(sent.body)["parameters"] == {
        "details": True,
        "return_full_text": False,
        "decoder_input_details": True,
        "top_n_tokens": 1,
    }


def test_a_prompt_alone_is_repeated_by_the_gateway() -> None:
    assert refusal_for(text_request(echo=True), TARGET).param == "echo"
    assert body_for(text_request(echo=False), TARGET) == body_for(text_request(), TARGET)


def test_images_stand_where_their_marks_were() -> None:
    sent = sent_for(text_request("Compare <image> and <image>.", images=((PNG, "https://h/b.png"),)), TARGET)
    assert orjson.loads(sent.body)["inputs"] == f"Compare ![]({PNG}) and ![](https://h/b.png)."
    assert sent.emulated == ("images",)
    assert refusal_for(text_request("<image>", images=((PNG,),), echo=True, **SCORED), TARGET).param == "echo"


@pytest.mark.parametrize("prompt", [TextPrompt(("",)), TextPrompt(("a", "b")), TokenPrompt(((1, 2),))])
def test_prompts_that_it_does_not_take_are_refused(prompt: TextPrompt | TokenPrompt) -> None:
    assert refusal_for(replace(text_request(), prompt=prompt), TARGET).param == "prompt"


def test_a_chat_is_refused_with_the_way_to_have_one() -> None:
    assert "profile 'tgi'" in refusal_for(chat_request(), TARGET).message


def test_unknown_fields_are_refused_by_name_since_they_would_be_ignored() -> None:
    assert refusal_for(replace(text_request(), unknown={"strange": 1}), TARGET).param == "strange"


def test_extra_params_reach_the_parameters() -> None:
    extra: JsonObject = {"parameters": {"watermark": True, "truncate": 100}}
    parameters = body_for(replace(text_request(max_tokens=5), extra_params=extra), TARGET)["parameters"]
    assert parameters == {
        "details": True,
        "return_full_text": False,
        "max_new_tokens": 5,
        "watermark": True,
        "truncate": 100,
    }


@pytest.mark.parametrize("extra", [{"inputs": "x"}, {"parameters": {"best_of": 2}}, {"parameters": {"details": False}}])
def test_extra_params_never_reach_the_prompt_nor_what_decoding_needs(extra: JsonObject) -> None:
    assert refusal_for(replace(text_request(), extra_params=extra), TARGET).param == "inference_extra_params"


def test_answers_and_streams_have_their_decoders() -> None:
    sent = sent_for(text_request(), TARGET)
    data = fixture("tgi", "streams", "text.sse")
    assert only(decoded(sent, data)).text == text_of(streamed(sent, data)) == " is blue: 3 °C 👋."
    whole = sent_for(text_request("The sky", echo=True, **SCORED), TARGET)
    assert text_of(streamed(whole, fixture("tgi", "answers", "echo.json"))) == "The sky is blue 👋"


ERRORS = {
    "error_401.json": (401, FailureKind.AUTH),
    "error_422_context.json": (422, FailureKind.CONTEXT_LENGTH),
    "error_422_inputs.json": (422, FailureKind.CONTEXT_LENGTH),
    "error_422_shape.txt": (422, FailureKind.INVALID_REQUEST),
    "error_422_value.json": (422, FailureKind.INVALID_REQUEST),
    "error_424.json": (424, FailureKind.SERVER),
    "error_429.json": (429, FailureKind.OVERLOADED),
    "error_500.json": (500, FailureKind.SERVER),
    "error_502.html": (502, FailureKind.SERVER),
    "error_503_loading.json": (503, FailureKind.OVERLOADED),
}


def test_the_errors_are_all_here() -> None:
    assert names_in("tgi", "errors") == sorted(ERRORS)


@pytest.mark.parametrize("name", ERRORS)
def test_errors_mean_what_the_server_says(name: str) -> None:
    status, kind = ERRORS[name]
    body = fixture("tgi", "errors", name)
    failure = TARGET.dialect.classify(sent_for(text_request(), TARGET), status, {}, body)
    assert (failure.kind, failure.status) == (kind, status)
    assert failure.retry_after == (20.5 if "loading" in name else None)
    assert "10.0.0.7" not in failure.message


def test_a_header_says_more_of_the_wait_than_a_guess() -> None:
    body = fixture("tgi", "errors", "error_503_loading.json")
    failure = TARGET.dialect.classify(sent_for(text_request(), TARGET), 503, {"retry-after": "3"}, body)
    assert failure.retry_after == 3.0


def test_sizes_are_told() -> None:
    body = fixture("tgi", "errors", "error_422_context.json")
    overflow = TARGET.dialect.classify(sent_for(text_request(), TARGET), 422, {}, body).overflow
    assert overflow is not None
    assert (overflow.window, overflow.prompt, overflow.requested) == (4096, 4090, None)
