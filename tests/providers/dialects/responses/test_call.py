"""A call with a client's own body of the Responses API, to a vendor that has the API."""

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.dialect import encode_again, encode_native
from providers.emulation.plan_calls import plan_calls
from providers.json_types import JsonObject, JsonValue
from providers.target import Target
from providers.unified_request import NativeApi, NativeRequest, Params
from tests.providers.dialects.kit import chat_request, target_of
from tests.providers.dialects.responses.kit import TARGET, message, own_body, own_call, own_request
from tests.providers.kit import refusal_of
from tests.support.looped import looped

ENCRYPTED = "reasoning.encrypted_content"
CODEX: JsonObject = {
    "input": [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "You edit files."}]},
        {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"},
        {"type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": "*** Begin Patch"},
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "done"},
    ],
    "tools": [{"type": "namespace", "name": "mcp", "tools": [{"type": "function", "name": "f", "parameters": {}}]}],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "include": [ENCRYPTED],
    "reasoning": {"effort": "medium", "summary": "auto"},
    "client_metadata": {"x-codex": "1"},
    "text": {"verbosity": "low"},
    "prompt_cache_key": "k",
}


def test_the_body_goes_as_it_came_but_for_model_stream_and_store() -> None:
    sent, body = own_call(own_request(stream=True, store=True, more=CODEX))
    assert body == {**CODEX, "model": "gpt-5.1", "stream": True, "store": False}
    assert sent.url == "https://api.openai.com/v1/responses"
    assert (sent.stream, sent.emulated, sent.dropped) == (True, (), ())


def test_nothing_is_stored_and_what_was_thought_is_asked_for() -> None:
    body = own_body(include=["message.output_text.logprobs"])
    assert (body["store"], body["include"]) == (False, ["message.output_text.logprobs", ENCRYPTED])
    assert "stream" not in body


def test_a_bare_object_of_parameters_has_properties_in_namespaces_too() -> None:
    bare: JsonObject = {"type": "function", "name": "f", "parameters": {"type": "object"}}
    filled: JsonObject = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}
    search: JsonObject = {"type": "web_search"}
    tools: list[JsonValue] = [bare, search, {"type": "namespace", "name": "n", "tools": [bare]}]
    body = own_body(more={"tools": tools})
    assert body["tools"] == [filled, search, {"type": "namespace", "name": "n", "tools": [filled]}]
    assert tools[0] == {"type": "function", "name": "f", "parameters": {"type": "object"}}


def test_the_response_before_is_never_named_to_the_vendor() -> None:
    assert "previous_response_id" not in own_body(previous_response_id="resp_1")


@looped(
    ("profile", "base", "url"),
    [
        ("openai", "https://api.openai.com/v1", "https://api.openai.com/v1/responses"),
        ("azure", "https://r.openai.azure.com", "https://r.openai.azure.com/openai/v1/responses"),
        ("azure_v1", "https://r.openai.azure.com/openai/v1", "https://r.openai.azure.com/openai/v1/responses"),
    ],
)
def test_the_vendors_that_have_the_api_are_asked_at_its_address(profile: str, base: str, url: str) -> None:
    target = target_of(profile, "gpt-5.1", base_url=base, upstream_model="prod")
    sent, body = own_call(own_request(reasoning={"effort": "low"}), target)
    assert (sent.url, body["model"]) == (url, "prod")
    assert (body["include"], body["reasoning"]) == ([ENCRYPTED], {"effort": "low"})


@looped("profile", ["vllm", "openrouter", "groq", "xai", "anthropic", "openai_compatible", "pais"])
def test_other_vendors_get_a_chat(profile: str) -> None:
    assert encode_native(own_request(), target_of(profile)) is None


def test_a_request_of_another_api_is_none_of_this_one() -> None:
    other = replace(chat_request(), native=NativeRequest(NativeApi.MESSAGES, {"messages": []}))
    assert encode_native(other, TARGET) is None
    assert encode_native(chat_request(), TARGET) is None


