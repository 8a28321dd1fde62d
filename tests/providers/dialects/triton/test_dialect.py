"""The outgoing request of Triton's generate extension, and the incoming response."""

from dataclasses import replace

import orjson

from providers.json_types import JsonObject
from providers.unified_request import Operation
from tests.providers.dialects.kit import body_for, chat_request, refusal_for, sent_for, target_of, text_request

TARGET = target_of("triton", "ensemble", max_output_tokens=16)
SMALLEST: JsonObject = {
    "text_input": "The sky",
    "max_tokens": 16,
    "exclude_input_in_output": True,
    "return_num_input_tokens": True,
    "return_num_output_tokens": True,
}


def test_a_prompt_goes_raw_to_its_model() -> None:
    sent = sent_for(text_request("The sky"), TARGET)
    assert (sent.method, sent.url) == ("POST", "http://localhost:8000/v2/models/ensemble/generate")
    assert (sent.operation, sent.emulated, sent.stream) == (Operation.COMPLETIONS, (), False)
    assert orjson.loads(sent.body) == SMALLEST


def test_a_stream_has_an_address_of_its_own() -> None:
    sent = sent_for(replace(text_request("The sky"), stream=True), TARGET)
    assert sent.url == "http://localhost:8000/v2/models/ensemble/generate_stream"
    assert orjson.loads(sent.body) == {**SMALLEST, "stream": True}


def test_a_models_name_stays_within_its_place() -> None:
    assert sent_for(text_request(max_tokens=1), target_of("triton", "a/b?c")).url.endswith(
        "/v2/models/a%2Fb%3Fc/generate"
    )


def test_it_needs_a_limit_and_raw_prompts() -> None:
    assert refusal_for(text_request(), target_of("triton")).param == "max_tokens"
    assert refusal_for(chat_request(max_tokens=5), TARGET).param == "messages"
    assert refusal_for(text_request(""), TARGET).param == "prompt"


def test_extra_params_become_tensors_but_never_the_prompt_or_how_many_answers() -> None:
    assert body_for(replace(text_request("The sky"), extra_params={"min_tokens": 3}), TARGET) == {
        **SMALLEST,
        "min_tokens": 3,
    }
    for name in ("text_input", "stream", "num_return_sequences", "beam_width"):
        assert refusal_for(replace(text_request(), extra_params={name: 2}), TARGET).param == "inference_extra_params"
