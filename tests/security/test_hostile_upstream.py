"""A vendor that imitates the gateway: all of its text is quoted as the vendor's."""

from collections.abc import Sequence

import orjson

from providers.json_types import JsonObject, JsonValue
from tests.proxy.kit.gateway_rig import Rig, ask, rig
from tests.proxy.kit.raw_client import Answer
from tests.support import openai_wire
from tests.support.http_scripts import data_frames, json_answer, sse_answer
from tests.support.looped import looped
from tests.support.vendor_script import Script

OURS: JsonObject = {
    "error": {
        "message": "Missing API key. Send it as 'Authorization: Bearer KEY', 'x-api-key' or 'api-key'.",
        "type": "invalid_request_error",
        "param": None,
        "code": "invalid_api_key",
    }
}
"""The gateway's text for a client without a key."""

OUR_HEADERS = [
    ("x-dragoman-deployment", "v/other/default"),
    ("x-dragoman-dropped", "guided_json"),
    ("x-request-id", "forged"),
    ("x-should-retry", "true"),
    ("set-cookie", "a=b"),
    ("content-type", "text/html"),
    ("cache-control", "public, max-age=31536000"),
]

FRAMES: Sequence[str] = (
    "\n\ndata: [DONE]\n\n",
    "\r\n\r\ndata: [DONE]\r\n\r\n",
    '\n\nevent: error\ndata: {"error": {"message": "x"}}\n\n',
    "\u2028data: [DONE]\u2029",
    "data: [DONE]",
    "0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
    "</script><script>alert(1)</script>",
    "\x00\x1b[2J\x85",
)
"""Text that would end a stream, a line, or a page if it were not quoted."""

PATHS = ("/v1/completions", "/v5/completions", "/inference/v1/completions")


async def answered(made: Rig, script: Script, path: str = PATHS[0], *, stream: bool = False) -> Answer:
    made.vendor.answer(script)
    return await made.post(path, ask("local/m", stream=stream))


@looped("path", PATHS)
@looped("text", FRAMES)
async def test_a_text_that_looks_like_framing_stays_a_text(path: str, text: str) -> None:
    async with rig() as made:
        whole = await answered(made, json_answer(200, openai_wire.completion(text)), path)
        assert texts([whole.json()]) == text
        pieces = sse_answer(openai_wire.completion_frames([text, text]))
        streamed = await answered(made, pieces, path, stream=True)
    assert streamed.whole
    events = [orjson.loads(event) for event in streamed.events() if event != b"[DONE]"]
    assert texts(events) == text + text
    # Scale's API has no terminator. The others have theirs once.
    assert streamed.body.count(b"\n\ndata: [DONE]\n\n") == (path != "/v5/completions")


def texts(answers: Sequence[JsonObject]) -> str:
    found = []
    for answer in answers:
        choices = answer["choices"]
        assert isinstance(choices, list)
        found += [str(choice["text"]) for choice in choices if isinstance(choice, dict)]
    return "".join(found)


@looped("status", [200, 401, 403, 500, 503])
async def test_an_error_of_the_gateway_s_is_not_taken_from_a_vendor(status: int) -> None:
    async with rig() as made:
        answer = await answered(made, json_answer(status, OURS, OUR_HEADERS))
        streamed = await answered(made, sse_answer(data_frames(OURS)), stream=True)
    for each in (answer, streamed):
        assert each.status in (502, 503)
        assert each.code not in ("invalid_api_key", None)
        assert each.error()["type"] == "server_error"


async def test_no_header_of_a_vendor_s_is_taken_for_one_of_the_gateway_s() -> None:
    async with rig() as made:
        answer = await answered(made, json_answer(200, openai_wire.completion("a"), OUR_HEADERS))
    assert answer.headers["x-dragoman-deployment"] == "local/m/default"
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-request-id"] != "forged"
    assert not {"set-cookie", "x-dragoman-dropped", "x-should-retry"} & answer.headers.keys()


@looped("word", ["model_not_allowed", "\r\nx-injected: 1", "a" * 5000, ["list"], {"a": 1}, 7])
async def test_a_vendor_s_words_about_a_request_stay_words(word: JsonValue) -> None:
    async with rig() as made:
        error: JsonObject = {"message": "no", "type": word, "code": word, "param": word}
        answer = await answered(made, json_answer(400, {"error": error}))
        records = await made.finished(1)
    assert answer.status == 400
    assert "x-injected" not in answer.headers
    assert answer.error()["type"] == "invalid_request_error"
    assert len(answer.body) < 4096
    assert records[0].team == "search"
