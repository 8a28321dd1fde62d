"""Complete bodies: required fields, fields that are passed on unchanged, and the bodies of Claude Code."""

from pathlib import Path

import orjson
import pytest

from providers.json_types import JsonObject, JsonValue
from providers.unified_request import ChatPrompt, NativeApi, Operation
from proxy.errors import GatewayError
from proxy.surfaces.anthropic.parse_body import RULES, parse_count, parse_messages
from proxy.surfaces.request.field_rules import FIELDS
from tests.proxy.surfaces.anthropic.kit import body, parse, refused
from tests.support.looped import looped
from tests.support.not_none import not_none

CLAUDE_CODE = Path("tests/fixtures/anthropic/claude_code_request.json").read_bytes()


def test_a_body_goes_on_as_it_came_beside_its_translation() -> None:
    given = body(of_tomorrow={"x": [1]}, top_k=3, stop_sequences=["a"], temperature=1)
    request = parse_messages(given, None, {"anthropic-beta": "a,b", "anthropic-version": "2023-06-01", "accept": "x"})
    assert request.operation is Operation.CHAT
    assert request.native is not None
    assert request.native.api is NativeApi.MESSAGES
    assert request.native.body == orjson.loads(given)
    assert request.native.headers == {"anthropic-beta": "a,b", "anthropic-version": "2023-06-01"}
    assert request.unknown == {"of_tomorrow": {"x": [1]}}
    assert request.params["stop"] == ("a",)
    assert request.params["top_k"] == 3
    assert request.losses is None


def test_the_gateway_s_own_fields_do_not_go_on() -> None:
    request = parse(
        inference_timeout=3,
        inference_extra_params={"x": 1},
        inference_extra_headers={"x-y": "z"},
        context_length_exceeded_behavior="truncate",
    )
    assert set(not_none(request.native).body) == {"model", "max_tokens", "messages"}
    assert (request.timeout, request.extra_params, request.extra_headers) == (3.0, {"x": 1}, {"x-y": "z"})
    assert request.params["context_length_exceeded_behavior"] == "truncate"


@looped("fields", [{"seed": 1}, {"guided_json": {}}, {"frequency_penalty": 1}, {"user": "x"}, {"seed": 0}])
def test_a_field_that_anthropic_does_not_have_is_translated_with_all_others(fields: JsonObject) -> None:
    request = parse(**fields)
    assert request.native is None
    assert request.params.keys() > {"max_tokens"}


def test_fields_that_ask_for_nothing_do_not_stand_in_the_way() -> None:
    request = parse(n=1, logprobs=False, echo=None, frequency_penalty=0, top_logprobs=0, tools=None)
    assert set(not_none(request.native).body) == {"model", "max_tokens", "messages", "tools"}
    assert "logprobs" not in request.params


@looped("fields", [{"n": 2}, {"logprobs": True}, {"logprobs": 0}, {"echo": True}, {"return_token_ids": True}])
def test_what_an_answer_of_one_message_could_not_show_is_refused(fields: JsonObject) -> None:
    assert refused(**fields).param in fields


def test_every_field_of_the_unified_request_is_taken() -> None:
    assert RULES.fields[Operation.CHAT].keys() == FIELDS[Operation.CHAT].keys()


def test_a_model_that_is_not_named_is_the_table_s() -> None:
    request = parse_messages(orjson.dumps({"max_tokens": 1, "messages": [{"role": "user", "content": "x"}]}), "m", {})
    assert request.model == "m"
    assert not_none(request.native).body["model"] == "m"


def test_every_problem_of_a_body_is_told() -> None:
    with pytest.raises(GatewayError) as caught:
        parse_messages(orjson.dumps({"messages": [], "system": 1, "temperature": 3, "n": 2}), None, {})
    assert [problem.param for problem in caught.value.facts.problems] == [
        "system",
        "messages",
        "max_tokens",
        "temperature",
        "n",
        "model",
    ]


def test_a_member_that_names_another_address_is_refused() -> None:
    assert refused(api_base="http://x").param == "api_base"


@looped("value", ["a\nb", "é", "x" * 5000, ""])
def test_headers_that_could_harm_do_not_go_on(value: str) -> None:
    request = parse_messages(body(), None, {"anthropic-beta": value})
    assert not_none(request.native).headers == {}


def test_a_count_needs_no_limit() -> None:
    messages: JsonValue = [{"role": "user", "content": "x"}]
    for given in ({}, {"max_tokens": 9}, {"stream": True}, {"max_tokens": 0}):
        request = parse_count(orjson.dumps({"model": "m", "messages": messages, **given}), None, {})
        assert not request.stream
        assert not_none(request.native).body == {"model": "m", "messages": messages}


def test_the_body_of_claude_code_is_read_whole() -> None:
    request = parse_messages(CLAUDE_CODE, None, {"anthropic-beta": "claude-code-20250219"})
    assert isinstance(request.prompt, ChatPrompt)
    assert [message["role"] for message in request.prompt.messages] == [
        "system",
        "user",
        "system",
        "assistant",
        "tool",
        "tool",
        "user",
    ]
    assert request.stream
    assert request.params["reasoning_effort"] == "high"
    assert request.losses is not None
    assert request.losses.binding == {}
    assert request.losses.left_out == ("x-anthropic-billing-header", "context_management")
    assert not_none(request.native).body == orjson.loads(CLAUDE_CODE)
    assert "device_id" not in str({**request.params})


def test_deep_nesting_is_refused_before_it_is_read() -> None:
    deep = b'{"model":"m","max_tokens":1,"messages":' + b"[" * 70 + b"]" * 70 + b"}"
    with pytest.raises(GatewayError) as caught:
        parse_messages(deep, None, {})
    assert "levels deep" in caught.value.facts.message


def test_arguments_of_calls_are_bounded_like_the_rest() -> None:
    many: JsonObject = {str(number): {} for number in range(70_000)}
    call: JsonObject = {"type": "tool_use", "id": "a", "name": "f", "input": many}
    with pytest.raises(GatewayError):
        parse(messages=[{"role": "user", "content": "x"}, {"role": "assistant", "content": [call, call]}])
