"""Fields of clients' own bodies that may be sent to a vendor or an engine."""

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

import pytest

from providers.client_extras.native_members import admit_native, check_native
from providers.emulation.plan_calls import plan_calls
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from providers.target import Permits, Target
from providers.unified_request import NativeApi, NativeRequest, Params, UnifiedRequest
from tests.providers.dialects.anthropic.native_kit import own_request
from tests.providers.dialects.kit import target_of
from tests.providers.kit import refusal_of
from tests.support.looped import looped

HOSTED = target_of("anthropic")
ENGINE = target_of("anthropic", allow_private=True)
SCHEMA: JsonObject = {"type": "object", "properties": {"path": {"type": "string", "default": "/etc"}}}
NAMESPACE: JsonObject = {
    "type": "namespace",
    "name": "fs",
    "description": "Reads /etc.",
    "tools": [{"type": "function", "name": "read", "parameters": SCHEMA}],
}
ORDINARY: JsonObject = {
    "model": "m",
    "stream": True,
    "max_tokens": 5,
    "system": "Read https://h/x and /etc/passwd.",
    "messages": [{"role": "user", "content": [{"type": "text", "text": "http://h/"}], "cache_control": {}}],
    "tools": [{"name": "f", "input_schema": {"url": "http://h/"}}, {"type": "custom", "name": "g"}, NAMESPACE],
    "metadata": {"user_id": "http://h/"},
    "client_metadata": {"x-codex-turn-metadata": '{"workspaces": {"/root/work": {}}}'},
    "thinking": {"type": "adaptive"},
    "speed": "fast",
    "input": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": '{"path":"/etc/passwd"}'}],
}


def refusal(body: JsonObject, *allowed: str) -> Refusal | None:
    try:
        check_native(NativeRequest(NativeApi.MESSAGES, body), replace(ENGINE, permits=Permits(frozenset(allowed))))
    except Refusal as refused:
        return refused
    return None


@looped("name", ["fallbacks", "Model", "base_url", "api_key", "MESSAGES"])
def test_what_the_gateway_decides_is_sent_to_nobody(name: str) -> None:
    for target in (HOSTED, ENGINE):
        refusal = refusal_of(check_native, NativeRequest(NativeApi.MESSAGES, {**ORDINARY, name: "x"}), target)
        assert (refusal.param, refusal.code) == (name, "unsupported_parameter")


def test_a_hosted_vendor_answers_for_the_members_it_does_not_know() -> None:
    check_native(NativeRequest(NativeApi.MESSAGES, {**ORDINARY, "mcp_servers": [{"url": "https://h/"}]}), HOSTED)


@looped("target", [HOSTED, ENGINE])
@looped("empty", [{"mcp_servers": []}, {"fallbacks": []}, {"extra_headers": {}}])
def test_an_empty_list_or_object_names_nothing(target: Target, empty: JsonObject) -> None:
    check_native(NativeRequest(NativeApi.MESSAGES, {**ORDINARY, **empty}), target)


def test_texts_settings_and_turns_are_read_by_an_engine() -> None:
    assert refusal(ORDINARY) is None


@looped(
    ("member", "param", "named"),
    [
        ({"mcp_servers": [{"url": "https://h/"}]}, "mcp_servers", "'mcp_servers'"),
        ({"unheard_of": {"a": ["/x/y"]}}, "unheard_of", "'unheard_of.a[0]'"),
        ({"messages": [{"role": "user", "content": "x", "mm": {"path": "x"}}]}, "messages", "'messages[0].mm.path'"),
        ({"input": [{"role": "user", "content": "x", "lora_path": "x"}]}, "input", "'input[0].lora_path'"),
        ({"tools": [{"type": "mcp", "server_url": "x"}]}, "tools", "'tools[0].server_url'"),
        (
            {"tools": [{"type": "namespace", "name": "n", "tools": [{"type": "mcp", "server_url": "x"}]}]},
            "tools",
            "'tools[0].tools[0].server_url'",
        ),
    ],
)
def test_an_engine_is_sent_no_locator_that_the_table_does_not_allow(member: JsonObject, param: str, named: str) -> None:
    refused = refusal({**ORDINARY, **member})
    assert refused is not None
    assert refused.param == param
    assert refused.message.startswith(f"{named} is not sent to {ENGINE.name}: it ")
    inner = named.strip("'").rpartition(".")[2].partition("[")[0]
    assert f"`allow_fields: [{inner}]`" in refused.message
    assert refusal({**ORDINARY, **member}, inner) is None


def test_what_is_no_list_of_objects_is_the_vendor_s_to_refuse() -> None:
    assert refusal({"messages": 5, "tools": [5], "input": "x"}) is None


# Admission -----------------------------------------------------------------------------------------------------------

WINDOW = "context_length_exceeded_behavior"
CLAUDE = target_of("anthropic", "claude-haiku-4-5", context_window=200_000)


def asking(params: Mapping[str, object], *injected: str) -> UnifiedRequest:
    request = own_request()
    return replace(request, params=cast(Params, {**request.params, **params}), injected=frozenset(injected))


@looped(
    ("params", "injected", "counted"),
    [({}, (), False), ({WINDOW: "error"}, (WINDOW,), False), ({WINDOW: "error"}, (), True)],
)
def test_a_prompt_is_counted_where_the_client_says_how_it_is_to_end(
    params: Mapping[str, object], injected: tuple[str, ...], counted: bool
) -> None:
    request = asking(params, *injected)
    assert admit_native(request, CLAUDE) is counted
    assert plan_calls(request, CLAUDE).counted is counted


def test_a_member_that_the_gateway_decides_on_is_refused() -> None:
    with pytest.raises(Refusal, match="fallbacks"):
        plan_calls(own_request(fallbacks=[{"model": "claude-opus-5-5"}]), CLAUDE)


def test_a_field_that_is_dropped_leaves_the_client_s_own_body_too() -> None:
    target = replace(CLAUDE, api_version="2026-10-21")
    plan = plan_calls(own_request(temperature=0.5, top_k=4, top_p=0.9), target, on_unsupported="drop")
    (call,) = plan.calls
    assert call.sent.native
    assert b"temperature" not in call.sent.body
    assert sorted(plan.dropped) == ["temperature", "top_k", "top_p"]


def test_what_was_mended_is_named() -> None:
    blocks: list[JsonValue] = [{"type": "thinking", "thinking": "x"}, {"type": "text", "text": "y"}]
    turns: list[JsonObject] = [{"role": "user", "content": "x"}, {"role": "assistant", "content": blocks}]
    plan = plan_calls(own_request(*turns, max_tokens=10**6), CLAUDE)
    assert (plan.dropped, plan.emulated) == (("thinking",), ("max_tokens",))
