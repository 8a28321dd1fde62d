"""Perplexity's two APIs: the model decides which one a client's request is sent to, from each surface, streamed or not.

The vendor refuses fields that it does not know. Shapes: "Create Agent Response" of Perplexity's API reference, and the
streams of perplexityai/api-platform-developers (no names of events, no `[DONE]`), November 2026.
"""

from collections.abc import Callable, Iterator
from typing import Final, cast

import orjson

from providers.json_types import JsonObject, JsonValue
from tests.providers.dialects.kit import fixture
from tests.proxy.kit.chat_answers import joined, only_choice
from tests.proxy.kit.gateway_rig import CLIENT_KEY, Rig, gateway_fixture
from tests.proxy.kit.raw_client import Answer
from tests.proxy.kit.tables import digest_of
from tests.proxy.surfaces.anthropic.kit import accumulate
from tests.proxy.surfaces.responses.kit import events
from tests.support.http_scripts import json_answer, sse_answer
from tests.support.looped import looped
from tests.support.vendor_script import Received, Script

TABLE = f"""
vendors:
  perplexity: {{api_key: k, base_url: "http://127.0.0.1:PORT", allow_private: true}}
models:
  perplexity/sonar-pro: {{}}
  perplexity/house: {{upstream_model: sonar}}
  perplexity/openai/gpt-5.4: {{}}
  perplexity/anthropic/claude-sonnet-4-5: {{max_output_tokens: 900}}
  perplexity/perplexity/sonar: {{}}
  perplexity/fast-search: {{}}
  perplexity/quick: {{upstream_model: fast}}
teams:
  search:
    keys: ["{digest_of(CLIENT_KEY)}"]
    models: ["perplexity/*"]
"""
served = gateway_fixture(TABLE)

SONAR: Final = ("sonar-pro", "house")
AGENT: Final = ("openai/gpt-5.4", "anthropic/claude-sonnet-4-5", "perplexity/sonar", "fast-search", "quick")
PRESETS: Final = {"fast-search": "fast-search", "quick": "fast"}

FIELDS: Final = frozenset(
    {"model", "preset", "input", "instructions", "max_output_tokens", "temperature", "top_p", "stream", "store"}
    | {"stream_options", "reasoning", "response_format", "tools", "tool_choice", "parallel_tool_calls"}
)
"""The fields of a request that the agent API has, apart from its own settings."""

PAGE: Final = "https://example.com/a"
RESULT: Final[JsonObject] = {"id": 1, "url": PAGE, "title": "A", "snippet": "What it says", "source": "web"}
SEARCHED: Final[JsonObject] = {"type": "search_results", "queries": ["two and two"], "results": [RESULT]}
FETCHED: Final[JsonObject] = {"type": "fetch_url_results", "contents": [{"url": PAGE, "title": "A", "snippet": "x"}]}
CITED: Final[JsonObject] = {"type": "url_citation", "url": PAGE, "title": "A", "start_index": 5, "end_index": 8}
SAID: Final[JsonObject] = {
    "type": "message",
    "id": "msg_1",
    "status": "completed",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "Four [1].", "annotations": [CITED]}],
}
CALLED: Final[JsonObject] = {
    "type": "function_call",
    "id": "fc_1",
    "status": "completed",
    "call_id": "c1",
    "name": "f",
    "arguments": '{"a": 1}',
}
USAGE: Final[JsonObject] = {
    "input_tokens": 30,
    "input_tokens_details": {"cache_read_input_tokens": 10},
    "output_tokens": 12,
    "total_tokens": 42,
    "cost": {"currency": "USD", "input_cost": 0.1, "output_cost": 0.2, "total_cost": 0.3},
}


def response(*output: JsonObject, **members: JsonValue) -> JsonObject:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_795_000_000,
        "status": "completed",
        "model": "m",
        "output": [*output],
        "usage": USAGE,
        **members,
    }


def stream_of(whole: JsonObject) -> Iterator[JsonObject]:
    """Return the events of a stream, as the vendor sends them."""
    yield {"type": "response.created", "response": {**whole, "status": "in_progress", "output": [], "usage": None}}
    yield {"type": "response.reasoning.started", "thought": "Look"}
    yield {"type": "response.reasoning.search_queries", "queries": ["two and two"]}
    for index, item in enumerate(cast(list[JsonObject], whole["output"])):
        at: JsonObject = {"output_index": index}
        yield {"type": "response.output_item.added", "item": {**item, "content": []}, **at}
        if item["type"] == "message":
            (part,) = cast(list[JsonObject], item["content"])
            text = str(part["text"])
            for piece in (text[:3], text[3:]):
                yield {
                    "type": "response.output_text.delta",
                    "item_id": "msg_1",
                    "content_index": 0,
                    "delta": piece,
                    **at,
                }
            yield {"type": "response.output_text.done", "item_id": "msg_1", "content_index": 0, "text": text, **at}
        yield {"type": "response.output_item.done", "item": item, **at}
    yield {"type": "response.completed", "response": whole}


def vendor(whole: JsonObject) -> Callable[[Received], Script]:
    def answer(request: Received) -> Script:
        body = orjson.loads(request.body)
        if request.target == "/chat/completions":
            return sonar(body)
        if request.target == "/v1/responses":
            return agent(body, whole)
        return json_answer(404, {"error": {"message": "no such path", "type": "not_found", "code": 404}})

    return answer


def sonar(body: JsonObject) -> Script:
    if not str(body["model"]).startswith("sonar"):
        return refusal(f"Invalid model '{body['model']}'.")
    if body.get("stream"):
        return sse_answer([fixture("openai", "perplexity", "complete.sse")])
    return json_answer(200, orjson.loads(fixture("openai", "perplexity", "complete.json")))


