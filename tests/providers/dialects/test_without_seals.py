"""Requests without the sealed content that only their vendor could read: the removed parts, the other parts, and
requests from which nothing can be removed."""

from dataclasses import replace
from typing import cast

import orjson

from providers.dialect import UpstreamRequest
from providers.dialects.shared.thought_signatures import pack_call_id
from providers.dialects.without_seals import Unsealed, without_reasoning, without_seals
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import ChatPrompt, NativeApi, NativeRequest, Operation, TextPrompt
from tests.providers.dialects.kit import chat_request, target_of
from tests.support.looped import looped

SIGNED: JsonObject = {"extra_content": {"google": {"thought_signature": "AA=="}}}
FOREIGN: JsonObject = {"extra_content": {"google": {"other": 1}}}
USER: JsonObject = {"role": "user", "content": "hi"}


def sent(*, native: bool = False) -> UpstreamRequest:
    call = UpstreamRequest(target_of("openai", "m"), Operation.CHAT, "https://x.example/v1", b"{}", False)
    return replace(call, native=native)


def of_chat(*messages: JsonObject) -> Unsealed | None:
    return without_seals(replace(chat_request(), prompt=ChatPrompt(messages)), sent())


def of_body(api: NativeApi, body: JsonObject) -> Unsealed | None:
    return without_seals(replace(chat_request(), native=NativeRequest(api, body)), sent(native=True))


def said(**fields: JsonValue) -> JsonObject:
    return {"role": "assistant", "content": "a", **fields}


def call(identity: str, **fields: JsonValue) -> JsonObject:
    return {"id": identity, "type": "function", "function": {"name": "f", "arguments": "{}"}, **fields}


def thinking(**fields: JsonValue) -> JsonObject:
    return {"type": "thinking", "thinking": "hm", **fields}


REDACTED: JsonObject = {"type": "redacted_thinking", "data": "AA=="}
TEXT: JsonObject = {"type": "text", "text": "a"}


@looped(
    ("message", "left"),
    [
        (said(reasoning_details=[{"type": "reasoning.encrypted", "data": "x"}]), said()),
        (said(thinking_blocks=[thinking(signature="x")]), said()),
        (said(reasoning_content="hm", reasoning_signature="x"), said(reasoning_content="hm")),
        (said(**SIGNED), said()),
        (said(tool_calls=[call("c", **SIGNED)]), said(tool_calls=[call("c")])),
        (said(tool_calls=[call("c", **SIGNED, n=1)]), said(tool_calls=[call("c", n=1)])),
        (said(tool_calls=[call(pack_call_id("c", "AA=="))]), said(tool_calls=[call("c")])),
        ({"role": "assistant", "content": [REDACTED, TEXT]}, {"role": "assistant", "content": [TEXT]}),
        ({"role": "assistant", "content": [thinking(signature="x")]}, {"role": "assistant", "content": ""}),
    ],
)
def test_a_message_loses_its_seals_alone(message: JsonObject, left: JsonObject) -> None:
    before = orjson.dumps(message)
    found = of_chat(USER, message)
    assert found is not None
    assert (found.request.prompt, found.dropped) == (ChatPrompt((USER, left)), ("thinking",))
    assert orjson.dumps(message) == before


@looped(
    "message",
    [
        said(),
        said(reasoning_content="hm"),
        said(tool_calls=[call("c")]),
        said(**FOREIGN),
        {"role": "assistant", "content": [thinking(), TEXT]},
        {"role": "tool", "tool_call_id": "c", "content": "r"},
    ],
)
def test_a_conversation_without_seals_has_no_other_form(message: JsonObject) -> None:
    assert of_chat(USER, message) is None


def test_a_text_has_no_seals() -> None:
    assert without_seals(replace(chat_request(), prompt=TextPrompt(("a",))), sent()) is None


