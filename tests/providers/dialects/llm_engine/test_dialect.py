"""The outgoing request of LLM Engine's completions, and the incoming response."""

from dataclasses import replace

import orjson
import pytest

from providers.json_types import JsonObject
from providers.unified_request import Operation
from tests.providers.dialects.kit import body_for, chat_request, refusal_for, sent_for, target_of, text_request

TARGET = target_of("llm_engine", "llama-3", max_output_tokens=16)
SMALLEST: JsonObject = {"prompt": "The sky", "max_new_tokens": 16, "temperature": 1.0}


@pytest.mark.parametrize(("stream", "kind"), [(False, "sync"), (True, "stream")])
def test_a_prompt_goes_raw_to_its_endpoint(stream: bool, kind: str) -> None:
    sent = sent_for(replace(text_request("The sky"), stream=stream), TARGET)
    address = f"http://host/v1/llm/completions-{kind}?model_endpoint_name=llama-3"
    assert (sent.method, sent.url, sent.stream) == ("POST", address, stream)
    assert (sent.operation, sent.emulated) == (Operation.COMPLETIONS, ())
    assert orjson.loads(sent.body) == SMALLEST


def test_a_models_name_stays_within_its_place() -> None:
    url = sent_for(text_request(max_tokens=1), target_of("llm_engine", "a&b=c/d")).url
    assert url.endswith("?model_endpoint_name=a%26b%3Dc%2Fd")


def test_it_needs_a_limit_and_raw_prompts() -> None:
    assert refusal_for(text_request(), target_of("llm_engine")).param == "max_tokens"
    assert refusal_for(chat_request(max_tokens=5), TARGET).param == "messages"
    assert refusal_for(text_request(""), TARGET).param == "prompt"


def test_extra_params_are_members_but_never_the_prompt() -> None:
    extra: JsonObject = {"skip_special_tokens": False}
    assert body_for(replace(text_request("The sky"), extra_params=extra), TARGET) == {**SMALLEST, **extra}
    refusal = refusal_for(replace(text_request(), extra_params={"prompt": "x"}), TARGET)
    assert refusal.param == "inference_extra_params"