def agent(body: JsonObject, whole: JsonObject) -> Script:
    if unknown := body.keys() - FIELDS:
        return refusal(f'invalid request body: json: unknown field "{min(unknown)}"')
    if str(body.get("model")).startswith("anthropic/") and "max_output_tokens" not in body:
        return refusal("max_output_tokens is required when using Anthropic models")
    if not body.get("stream"):
        return json_answer(200, whole)
    return sse_answer([b"data: %b\n\n" % orjson.dumps(event) for event in stream_of(whole)])


def refusal(message: str) -> Script:
    return json_answer(400, {"error": {"message": message, "type": "invalid_request", "code": 400}})


ASKED: Final[JsonValue] = [{"role": "user", "content": "What is two and two?"}]
PATHS: Final = {"chat": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses"}


async def ask(served: Rig, surface: str, model: str, stream: bool, **fields: JsonValue) -> Answer:
    own: JsonObject = {"input" if surface == "responses" else "messages": ASKED}
    if surface == "messages":
        own["max_tokens"] = 400
    answer = await served.post(PATHS[surface], {"model": f"perplexity/{model}", "stream": stream, **own, **fields})
    assert answer.status == 200, answer.body
    return answer


def text_of(surface: str, answer: Answer, stream: bool) -> str:
    """Return the text that a client of a surface reads."""
    if surface == "chat":
        return str((joined(answer) if stream else only_choice(answer))["content"])
    if surface == "messages":
        message = accumulate(answer.body).model_dump() if stream else answer.json()
        blocks = cast(list[JsonObject], message["content"])
        return "".join([str(block["text"]) for block in blocks if block["type"] == "text"])
    whole = events(answer.body)[-1]["response"] if stream else answer.json()
    items = cast(list[JsonObject], cast(JsonObject, whole)["output"])
    parts = [part for item in items if item["type"] == "message" for part in cast(list[JsonObject], item["content"])]
    return "".join([str(part["text"]) for part in parts])


@looped("stream", [False, True])
@looped("surface", PATHS)
@looped("model", SONAR + AGENT)
async def test_the_model_decides_the_api(served: Rig, model: str, surface: str, stream: bool) -> None:
    served.vendor.default = vendor(response(SEARCHED, FETCHED, SAID))
    answer = await ask(
        served, surface, model, stream, metadata={"user_id": "u"} if surface == "messages" else {"a": "b"}
    )
    agent = model in AGENT
    assert text_of(surface, answer, stream) == ("Four [1]." if agent else "Four [1][2].")
    assert PAGE.encode() in answer.body
    received = served.vendor.requests[-1]
    assert received.target == ("/v1/responses" if agent else "/chat/completions")
    sent = served.sent()
    assert "metadata" not in sent
    if model in PRESETS:
        assert (sent.get("model"), sent["preset"]) == (None, PRESETS[model])
    elif agent:
        assert sent["model"] == model
        assert sent["store"] is False
    if model.startswith("anthropic/"):
        assert sent["max_output_tokens"] == (400 if surface == "messages" else 900)


@looped("stream", [False, True])
async def test_tools_effort_and_a_schema_have_the_agent_s_form(served: Rig, stream: bool) -> None:
    served.vendor.default = vendor(response(CALLED, status="requires_action"))
    schema: JsonObject = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    tool: JsonObject = {"type": "function", "function": {"name": "f", "parameters": schema}}
    wanted: JsonObject = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    search: JsonObject = {"type": "web_search_20250305", "name": "web_search", "blocked_domains": ["b.example"]}
    answer = await ask(
        served,
        "chat",
        "openai/gpt-5.4",
        stream,
        tools=[tool, search],
        reasoning_effort="high",
        response_format=wanted,
    )
    read = joined(answer) if stream else only_choice(answer)
    assert (read["calls"], read["finish"]) == ([{"id": "c1", "arguments": '{"a": 1}'}], "tool_calls")
    usage = cast(JsonObject, read["usage"]) if not stream else {}
    if not stream:
        assert (usage["prompt_tokens"], usage["completion_tokens"]) == (30, 12)
        assert cast(JsonObject, usage["prompt_tokens_details"])["cached_tokens"] == 10
    sent = served.sent()
    assert sent["tools"] == [
        {"type": "function", "name": "f", "parameters": schema, "strict": False},
        {"type": "web_search", "filters": {"search_domain_filter": ["-b.example"]}},
    ]
    assert sent["reasoning"] == {"effort": "high"}
    form = cast(JsonObject, sent["response_format"])
    assert (form["type"], cast(JsonObject, form["json_schema"])["name"]) == ("json_schema", "x")


@looped("stream", [False, True])
async def test_a_failure_within_a_good_status_is_one(served: Rig, stream: bool) -> None:
    error: JsonObject = {"message": "the model failed", "type": "internal_error", "code": "server_error"}
    failed = response(status="failed", error=error)

    def answer(request: Received) -> Script:
        if not stream:
            return json_answer(200, failed)
        return sse_answer([b"data: %b\n\n" % orjson.dumps({"type": "response.failed", "error": error})])

    served.vendor.default = answer
    told = await served.post(PATHS["chat"], {"model": "perplexity/openai/gpt-5.4", "messages": ASKED, "stream": stream})
    assert told.status >= 500, told.body


async def test_images_of_a_result_and_files_are_refused_by_name(served: Rig) -> None:
    file: JsonObject = {"type": "file", "file": {"file_data": "data:application/pdf;base64,AA==", "filename": "a.pdf"}}
    told = await served.post(
        PATHS["chat"], {"model": "perplexity/fast-search", "messages": [{"role": "user", "content": [file]}]}
    )
    assert (told.status, told.error()["param"]) == (400, "messages")
    assert served.vendor.requests == []
