"""Reasoning that the gateway stores and restores: its owner, its bounds, and its cost for other clients."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import orjson
import pytest
import pytest_asyncio

from providers.completion import Choice, Chunk, Extras, StreamEvent, ToolCall, ToolCallDelta, Usage
from providers.json_types import JsonObject, JsonValue
from providers.target import Target
from providers.unified_request import ChatPrompt, NativeApi, NativeRequest, Operation, TextPrompt, UnifiedRequest
from proxy.conversations.owner_memory import OtherProcesses, OwnerMemory
from proxy.conversations.stored_entries import StoredEntries
from proxy.reasoning_memory import restore_reasoning
from proxy.reasoning_memory.reasoning_of_turns import MissingTurn, TurnThinking, missing_turns, pack_turn
from proxy.reasoning_memory.restore_reasoning import (
    MOST_RESTORED,
    TURN_BYTES,
    TURN_SECONDS,
    ReasoningKeeper,
    ReasoningMemory,
    WatchedStream,
)
from proxy.routing.request_plan import Plan
from proxy.upstream.gateway_streams import LocalStream
from tests.conformance.vendor_rules import DeepSeek, listed, thought
from tests.providers.dialects.openai.kit import target
from tests.proxy.kit.gateway_rig import Rig, rig
from tests.proxy.kit.tables import digest_of
from tests.support.cpu_growth import excess
from tests.support.http_scripts import json_answer, sse_answer
from tests.support.looped import looped
from tests.support.not_none import not_none
from tests.support.vendor_script import Script

pytestmark = pytest.mark.smoke


CLAUDE, OPENAI = target("anthropic"), target("openai")
ID = "toolu_01A09q90qw90lq917835lq9"
USER: JsonObject = {"role": "user", "content": "go"}
CALL: JsonObject = {"id": ID, "type": "function", "function": {"name": "f", "arguments": "{}"}}
ASKED: JsonObject = {"role": "assistant", "content": None, "tool_calls": [CALL]}
SIGNED: JsonObject = {"type": "reasoning.text", "text": "hm", "signature": "s", "format": "anthropic-claude-v1"}
RESTORED: JsonObject = {**ASKED, "reasoning_details": [SIGNED], "reasoning_content": "hm"}
ANSWERED = Choice(
    0, "", "tool_calls", tool_calls=(ToolCall(ID, "f", "{}"),), extras=Extras(reasoning_details=(SIGNED,))
)


def plan(*targets: Target) -> Plan:
    return Plan("v/m", "v/m", targets, False, ())


def chat(*messages: JsonObject) -> UnifiedRequest:
    return UnifiedRequest(Operation.CHAT, "v/m", ChatPrompt(messages), {"tools": [{"type": "function"}]})


def memory(others: OtherProcesses | None = None) -> ReasoningMemory:
    return ReasoningMemory(OwnerMemory(lambda: 0.0, StoredEntries(TURN_BYTES, TURN_SECONDS), others))


async def restored_messages(
    turns: ReasoningMemory, *messages: JsonObject, owner: str = "a", to: Target = CLAUDE
) -> Sequence[JsonObject]:
    """Return the messages that are passed on."""
    request, _ = await turns.recall(plan(to), chat(*messages), owner)
    assert isinstance(request.prompt, ChatPrompt)
    return request.prompt.messages


async def keeping(turns: ReasoningMemory, owner: str = "a") -> ReasoningKeeper:
    _, keeper = await turns.recall(plan(CLAUDE), chat(USER), owner)
    assert keeper is not None
    return keeper


async def test_what_an_answer_thought_is_in_the_next_request() -> None:
    turns = memory()
    (await keeping(turns)).keep(CLAUDE, [ANSWERED])
    assert await restored_messages(turns, USER, ASKED) == (USER, RESTORED)


async def test_another_owner_gets_nothing_whatever_ids_it_makes_up() -> None:
    turns = memory()
    (await keeping(turns, "a")).keep(CLAUDE, [ANSWERED])
    assert await restored_messages(turns, USER, ASKED, owner="b") == (USER, ASKED)
    (await keeping(turns, "b")).keep(CLAUDE, [replace(ANSWERED, reasoning="of b", extras=Extras((SIGNED,)))])
    assert await restored_messages(turns, USER, ASKED, owner="a") == (USER, RESTORED)


async def test_a_request_that_no_vendor_wants_thinking_for_is_not_touched() -> None:
    turns = memory()
    (await keeping(turns)).keep(CLAUDE, [ANSWERED])
    request = chat(USER, ASKED)
    assert await turns.recall(plan(OPENAI), request, "a") == (request, None)
    text = UnifiedRequest(Operation.COMPLETIONS, "v/m", TextPrompt(("x",)), {})
    assert await turns.recall(plan(CLAUDE), text, "a") == (text, None)
    plain = UnifiedRequest(Operation.CHAT, "v/m", ChatPrompt((USER,)), {})
    assert await turns.recall(plan(CLAUDE), plain, "a") == (plain, None)
    assert await restored_messages(turns, USER, ASKED, to=OPENAI) == (USER, ASKED)


async def test_while_it_is_off_nothing_is_kept_and_nothing_put_back() -> None:
    turns = memory()
    (await keeping(turns)).keep(CLAUDE, [ANSWERED])
    turns.off = True
    request = chat(USER, ASKED)
    assert await turns.recall(plan(CLAUDE), request, "a") == (request, None)


async def test_a_fallback_that_wants_it_is_enough() -> None:
    turns = memory()
    (await keeping(turns)).keep(CLAUDE, [ANSWERED])
    request, _ = await turns.recall(plan(OPENAI, CLAUDE), chat(USER, ASKED), "a")
    assert request.prompt == ChatPrompt((USER, RESTORED))


def test_a_client_of_the_vendor_s_own_api_has_its_reasoning_itself() -> None:
    codex = replace(OPENAI, model="gpt-5.3-codex", upstream_model="gpt-5.3-codex")
    native = replace(chat(USER), native=NativeRequest(NativeApi.RESPONSES, {}))
    asked = [memory().concerns(plan(to), request) for to in (codex, OPENAI, CLAUDE) for request in (chat(USER), native)]
    assert asked == [True, False, False, False, True, True]
    messages = replace(chat(USER), native=NativeRequest(NativeApi.MESSAGES, {}))
    assert [memory().concerns(plan(to), messages) for to in (codex, CLAUDE)] == [True, False]


async def test_the_turns_of_an_owner_without_stored_ones_are_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = memory()
    (await keeping(turns, "b")).keep(CLAUDE, [ANSWERED])
    read: list[object] = []

    def note(messages: Sequence[JsonObject]) -> list[MissingTurn]:
        read.append(messages)
        return []

    monkeypatch.setattr(restore_reasoning, "missing_turns", note)
    await restored_messages(turns, USER, ASKED)
    assert read == []
    await restored_messages(turns, USER, ASKED, owner="b")
    assert read == [(USER, ASKED)]


async def test_an_answer_of_a_vendor_that_signs_nothing_is_not_kept() -> None:
    turns = memory()
    (await keeping(turns)).keep(OPENAI, [ANSWERED])
    assert len(turns.entries.kept) == 0


async def test_a_request_is_given_no_more_than_so_much_the_latest_turns_first() -> None:
    turns = memory()
    ids = [f"{ID}{number}" for number in range(9)]
    messages: list[JsonObject] = [{**ASKED, "tool_calls": [{**CALL, "id": each}]} for each in ids]
    for missing in missing_turns(messages):
        data = not_none(pack_turn(TurnThinking(text="x" * (MOST_RESTORED // 4 - 100))))
        turns.entries.put("a", {missing.key: data})
    restored = await restored_messages(turns, *messages)
    assert ["reasoning_content" in message for message in restored] == [False] * 5 + [True] * 4


async def _sent(turns: ReasoningMemory, messages: Sequence[JsonObject]) -> Sequence[JsonObject]:
    return await restored_messages(turns, *messages)


def test_turns_of_many_small_parts_are_given_in_part() -> None:
    turns = memory()
    dense = b'{"details":[' + b"{}," * 150_000 + b"{}]}"
    messages: list[JsonObject] = [{**ASKED, "tool_calls": [{**CALL, "id": f"{ID}{number}"}]} for number in range(250)]
    for missing in missing_turns(messages):
        turns.entries.put("a", {missing.key: dense})
    assert excess(lambda: asyncio.run(_sent(turns, messages)), 30) == ""


def test_a_conversation_of_as_many_turns_as_may_be_is_searched_at_once() -> None:
    turns, said = memory(), "x" * 2000
    asked: JsonObject = {**ASKED, "tool_calls": [{**CALL, "id": "functions.f:0"}]}
    messages: list[JsonObject] = [{"role": "user", "content": said}, asked] * 2048
    assert asyncio.run(_sent(turns, messages)) == tuple(messages)
    assert excess(lambda: asyncio.run(_sent(turns, messages)), 30) == ""


@dataclass(slots=True)
class Others:
    """The stored turns of another process."""

    data: dict[tuple[str, str], bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def put(self, owner: str, entries: Mapping[str, bytes]) -> None:
        self.data.update({(owner, key): data for key, data in entries.items()})

    async def take(self, owner: str, wanted: Sequence[str], held: Sequence[str] = ()) -> dict[str, bytes]:
        self.asked += wanted
        return {key: self.data[owner, key] for key in wanted if (owner, key) in self.data}


async def test_a_turn_that_another_process_kept_is_found_once_and_known_from_then_on() -> None:
    others = Others()
    one, two = memory(others), memory(others)
    (await keeping(one)).keep(CLAUDE, [ANSWERED])
    assert await restored_messages(two, USER, ASKED) == (USER, RESTORED)
    assert await restored_messages(two, USER, ASKED) == (USER, RESTORED)
    assert len(others.asked) == 1
    assert await restored_messages(one, USER, ASKED) == (USER, RESTORED)
    assert len(others.asked) == 1


@looped("data", [b"", b"[]", b"\xff", b'{"details":[1]}', b"x" * 10_000_000])
async def test_what_others_wrote_there_is_left_alone(data: bytes) -> None:
    others = Others()
    (missing,) = missing_turns([USER, ASKED])
    others.data["a", missing.key] = data
    assert await restored_messages(memory(others), USER, ASKED) == (USER, ASKED)


async def test_a_stream_is_passed_on_as_it_is_and_kept_before_its_end_is() -> None:
    turns = memory()
    keeper = await keeping(turns)
    events: list[StreamEvent] = [
        Chunk(reasoning="hm", extras=Extras(reasoning_details=(SIGNED,))),
        Chunk(tool_calls=(ToolCallDelta(0, ID, "f", "{}"),)),
        Chunk(finish_reason="tool_calls"),
        Usage(1, 1),
    ]
    stream = keeper.watched(CLAUDE, LocalStream([*events]))
    assert isinstance(stream, WatchedStream)
    seen = stream.first()
    assert [next(seen), next(seen)] == events[:2]
    assert len(turns.entries.kept) == 0
    assert next(seen) is events[2]
    assert len(turns.entries.kept) == 1
    assert list(seen) == events[3:]
    assert stream.over
    assert [*stream.take(), *stream.conclude()] == []
    await stream.wait()
    await stream.finish()
    stream.close()
    assert await restored_messages(turns, USER, ASKED) == (USER, RESTORED)


async def test_a_stream_of_a_vendor_that_wants_nothing_back_is_not_watched() -> None:
    keeper, stream = await keeping(memory()), LocalStream([])
    assert keeper.watched(OPENAI, stream) is stream


# Through the gateway -------------------------------------------------------------------------------------------------

TABLE = f"""
vendors:
  v: {{profile: deepseek, base_url: "http://127.0.0.1:PORT", api_key: sk-x, allow_private: true}}
