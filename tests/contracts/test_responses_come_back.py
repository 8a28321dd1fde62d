"""A client sends a response back with its next request, to any vendor: each recorded response, on each surface, as
the clients' SDKs append it, with and without their nulls, from a non-streaming response and from a stream.

All responses are in one conversation, each followed by the results of its calls and a user turn. The gateway refuses
none of them, and no sent message has a field that is not in the vendor's list. The lists are written by hand: OpenAI
OpenAPI 2.3.0 `ChatCompletionRequestAssistantMessage`, the errors that `providers.dialects.openai.messages` quotes, and
the types of the vendors' SDKs, November 2026.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Final, cast

import orjson
import pytest

from providers.json_types import JsonObject, JsonValue
from providers.profiles.load_profiles import load_profiles
from providers.unified_request import Operation, TranslationLosses, UnifiedRequest
from proxy.dispatch.plan_translated import plan_translated
from proxy.surfaces.anthropic.renderer import MessagesRenderer
from proxy.surfaces.openai import OPENAI
from tests.contracts.sdk_judges import Judges
from tests.contracts.sent_bodies import Body
from tests.contracts.test_sent_bodies import faults
from tests.contracts.test_streamed_responses import CUTS, RECORDINGS, played, stream_of
from tests.contracts.vendor_judges import judged_by
from tests.providers.dialects.kit import target_of
from tests.proxy.surfaces.anthropic import kit as messages
from tests.proxy.surfaces.kit import FACTS, converse, objects
from tests.proxy.surfaces.responses import kit as responses
from tests.support.looped import looped
from tests.support.sdk_accumulators import ResponseAccumulator, accumulate_chat, accumulate_message

NULLS: Final[JsonObject] = dict.fromkeys(("refusal", "annotations", "audio", "function_call", "tool_calls", "parsed"))
"""The null fields that OpenAI's SDK has in each message: `model_dump()` of `ParsedChatCompletionMessage`."""

BESIDE: Final[JsonObject] = {
    "provider_specific_fields": {"citations": ["https://example.com"]},
    "search_results": [{"title": "A", "url": "https://example.com/a"}],
    "usage": {"total_tokens": 3},
    "stop_details": {"type": "refusal"},
    "grounding_metadata": {"web_search_queries": ["q"]},
    "index": 0,
    "id": "msg_1",
}
"""The fields that frameworks and other gateways add to a message."""

SEARCH: Final[JsonValue] = [{"type": "web_search_20250305", "name": "web_search"}]

COMMON: Final = frozenset({"role", "content", "tool_calls"})
FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "openai": COMMON | {"refusal", "audio"},
    "azure": COMMON | {"refusal", "audio"},
    "azure_v1": COMMON | {"refusal", "audio"},
    "openrouter": COMMON | {"refusal", "audio", "reasoning", "reasoning_details", "annotations", "images"},
    "fireworks": COMMON | {"reasoning_content"},
    "together": COMMON | {"reasoning", "reasoning_content"},
    "groq": COMMON | {"reasoning"},
    "cerebras": COMMON | {"reasoning"},
    "sambanova": COMMON | {"reasoning"},
    "mistral": COMMON,
    "xai": COMMON,
    "perplexity": COMMON,
    "deepseek": COMMON | {"reasoning_content"},
    "moonshot": COMMON | {"reasoning_content"},
    "cohere": COMMON | {"tool_plan"},
    "anthropic": frozenset({"role", "content"}),
    "vertex_anthropic": frozenset({"role", "content"}),
    "bedrock_anthropic": frozenset({"role", "content"}),
    "bedrock": frozenset({"role", "content"}),
    "gemini": frozenset({"role", "parts"}),
    "vertex": frozenset({"role", "parts"}),
}
"""The fields of an assistant turn by profile. Other vendors accept the fields of `ANY`."""

ANY: Final = COMMON | {"name", "reasoning", "reasoning_content", "reasoning_details", "extra_content", "thinking"}

CALL: Final = frozenset({"id", "type", "function", "custom"})
BLOCKS: Final[Mapping[str, frozenset[str]]] = {
    "text": frozenset({"type", "text", "citations", "cache_control"}),
    "thinking": frozenset({"type", "thinking", "signature", "closed"}),
    "tool_use": frozenset({"type", "id", "name", "input", "caller"}),
}
"""The fields of parts and of Anthropic's blocks by type, for the types of which clients have more fields in
responses."""

