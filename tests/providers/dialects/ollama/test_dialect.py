"""The outgoing request of Ollama's own API, and the incoming response."""

from dataclasses import replace

import orjson
import pytest

from providers.json_types import JsonObject
from providers.unified_request import Operation
from tests.providers.dialects.kit import (
    body_for,
    chat_request,
    refusal_for,
    sent_for,
    target_of,
    text_request,
    tool,
    user,
)

TARGET = target_of("ollama_native", "qwen3:8b")
KEPT: JsonObject = {"truncate": False, "shift": False}


def test_a_prompt_goes_raw() -> None:
    sent = sent_for(text_request("The sky"), TARGET)
    assert (sent.method, sent.url) == ("POST", "http://localhost:11434/api/generate")
    assert (sent.operation, sent.emulated) == (Operation.COMPLETIONS, ())
    assert orjson.loads(sent.body) == {"model": "qwen3:8b", "prompt": "The sky", "raw": True, "stream": False, **KEPT}


def test_a_suffix_needs_the_models_own_template() -> None:
    body = body_for(text_request("def a():", suffix="return 1"), TARGET)
    assert body == {"model": "qwen3:8b", "prompt": "def a():", "suffix": "return 1", "stream": False, **KEPT}


def test_a_chat_goes_to_its_own_path() -> None:
    sent = sent_for(replace(chat_request(), stream=True), TARGET)
    assert (sent.url, sent.operation) == ("http://localhost:11434/api/chat", Operation.CHAT)
    assert orjson.loads(sent.body) == {"model": "qwen3:8b", "messages": [user("hi")], "stream": True, **KEPT}


def test_a_prompt_goes_into_a_chat_where_the_table_says_so_and_beside_tools() -> None:
    for request, target in (
        (text_request("Say hi"), replace(TARGET, completions=False)),
        (text_request("Say hi", tools=[tool()]), TARGET),
    ):
        sent = sent_for(request, target)
        assert sent.operation is Operation.CHAT
        assert orjson.loads(sent.body)["messages"] == [user("Say hi")]
        assert sent.emulated == ("prompt",)


def test_images_of_a_prompt_go_along_in_a_chat() -> None:
    request = text_request("<image>What?", images=(("data:image/png;base64,AA==",),))
    sent = sent_for(request, replace(TARGET, completions=False))
    assert orjson.loads(sent.body)["messages"] == [{"role": "user", "content": "What?", "images": ["AA=="]}]
    assert sent.emulated == ("prompt", "images")
    assert refusal_for(request, TARGET).param == "images"


def test_extra_params_reach_the_options_and_may_bring_the_cutting_back() -> None:
    extra: JsonObject = {"options": {"num_ctx": 8192}, "keep_alive": "5m", "truncate": True}
    body = body_for(replace(chat_request(temperature=0), extra_params=extra), TARGET)
    assert body["options"] == {"temperature": 0, "num_ctx": 8192}
    assert (body["keep_alive"], body["truncate"], body["shift"]) == ("5m", True, False)


@pytest.mark.parametrize("name", ["raw", "suffix"])
def test_extra_params_never_reach_the_prompt(name: str) -> None:
    request = replace(text_request(), extra_params={name: False})
    assert refusal_for(request, TARGET).param == "inference_extra_params"
