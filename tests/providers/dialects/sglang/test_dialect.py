"""The outgoing request of SGLang's own endpoint, and the incoming response."""

from dataclasses import replace

import orjson

from providers.json_types import JsonObject
from providers.unified_request import Operation, TextPrompt, TokenPrompt
from tests.providers.dialects.kit import body_for, chat_request, refusal_for, sent_for, target_of, text_request, tool
from tests.support.looped import looped

TARGET = target_of("sglang_native")
NO_LIMIT: JsonObject = {"max_new_tokens": None}


def test_a_prompt_goes_raw_and_is_not_cut_short_by_a_default() -> None:
    sent = sent_for(text_request("The sky"), TARGET)
    assert (sent.method, sent.url) == ("POST", "http://localhost:30000/generate")
    assert (sent.operation, sent.emulated) == (Operation.COMPLETIONS, ())
    assert orjson.loads(sent.body) == {"text": "The sky", "sampling_params": NO_LIMIT}
    assert body_for(replace(text_request(), stream=True), TARGET)["stream"] is True


@looped(
    ("prompt", "members"),
    [
        (TextPrompt(("a", "b")), {"text": ["a", "b"]}),
        (TextPrompt(("a",), listed=True), {"text": ["a"]}),
        (TokenPrompt(((1, 2),)), {"input_ids": [1, 2]}),
        (TokenPrompt(((1, 2), (3,))), {"input_ids": [[1, 2], [3]]}),
    ],
)
def test_prompts_of_every_form_go_in_one_call(prompt: TextPrompt | TokenPrompt, members: JsonObject) -> None:
    assert body_for(replace(text_request(), prompt=prompt), TARGET) == {**members, "sampling_params": NO_LIMIT}


def test_a_chat_is_refused_with_the_way_to_have_one() -> None:
    assert "profile 'sglang'" in refusal_for(chat_request(), TARGET).message
    assert refusal_for(text_request(tools=[tool()]), TARGET).param == "tools"


def test_extra_params_reach_the_sampling_settings() -> None:
    extra: JsonObject = {"sampling_params": {"min_new_tokens": 3}, "lora_path": "a"}
    body = body_for(replace(text_request(max_tokens=5), extra_params=extra), TARGET)
    assert body["sampling_params"] == {"max_new_tokens": 5, "min_new_tokens": 3}
    assert body["lora_path"] == "a"


@looped("extra", [{"text": "x"}, {"input_ids": [1]}, {"sampling_params": {"n": 2}}])
def test_extra_params_never_reach_the_prompt_nor_the_number_of_answers(extra: JsonObject) -> None:
    assert refusal_for(replace(text_request(), extra_params=extra), TARGET).param == "inference_extra_params"
