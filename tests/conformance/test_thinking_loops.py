"""Loops of five turns with reasoning and parallel tools, through the running gateway, with vendors that check that
their reasoning comes back. The clients send back everything, only the text, or nothing."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal, cast

import orjson
import pytest

from providers.json_types import JsonObject, JsonValue
from proxy.conversations.stored_entries import StoredEntries
from tests.conformance.responses_rules import OpenAIResponses
from tests.conformance.vendor_rules import FINAL, TURNS, DeepSeek, ThinkingVendor, listed, thought, vendors
from tests.proxy.kit.gateway_rig import Rig, rig
from tests.proxy.kit.raw_client import Answer, exchange, request
from tests.proxy.kit.whole_gateway import port_of, up
from tests.support.looped import looped
from tests.support.redis import real_redis
from tests.support.vendor import FakeVendor
from tests.support.waiting import until

Kind = Literal["everything", "text", "nothing"]

KINDS: tuple[Kind, ...] = ("everything", "text", "nothing")
"""The parts of the model's reasoning that a client sends back."""

_PLAIN = ("role", "content", "tool_calls")
_TEXT = "reasoning_content"

TOOLS: JsonValue = [
    {
        "type": "function",
        "function": {
            "name": f"step_{number}",
            "parameters": {
                "type": "object",
                "properties": {"turn": {"type": "integer"}, "n": {"type": "integer"}},
                "required": ["turn", "n"],
            },
        },
    }
    for number in (1, 2)
]


def every_vendor() -> list[ThinkingVendor]:
    return [*vendors(), OpenAIResponses("openai", "gpt-5.6", {"reasoning_effort": "high"})]


@asynccontextmanager
async def before(vendor: ThinkingVendor) -> AsyncIterator[Rig]:
    table = f"""
vendors: {{v: {{profile: {vendor.profile}, base_url: "http://127.0.0.1:PORT", api_key: sk-x, allow_private: true}}}}
models: {{v/{vendor.model}: {{}}}}
"""
    async with rig(table) as made:
        made.vendor.default = vendor
        yield made


def sent_back(message: JsonObject, kind: Kind) -> JsonObject:
    """Return the parts of a message that a client sends back."""
    if kind == "everything":
        return message
    names = _PLAIN if kind == "nothing" else (*_PLAIN, _TEXT)
    back: JsonObject = {name: message[name] for name in names if name in message}
    calls = listed(message.get("tool_calls", []))
    if calls:
        back["tool_calls"] = [{name: call[name] for name in ("id", "type", "function")} for call in calls]
    return back


def whole(answer: Answer) -> JsonObject:
    choice = listed(answer.json()["choices"])[0]
    return cast("JsonObject", choice["message"])


def streamed(answer: Answer) -> JsonObject:
    """Return the message of a stream as OpenRouter's client joins it: the deltas of a reasoning detail by type and
    index."""
    message: JsonObject = {"role": "assistant", "content": ""}
    details: dict[tuple[JsonValue, JsonValue], JsonObject] = {}
    calls: dict[JsonValue, JsonObject] = {}
    for delta in _deltas(answer):
        for name in ("content", _TEXT):
            if isinstance(said := delta.get(name), str):
                message[name] = str(message.get(name) or "") + said
        for detail in listed(delta.get("reasoning_details", [])):
            held = details.setdefault((detail["type"], detail.get("index")), {})
            text = str(held.get("text", "")) + str(detail.get("text", ""))
            held.update({**detail, **({"text": text} if text else {})})
        for call in listed(delta.get("tool_calls", [])):
            _add_call(calls, call)
        message |= {name: delta[name] for name in ("extra_content",) if name in delta}
    message |= {"reasoning_details": [*details.values()]} if details else {}
    return message | ({"tool_calls": [*calls.values()]} if calls else {})


def _deltas(answer: Answer) -> Iterator[JsonObject]:
    for event in answer.events():
        if event != b"[DONE]":
            frame = cast("JsonObject", orjson.loads(event))
            assert "error" not in frame, frame
            for choice in listed(frame["choices"]):
                yield cast("JsonObject", choice["delta"])


def _add_call(calls: dict[JsonValue, JsonObject], piece: JsonObject) -> None:
    function = cast("JsonObject", piece["function"])
    held = calls.get(piece["index"])
    if held is None:
        own = {name: value for name, value in piece.items() if name != "index"}
        calls[piece["index"]] = {**own, "function": {**function}}
        return
    known = cast("JsonObject", held["function"])
    known["arguments"] = str(known["arguments"]) + str(function["arguments"])