def test_a_call_and_its_result_keep_one_id_that_no_other_has() -> None:
    first, second = pack_call_id("c", "AA=="), pack_call_id("c", "BBBB")
    messages = [said(tool_calls=[call(first), call(second)])]
    messages += [{"role": "tool", "tool_call_id": each, "content": "r"} for each in (first, second)]
    found = of_chat(*messages)
    assert found is not None
    calling, *results = cast(ChatPrompt, found.request.prompt).messages
    ids = [each["id"] for each in cast(list[JsonObject], calling["tool_calls"])]
    assert ids == [each["tool_call_id"] for each in results] == ["c", "c_1"]


SEALED: JsonObject = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}


def test_a_responses_body_loses_its_sealed_items_and_the_ids_of_calls() -> None:
    compaction: JsonObject = {"type": "compaction", "encrypted_content": "x"}
    called: JsonObject = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}"}
    items: list[JsonValue] = [compaction, USER, SEALED, called, {"type": "web_search_call", "id": "ws_1"}, "odd"]
    found = of_body(NativeApi.RESPONSES, {"model": "m", "input": items})
    assert found is not None
    assert found.request.native is not None
    bare = {name: value for name, value in called.items() if name != "id"}
    assert found.request.native.body == {"model": "m", "input": [USER, bare, *items[4:]]}
    assert found.dropped == ("compaction", "reasoning")


@looped("items", [[USER], "hi", [SEALED], [{"type": "reasoning", "summary": []}]])
def test_a_responses_body_with_nothing_sealed_or_nothing_else_has_no_other_form(items: JsonValue) -> None:
    assert of_body(NativeApi.RESPONSES, {"input": items}) is None


@looped(
    ("content", "left", "dropped"),
    [
        ([thinking(signature="x"), TEXT], [TEXT], ("thinking",)),
        ([REDACTED, TEXT], [TEXT], ("thinking",)),
        ([thinking(signature="x")], None, ("thinking",)),
        ([{"type": "compaction", "content": "so far", "signature": "x"}, TEXT], None, ("compaction",)),
        ([{"type": "compaction", "encrypted_content": "x"}, TEXT], [TEXT], ("compaction",)),
    ],
)
def test_a_messages_body_loses_its_seals_alone(
    content: list[JsonValue], left: list[JsonValue] | None, dropped: tuple[str, ...]
) -> None:
    found = of_body(NativeApi.MESSAGES, {"messages": [USER, {"role": "assistant", "content": content}, USER]})
    assert found is not None
    assert found.request.native is not None
    if dropped == ("compaction",) and left is None:
        left = [{"type": "compaction", "content": "so far"}, TEXT]
    turns = [USER, *([] if left is None else [{"role": "assistant", "content": left}]), USER]
    assert (found.request.native.body["messages"], found.dropped) == (turns, dropped)


@looped("content", [[thinking(), TEXT], "a", [{"type": "compaction", "content": "so far"}]])
def test_a_messages_body_without_seals_has_no_other_form(content: JsonValue) -> None:
    assert of_body(NativeApi.MESSAGES, {"messages": [USER, {"role": "assistant", "content": content}]}) is None


def test_without_reasoning_a_chat_loses_its_texts_of_reasoning_too() -> None:
    thought: JsonObject = {"type": "thinking", "thinking": "hm"}
    text: JsonObject = {"type": "text", "text": "a"}
    turns = (said(reasoning="hm", reasoning_content="hm"), said(content=[thought, text]), said(content=[thought]))
    request = replace(chat_request(), prompt=ChatPrompt((USER, *turns, USER)))
    made = without_reasoning(request, sent())
    assert made is not None
    left = (USER, said(), said(content=[text]), said(content=""), USER)
    assert (made.request.prompt, made.dropped) == (ChatPrompt(left), ("thinking",))
    assert without_reasoning(made.request, sent()) is None


def test_without_reasoning_a_clients_own_body_loses_its_seals_alone() -> None:
    sealed: JsonObject = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    body: JsonObject = {"messages": [USER, {"role": "assistant", "content": [sealed, {"type": "text", "text": "a"}]}]}
    request = replace(chat_request(), native=NativeRequest(NativeApi.MESSAGES, body))
    assert without_reasoning(request, sent(native=True)) == without_seals(request, sent(native=True))
