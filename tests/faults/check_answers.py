"""Checks of responses on each surface after a fault."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final, cast

import orjson

from providers.json_types import JsonObject, JsonValue
from tests.faults.fault_rig import AUTH, OPERATOR_KEY, Rig
from tests.proxy.kit.raw_client import Answer, connected, request
from tests.support.vendor_script import Script, Until

COMPLETIONS: Final = "/v1/completions"
SURFACES: Final[Mapping[str, str]] = {
    "openai": COMPLETIONS,
    "scale v4": "/v4/beta/completions",
    "scale v5": "/v5/completions",
    "fireworks": "/inference/v1/completions",
    "pais": "/api/v1/compatibility/openai/v1/completions",
}
"""The path of text completions of each of the four completion APIs."""

DETAILED: Final = ("/v4", "/v5", "/api")
"""The surfaces whose errors have a `detail` beside the `error` object, and whose status for a bad body is 422."""


def unprocessable(path: str) -> int:
    """Return the status for a body that breaks the rules."""
    return 422 if path.startswith(DETAILED) else 400


def refusal(answer: Answer, path: str = COMPLETIONS) -> tuple[int, JsonValue]:
    """Return status and code of a response. Assert that it is its surface's error envelope, complete, with a request
    id, without the key."""
    private(answer)
    assert answer.whole
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-request-id"]
    error = answer.error()
    assert {"message", "type", "param", "code"} <= error.keys()
    assert (error.get("object") == "error") == path.startswith("/inference")
    assert ("detail" in answer.json()) == path.startswith(DETAILED)
    return answer.status, error["code"]


def frames(answer: Answer) -> list[JsonObject]:
    """Return the objects of a stream."""
    return [orjson.loads(data) for data in answer.events() if data != b"[DONE]"]


def broken(answer: Answer) -> JsonValue:
    """Return the error code of a broken stream. Assert that the stream shows the break twice: by an error event, and by
    a body without its end."""
    private(answer)
    assert (answer.status, answer.headers["transfer-encoding"]) == (200, "chunked")
    assert not answer.whole
    assert b"[DONE]" not in answer.events()
    parts = frames(answer)
    assert not any(choice["finish_reason"] for choice in choices(parts))
    assert all("error" not in part for part in parts[:-2])
    error = cast(JsonObject, parts[-1]["error"])
    assert error["message"]
    return error["code"]


def choices(bodies: Sequence[JsonObject]) -> list[JsonObject]:
    """Return all choices of non-streaming responses or frames, in order."""
    return [choice for body in bodies for choice in cast(list[JsonObject], body.get("choices", []))]


def good(answer: Answer, stream: bool) -> str:
    """Return the text of a response with one choice. Assert that it ended well on OpenAI's surface."""
    private(answer)
    assert (answer.status, answer.whole) == (200, True)
    assert (answer.headers["content-type"] == "application/json") is not stream
    assert not stream or answer.events()[-1] == b"[DONE]"
    found = choices(frames(answer) if stream else [answer.json()])
    assert [choice["finish_reason"] for choice in found if choice["finish_reason"]] == ["stop"]
    return "".join(str(choice["text"]) for choice in found)


def private(answer: Answer) -> None:
    """Assert that the response contains nothing of the operator's key."""
    assert OPERATOR_KEY.encode() not in answer.body
    assert OPERATOR_KEY not in str(answer.headers)


async def committed(rig: Rig, script: Script, path: str = COMPLETIONS, model: str = "one/m") -> Answer:
    """Return the response to a stream whose first content reaches the client before its vendor goes on.

    The script's first step is the head, its second the first content.
    """
    rig.asked += 1
    body: JsonObject = {"model": model, "prompt": "hi", "stream": True}
    async with connected(rig.port) as client:
        seen = asyncio.Event()
        rig.one.answer((*script[:2], Until(seen), *script[2:]))
        await client.send(request("POST", path, body, AUTH))
        status, headers = await client.head()
        first = await client.chunk()
        seen.set()
        rest, whole = await client.chunks()
    return Answer(status, headers, first + rest, whole)


async def fails_over(rig: Rig, script: Script, status: int, code: str, kind: str, calls: int = 1) -> None:
    """Assert a failure before any content: this status and code if the deployment is the only one, else another
    deployment's response.

    `kind` is the failure's name in log and metrics, `calls` the number of attempts if the deployment is the only one.
    """
    rig.forget()
    before = len(rig.one.requests), await rig.attempts("one/m/default", kind)
    rig.one.answer(*[script] * (calls + 1))
    assert refusal(await rig.ask("one/m")) == (status, code)
    other = await rig.ask("both")
    assert good(other, rig.stream) == "two"
    assert (other.headers["x-dragoman-deployment"], other.headers["x-dragoman-attempts"]) == ("two/m/default", "2")
    assert len(rig.one.requests) == before[0] + calls + 1
    *_, alone, fallen = await rig.logged()
    assert await rig.attempts("one/m/default", kind) == before[1] + calls + 1
    assert (alone["status"], alone["code"]) == (status, code)
    assert alone["outcome"] == ("timeout" if kind == "timeout" else "upstream_error")
    assert (fallen["status"], fallen["outcome"]) == (200, "ok")
    for line, count in ((alone, calls), (fallen, 1)):
        attempts = cast(list[JsonObject], line["attempts"])
        ends = [(attempt["deployment"], attempt["outcome"]) for attempt in attempts]
        assert ends == [("one/m/default", kind)] * count