models: {{v/deepseek-v4: {{}}}}
teams:
  a: {{keys: ["{digest_of("dk-a")}"], models: [v/deepseek-v4]}}
  b: {{keys: ["{digest_of("dk-b")}"], models: [v/deepseek-v4]}}
"""
TOOLS: JsonValue = [{"type": "function", "function": {"name": "step_1", "parameters": {"type": "object"}}}]


@pytest_asyncio.fixture
async def served() -> AsyncIterator[tuple[Rig, DeepSeek]]:
    vendor = DeepSeek("deepseek", "deepseek-v4")
    async with rig(TABLE) as made:
        made.vendor.default = vendor
        yield made, vendor


async def ask(made: Rig, team: str, *messages: JsonObject) -> int:
    body: JsonObject = {"model": "v/deepseek-v4", "messages": [*messages], "tools": TOOLS}
    answer = await made.post("/v1/chat/completions", body, {"Authorization": f"Bearer dk-{team}"})
    return answer.status


async def test_a_team_s_turns_are_no_other_team_s(served: tuple[Rig, DeepSeek]) -> None:
    made, vendor = served
    assert await ask(made, "a", USER) == 200
    calls: list[JsonValue] = [*vendor._calls(1)]
    asked: JsonObject = {"role": "assistant", "content": "", "tool_calls": calls}
    results: list[JsonObject] = [
        {"role": "tool", "tool_call_id": call["id"], "content": "ok"} for call in vendor._calls(1)
    ]
    assert await ask(made, "b", USER, asked, *results) == 400
    assert await ask(made, "a", USER, asked, *results) == 200
    body = made.vendor.requests[-1].json()
    assert isinstance(body, dict)
    assert listed(body["messages"])[1]["reasoning_content"] == thought(1)


async def test_a_reload_keeps_what_is_kept(served: tuple[Rig, DeepSeek]) -> None:
    made, vendor = served
    assert await ask(made, "a", USER) == 200
    made.table(TABLE)
    asked: JsonObject = {"role": "assistant", "content": "", "tool_calls": [*vendor._calls(1)]}
    assert await ask(made, "a", USER, asked) == 200


async def test_thinking_as_long_as_a_megabyte_is_relayed_and_not_kept(served: tuple[Rig, DeepSeek]) -> None:
    made, _ = served
    message: JsonObject = {"role": "assistant", "content": "", "reasoning_content": "x" * 1_000_000}
    message["tool_calls"] = [CALL]
    choice: JsonObject = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    answer: JsonObject = {"id": "a", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    made.vendor.default = json_answer(200, answer)
    assert await ask(made, "a", USER) == 200
    assert len(made.features.reasoning.entries.kept) == 0


async def test_a_flood_of_turns_leaves_a_light_request_its_own_and_drops_few_each(served: tuple[Rig, DeepSeek]) -> None:
    made, vendor = served
    assert await ask(made, "b", USER) == 200
    turns = made.features.reasoning
    kept = turns.entries.kept
    data = not_none(pack_turn(TurnThinking(text="x" * 500_000)))
    dropped = []
    for number in range(5_000):
        before = kept.evicted
        turns.entries.put("team a", {str(number): data if number % 2 else b"{}"})
        dropped.append(kept.evicted - before)
        await asyncio.sleep(0)
    assert 1 <= max(dropped) <= 3
    assert kept.size <= 64 * 1024 * 1024
    asked: JsonObject = {"role": "assistant", "content": "", "tool_calls": [*vendor._calls(1)]}
    assert await ask(made, "b", USER, asked) == 200


# Signatures of texts -------------------------------------------------------------------------------------------------

GEMINI = """
vendors:
  v: {profile: gemini, base_url: "http://127.0.0.1:PORT", api_key: sk-x, allow_private: true}
