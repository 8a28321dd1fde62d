"""Requests that cost the gateway as much CPU time, memory or stack as one request can. Pure values.

The name of every model in the configuration selects its response: `vllm/nested-200` returns nested arrays, and so on.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import orjson

from providers.json_types import JsonObject, JsonValue
from tests.proxy.kit.costly_constraints import nested, steps, unevaluated

TABLE = """
version: 1
server:
  port: ${PORT}
  watch: false
  admin:
    port: ${ADMIN_PORT}
vendors:
  vllm: {base_url: "http://127.0.0.1:VENDOR/v1", allow_private: true}
  openai: {api_key: k, base_url: "http://127.0.0.1:VENDOR/v1", allow_private: true}
  llamacpp: {base_url: "http://127.0.0.1:VENDOR/v1", allow_private: true}
  gemini: {api_key: k, base_url: "http://127.0.0.1:VENDOR/gemini", allow_private: true}
  anthropic: {api_key: k, base_url: "http://127.0.0.1:VENDOR/anthropic", allow_private: true}
  mock: {}
models:
  vllm/*: {on_unsupported: drop}
  openai/*: {}
  llamacpp/*: {}
  gemini/*: {}
  anthropic/*: {max_output_tokens: 1000}
  mock/*: {}
  mock/echo: {}
"""

ANSWERS: Mapping[str, Callable[[], str]] = {
    "empty": lambda: "[]",
    "nested-200": lambda: nested(200),
    "nested-900": lambda: nested(900),
    "leaves": lambda: orjson.dumps(["a" * 8_000 + "!"] * 100).decode(),
    "objects": lambda: orjson.dumps([{"a": at} for at in range(60_000)]).decode(),
}
"""The response of a model, by its name."""


@dataclass(frozen=True, slots=True)
class CostlyRequest:
    """One request. `body` is a function, which makes the body when it is needed."""

    path: str
    body: Callable[[], bytes]


def guided(model: str, schema: JsonObject) -> CostlyRequest:
    """Return a completion under a schema."""
    body = {"model": model, "prompt": "p", "guided_json": schema}
    return CostlyRequest("/v1/completions", lambda: orjson.dumps(body))


def chat(model: str, **members: JsonValue) -> CostlyRequest:
    """Return a conversation of one message."""
    body = {"model": model, "messages": [{"role": "user", "content": "p"}], **members}
    return CostlyRequest("/v1/chat/completions", lambda: orjson.dumps(body))


def text(model: str, **members: JsonValue) -> CostlyRequest:
    """Return a plain completion."""
    return CostlyRequest("/v1/completions", lambda: orjson.dumps({"model": model, "prompt": "p", **members}))


def _strict(names: int) -> JsonObject:
    properties: JsonObject = {f"p{at:06}": {} for at in range(names)}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _form(schema: JsonObject) -> JsonObject:
    return {"type": "json_schema", "json_schema": {"name": "n", "strict": True, "schema": schema}}


def _tools(count: int, parameters: JsonObject) -> list[JsonValue]:
    return [{"type": "function", "function": {"name": f"t{at}", "parameters": parameters}} for at in range(count)]


_WIDE: JsonObject = {"type": "object", "properties": {f"p{at}": {"type": "string"} for at in range(200)}}
_CLASSES = "[" + r"\D" * 2000 + "]"
_MERGING: JsonObject = {
    "allOf": [{"$ref": "#/$defs/d0"}] * 4000,
    "$defs": {**{f"d{at}": {"$ref": f"#/$defs/d{at + 1}"} for at in range(190)}, "d190": {"type": "object"}},
}
_BACKTRACKING: JsonObject = {"items": {"not": {"pattern": "(?=a)(a|aa)+$"}}}

COSTLY_REQUESTS: Mapping[str, CostlyRequest] = {
    "01 references that double by name": guided("vllm/empty", steps(60, "allOf", 2)),
    "01 dynamic references that double": guided(
        "vllm/empty", orjson.loads(orjson.dumps(steps(60, "anyOf", 2)).replace(b'"$ref"', b'"$dynamicRef"'))
    ),
    "01 what nothing has evaluated, at every level": guided("vllm/empty", unevaluated(16)),
    "02 a chain of a thousand schemas": guided("vllm/nested-200", steps(1000, "anyOf")),
    "02 negations under a deep answer": guided("vllm/nested-900", steps(95, "not")),
    "02 the longest chain under the deepest answer": guided("vllm/nested-200", steps(98, "anyOf")),
    "03 two hundred large automata": guided(
        "vllm/empty", {"properties": {f"p{at}": {"pattern": f".{{2000}}{at}"} for at in range(200)}}
    ),
    "03 one automaton after the other": text("vllm/empty", guided_regex=".{1900}7"),
    "04 a class of two thousand classes": text("openai/empty", guided_regex=_CLASSES),
    "04 many such patterns": guided(
        "openai/empty", {"properties": {f"p{at}": {"pattern": _CLASSES} for at in range(150)}}
    ),
    "04 classes that all differ": guided(
        "vllm/empty", {"pattern": "".join(f"[^\\D{chr(0x4E00 + at)}]" for at in range(800))}
    ),
    "05 a strict schema of 60,000 names": chat("openai/empty", response_format=_form(_strict(60_000))),
    "05 the same for a vendor with another translation": chat("gemini/empty", response_format=_form(_strict(15_000))),
    "05 references under one allOf": guided("llamacpp/empty", _MERGING),
    "05 512 tools of 200 properties": chat("anthropic/empty", tools=_tools(512, _WIDE)),
    "05 512 tools for a vendor that rewrites schemas": chat("gemini/empty", tools=_tools(512, _WIDE)),
    "05 unknown fields that are all dropped": text("vllm/empty", **{f"field{at}": 1 for at in range(5000)}),
    "06 look-around over long leaves": guided("vllm/leaves", _BACKTRACKING),
    "06 unique items": guided("vllm/objects", {"uniqueItems": True}),
    "07 a long text 128 times": text("mock/long-200000", n=128),
    "07 an echo of many megabytes": text("mock/echo", prompt="a b " * 6_000_000),
    "08 tokens of five thousand prompts": text(
        "vllm/empty", prompt=["p"] * 5000, max_tokens=5, context_length_exceeded_behavior="truncate"
    ),
    "05 a body of the most elements": chat("openai/empty", metadata={"a": [[]] * 190_000}),
}
"""The requests, by the number of the threat and a description."""