async def run_loop(
    made: Rig, vendor: ThinkingVendor, kind: Kind, read: Callable[[Answer], JsonObject]
) -> list[JsonObject]:
    """Run a loop to its end, and return the model's messages."""
    messages: list[JsonObject] = [{"role": "user", "content": "Do the steps."}]
    said: list[JsonObject] = []
    for _ in range(TURNS):
        body: JsonObject = {
            "model": f"v/{vendor.model}",
            "messages": [*messages],
            "tools": TOOLS,
            "stream": read is streamed,
            **vendor.fields,
        }
        answer = await made.post("/v1/chat/completions", body)
        assert answer.status == 200, (vendor.refused, answer.body)
        message = read(answer)
        said.append(message)
        messages.append(sent_back(message, kind))
        messages += [
            {"role": "tool", "tool_call_id": call["id"], "content": "ok"}
            for call in listed(message.get("tool_calls", []))
        ]
    return said


@looped("read", [whole, streamed])
@looped("kind", KINDS)
@looped("place", range(5), ids=["claude", "gemini", "deepseek", "openrouter", "openai"])
async def test_five_turns_with_thinking_and_parallel_tools_pass_the_vendor_s_rules(
    place: int, kind: Kind, read: Callable[[Answer], JsonObject]
) -> None:
    vendor = every_vendor()[place]
    async with before(vendor) as made:
        said = await run_loop(made, vendor, kind, read)
    assert vendor.refused == []
    assert vendor.turns == [1, 2, 3, 4, 5]
    assert said[-1]["content"] == FINAL
    assert [len(listed(message.get("tool_calls", []))) for message in said] == [2, 2, 2, 2, 0]
    assert [message.get(_TEXT) for message in said] == [thought(turn) for turn in range(1, TURNS + 1)]


@looped("place", [0, 2, 3, 4], ids=["claude", "deepseek", "openrouter", "openai"])
async def test_a_gateway_that_keeps_nothing_cannot_pass_them(place: int) -> None:
    vendor = every_vendor()[place]
    async with before(vendor) as made:
        made.features.reasoning.entries.kept = StoredEntries(0, 3600.0)
        with pytest.raises(AssertionError):
            await run_loop(made, vendor, "nothing", whole)
    assert vendor.refused


async def turn_at(url: str, vendor: ThinkingVendor, messages: list[JsonObject]) -> JsonObject:
    """Return the model's message from the gateway at an address."""
    body: JsonObject = {"model": f"v/{vendor.model}", "messages": [*messages], "tools": TOOLS, **vendor.fields}
    answer = await exchange(port_of(url), request("POST", "/v1/chat/completions", body))
    assert answer.status == 200, (vendor.refused, answer.body)
    return whole(answer)


@pytest.mark.parametrize(("keep", "known"), [("shared", True), ("process", False)])
async def test_each_turn_may_come_to_another_process(tmp_path: Path, keep: str, known: bool) -> None:
    vendor = DeepSeek("deepseek", "deepseek-v4")
    with real_redis(tmp_path) as redis:
        async with FakeVendor(vendor) as upstream:
            table = f"""
version: 1
server: {{keep_thinking: {keep}, shared: {{redis: "{redis.url}"}}}}
vendors: {{v: {{profile: deepseek, base_url: "{upstream.base_url}", api_key: sk-x, allow_private: true}}}}
models: {{v/deepseek-v4: {{}}}}
"""
            folders = [tmp_path / name for name in ("one", "two")]
            for folder in folders:
                folder.mkdir()
            async with up(table, folders[0]) as one, up(table, folders[1]) as two:
                gauge = b"dragoman_shared_state_up 1.0"
                await until(lambda: all(gauge in each.front.metrics.render() for each in (one, two)))
                messages: list[JsonObject] = [{"role": "user", "content": "Do the steps."}]
                message = await turn_at(one.url, vendor, messages)
                messages.append(sent_back(message, "nothing"))
                messages += [
                    {"role": "tool", "tool_call_id": call["id"], "content": "ok"}
                    for call in listed(message["tool_calls"])
                ]
                if known:
                    await until(lambda: redis.command("KEYS", "*:turns") != ["*0"])
                    assert (await turn_at(two.url, vendor, messages))[_TEXT] == thought(2)
                else:
                    with pytest.raises(AssertionError, match="must be passed back"):
                        await turn_at(two.url, vendor, messages)
                    assert redis.command("KEYS", "*thinking*") == ["*0"]
                    assert (await turn_at(one.url, vendor, messages))[_TEXT] == thought(2)