models: {v/gemini-3-pro: {}, v/cached: {cache: {}}}
"""
SIGNATURE = "c2lnbmF0dXJlLW9mLW9uZS8rPz8+"
PARTS: list[JsonObject] = [{"text": "Hm.", "thought": True}, {"text": "It is "}, {"text": "sunny."}]
CLOSING: JsonObject = {"text": "", "thoughtSignature": SIGNATURE}


def spoken(*parts: JsonValue, **members: JsonValue) -> JsonObject:
    content: JsonObject = {"role": "model", "parts": [*parts]}
    return {"candidates": [{"content": content, "index": 0, **members}]}


def signed_answer(stream: bool) -> Script:
    counts: JsonObject = {"usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 4, "totalTokenCount": 7}}
    if not stream:
        return json_answer(200, {**spoken(*PARTS, CLOSING, finishReason="STOP"), **counts})
    events: list[JsonObject] = [*[spoken(part) for part in PARTS], {**spoken(CLOSING, finishReason="STOP"), **counts}]
    return sse_answer([b"data: " + orjson.dumps(event) + b"\n\n" for event in events])


def chat_turns(said: JsonValue) -> JsonObject:
    turn: list[JsonValue] = [{"role": "assistant", "content": said}, USER]
    return {"messages": [USER, *([] if said is None else turn)]}


def message_turns(said: JsonValue) -> JsonObject:
    blocks: list[JsonValue] = [{"type": "thinking", "thinking": "Hm.", "signature": ""}, {"type": "text", "text": said}]
    return {"max_tokens": 64, **chat_turns(None if said is None else blocks)}


def response_turns(said: JsonValue) -> JsonObject:
    content: JsonValue = [{"type": "output_text", "text": said}]
    turn: list[JsonValue] = [{"type": "message", "role": "assistant", "content": content}, USER]
    return {"input": [USER, *([] if said is None else turn)]}


SIGNED_SURFACES: Mapping[str, Callable[[JsonValue], JsonObject]] = {
    "/v1/chat/completions": chat_turns,
    "/inference/v1/chat/completions": chat_turns,
    "/v1/messages": message_turns,
    "/v1/responses": response_turns,
}


@pytest.mark.parametrize("stream", [False, True])
async def test_the_signature_of_a_text_goes_back_for_clients_of_every_surface(stream: bool) -> None:
    async with rig(GEMINI) as made:
        made.vendor.default = signed_answer(stream)
        for path, turns in SIGNED_SURFACES.items():
            for said, signature in ((None, None), ("It is sunny.", SIGNATURE), ("It is mine.", None)):
                answer = await made.post(path, {"model": "v/gemini-3-pro", "stream": stream, **turns(said)})
                assert answer.status == 200, answer.body
                body = made.vendor.requests[-1].json()
                assert isinstance(body, dict)
                sent_texts = [part for turn in listed(body["contents"]) for part in listed(turn["parts"])]
                found = [part.get("thoughtSignature") for part in sent_texts if part["text"] == said]
                assert found == ([] if said is None else [signature]), (path, said)


async def test_a_cached_response_is_found_though_its_text_is_signed() -> None:
    async with rig(GEMINI) as made:
        made.vendor.default = signed_answer(False)
        for _ in range(2):
            body: JsonObject = {"model": "v/cached", "temperature": 0, **chat_turns(None)}
            assert (await made.post("/v1/chat/completions", body)).status == 200
        assert len(made.vendor.requests) == 1
