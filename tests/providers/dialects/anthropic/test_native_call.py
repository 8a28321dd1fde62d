"""A call with a client's own body to Claude: the fields that the gateway decides on, and the unchanged rest."""

from dataclasses import replace

import orjson
import pytest

from providers.dialect import encode_again, encode_native
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from providers.target import Target
from providers.unified_request import NativeApi, NativeRequest
from tests.providers.dialects.anthropic.kit import NEW_VERSION, TARGET, answer, sdk_check
from tests.providers.dialects.anthropic.native_kit import DOING, DONE, HELLO, own_body, own_call, own_request
from tests.providers.dialects.kit import chat_request
from tests.support.looped import looped

THOUGHT: JsonObject = {"type": "thinking", "thinking": "Hm.", "signature": "EqQB"}
CLAUDE_CODE: JsonObject = {
    "system": [{"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.197"}],
    "tools": [{"name": "Edit", "description": "Edits.", "input_schema": {"type": "object", "$schema": "draft"}}],
    "metadata": {"user_id": '{"device_id":"d","session_id":"s"}'},
    "thinking": {"type": "adaptive"},
    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    "output_config": {"effort": "high"},
}


def of_model(name: str, **members: object) -> Target:
    target = replace(TARGET, model=name, upstream_model=name, max_output_tokens=None)
    for member, value in members.items():
        object.__setattr__(target, member, value)
    return target


def refusal_of(target: Target, *turns: JsonObject, more: JsonObject | None = None, **members: JsonValue) -> Refusal:
    with pytest.raises(Refusal) as caught:
        encode_native(own_request(*turns, more={**members, **(more or {})}), target)
    return caught.value


def test_the_body_goes_as_it_came_but_for_model_and_stream() -> None:
    request = own_request(HELLO, {"role": "system", "content": "Be brief."}, unheard_of={"a": [None]}, more=CLAUDE_CODE)
    sent, body = own_call(request, of_model("claude-opus-4-8"))
    assert request.native is not None
    assert body == {**request.native.body, "model": "claude-opus-4-8"}
    assert sent.url == "https://api.anthropic.com/v1/messages"
    assert (sent.emulated, sent.dropped, sent.stream) == ((), (), False)
    sdk_check({name: value for name, value in body.items() if name not in ("unheard_of", "context_management")}, "x")


def test_a_stream_is_asked_for_where_the_call_is_one() -> None:
    sent, body = own_call(own_request(stream=True), TARGET)
    assert (sent.stream, body["stream"]) == (True, True)
    assert "stream" not in own_body(replace(own_request(stream=True), stream=False), TARGET)


def test_a_request_of_another_api_is_none_of_this_dialect() -> None:
    assert encode_native(chat_request(), TARGET) is None
    other = NativeRequest(NativeApi.RESPONSES, {"input": "hi"})
    assert encode_native(replace(chat_request(), native=other), TARGET) is None


# Headers ------------------------------------------------------------------------------------------------------------


@looped(
    ("table", "client", "sent"),
    [
        (None, "2026-10-21", "2026-10-21"),
        (None, None, "2023-06-01"),
        ("2026-10-21", "2023-06-01", "2026-10-21"),
        (None, "a\nb", "2023-06-01"),
    ],
)
def test_the_table_s_version_is_sent_else_the_client_s(table: str | None, client: str | None, sent: str) -> None:
    headers = {} if client is None else {"anthropic-version": client}
    call, _ = own_call(own_request(headers=headers), replace(TARGET, api_version=table))
    assert call.headers["anthropic-version"] == sent


def test_the_client_s_betas_are_joined_with_ours_and_with_its_extra_headers() -> None:
    thinking: JsonObject = {"type": "adaptive", "block_binding": "none"}
    request = own_request(headers={"anthropic-beta": "a-1,b-2"}, thinking=thinking)
    request = replace(request, extra_headers={"Anthropic-Beta": "c-3", "x-title": "t"})
    call, _ = own_call(request, of_model("claude-opus-5-5"))
    assert call.headers["anthropic-beta"] == "a-1,b-2,thinking-binding-controls-2026-08-01,c-3"
    assert call.headers["x-title"] == "t"


