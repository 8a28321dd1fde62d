"""Vendors receive the conversation's id if their profile has a field for it and the client has sent none."""

from typing import cast

import orjson

from providers.adaptation.carry_session import carry_session
from providers.emulation.plan_calls import plan_calls
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import ChatPrompt, NativeApi, NativeRequest, Operation, Params, UnifiedRequest
from tests.proxy.kit.tables import snapshot
from tests.support.looped import looped

TABLE = snapshot(
    """
vendors:
  openai: {api_key: k}
  azure: {api_key: k, url_params: {resource: r}}
  azure_old: {profile: azure, api_key: k, url_params: {resource: r}, api_version: '2024-08-01-preview'}
  azure_v1: {api_key: k, url_params: {resource: r}}
  xai: {api_key: k}
  fireworks: {api_key: k}
  anthropic: {api_key: k}
  deepseek: {api_key: k}
models:
  openai/gpt-4o: {}
  openai/gpt-5.6: {}
  azure/gpt-4o: {}
  azure_old/gpt-4o: {}
  azure_v1/gpt-5.6: {}
  xai/grok-4: {}
  fireworks/llama: {}
  anthropic/claude-haiku-4-5: {max_output_tokens: 99}
  deepseek/deepseek-chat: {}
"""
)
SESSION = "0123456789abcdef"
SEARCH: JsonObject = {"type": "web_search"}
TOOL: JsonObject = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}


def session_request(
    native: JsonObject | None = None, headers: dict[str, str] | None = None, **params: object
) -> UnifiedRequest:
    prompt = ChatPrompt(({"role": "user", "content": "Hi"},))
    body = None if native is None else NativeRequest(NativeApi.RESPONSES, native)
    given = cast(Params, params)
    return UnifiedRequest(Operation.CHAT, "m", prompt, given, extra_headers=headers, native=body)


def sent_session(model: str, request: UnifiedRequest) -> tuple[JsonValue, str | None, str]:
    """Return the field and the header of the call, and whether it belongs to the Responses API."""
    sent = carry_session(plan_calls(request, TABLE.models[model].targets[0]).calls[0].sent, SESSION)
    headers = {name.lower(): value for name, value in sent.headers.items()}
    header = headers.get("x-grok-conv-id") or headers.get("x-session-affinity")
    return orjson.loads(sent.body).get("prompt_cache_key"), header, "responses" if "/responses" in sent.url else "chat"


@looped(
    ("model", "request_", "expected"),
    [
        ("openai/gpt-4o", session_request(), (SESSION, None, "chat")),
        ("openai/gpt-5.6", session_request(tools=[TOOL]), (SESSION, None, "responses")),
        ("openai/gpt-4o", session_request({"model": "m", "input": "Hi"}), (SESSION, None, "responses")),
        ("azure/gpt-4o", session_request(), (None, None, "chat")),
        ("azure_old/gpt-4o", session_request(), (None, None, "chat")),
        ("azure_v1/gpt-5.6", session_request(), (SESSION, None, "chat")),
        ("azure/gpt-4o", session_request({"model": "m", "input": "Hi"}), (SESSION, None, "responses")),
        ("xai/grok-4", session_request(), (None, SESSION, "chat")),
        ("xai/grok-4", session_request(tools=[SEARCH]), (SESSION, None, "responses")),
        ("fireworks/llama", session_request(), (None, SESSION, "chat")),
        ("anthropic/claude-haiku-4-5", session_request(), (None, None, "chat")),
        ("deepseek/deepseek-chat", session_request(), (None, None, "chat")),
    ],
)
def test_each_vendor_is_told_where_its_own_page_says(
    model: str, request_: UnifiedRequest, expected: tuple[JsonValue, str | None, str]
) -> None:
    assert sent_session(model, request_) == expected


@looped(
    ("model", "request_", "field", "header"),
    [
        ("openai/gpt-4o", session_request(prompt_cache_key="own"), "own", None),
        ("openai/gpt-4o", session_request({"model": "m", "input": "Hi", "prompt_cache_key": "own"}), "own", None),
        ("xai/grok-4", session_request(headers={"X-Grok-Conv-Id": "own"}), None, "own"),
        ("fireworks/llama", session_request(headers={"x-session-affinity": "own"}), None, "own"),
    ],
)
def test_what_the_client_has_told_a_vendor_stays(
    model: str, request_: UnifiedRequest, field: str | None, header: str | None
) -> None:
    assert sent_session(model, request_)[:2] == (field, header)


def test_a_body_with_the_name_elsewhere_is_left_as_it_is() -> None:
    quoted: JsonObject = {"model": "m", "input": "Hi", "metadata": {"prompt_cache_key": "x"}}
    assert sent_session("openai/gpt-4o", session_request(quoted))[0] is None


def test_nothing_else_of_a_call_changes() -> None:
    plan = plan_calls(session_request(temperature=0.5), TABLE.models["openai/gpt-4o"].targets[0])
    sent = plan.calls[0].sent
    carried = carry_session(sent, SESSION)
    assert orjson.loads(carried.body) == {"prompt_cache_key": SESSION, **orjson.loads(sent.body)}
    assert (carried.url, carried.headers, carried.dropped) == (sent.url, sent.headers, sent.dropped)
