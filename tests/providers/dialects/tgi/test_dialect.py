"""The outgoing request of TGI's own endpoints, and the incoming response."""

from dataclasses import replace

import orjson
import pytest

from providers.json_types import JsonObject
from providers.unified_request import LogprobsWanted, Operation
from tests.providers.dialects.kit import body_for, chat_request, refusal_for, sent_for, target_of, text_request
from tests.support.looped import looped

TARGET = target_of("tgi_native")
PNG = "data:image/png;base64,AA=="
SCORED = {"logprobs": LogprobsWanted(1, "legacy")}


def test_a_prompt_goes_raw_and_its_answer_is_asked_for_as_a_stream() -> None:
    for stream in (False, True):
        sent = sent_for(replace(text_request("The sky"), stream=stream), TARGET)
        assert (sent.method, sent.url, sent.stream) == ("POST", "http://host/generate_stream", stream)
        assert (sent.operation, sent.emulated) == (Operation.COMPLETIONS, ())
        assert orjson.loads(sent.body) == {
            "inputs": "The sky",
            "parameters": {"details": True, "return_full_text": False},
        }


@pytest.mark.parametrize("stream", [False, True])
def test_a_prompt_with_its_log_probabilities_is_answered_whole(stream: bool) -> None:
    sent = sent_for(replace(text_request("The sky", echo=True, **SCORED), stream=stream), TARGET)
    assert sent.url == "http://host/generate"
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


def test_a_chat_is_refused_with_the_way_to_have_one() -> None:
    assert "profile 'tgi'" in refusal_for(chat_request(), TARGET).message


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


@looped("extra", [{"inputs": "x"}, {"parameters": {"best_of": 2}}, {"parameters": {"details": False}}])
def test_extra_params_never_reach_the_prompt_nor_what_decoding_needs(extra: JsonObject) -> None:
    assert refusal_for(replace(text_request(), extra_params=extra), TARGET).param == "inference_extra_params"
