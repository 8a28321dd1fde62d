"""The ends of a vendor's Responses stream, as clients of each API see them: failed or complete, whatever the connection
does after it.
"""

import asyncio
from collections.abc import Callable
from typing import Final

import orjson
import pytest

from providers.json_types import JsonObject
from tests.providers.dialects.responses.kit import events_of, message, response, sse
from tests.proxy.kit.gateway_rig import AUTH, CLIENT_KEY, Rig, gateway_fixture
from tests.proxy.kit.raw_client import Answer, connected
from tests.proxy.kit.raw_client import request as request_bytes
from tests.proxy.kit.tables import digest_of
from tests.support.http_scripts import chunk, json_answer, sse_answer, sse_unterminated
from tests.support.looped import looped
from tests.support.vendor_script import Fin, Hang, Received, Script, Send, Until

pytestmark = pytest.mark.smoke

TABLE = f"""
defaults: {{retries: {{attempts: 2}}, circuit_breaker: {{failures: 1000}}}}
vendors:
  openai: {{api_key: k, base_url: "http://127.0.0.1:PORT/first/v1", allow_private: true}}
  other: {{profile: openai, api_key: k, base_url: "http://127.0.0.1:PORT/second/v1", allow_private: true}}
models:
  openai/gpt-5.1-codex: {{}}
  openai/gpt-5.3-codex: {{retries: {{attempts: 1}}}}
  other/gpt-5.1-codex: {{}}
routes:
  pair: {{targets: [openai/gpt-5.1-codex, other/gpt-5.1-codex]}}
teams:
  search:
    keys: ["{digest_of(CLIENT_KEY)}"]
    models: ["openai/*", pair]
"""
served = gateway_fixture(TABLE)

