"""The outgoing request of llama.cpp's own endpoints, and the incoming response."""

from dataclasses import replace

import orjson
import pytest

from providers.failure import Refusal
from providers.json_types import JsonObject
from providers.unified_request import Operation, TextPrompt, TokenPrompt
from tests.providers.dialects.kit import (
    body_for,
    chat_request,
    refusal_for,
    sent_for,
    target_of,
    text_request,
    token_request,
    tool,
)
from tests.support.looped import looped

TARGET = target_of("llamacpp_native")


def test_a_prompt_goes_raw() -> None:
    sent = sent_for(text_request("The sky"), TARGET)
    assert (sent.method, sent.url) == ("POST", "http://host/completion")
    assert (sent.operation, sent.emulated) == (Operation.COMPLETIONS, ())
    assert orjson.loads(sent.body) == {"model": "tiny", "prompt": "The sky"}
    assert body_for(replace(text_request("The sky"), stream=True), TARGET)["stream"] is True


@looped(
    ("prompt", "wire"),
    [
        (TokenPrompt(((1, 2, 3),)), [1, 2, 3]),
        (TokenPrompt(((1, 2), (3,))), [[1, 2], [3]]),
        (TextPrompt(("a", "b")), ["a", "b"]),
        (TextPrompt(("a",), listed=True), ["a"]),
    ],
)
def test_prompts_of_every_form_go_in_one_call(prompt: TextPrompt | TokenPrompt, wire: object) -> None:
    assert body_for(replace(text_request(), prompt=prompt), TARGET)["prompt"] == wire


def test_a_suffix_goes_to_an_endpoint_of_its_own() -> None:
    sent = sent_for(text_request("def a():", suffix="return 1"), TARGET)
    assert sent.url == "http://host/infill"
    assert orjson.loads(sent.body) == {"model": "tiny", "input_prefix": "def a():", "input_suffix": "return 1"}


def test_only_one_text_has_a_middle() -> None:
    assert refusal_for(token_request(1, 2, suffix="x"), TARGET).param == "prompt"
    assert refusal_for(replace(text_request(suffix="x"), prompt=TextPrompt(("a", "b"))), TARGET).param == "prompt"


def test_a_chat_is_refused_with_the_way_to_have_one() -> None:
    assert "profile 'llamacpp'" in refusal_for(chat_request(), TARGET).message
    with pytest.raises(Refusal):
        TARGET.dialect.capabilities(chat_request(), TARGET)
    assert refusal_for(text_request(tools=[tool()]), TARGET).param == "tools"


def test_extra_params_are_merged_last() -> None:
    extra: JsonObject = {"cache_prompt": False, "top_k": 3}
    body = body_for(replace(text_request(top_k=40), extra_params=extra), TARGET)
    assert (body["cache_prompt"], body["top_k"]) == (False, 3)


@looped("name", ["n_cmpl", "input_prefix", "prompt"])
def test_extra_params_never_reach_the_prompt_nor_the_number_of_answers(name: str) -> None:
    request = replace(text_request(), extra_params={name: 2})
    assert refusal_for(request, TARGET).param == "inference_extra_params"
