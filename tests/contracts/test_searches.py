"""Search data of vendors reaches the clients of each surface, non-streaming and streamed: queries, sources, citations
and the number of searches. Each row is a response with the texts that must not be lost."""

from dataclasses import replace
from typing import Final

import orjson

from providers.completion import Chunk, Completion, StreamEvent
from providers.dialect import UpstreamRequest
from providers.dialects.responses.answer import decode_translated
from providers.emulation.collect_stream import to_chunks
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import Operation
from proxy.surfaces.anthropic.renderer import MessagesRenderer
from proxy.surfaces.openai import OPENAI
from proxy.surfaces.surface import Renderer
from tests.providers.dialects.kit import gathered, target_of
from tests.proxy.surfaces.anthropic import kit as messages
from tests.proxy.surfaces.kit import FACTS, converse
from tests.proxy.surfaces.responses import kit as responses
from tests.support.dialects import FOLDER
from tests.support.looped import looped

SEARCH: Final[JsonValue] = [{"type": "web_search_20250305", "name": "web_search"}]
HOSTED: Final[JsonValue] = [{"type": "web_search"}]
PAGE: Final = "https://example.com/a"
COUNT: Final = '"web_search_requests":'
COUNTS: Final[JsonObject] = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}


def chat(beside: JsonObject, **message: JsonValue) -> bytes:
    choice: JsonObject = {"index": 0, "message": {"role": "assistant", "content": "Four.", **message}}
    choices: list[JsonValue] = [{**choice, "finish_reason": "stop"}]
    return orjson.dumps({"id": "c", "object": "chat.completion", "choices": choices, "usage": COUNTS, **beside})


def response(*output: JsonValue, **usage: JsonValue) -> bytes:
    text: JsonObject = {"type": "output_text", "text": "Four.", "annotations": [CITED]}
    items: list[JsonValue] = [*output, {"type": "message", "role": "assistant", "content": [text]}]
    counts: JsonObject = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7, **usage}
    return orjson.dumps({"id": "r", "status": "completed", "output": items, "usage": counts})


CITED: Final[JsonObject] = {"type": "url_citation", "url": PAGE, "title": "A", "start_index": 0, "end_index": 4}
LOOKED_UP: Final[JsonObject] = {
    "type": "web_search_call",
    "id": "ws_1",
    "action": {"type": "search", "query": "two and two", "sources": [{"type": "url", "url": "https://example.com/s"}]},
}
FOUND: Final[JsonObject] = {"title": "A", "url": PAGE}
ZAI: Final[JsonObject] = {"web_search": [{"title": "A", "link": PAGE}]}
RAN: Final[JsonObject] = {
    "type": "search",
    "arguments": '{"query": "two and two"}',
    "search_results": {"results": [FOUND]},
}
NOVA: Final[JsonObject] = {
    "output": {
        "message": {
            "role": "assistant",
            "content": [
                {"toolUse": {"toolUseId": "t", "name": "nova_grounding", "type": "server_tool_use", "input": {}}},
                {
                    "citationsContent": {
                        "content": [{"text": "Four."}],
                        "citations": [{"title": "A", "location": {"web": {"url": PAGE, "domain": "example.com"}}}],
                    }
                },
            ],
        }
    },
    "stopReason": "end_turn",
    "usage": {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7},
}

