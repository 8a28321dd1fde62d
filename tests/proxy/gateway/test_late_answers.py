"""Non-streaming responses that do not arrive, over real sockets: which deployment responds instead, and the client's
error.
"""

from collections.abc import Mapping
from typing import cast

from providers.json_types import JsonObject
from tests.conformance.read_answer import read_answer
from tests.proxy.kit.gateway_rig import rig
from tests.proxy.kit.raw_client import Answer
from tests.support.http_scripts import chunk, head, json_answer, sse_answer
from tests.support.looped import looped
from tests.support.openai_wire import completion, completion_frames
from tests.support.vendor_script import Hang, Received, Script, Send

TABLE = """
vendors:
  v: {profile: openai, api_key: k, base_url: "http://127.0.0.1:PORT/v1", allow_private: true, completions: true}
models:
  v/LIMITED: {timeouts: {LIMITS}, stream_upstream: HOW}
  v/good: {}
routes:
  two: {targets: [v/LIMITED, v/good]}
  one: v/LIMITED
"""
OK = json_answer(200, completion("hello", "m"))
HEAD = Send(head(200, [("content-type", "application/json"), ("transfer-encoding", "chunked")]))
STREAM_HEAD = Send(head(200, [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")]))
FRAME = completion_frames(["one"])[0]


def body_of(received: Received) -> JsonObject:
    return cast(JsonObject, received.json())


async def late_response(
    limits: str, *silent: Send, how: str = "off", route: str = "two"
) -> tuple[Answer, list[JsonObject]]:
    """Return the response if the limited deployment falls silent after `silent`, and the bodies that the vendor got."""

    def vendor(received: Received) -> Script:
        return OK if body_of(received)["model"] == "good" else (*silent, Hang())

    table = TABLE.replace("LIMITS", limits).replace("HOW", how).replace("LIMITED", "quiet")
    async with rig(table) as running:
        running.vendor.default = vendor
        answer = await running.post("/v1/completions", {"model": route, "prompt": "hi"})
        return answer, [body_of(received) for received in running.vendor.requests]


SILENCES: Mapping[str, tuple[str, tuple[Send, ...], str, str]] = {
    "nothing": ("answer: 200ms", (), "off", "did not begin to respond within 0.2 s"),
    "blanks": ("answer: 200ms", (HEAD, Send(chunk(b"\n"))), "off", "did not begin to respond within 0.2 s"),
    "a head": ("idle: 200ms", (HEAD,), "off", "sent nothing for 0.2 s"),
    "half a body": ("idle: 200ms", (HEAD, Send(chunk(b'{"id"'))), "off", "sent nothing for 0.2 s"),
    "no stream": ("first_event: 200ms", (), "auto", "sent no content within 0.2 s"),
    "comments": ("first_event: 200ms", (STREAM_HEAD, Send(chunk(b": hi\n\n"))), "auto", "sent no content within 0.2 s"),
    "half a stream": ("idle: 200ms", (STREAM_HEAD, Send(chunk(FRAME))), "auto", "sent nothing for 0.2 s"),
}


@looped(("limits", "silent", "how", "said"), SILENCES.values(), ids=SILENCES.keys())
async def test_a_vendor_that_falls_silent_is_left_for_another_or_told_of_by_its_limit(
    limits: str, silent: tuple[Send, ...], how: str, said: str
) -> None:
    answer, bodies = await late_response(limits, *silent, how=how)
    assert (answer.status, answer.headers["x-dragoman-deployment"]) == (200, "v/good/default")
    assert [body.get("stream", False) for body in bodies] == [how == "auto", False]
    answer, _ = await late_response(limits, *silent, how=how, route="one")
    assert (answer.status, answer.code) == (504, "upstream_timeout")
    assert said in answer.message


async def test_a_stream_that_the_client_did_not_ask_for_comes_as_a_whole_answer() -> None:
    async with rig(TABLE.replace("LIMITS", "").replace("HOW", "auto").replace("LIMITED", "m")) as running:
        running.vendor.default = sse_answer(completion_frames(["hel", "lo"]))
        answer = await running.post("/v1/completions", {"model": "v/m", "prompt": "hi"})
        (sent,) = (body_of(received) for received in running.vendor.requests)
    assert (sent["stream"], sent["stream_options"]) == (True, {"include_usage": True})
    assert answer.headers["content-type"].startswith("application/json")
    assert read_answer(answer).only.text == "hello"
