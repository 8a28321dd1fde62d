"""Requests to silent vendors, and their clients' responses before and after the silence."""

import asyncio
import re
from collections.abc import Mapping

import orjson

from providers.json_types import JsonObject
from tests.proxy.kit.gateway_rig import AUTH, CLIENT_KEY, Rig
from tests.proxy.kit.raw_client import Answer, RawClient, connected, request
from tests.proxy.kit.tables import digest_of
from tests.support.http_scripts import head, sse_answer
from tests.support.openai_wire import chat_frames
from tests.support.vendor_script import Script, Send, Until

AT = 'api_key: k, base_url: "http://127.0.0.1:PORT/v1", allow_private: true'
TABLE = f"""
defaults: {{timeouts: {{keep_alive: 100ms}}}}
vendors:
  v: {{profile: openai_compatible, {AT}}}
models:
  v/m: {{}}
  v/first: {{timeouts: {{first_event: 500ms}}}}
  v/second: {{}}
  v/off: {{timeouts: {{keep_alive: off}}}}
  v/json: {{timeouts: {{keep_alive_json: true}}}}
  v/hasty: {{timeouts: {{first_event: 500ms, idle: 900ms, progress: 1500ms}}, retries: {{attempts: 1}}}}
routes:
  both: {{targets: [v/first, v/second]}}
  patient: {{targets: [v/m, v/second]}}
  mixed: {{targets: [v/off, v/second]}}
teams:
  t: {{keys: ["{digest_of(CLIENT_KEY)}"], models: ["*"]}}
  queued:
    keys: ["{digest_of("queued")}"]
    models: ["*"]
    limits: {{concurrent: 1}}
    on_limit: {{queue: 500ms}}
"""
PATIENT_TABLE = TABLE.replace("keep_alive: 100ms", "keep_alive: 100s")
"""Even a busy machine responds before the first keep-alive of this configuration."""

PATHS = {
    "openai": "/v1/chat/completions",
    "scale_v5": "/v5/chat/completions",
    "fireworks": "/inference/v1/chat/completions",
    "pais": "/api/v1/compatibility/openai/v1/chat/completions",
    "anthropic": "/v1/messages",
    "responses": "/v1/responses",
}
COMMENT, PING = b": keep-alive\n\n", b'event: ping\ndata: {"type":"ping"}\n\n'
FRAMES = chat_frames(["one", "two"])
GOOD = sse_answer(FRAMES)
START = Send(head(200, [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")]))


def asked(surface: str, model: str = "v/m", *, stream: bool = True) -> JsonObject:
    """Return a request in the form of a surface."""
    if surface == "responses":
        return {"model": model, "input": "hi", "stream": stream}
    return {"model": model, "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], "stream": stream}


def filler_of(surface: str) -> bytes:
    return PING if surface == "anthropic" else COMMENT


async def silent(client: RawClient, times: int, filler: bytes = COMMENT) -> Mapping[str, str]:
    """Wait for the head and `times` keep-alives, and return the headers."""
    status, headers = await client.head()
    assert status == 200
    for _ in range(times):
        assert await client.chunk() == filler
    return headers


async def rest(client: RawClient, headers: Mapping[str, str], filler: bytes = COMMENT) -> Answer:
    """Return the rest of the response, without the keep-alives that may still come."""
    body, whole = await client.chunks()
    return Answer(200, headers, body.replace(filler, b""), whole)


async def late(served: Rig, body: JsonObject, script: Script, path: str = PATHS["openai"], times: int = 2) -> Answer:
    """Return a client's response if the vendor sends `script` after `times` keep-alives."""
    gate = asyncio.Event()
    served.vendor.answer((Until(gate), *script))
    filler = filler_of("anthropic") if path == PATHS["anthropic"] else COMMENT
    async with connected(served.port) as client:
        await client.send(request("POST", path, body, AUTH))
        headers = await silent(client, times, filler)
        gate.set()
        return await rest(client, headers, filler)


def without_ids(body: bytes) -> bytes:
    """Return a body without the values that differ from response to response."""
    return re.sub(rb'[0-9a-f]{24,32}|"(created|created_at|completed_at)":\d+', b"", body)


def said(answer: Answer) -> Mapping[str, str]:
    """Return the fields of the first comment, which stand in for late headers."""
    first, _, _ = answer.body.partition(b"\n\n")
    pairs = (line.removeprefix(": ").partition(": ") for line in first.decode().split("\n"))
    return {name: value for name, _, value in pairs}


def last_error(answer: Answer) -> JsonObject:
    error: JsonObject = orjson.loads(answer.events()[-1])
    found = error.get("error") or (error.get("response") or {}).get("error")  # type: ignore[union-attr]
    assert isinstance(found, dict)
    return found