ROWS: Final[tuple[tuple[str, str, str | bytes, tuple[str, ...]], ...]] = (
    ("gemini", "gemini-3-pro", "gemini/fixtures/answers/everything.json", ("oslo", "grounded.example", COUNT)),
    ("gemini", "gemini-3-pro", "gemini/fixtures/streams/signed_grounded.sse", ("example.com/paris",)),
    ("perplexity", "sonar", "openai/fixtures/perplexity/complete.json", (PAGE, "example.com/b", "says", COUNT)),
    ("perplexity", "sonar", "openai/fixtures/perplexity/complete.sse", (PAGE, "example.com/b", "says", COUNT)),
    ("xai", "grok-4", "openai/fixtures/xai/complete.json", (PAGE, "example.com/b", COUNT)),
    ("xai", "grok-4", "openai/fixtures/xai/complete.sse", (PAGE, "example.com/b", COUNT)),
    ("openrouter", "x", "openai/fixtures/openrouter/complete.json", (PAGE, COUNT)),
    ("openrouter", "x", "openai/fixtures/openrouter/complete.sse", (PAGE, COUNT)),
    ("mistral", "m", "openai/fixtures/mistral/complete.json", (PAGE, "A title")),
    ("mistral", "m", "openai/fixtures/mistral/complete.sse", (PAGE, "A title")),
    ("groq", "groq/compound", chat({}, executed_tools=[RAN]), ("two and two", PAGE)),
    ("zai", "glm-4.6", chat(ZAI), (PAGE,)),
    ("dashscope", "qwen-max", chat({"search_info": {"search_results": [FOUND]}}), (PAGE,)),
    ("bedrock", "amazon.nova-premier-v1:0", orjson.dumps(NOVA), (PAGE, "nova_grounding")),
    ("anthropic", "claude-sonnet-4-5", "anthropic/fixtures/streams/server_tools.sse", ("server_tool_use", COUNT)),
    ("openai", "gpt-5.6", response(LOOKED_UP), ("two and two", "example.com/s", PAGE, COUNT)),
    (
        "xai",
        "grok-4",
        response(LOOKED_UP, server_side_tool_usage_details={"web_search_calls": 5}),
        ("two and two", "example.com/s", '"web_search_requests":5', "server_side_tool_usage_details"),
    ),
)


def read_response(profile: str, model: str, given: str | bytes) -> tuple[list[StreamEvent], Completion]:
    """Return the events of a response, and the non-streaming response."""
    data = given if isinstance(given, bytes) else (FOLDER / given).read_bytes()
    target = target_of(profile, model)
    if isinstance(given, str) and given.endswith(".sse"):
        decoder = target.dialect.stream(UpstreamRequest(target, Operation.CHAT, "http://up", b"{}", True))
        came = [*decoder.feed(data), *decoder.finish()]
        events = [replace(event, native=None) if isinstance(event, Chunk) else event for event in came]
        return events, gathered(events, 1)
    call = UpstreamRequest(target, Operation.CHAT, "http://up", b"{}", False)
    whole = decode_translated(call, data) if data.startswith(b'{"id":"r"') else target.dialect.decode(call, data)
    return [*to_chunks(replace(whole, native=None))], replace(whole, native=None)


def stream_of(renderer: Renderer, events: list[StreamEvent]) -> bytes:
    shown = [renderer.chunk(event) if isinstance(event, Chunk) else renderer.usage(event) for event in events]
    return b"".join(shown) + renderer.end()


@looped(("profile", "model", "given", "said"), ROWS)
def test_nothing_that_a_vendor_says_of_its_searches_is_lost(
    profile: str, model: str, given: str | bytes, said: tuple[str, ...]
) -> None:
    events, whole = read_response(profile, model, given)
    options: JsonObject = {"include_usage": True}
    shown = {
        "chat": OPENAI.renderer(converse(), FACTS).completion(whole),
        "message": MessagesRenderer(messages.parse(tools=SEARCH), FACTS).completion(whole),
        "response": orjson.dumps(responses.whole(whole, tools=HOSTED)),
        "chats": stream_of(OPENAI.renderer(converse(stream=True, stream_options=options), FACTS), events),
        "messages": stream_of(MessagesRenderer(messages.parse(stream=True, tools=SEARCH), FACTS), events),
        "responses": stream_of(responses.rendering(stream=True, tools=HOSTED), events),
    }
    lost = [(surface, text) for surface, body in shown.items() for text in said if text.encode() not in body]
    assert not lost