def test_extra_members_are_merged_last_and_tools_are_joined() -> None:
    request = replace(own_request(tools=[{"name": "f"}]), extra_params={"speed": "fast", "tools": [{"name": "g"}]})
    body = own_body(request, TARGET)
    assert (body["speed"], body["tools"]) == ("fast", [{"name": "f"}, {"name": "g"}])


# The limit ----------------------------------------------------------------------------------------------------------


@looped(
    ("given", "table", "sent", "named"),
    [(500, 8192, 500, ()), (70_000, 8192, 64_000, ("max_tokens",)), (70_000, 80_000, 70_000, ()), (0, 8192, 0, ())],
)
def test_the_limit_is_lowered_to_what_the_model_can(given: int, table: int, sent: int, named: tuple[str, ...]) -> None:
    call, body = own_call(own_request(max_tokens=given), replace(TARGET, max_output_tokens=table))
    assert (body["max_tokens"], call.emulated) == (sent, named)


def test_a_limit_that_was_lowered_to_the_window_since_is_the_one_sent() -> None:
    request = own_request(unheard_of=1)
    sent, _ = own_call(request, TARGET)
    again = encode_again(sent, replace(request, params={**request.params, "max_tokens": 7}))
    body = orjson.loads(again.body)
    assert (again.native, body["max_tokens"], body["unheard_of"]) == (True, 7, 1)


def test_a_body_without_a_limit_gets_the_table_s() -> None:
    request = own_request()
    assert request.native is not None
    bare = replace(request, native=request.native.without({"max_tokens"}), params={})
    assert own_body(bare, TARGET)["max_tokens"] == 8192


# Sampling -----------------------------------------------------------------------------------------------------------


def test_sampling_settings_go_where_version_and_model_have_them() -> None:
    body = own_body(own_request(temperature=0.2, top_p=0.5, top_k=3), TARGET)
    assert (body["temperature"], body["top_p"], body["top_k"]) == (0.2, 0.5, 3)


@pytest.mark.parametrize("target", [NEW_VERSION, of_model("claude-opus-4-8")])
def test_settings_that_ask_for_nothing_are_left_out_where_there_is_no_sampling(target: Target) -> None:
    body = own_body(own_request(temperature=1, top_p=1, top_k=-1), target)
    assert not {"temperature", "top_p", "top_k"} & body.keys()


@looped(("name", "value"), [("temperature", 0.2), ("top_p", 0.5), ("top_k", 3)])
def test_others_are_refused_by_name(name: str, value: JsonValue) -> None:
    refused = refusal_of(NEW_VERSION, more={name: value})
    assert (refused.param, refused.code) == (name, "unsupported_parameter")


# Thinking -----------------------------------------------------------------------------------------------------------


@looped(
    ("model", "given", "sent"),
    [
        ("claude-haiku-4-5", {"type": "adaptive"}, {"type": "enabled", "budget_tokens": 10_000}),
        ("claude-opus-4-8", {"type": "enabled", "budget_tokens": 2000}, {"type": "adaptive", "display": "summarized"}),
        ("claude-haiku-4-5", {"type": "enabled", "budget_tokens": 2000}, {"type": "enabled", "budget_tokens": 2000}),
        ("operators-own", {"type": "unheard_of"}, {"type": "unheard_of"}),
        ("claude-opus-5", {"type": "disabled"}, {"type": "disabled"}),
    ],
)
def test_thinking_gets_the_form_that_the_model_has(model: str, given: JsonValue, sent: JsonValue) -> None:
    call, body = own_call(own_request(thinking=given, max_tokens=30_000), of_model(model))
    assert body["thinking"] == sent
    assert call.emulated == (() if given == sent else ("thinking",))