ITEMS: Final[Mapping[str, frozenset[str]]] = {
    "message": frozenset({"type", "id", "role", "content", "status", "phase"}),
    "function_call": frozenset({"type", "id", "call_id", "name", "arguments", "status", "namespace", "caller"}),
    "reasoning": frozenset({"type", "id", "summary", "content", "encrypted_content", "status"}),
}
"""The fields of items of OpenAI's Responses API: `ResponseOutputMessageParam` and its neighbours, openai 3.54.0."""

STRICT: Final = (
    *("fireworks", "groq", "mistral", "cerebras", "huggingface", "scale_genai", "ai21", "perplexity"),
    *("cohere", "gemini", "vertex", "bedrock"),
)
"""The profiles whose published types have every documented field of an assistant turn. The types of the others lack
the reasoning that comes back."""

CHATTING: Final = [name for name, row in load_profiles().items() if Operation.CHAT in row.wires]


def chats(way: str) -> list[JsonObject]:
    """Return the conversation of a chat client."""
    turns: list[JsonObject] = [messages_of_user()]
    for name in RECORDINGS:
        if (found := played(name, CUTS[-1])) is None:
            continue
        events, completion = found
        fields: dict[str, JsonValue] = {"n": len(completion.choices)}
        if way == "streamed":
            frames = stream_of(OPENAI.renderer(converse(stream=True, **fields), FACTS), events)
            body = accumulate_chat(objects(frames))
        else:
            body = orjson.loads(OPENAI.renderer(converse(**fields), FACTS).completion(completion))
        message = {"role": "assistant", **cast(JsonObject, cast(list[JsonObject], body["choices"])[0]["message"])}
        if way == "with nulls":
            message = {**BESIDE, **NULLS, **message}
        calls = cast(list[JsonObject], message.get("tool_calls") or [])
        results = [{"role": "tool", "tool_call_id": call["id"], "content": "ok"} for call in calls]
        turns += [message, *results, messages_of_user()]
    return turns


def messages_of_user() -> JsonObject:
    return {"role": "user", "content": "go on"}


def blocks(way: str) -> list[JsonObject]:
    """Return the conversation of a client of the Messages API."""
    turns: list[JsonObject] = [messages_of_user()]
    for name in RECORDINGS:
        found = played(name, CUTS[-1])
        if found is None or len(found[1].choices) > 1:
            continue
        if way == "streamed":
            renderer = MessagesRenderer(messages.parse(stream=True, tools=SEARCH), FACTS)
            message = accumulate_message(messages.objects(stream_of(renderer, found[0])))
        else:
            renderer = MessagesRenderer(messages.parse(tools=SEARCH), FACTS)
            message = orjson.loads(renderer.completion(found[1]))
        content = cast(list[JsonObject], message["content"])
        if way == "with nulls":
            content = [_dumped(block) for block in content]
        results: list[JsonValue] = [
            {"type": "tool_result", "tool_use_id": block["id"], "content": "ok"}
            for block in content
            if block["type"] == "tool_use"
        ]
        turns.append({"role": "assistant", "content": [*content]})
        turns.append({"role": "user", "content": [*results, {"type": "text", "text": "go on"}]})
    return turns


def _dumped(block: JsonObject) -> JsonObject:
    """Return a block as `model_dump()` of Anthropic's client writes it."""
    match block["type"]:
        case "text":
            return {"citations": None, "parsed_output": None, **block}
        case "tool_use":
            return {**block, "caller": {"type": "direct"}}
        case _:
            return block


def items(way: str) -> list[JsonObject]:
    """Return the conversation of a client of the Responses API."""
    turns: list[JsonObject] = [messages_of_user()]
    for name in RECORDINGS:
        found = played(name, CUTS[-1])
        if found is None or len(found[1].choices) > 1:
            continue
        if way == "streamed":
            made = ResponseAccumulator()
            for event in responses.events(stream_of(responses.rendering(stream=True), found[0])):
                made.add(event)
            output = made.items
        else:
            output = responses.output(responses.whole(found[1], tools=[{"type": "web_search"}]))
        if way == "with nulls":
            output = [_dumped_item(item) for item in output]
        results: list[JsonObject] = [
            {"type": "function_call_output", "call_id": item["call_id"], "output": "ok"}
            for item in output
            if item["type"] == "function_call"
        ]
        turns += [*output, *results, messages_of_user()]
    return turns


