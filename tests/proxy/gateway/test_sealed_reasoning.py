"""Conversations that move to another account of a vendor, which cannot decrypt the reasoning of the first account's
model.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import orjson
import pytest

from providers.json_types import JsonObject, JsonValue
from tests.providers.dialects.responses.kit import sse
from tests.proxy.kit.chat_answers import frames, listed
from tests.proxy.kit.gateway_rig import CLIENT_KEY, Rig, gateway_fixture
from tests.proxy.kit.raw_client import Answer
from tests.proxy.kit.sealing_vendors import DONE_TEXT, VENDORS, SealingAccounts, refused_by_frame, seal_of
from tests.proxy.kit.tables import digest_of
from tests.proxy.surfaces.anthropic.kit import accumulate
from tests.support.http_scripts import json_answer, sse_answer
from tests.support.looped import looped
from tests.support.vendor_script import Script

pytestmark = pytest.mark.smoke

ACCOUNTS = ("a", "b")


def table() -> str:
    """Return a configuration with two accounts of each vendor, and a route over both."""
    vendors, models, routes = [], [], []
    for name, each in VENDORS.items():
        for account in ACCOUNTS:
            settings = each.settings.replace("BASE", f"http://127.0.0.1:PORT/{account}")
            vendors.append(f"  {name}-{account}: {{{settings}, allow_private: true}}\n")
            models.append(f'  "{name}-{account}/{each.model}": {{max_output_tokens: 8000}}\n')
        targets = ", ".join([f'"{name}-{account}/{each.model}"' for account in ACCOUNTS])
        routes.append(f"  {name}: {{targets: [{targets}]}}\n")
    team = f'teams:\n  search: {{keys: ["{digest_of(CLIENT_KEY)}"], models: ["*", {", ".join(VENDORS)}]}}\n'
    head = 'defaults: {retries: {attempts: 2, safety: "safe"}}\n'
    return f"{head}vendors:\n{''.join(vendors)}models:\n{''.join(models)}routes:\n{''.join(routes)}{team}"


served = gateway_fixture(table())

PARAMETERS: Final[JsonObject] = {"type": "object", "properties": {"a": {"type": "integer"}}}
USER: Final[JsonObject] = {"role": "user", "content": "hi"}


@dataclass(frozen=True, slots=True)
class Client:
    """A client of one API: its path, the body of a conversation, the same body with a web search, and its reader of a
    response.
    """

    path: str
    body: JsonObject
    search: JsonObject
    conversation: str
    history: Callable[[Answer, bool], list[JsonValue]]
    result: Callable[[list[JsonValue]], JsonObject]
    text: Callable[[list[JsonValue]], str]

    def asks(self, model: str, conversation: list[JsonValue], *, stream: bool) -> JsonObject:
        # xAI seals no reasoning in chats; a web search goes to its Responses API.
        search = self.search if model == "xai" else {}
        more: JsonObject = {name: _with(self.body.get(name), value) for name, value in search.items()}
        return {**self.body, **more, "model": model, "stream": stream, self.conversation: conversation}


def _with(given: JsonValue, more: JsonValue) -> JsonValue:
    return [*given, *more] if isinstance(given, list) and isinstance(more, list) else more


def _objects(value: JsonValue) -> list[JsonObject]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


# Chats


def _chat_history(answer: Answer, streamed: bool) -> list[JsonValue]:
    if not streamed:
        return [listed(answer.json(), "choices")[0]["message"]]
    message: JsonObject = {"role": "assistant", "content": ""}
    calls: dict[JsonValue, JsonObject] = {}
    for frame in frames(answer):
        for choice in listed(frame, "choices"):
            delta = choice["delta"]
            assert isinstance(delta, dict)
            message["content"] = f"{message['content']}{delta.get('content') or ''}"
            if details := listed(delta, "reasoning_details"):
                message["reasoning_details"] = [*listed(message, "reasoning_details"), *details]
            if extra := delta.get("extra_content"):
                message["extra_content"] = extra
            for call in listed(delta, "tool_calls"):
                function = call.pop("function")
                assert isinstance(function, dict)
                held = calls.setdefault(call.pop("index"), {"type": "function", "function": {"arguments": ""}})
                own = held["function"]
                assert isinstance(own, dict)
                own["name"] = function.get("name") or own.get("name")
                own["arguments"] = f"{own['arguments']}{function.get('arguments') or ''}"
                held |= {name: value for name, value in call.items() if value is not None}
    return [{**message, "tool_calls": [*calls.values()]} if calls else message]


def _chat_result(history: list[JsonValue]) -> JsonObject:
    (message,) = _objects(history)
    (call,) = listed(message, "tool_calls")
    return {"role": "tool", "tool_call_id": call["id"], "content": "RESULT"}


def _chat_text(history: list[JsonValue]) -> str:
    return str(_objects(history)[0]["content"])


# Messages


def _messages_history(answer: Answer, streamed: bool) -> list[JsonValue]:
    made: JsonObject = accumulate(answer.body).model_dump(exclude_none=True) if streamed else answer.json()
    return [{"role": "assistant", "content": made["content"]}]


def _messages_result(history: list[JsonValue]) -> JsonObject:
    (turn,) = _objects(history)
    (call,) = [block for block in listed(turn, "content") if block["type"] == "tool_use"]
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call["id"], "content": "RESULT"}]}


def _messages_text(history: list[JsonValue]) -> str:
    return "".join([str(block["text"]) for block in listed(_objects(history)[0], "content") if block["type"] == "text"])


# Responses


def _responses_history(answer: Answer, streamed: bool) -> list[JsonValue]:
    whole: JsonValue = orjson.loads(answer.events()[-1])["response"] if streamed else answer.json()
    assert isinstance(whole, dict)
    return [*_objects(whole["output"])]


def _responses_result(history: list[JsonValue]) -> JsonObject:
    (call,) = [item for item in _objects(history) if item["type"] == "function_call"]
    return {"type": "function_call_output", "call_id": call["call_id"], "output": "RESULT"}


def _responses_text(history: list[JsonValue]) -> str:
    said = [listed(item, "content") for item in _objects(history) if item["type"] == "message"]
    return "".join([str(part["text"]) for parts in said for part in parts])


FUNCTION: Final[JsonObject] = {"name": "f", "parameters": PARAMETERS}
CLIENTS: Final = {
    "chat": Client(
        "/v1/chat/completions",
        {"reasoning_effort": "low", "tools": [{"type": "function", "function": FUNCTION}]},
        {"web_search_options": {}},
        "messages",
        _chat_history,
        _chat_result,
        _chat_text,
    ),
    "messages": Client(
        "/v1/messages",
        {
            "max_tokens": 4000,
            "thinking": {"type": "enabled", "budget_tokens": 1024},
            "tools": [{"name": "f", "input_schema": PARAMETERS}],
        },
        {"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
        "messages",
        _messages_history,
        _messages_result,
        _messages_text,
    ),
    "responses": Client(
        "/v1/responses",
        {"store": False, "reasoning": {"effort": "low"}, "tools": [{"type": "function", **FUNCTION}]},
        {"tools": [{"type": "web_search"}]},
        "input",
        _responses_history,
        _responses_result,
        _responses_text,
    ),
}

PAIRS: Final = [(vendor, client) for vendor in VENDORS for client in CLIENTS]


@looped("stream", [False, True])
@looped(("vendor", "client"), PAIRS)
async def test_a_conversation_goes_on_at_an_account_that_cannot_read_its_reasoning(
    served: Rig, vendor: str, client: str, stream: bool
) -> None:
    accounts, api = SealingAccounts(VENDORS[vendor]), CLIENTS[client]
    served.vendor.default = accounts.answer
    before = len(served.records)
    first = await served.post(api.path, api.asks(vendor, [USER], stream=stream))
    assert (first.status, first.headers["x-dragoman-deployment"].split("/")[0]) == (200, f"{vendor}-a"), first.body
    history = api.history(first, stream)
    accounts.down.add("a")
    conversation = [USER, *history, api.result(history)]
    second = await served.post(api.path, api.asks(vendor, conversation, stream=stream))
    assert second.status == 200, second.body
    assert accounts.refused == ["b"]
    assert api.text(api.history(second, stream)) == DONE_TEXT
    dropped = second.headers["x-dragoman-dropped"].split(", ")
    assert {"thinking", "reasoning"} & {*dropped}, dropped
    assert seal_of("a").encode() not in served.vendor.requests[-1].body
    record = (await served.finished(before + 2))[-1]
    assert [(each.outcome, [*each.repeats]) for each in record.attempts] == [
        ("server", []),
        ("ok", ["reasoning_refused"]),
    ]
    served.dispatcher.deployments.keep([])


SEALED: Final[dict[str, tuple[JsonValue, ...]]] = {
    "chat": (
        USER,
        {
            "role": "assistant",
            "content": "a",
            "reasoning_details": [
                {"type": "reasoning.encrypted", "data": seal_of("a"), "format": "openai-responses-v1"},
                {"type": "reasoning.text", "text": "hm", "signature": seal_of("a"), "format": "anthropic-claude-v1"},
            ],
        },
        USER,
    ),
    "messages": (
        USER,
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": seal_of("a")},
                {"type": "text", "text": "a"},
            ],
        },
        USER,
    ),
    "responses": (
        USER,
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": seal_of("a")},
        {"type": "compaction", "encrypted_content": seal_of("a")},
        {"role": "assistant", "content": "a"},
        USER,
    ),
}
OWN: Final = [
    ("openai", "responses", "reasoning, compaction"),
    ("openai", "chat", "thinking"),
    ("anthropic", "messages", "thinking"),
    ("anthropic", "chat", "thinking"),
    ("bedrock", "messages", "thinking"),
]


def target_of(vendor: str) -> str:
    return f"{vendor}-b/{VENDORS[vendor].model}"


def outcomes(served: Rig) -> list[tuple[str, list[str]]]:
    return [(each.outcome, [*each.repeats]) for each in served.records[-1].attempts]


@looped("stream", [False, True])
@looped(("vendor", "client", "dropped"), OWN)
async def test_what_is_left_out_is_named_as_the_vendor_s_api_has_it(
    served: Rig, vendor: str, client: str, dropped: str, stream: bool
) -> None:
    served.vendor.default = SealingAccounts(VENDORS[vendor]).answer
    api, before = CLIENTS[client], len(served.records)
    answer = await served.post(api.path, api.asks(target_of(vendor), [*SEALED[client]], stream=stream))
    assert answer.status == 200, answer.body
    assert (answer.headers["x-dragoman-dropped"], answer.headers["x-dragoman-attempts"]) == (dropped, "1")
    await served.finished(before + 1)
    assert outcomes(served) == [("ok", ["reasoning_refused"])]


@looped("stream", [False, True])
@looped(("vendor", "client", "dropped"), OWN)
async def test_a_refusal_that_comes_twice_is_the_client_s_and_no_fault_of_the_deployment(
    served: Rig, vendor: str, client: str, dropped: str, stream: bool
) -> None:
    served.vendor.default = lambda request: json_answer(400, VENDORS[vendor].refusal)
    api, before, calls = CLIENTS[client], len(served.records), len(served.vendor.requests)
    for _ in range(6):
        answer = await served.post(api.path, api.asks(target_of(vendor), [*SEALED[client]], stream=stream))
        assert answer.status == 400, answer.body
    await served.finished(before + 6)
    assert len(served.vendor.requests) == calls + 12
    assert outcomes(served) == [("invalid_request", ["reasoning_refused"])]


@looped("stream", [False, True])
@looped(("vendor", "client"), PAIRS)
async def test_a_refusal_of_a_request_without_seals_stays_the_client_s(
    served: Rig, vendor: str, client: str, stream: bool
) -> None:
    served.vendor.default = lambda request: json_answer(400, VENDORS[vendor].refusal)
    api, calls = CLIENTS[client], len(served.vendor.requests)
    answer = await served.post(api.path, api.asks(vendor, [USER], stream=stream))
    assert (answer.status, len(served.vendor.requests)) == (400, calls + 1)
    assert "x-dragoman-dropped" not in answer.headers or "thinking" not in answer.headers["x-dragoman-dropped"]


FAILED: Final[JsonObject] = {"code": "invalid_encrypted_content", "message": "x"}
IN_STREAMS: Final = [
    ("openai", "chat", sse_answer([sse({"type": "response.failed", "response": {"error": FAILED}})])),
    ("openai", "responses", sse_answer([sse({"type": "response.failed", "response": {"error": FAILED}})])),
    ("openai", "responses", sse_answer([sse({"type": "error", **FAILED})])),
    ("anthropic", "messages", sse_answer([sse(VENDORS["anthropic"].refusal)])),
    ("bedrock", "messages", refused_by_frame(VENDORS["bedrock"].refusal)),
]


@looped(("vendor", "client", "refusal"), IN_STREAMS)
async def test_a_refusal_inside_a_stream_is_followed_by_the_same_call(
    served: Rig, vendor: str, client: str, refusal: Script
) -> None:
    served.vendor.default = SealingAccounts(VENDORS[vendor]).answer
    served.vendor.answer(refusal)
    api = CLIENTS[client]
    answer = await served.post(api.path, api.asks(target_of(vendor), [*SEALED[client]], stream=True))
    assert answer.status == 200
    history = api.history(answer, True)
    assert api.result(history)


async def test_a_large_conversation_is_rewritten_beside_the_event_loop(served: Rig) -> None:
    served.vendor.default = SealingAccounts(VENDORS["anthropic"]).answer
    api = CLIENTS["messages"]
    turns: list[JsonValue] = [{"role": "user", "content": "x" * 90_000}, *SEALED["messages"]]
    answer = await served.post(api.path, api.asks(target_of("anthropic"), turns, stream=False))
    assert (answer.status, answer.headers["x-dragoman-dropped"]) == (200, "thinking")