@looped("thinking", ["on", {"type": ["adaptive"]}, {"budget_tokens": 5}, []])
def test_thinking_that_makes_no_sense_is_the_vendor_s_to_refuse(thinking: JsonValue) -> None:
    assert own_body(own_request(thinking=thinking), TARGET)["thinking"] == thinking


@looped(
    ("model", "config", "sent"),
    [
        ("claude-haiku-4-5", {"effort": "high"}, None),
        (
            "claude-haiku-4-5",
            {"effort": "high", "format": {"type": "json_schema"}},
            {"format": {"type": "json_schema"}},
        ),
        ("claude-opus-4-5", {"effort": "max"}, {"effort": "high"}),
        ("claude-opus-4-8", {"effort": "max", "x": 1}, {"x": 1, "effort": "max"}),
        ("operators-own", {"effort": "unheard_of"}, {"effort": "unheard_of"}),
    ],
)
def test_effort_is_the_nearest_that_the_model_has(model: str, config: JsonValue, sent: JsonValue) -> None:
    call, body = own_call(own_request(output_config=config), of_model(model))
    assert body.get("output_config") == sent
    assert call.emulated == (() if config == sent else ("output_config.effort",))


def test_a_tool_loop_that_another_vendor_began_without_thinking_goes_on_without() -> None:
    budget: JsonObject = {"type": "enabled", "budget_tokens": 2000}
    before: JsonObject = {"role": "assistant", "content": [THOUGHT, {"type": "text", "text": "Hi."}]}
    turns = (HELLO, before, HELLO, DOING, DONE)
    call, body = own_call(own_request(*turns, thinking=budget, max_tokens=9000), TARGET)
    assert "thinking" not in body
    assert body["messages"] == [HELLO, {**before, "content": [{"type": "text", "text": "Hi."}]}, HELLO, DOING, DONE]
    assert call.dropped == ("thinking",)


def test_a_tool_loop_with_claude_s_own_thinking_is_not_touched() -> None:
    calls = DOING["content"]
    assert isinstance(calls, list)
    turns = (HELLO, {**DOING, "content": [THOUGHT, *calls]}, DONE)
    request = own_request(*turns, thinking={"type": "enabled", "budget_tokens": 2000}, max_tokens=9000)
    call, body = own_call(request, TARGET)
    assert (body["messages"], call.dropped) == ([*turns], ())
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 2000}


def test_a_budget_stays_below_a_limit_that_is_ours() -> None:
    request = own_request(thinking={"type": "enabled", "budget_tokens": 69_000}, max_tokens=70_000)
    body = own_body(request, of_model("claude-haiku-4-5"))
    assert (body["max_tokens"], body["thinking"]) == (64_000, {"type": "enabled", "budget_tokens": 62_976})


def test_a_model_that_cannot_be_made_to_call_refuses_it_by_name() -> None:
    refused = refusal_of(of_model("claude-opus-5-5"), tools=[{"name": "f"}], tool_choice={"type": "any"})
    assert refused.param == "tool_choice"


def test_a_window_s_end_that_cannot_be_held_is_refused_only_where_the_client_asks() -> None:
    asked = own_request()
    asked = replace(asked, params={**asked.params, "context_length_exceeded_behavior": "error"})
    with pytest.raises(Refusal, match="context_length_exceeded_behavior"):
        encode_native(asked, TARGET)
    assert encode_native(replace(asked, injected=frozenset({"context_length_exceeded_behavior"})), TARGET) is not None


def test_the_answer_is_read_and_its_bytes_are_kept() -> None:
    sent, _ = own_call(own_request(), TARGET)
    body = answer("thinking")
    completion = sent.target.dialect.decode(sent, body)
    assert completion.native == body
    assert replace(completion, native=None) == sent.target.dialect.decode(replace(sent, native=False), body)
