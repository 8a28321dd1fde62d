"""Calls in the client's own API: what they may hold, and when their prompt is counted."""

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

import pytest

from providers.emulation.admit_native import admit_native
from providers.emulation.split_into_calls import plan_calls
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import Params, UnifiedRequest
from tests.providers.dialects.anthropic.native_kit import own_request
from tests.providers.dialects.kit import target_of

WINDOW = "context_length_exceeded_behavior"
TARGET = target_of("anthropic", "claude-haiku-4-5", context_window=200_000)


def asking(params: Mapping[str, object], *injected: str) -> UnifiedRequest:
    request = own_request()
    return replace(request, params=cast(Params, {**request.params, **params}), injected=frozenset(injected))


@pytest.mark.parametrize(
    ("params", "injected", "counted"),
    [({}, (), False), ({WINDOW: "error"}, (WINDOW,), False), ({WINDOW: "error"}, (), True)],
)
def test_a_prompt_is_counted_where_the_client_says_how_it_is_to_end(
    params: Mapping[str, object], injected: tuple[str, ...], counted: bool
) -> None:
    request = asking(params, *injected)
    assert admit_native(request, TARGET) is counted
    assert plan_calls(request, TARGET).counted is counted


def test_a_member_that_the_gateway_decides_on_is_refused() -> None:
    with pytest.raises(Refusal, match="fallbacks"):
        plan_calls(own_request(fallbacks=[{"model": "claude-opus-5-5"}]), TARGET)


def test_a_field_that_is_dropped_leaves_the_client_s_own_body_too() -> None:
    target = replace(TARGET, api_version="2026-10-21")
    plan = plan_calls(own_request(temperature=0.5, top_k=4, top_p=0.9), target, on_unsupported="drop")
    (call,) = plan.calls
    assert call.sent.native
    assert b"temperature" not in call.sent.body
    assert sorted(plan.dropped) == ["temperature", "top_k", "top_p"]


def test_what_was_mended_is_named() -> None:
    blocks: list[JsonValue] = [{"type": "thinking", "thinking": "x"}, {"type": "text", "text": "y"}]
    turns: list[JsonObject] = [{"role": "user", "content": "x"}, {"role": "assistant", "content": blocks}]
    plan = plan_calls(own_request(*turns, max_tokens=10**6), TARGET)
    assert (plan.dropped, plan.emulated) == (("thinking",), ("max_tokens",))