def test_items_that_only_a_store_could_resolve_are_left_out_and_named() -> None:
    bare: JsonObject = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "x"}]}
    kept: JsonObject = {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "gAAA"}
    said = message("Yes.")
    items: list[JsonValue] = [bare, {**bare, "encrypted_content": None}, kept, said, {"role": "user", "content": "x"}]
    sent, body = own_call(own_request(input=items))
    without_id = {name: value for name, value in said.items() if name != "id"}
    assert body["input"] == [kept, without_id, {"role": "user", "content": "x"}]
    assert sent.dropped == ("reasoning",)


@looped("items", [None, 5, [5, None, "x", {"unheard_of": 1}]])
def test_what_is_no_list_of_items_is_the_vendor_s_to_refuse(items: JsonValue) -> None:
    assert own_body(input=items)["input"] == items


# Models that do not reason ------------------------------------------------------------------------------------------

PLAIN = replace(TARGET, model="gpt-4.1", upstream_model="gpt-4.1")
UNNAMED = replace(TARGET, model="ours", upstream_model="ours")


def test_a_model_that_does_not_reason_is_not_asked_for_what_it_thought() -> None:
    sent, body = own_call(own_request(include=[ENCRYPTED, "x"], reasoning={"summary": "auto"}), PLAIN)
    assert (body["include"], "reasoning" in body) == (["x"], False)
    assert sent.dropped == ("reasoning", "include")
    assert "include" not in own_body(PLAIN)


def test_an_effort_that_the_model_has_not_is_refused_and_may_be_dropped() -> None:
    request = own_request(reasoning={"effort": "high"}, params={"reasoning_effort": "high"})
    assert refusal_of(encode_native, request, PLAIN).param == "reasoning_effort"
    plan = plan_calls(request, PLAIN, on_unsupported="drop")
    assert plan.dropped == ("reasoning_effort", "reasoning")
    assert plan.calls[0].sent.native


@looped(
    ("members", "include"),
    [({}, None), ({"include": [ENCRYPTED]}, [ENCRYPTED]), ({"reasoning": {"effort": "low"}}, [ENCRYPTED])],
)
def test_of_a_model_with_a_name_of_the_operator_s_the_client_s_word_is_taken(
    members: Mapping[str, JsonValue], include: JsonValue
) -> None:
    assert own_body(UNNAMED, members).get("include") == include


@looped(
    ("model", "reasons"),
    [("o3", True), ("gpt-5-mini", True), ("gpt-5-chat-latest", False), ("gpt-6-astra", True), ("gpt-4o", False)],
)
def test_the_models_that_reason_are_known_by_name(model: str, reasons: bool) -> None:
    body = own_body(replace(TARGET, model=model, upstream_model=model))
    assert ("include" in body) is reasons


# Limits, and fields that the client sent ----- ------------------------------------------------------------------------


def test_a_limit_that_was_lowered_to_the_window_since_is_the_one_sent() -> None:
    request = own_request(max_output_tokens=500, params={"max_tokens": 500}, unheard_of=1)
    sent, body = own_call(request)
    assert body["max_output_tokens"] == 500
    again = encode_again(sent, replace(request, params={"max_tokens": 7}))
    assert again.native
    assert b'"max_output_tokens":7' in again.body
    assert b'"unheard_of":1' in again.body


def test_extra_members_are_merged_last_but_may_not_undo_what_the_gateway_decides() -> None:
    assert own_call(replace(own_request(), extra_params={"unheard_of": 2}))[1]["unheard_of"] == 2
    for name in ("store", "input", "previous_response_id", "model", "stream"):
        assert (
            refusal_of(encode_native, replace(own_request(), extra_params={name: "x"}), TARGET).param
            == "inference_extra_params"
        )


