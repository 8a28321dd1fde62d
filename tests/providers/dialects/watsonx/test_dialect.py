"""The outgoing requests of the watsonx.ai dialect, and the incoming errors."""

from dataclasses import replace

import orjson
import pytest

from providers.json_types import JsonObject
from providers.unified_request import Operation
from tests.providers.dialects.kit import (
    body_for,
    chat_request,
    fixture,
    refusal_for,
    sent_for,
    target_of,
    text_request,
    tool,
    user,
)

ORIGIN = "https://eu-de.ml.cloud.ibm.com"
TARGET = target_of("watsonx", "ibm/granite", base_url=f"{ORIGIN}/projects/p-1")
OWNED: JsonObject = {"model_id": "ibm/granite", "project_id": "p-1"}
PNG = "data:image/png;base64,AA=="


@pytest.mark.parametrize(("stream", "more"), [(False, ""), (True, "_stream")])
def test_prompts_and_chats_have_an_endpoint_each(stream: bool, more: str) -> None:
    text = sent_for(replace(text_request("The sky"), stream=stream), TARGET)
    assert (text.method, text.url) == ("POST", f"{ORIGIN}/ml/v1/text/generation{more}?version=2025-10-01")
    assert (text.operation, text.emulated, text.stream) == (Operation.COMPLETIONS, (), stream)
    assert orjson.loads(text.body) == {**OWNED, "input": "The sky"}
    chat = sent_for(replace(chat_request(), stream=stream), TARGET)
    assert chat.url == f"{ORIGIN}/ml/v1/text/chat{more}?version=2025-10-01"
    assert (chat.operation, chat.emulated) == (Operation.CHAT, ())
    assert orjson.loads(chat.body) == {**OWNED, "messages": [{"role": "user", "content": "hi"}]}


def test_the_address_says_what_calls_belong_to() -> None:
    space = target_of("watsonx", base_url=f"{ORIGIN}/cpd/spaces/s-1", api_version="2026-01-01")
    sent = sent_for(text_request("a"), space)
    assert sent.url == f"{ORIGIN}/cpd/ml/v1/text/generation?version=2026-01-01"
    assert orjson.loads(sent.body) == {"model_id": "tiny", "space_id": "s-1", "input": "a"}
    own = sent_for(text_request("a"), target_of("watsonx", base_url=f"{ORIGIN}/deployments/d-1"))
    assert own.url == f"{ORIGIN}/ml/v1/deployments/d-1/text/generation?version=2025-10-01"
    assert orjson.loads(own.body) == {"input": "a"}
    bare = sent_for(text_request("a"), target_of("watsonx", base_url=ORIGIN))
    assert bare.url == f"{ORIGIN}/ml/v1/text/generation?version=2025-10-01"
    assert orjson.loads(bare.body) == {"model_id": "tiny", "input": "a"}


def test_the_tables_limit_stands_in_for_the_servers_own() -> None:
    limited = replace(TARGET, max_output_tokens=64)
    assert body_for(text_request(), limited)["parameters"] == {"max_new_tokens": 64}
    assert body_for(text_request(max_tokens=5), limited)["parameters"] == {"max_new_tokens": 5}
    assert refusal_for(text_request(max_tokens=0), TARGET).param == "max_tokens"


@pytest.mark.parametrize("completions", [False, None])
def test_a_prompt_becomes_a_chat_where_it_must(completions: bool | None) -> None:
    params: dict[str, object] = {} if completions is False else {"tools": [tool()]}
    sent = sent_for(text_request("Say hi", **params), replace(TARGET, completions=completions))
    assert sent.operation is Operation.CHAT
    assert orjson.loads(sent.body)["messages"] == [user("Say hi")]
    assert sent.emulated == ("prompt",)


def test_images_of_a_prompt_become_parts_of_its_message() -> None:
    sent = sent_for(text_request("<image>Say hi", images=((PNG,),)), replace(TARGET, completions=False))
    parts = [{"type": "image_url", "image_url": {"url": PNG}}, {"type": "text", "text": "Say hi"}]
    assert orjson.loads(sent.body)["messages"] == [{"role": "user", "content": parts}]
    assert sent.emulated == ("prompt", "images")
    assert refusal_for(text_request("<image>", images=((PNG,),)), TARGET).param == "images"
    assert refusal_for(chat_request(images=((PNG,),)), TARGET).param == "images"


def test_extra_params_reach_the_parameters_but_never_whom_the_call_belongs_to() -> None:
    extra: JsonObject = {"parameters": {"min_new_tokens": 3}, "moderations": {"hap": {}}}
    body = body_for(replace(text_request("a", max_tokens=5), extra_params=extra), TARGET)
    assert body["parameters"] == {"max_new_tokens": 5, "min_new_tokens": 3}
    assert body["moderations"] == {"hap": {}}
    for name in ("model_id", "project_id", "space_id", "input", "messages"):
        refusal = refusal_for(replace(text_request(), extra_params={name: "x"}), TARGET)
        assert refusal.param == "inference_extra_params"


def test_codes_are_told() -> None:
    body = fixture("watsonx", "errors", "error_400_context.json")
    failure = TARGET.dialect.classify(sent_for(text_request(), TARGET), 400, {}, body)
    assert failure.code == "invalid_input_argument"