def _dumped_item(item: JsonObject) -> JsonObject:
    """Return an item as `model_dump()` of OpenAI's client writes it, with the fields that its parsing adds."""
    match item["type"]:
        case "message":
            parts = [{"parsed": None, "logprobs": None, **part} for part in cast(list[JsonObject], item["content"])]
            return {"phase": None, **item, "content": [*parts]}
        case "function_call":
            return {"namespace": None, "caller": None, "status": None, "parsed_arguments": {}, **item}
        case _:
            return {"status": None, "content": None, "created_by": "user", **item}


SURFACES: Final[Mapping[str, Callable[[str], UnifiedRequest]]] = {
    "chat": lambda way: converse(messages=cast(JsonValue, chats(way))),
    "messages": lambda way: messages.parse(messages=cast(JsonValue, blocks(way))),
    "responses": lambda way: responses.ask(input=cast(JsonValue, items(way))),
}
WAYS: Final = ("without nulls", "with nulls", "streamed")


@cache
def asked(surface: str, way: str) -> UnifiedRequest:
    return SURFACES[surface](way)


def sent_body(surface: str, way: str, row: str) -> JsonObject:
    """Return the body that goes to a vendor."""
    request = asked(surface, way)
    target = target_of(row, next(name for name in load_profiles()[row].examples if load_profiles()[row].chats(name)))
    plan = plan_translated(request.losses or TranslationLosses({}), request, target)
    return cast(JsonObject, orjson.loads(plan.calls[0].sent.body))


def turns_in(body: JsonObject) -> list[JsonObject]:
    held = body.get("messages") or body.get("contents") or body.get("input")
    return cast(list[JsonObject], held)


def fields_beyond(row: str, turn: JsonObject) -> Iterator[str]:
    """Return the fields of an assistant turn, and of its parts, that the vendor does not accept."""
    if "type" in turn:
        yield from (f"{turn['type']}.{name}" for name in turn.keys() - ITEMS.get(str(turn["type"]), turn.keys()))
        yield from (f"{turn['type']}.{name}" for name, value in turn.items() if value is None or name == "created_by")
        content = turn.get("content")
        for part in cast(list[JsonObject], content) if isinstance(content, list) else ():
            yield from (f"{turn['type']}.{name}" for name, value in part.items() if value is None or name == "parsed")
        return
    yield from turn.keys() - FIELDS.get(row, ANY)
    for call in cast(list[JsonObject], turn.get("tool_calls") or []):
        extra = {"extra_content"} if row in ("gemini_compat", "openai_compatible") else set()
        yield from (f"tool_calls.{name}" for name in call.keys() - CALL - extra)
        if row != "ollama_native":
            function = cast(JsonObject, call.get("function") or {})
            yield from (f"tool_calls.function.{name}" for name in function.keys() - {"name", "arguments"})
    content = turn.get("content")
    for part in cast(list[JsonObject], content) if isinstance(content, list) else ():
        if part.get("caller") == {"type": "direct"}:
            yield "content.tool_use.caller"
        known = BLOCKS.get(str(part.get("type")))
        yield from (f"content.{part.get('type')}.{name}" for name in part.keys() - known) if known else ()


def turn_fault(row: str, turn: JsonObject) -> Iterator[str]:
    """Return the fault of a sent assistant turn."""
    yield from fields_beyond(row, turn)
    if turn.get("role") in ("assistant", "model"):
        said = [value for name, value in turn.items() if name not in ("role", "type", "id", "status")]
        if row in FIELDS and not any(said):
            yield f"nothing said: {turn}"
        if turn.get("tool_calls") == []:
            yield "no calls"
        yield from (f"null: {name}" for name, value in turn.items() if value is None and name != "content")


@pytest.mark.parametrize("surface", SURFACES)
@looped("row", CHATTING)
@looped("way", WAYS)
def test_no_response_makes_the_next_request_fail(surface: str, way: str, row: str) -> None:
    turns = [
        turn for turn in turns_in(sent_body(surface, way, row)) if turn.get("role") in ("assistant", "model", None)
    ]
    assert len(turns) > 200
    assert {fault for turn in turns for fault in turn_fault(row, turn)} == set()


@pytest.mark.clients
@pytest.mark.timeout(300)
@pytest.mark.parametrize("surface", SURFACES)
@looped("row", STRICT)
def test_the_vendors_own_types_have_each_turn(surface: str, row: str, judges: Judges) -> None:
    body = sent_body(surface, "with nulls", row)
    path = "/responses" if "input" in body else "/chat"
    found = [faults(judges, judged, Body(path, body, (surface,))) for judged in judged_by(row)]
    assert not any(found), found