@pytest.mark.parametrize("target", [TARGET, PLAIN])
def test_the_client_s_body_is_not_changed_itself(target: Target) -> None:
    request = own_request(input=[message("x")], include=[ENCRYPTED], reasoning={"summary": "auto"})
    assert request.native is not None
    before = repr(request.native.body)
    own_call(request, target)
    assert repr(request.native.body) == before


def test_ids_of_calls_that_repeat_are_replaced_in_calls_and_results() -> None:
    kinds = ("function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output")
    items: list[JsonValue] = [{"type": kind, "call_id": "call_0"} for kind in kinds]
    sent = own_body(input=items)["input"]
    assert isinstance(sent, list)
    first, answered, second, again = [item["call_id"] for item in sent if isinstance(item, dict)]
    assert (first, answered, second) == ("call_0", "call_0", again)
    assert second != first


def test_ids_of_calls_that_are_too_long_are_shortened_alike_in_calls_and_results() -> None:
    long, fits = "call_" + "s" * 1243, "c" * 64
    items: list[JsonValue] = [
        {"type": f"{kind}{end}", "call_id": name}
        for kind, name in (("function_call", long), ("custom_tool_call", fits))
        for end in ("", "_output")
    ]
    sent = own_body(input=items)["input"]
    assert isinstance(sent, list)
    first, *rest = [item["call_id"] for item in sent if isinstance(item, dict)]
    assert isinstance(first, str)
    assert len(first) <= 64
    assert rest == [first, fits, fits]


@looped(
    ("model", "members", "expected"),
    [
        ("o3", {"temperature": 1, "top_p": 1}, {}),
        ("o3", {"temperature": 0.5}, "temperature"),
        ("gpt-5-mini", {"top_p": 0.5}, "top_p"),
        ("gpt-5.1", {"temperature": 0.5, "top_p": 0.5}, {"temperature": 0.5, "top_p": 0.5}),
        ("gpt-4o", {"temperature": 0.5, "top_p": 0.5}, {"temperature": 0.5, "top_p": 0.5}),
    ],
)
def test_what_a_model_samples_by_holds_for_a_clients_own_body(
    model: str, members: dict[str, JsonValue], expected: str | dict[str, JsonValue]
) -> None:
    to = target_of("openai", model)
    if isinstance(expected, str):
        assert refusal_of(plan_calls, own_request(params=cast(Params, members), more=members), to).param == expected
        assert plan_calls(own_request(params=cast(Params, members), more=members), to, "drop").dropped == (expected,)
    else:
        body = orjson.loads(plan_calls(own_request(params=cast(Params, members), more=members), to).calls[0].sent.body)
        assert {name: body[name] for name in ("temperature", "top_p") if name in body} == expected


# The fast path ----- --------------------------------------------------------------------------------------------------

NAMES = st.sampled_from(["c1", "c2", "c2__thought__x", "c" * 65])
PART = st.sampled_from([{"type": "input_text", "text": "a"}, {"type": "input_file", "file_data": "JVBERi0="}, "a"])
CONTENT = st.one_of(st.sampled_from([None, "", "a", 3]), st.lists(PART, max_size=2))
KINDS = st.sampled_from(
    ["message", "reasoning", "function_call", "function_call_output", "shell_call", "shell_call_output", None]
)
ITEM = st.one_of(
    st.fixed_dictionaries(
        {"type": KINDS},
        optional={
            "call_id": NAMES | st.none(),
            "content": CONTENT,
            "output": CONTENT,
            "role": st.sampled_from(["user", "assistant"]),
            "id": st.just("msg_1"),
            "encrypted_content": st.sampled_from(["gA", "", None]),
        },
    ),
    st.just("a"),
)


@given(st.lists(ITEM, max_size=4))
def test_items_that_fit_at_one_look_are_those_that_nothing_changes(items: list[JsonValue]) -> None:
    request = own_request(more={"input": items})
    sent, body = own_call(request)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("providers.dialects.responses.call._are_fitting", lambda items: False)
        assert own_call(request) == (sent, body)
