"""The operation of an outgoing request, and prompts as chats."""

from dataclasses import replace
from typing import cast

import pytest

from providers.dialects.registry import DIALECTS
from providers.dialects.shared.operations import (
    ECHO_CELLS,
    build_messages,
    check_operation,
    choose_operation,
    endpoint_url,
)
from providers.dialects.shared.request_body import RequestBody
from providers.failure import Refusal
from providers.unified_request import Operation
from tests.providers.dialects.kit import chat_request, target_of, text_request
from tests.support.looped import looped

TARGET = target_of("ollama_native")


def test_a_prompt_goes_out_raw_unless_the_model_only_chats_or_tools_are_beside_it() -> None:
    tool = {"type": "function", "function": {"name": "f"}}
    assert choose_operation(text_request(), TARGET) is Operation.COMPLETIONS
    assert choose_operation(text_request(tools=[tool]), TARGET) is Operation.CHAT
    assert choose_operation(text_request(), target_of("ollama_native", completions=False)) is Operation.CHAT
    assert choose_operation(chat_request(), TARGET) is Operation.CHAT


@looped("profile", ["ollama_native", "watsonx", "cohere", "gemini", "bedrock"])
def test_an_operation_that_a_dialect_does_not_know_is_refused_by_name(profile: str) -> None:
    target = target_of(profile)
    request = replace(text_request(), operation=cast(Operation, "embeddings"))
    with pytest.raises(Refusal, match="'embeddings' is not supported by") as refusal:
        DIALECTS[target.profile.dialect].capabilities(request, target)
    assert refusal.value.param == "embeddings"


def test_every_operation_has_its_echo() -> None:
    assert ECHO_CELLS.keys() == set(Operation)
    assert check_operation(chat_request(), TARGET) is Operation.CHAT


def test_messages_come_with_the_field_they_are_from() -> None:
    def read(**params: object) -> tuple[str, list[str]]:
        request = text_request("<image>" if params else "Hi", **params)
        draft = RequestBody(request, TARGET, TARGET.dialect.capabilities(request, TARGET), {})
        messages, field = build_messages(draft)
        assert len(messages) == 1
        return field, draft.emulated

    assert read() == ("prompt", ["prompt"])
    assert read(images=(("data:image/png;base64,AA==",),)) == ("images", ["prompt", "images"])
    request = chat_request()
    draft = RequestBody(request, TARGET, TARGET.dialect.capabilities(request, TARGET), {})
    assert build_messages(draft)[1] == "messages"
    assert draft.emulated == []


@pytest.mark.parametrize(
    ("vendor", "url"),
    [
        ("openai", "http://up/v1/embeddings"),
        ("azure", "http://up/v1/openai/deployments/a%2Fb/embeddings?api-version=2024-10-21"),
    ],
)
def test_a_path_stands_below_the_model_where_the_vendor_has_it_in_the_url(vendor: str, url: str) -> None:
    to = replace(target_of(vendor), upstream_model="a/b", base_url="http://up/v1", api_version=None)
    assert endpoint_url(to, to.profile, "/embeddings") == url