ONE: Final = "openai/gpt-5.3-codex"
CLIENTS: Final[dict[str, tuple[str, JsonObject]]] = {
    "chat": ("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}]}),
    "messages": ("/v1/messages", {"max_tokens": 99, "messages": [{"role": "user", "content": "hi"}]}),
    "responses": ("/v1/responses", {"input": "hi"}),
}
GOOD: Final = response(output=[message("Hello")], usage={"input_tokens": 3, "output_tokens": 2, "total_tokens": 5})
BEGUN: Final[JsonObject] = {"type": "response.created", "response": response("in_progress")}
DELTA: Final[JsonObject] = {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "Hel"}

CODES: Final = [
    ("rate_limit_exceeded", "rate_limited", 429),
    ("server_error", "server", 502),
    ("server_is_overloaded", "overloaded", 503),
    ("insufficient_quota", "quota", 429),
    ("usage_limit_reached", "quota", 429),
    (None, "server", 502),
]
"""Error codes, the outcome of the attempt, and the client's status if there is no other deployment."""


def failed(code: str | None) -> JsonObject:
    error: JsonObject = {"code": code, "message": "It broke."}
    return {"type": "response.failed", "response": response("failed", error=error)}


def error_event(code: str | None) -> JsonObject:
    return {"type": "error", "code": code, "message": "It broke.", "param": None}


def told_inside(code: str | None) -> JsonObject:
    return {"type": "error", "error": {"type": "server_error", "code": code, "message": "It broke."}}


Form = Callable[[str | None], JsonObject]
FORMS: Final[list[Form]] = [failed, error_event, told_inside]


def held_open(*events: JsonObject) -> Script:
    """Return a stream after which the vendor leaves the connection open."""
    return sse_unterminated([sse(event) for event in events], Hang())


async def ask(served: Rig, client: str, model: str, stream: bool) -> Answer:
    path, body = CLIENTS[client]
    return await served.post(path, {**body, "model": model, "stream": stream})


async def after_content(served: Rig, client: str, last: bytes, ending: Hang | Fin) -> Answer:
    """Return a stream whose last event comes once the client has the first content."""
    gate = asyncio.Event()
    begun, rest = sse_unterminated([sse(BEGUN), sse(DELTA)], ending)[:-1], (Send(chunk(last)), ending)
    served.vendor.default = lambda request: (*begun, Until(gate), *rest)
    path, body = CLIENTS[client]
    async with connected(served.port) as raw:
        await raw.send(request_bytes("POST", path, {**body, "model": "pair", "stream": True}, AUTH))
        status, headers = await raw.head()
        first = await raw.chunk()
        gate.set()
        more, whole = await raw.chunks()
    return Answer(status, headers, first + more, whole)


def text_of(client: str, answer: Answer) -> str:
    """Return the text of a non-streaming response, or of the deltas of a stream."""
    return "Hello" if b"Hello" in answer.body or (b'"He"' in answer.body and b'"llo"' in answer.body) else ""


@looped("client", CLIENTS)
@looped("form", FORMS)
@looped(("code", "outcome", "status"), CODES)
async def test_a_failure_before_the_first_content_is_the_next_deployment_s(
    served: Rig, client: str, form: Form, code: str | None, outcome: str, status: int
) -> None:
    def answer(request: Received) -> Script:
        if request.target.startswith("/first"):
            return held_open(BEGUN, form(code))
        return sse_answer([sse(event) for event in events_of(GOOD)])

    served.vendor.default = answer
    before = len(served.records)
    reply = await ask(served, client, "pair", True)
    assert (reply.status, reply.whole, text_of(client, reply)) == (200, True, "Hello"), reply.body
    await served.finished(before + 1)
    assert [each.outcome for each in served.records[-1].attempts] == [outcome, "ok"]
    served.dispatcher.deployments.keep([])


@looped("client", CLIENTS)
@looped("stream", [False, True])
@looped(("code", "outcome", "status"), CODES)
async def test_a_failure_of_the_only_deployment_has_the_status_of_its_code(
    served: Rig, client: str, stream: bool, code: str | None, outcome: str, status: int
) -> None:
    whole = json_answer(200, response("failed", error={"code": code, "message": "It broke."}))
    script = held_open(BEGUN, failed(code)) if stream else whole
    served.vendor.default = lambda request: script
    reply = await ask(served, client, ONE, stream)
    # Anthropic's own status for an overload.
    assert reply.status == (529 if (client, status) == ("messages", 503) else status), reply.body
    served.dispatcher.deployments.keep([])


@looped("client", CLIENTS)
@looped("form", FORMS)
async def test_a_failure_after_the_first_content_is_told_at_once_in_the_client_s_form(
    served: Rig, client: str, form: Form
) -> None:
    reply = await after_content(served, client, sse(form("rate_limit_exceeded")), Hang())
    assert reply.status == 200
    last: JsonObject = orjson.loads(reply.events()[-1])
    if client == "responses":
        kinds = [orjson.loads(event)["type"] for event in reply.events()]
        assert (reply.whole, kinds[-2:], kinds.count("response.failed")) == (True, ["error", "response.failed"], 1)
        known = last["response"]
        assert isinstance(known, dict)
        assert (known["status"], known["error"]["code"]) == ("failed", "rate_limit_exceeded")  # type: ignore[index,call-overload]
        assert kinds.count("error") == 1
    else:
        assert ("error" in last, reply.whole) == (True, False)
    served.dispatcher.deployments.keep([])


@looped("client", CLIENTS)
@looped("ending", [Hang(), Fin()])
@looped("status", ["completed", "incomplete"])
async def test_a_response_that_has_ended_ends_the_body_whatever_the_vendor_does(
    served: Rig, client: str, ending: Hang | Fin, status: str
) -> None:
    ended = {**GOOD, "status": status}
    if status == "incomplete":
        ended["incomplete_details"] = {"reason": "max_output_tokens"}
    stream = [sse(event) for event in events_of(ended)]
    served.vendor.default = lambda request: sse_unterminated(stream, ending)
    reply = await ask(served, client, ONE, True)
    assert (reply.status, reply.whole, text_of(client, reply)) == (200, True, "Hello"), reply.body
    if client == "responses":
        assert orjson.loads(reply.events()[-1])["type"] == f"response.{status}"


@looped("client", CLIENTS)
@looped("broken", [Fin()])
async def test_a_stream_that_is_cut_off_ends_in_one_failure_for_clients_of_the_api(
    served: Rig, client: str, broken: Fin
) -> None:
    reply = await after_content(served, client, b": still there\n\n", broken)
    kinds = [orjson.loads(event).get("type") for event in reply.events()]
    assert reply.whole == (client == "responses")
    assert kinds.count("response.failed") == (client == "responses")
    served.dispatcher.deployments.keep([])


@looped("stream", [False, True])
async def test_a_request_that_the_vendor_refuses_without_a_code_is_the_client_s(served: Rig, stream: bool) -> None:
    error: JsonObject = {"type": "invalid_request_error", "code": None, "message": "Bad input.", "param": "input"}
    whole = json_answer(200, response("failed", error=error))
    script = held_open(BEGUN, {"type": "error", "error": error}) if stream else whole
    served.vendor.default = lambda request: script
    for client in CLIENTS:
        reply = await ask(served, client, "pair", stream)
        assert (reply.status, reply.error()["message"]) == (400, "Bad input.")


async def test_a_cancelled_response_is_the_next_deployment_s(served: Rig) -> None:
    def answer(request: Received) -> Script:
        return json_answer(200, response("cancelled") if request.target.startswith("/first") else GOOD)

    served.vendor.default = answer
    for client in CLIENTS:
        assert (await ask(served, client, "pair", False)).status == 200
    served.dispatcher.deployments.keep([])
