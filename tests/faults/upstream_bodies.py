"""F32, F35 and F40 to F42: responses whose body, encoding or headers are invalid."""

import gzip
import zlib
from functools import cache
from typing import Final, cast

import orjson

from providers.json_types import JsonObject
from tests.faults.check_answers import SURFACES, fails_over, good, refusal
from tests.faults.fault_rig import OPERATOR_KEY, Rig, ok
from tests.faults.memory import growth
from tests.faults.registry import fault
from tests.support.http_scripts import Headers, body_answer, head, json_answer, sse_answer
from tests.support.openai_wire import completion, completion_frames
from tests.support.vendor_script import Hang, Script, Send

JSON: Final = ("content-type", "application/json")
EVENTS: Final = ("content-type", "text/event-stream")


@fault(32)
async def half_a_json_body_whose_length_is_right(rig: Rig) -> None:
    """If the request wants a stream, a body that does not come to its end is a stream that broke off."""
    whole = orjson.dumps(completion("hello", "m"))
    code, kind = ("upstream_error", "truncated") if rig.stream else ("malformed_upstream", "malformed")
    for size in (6, 40, len(whole) // 2, len(whole) - 1):
        await fails_over(rig, body_answer(200, whole[:size], [JSON]), 502, code, kind)


PAGE: Final = f"""
<!DOCTYPE html><html><head><title>Blocked</title></head><body>
Your request to https://10.1.2.3:8443/v1 with {OPERATOR_KEY} was blocked. {"Ask your administrator. " * 200}
</body></html>"""


@fault(35)
async def page_of_a_middlebox(rig: Rig) -> None:
    script = body_answer(200, PAGE.encode(), [("content-type", "text/html; charset=utf-8")])
    for page in (script, body_answer(200, PAGE.encode(), [JSON]), body_answer(200, PAGE.encode(), [EVENTS])):
        await fails_over(rig, page, 502, "malformed_upstream", "malformed")
    for path in SURFACES.values():
        rig.forget()
        rig.one.answer(script)
        answer = await rig.ask(path=path)
        assert refusal(answer, path) == (502, "malformed_upstream")
        assert answer.message == "The upstream answered with a web page."
        (attempt,) = cast(list[JsonObject], (await rig.logged())[-1]["attempts"])
        told = str(attempt["message"])
        assert "Blocked" in told
        assert not any(hidden in told for hidden in ("10.1.2.3", OPERATOR_KEY))
        assert len(told) <= 300


SIZE: Final = 200 * 1024 * 1024
"""Bytes of a compression bomb after inflation. Compressed it has 200 kB."""


@cache
def bomb(start: bytes) -> bytes:
    """Return a gzip file that begins with these bytes and continues with so many letters."""
    packer = zlib.compressobj(9, wbits=31)
    letters = b"x" * 2**20
    pieces = [packer.compress(start), *(packer.compress(letters) for _ in range(SIZE // len(letters))), packer.flush()]
    return b"".join(pieces)


def encoded(rig: Rig, body: bytes, coding: str) -> Script:
    """Return a body under a content encoding, with the expected content type."""
    return body_answer(200, body, [EVENTS if rig.stream else JSON, ("content-encoding", coding)])


@fault(40)
async def compressed_although_it_was_asked_not_to(rig: Rig) -> None:
    small = b"".join(completion_frames(["hello"])) if rig.stream else orjson.dumps(completion("hello", "m"))
    rig.one.answer(encoded(rig, gzip.compress(small), "gzip"))
    assert good(await rig.ask(), rig.stream) == "hello"
    packed = bomb(b"data: " if rig.stream else b'{"id":"')
    assert len(packed) < SIZE / 900
    with growth() as grown:
        await fails_over(rig, encoded(rig, packed, "gzip"), 502, "malformed_upstream", "malformed")
    # An event may have 16 MiB, a non-streaming body 32 MiB, which is joined once.
    assert grown.bytes <= 80 * 1024 * 1024
    for body, coding in ((b"\x00\x01nonsense", "zz"), (b"\x00\x01nonsense", "gzip"), (b"\x00\x01nonsense", "br")):
        rig.forget()
        rig.one.answer(encoded(rig, body, coding))
        answer = await rig.ask()
        assert refusal(answer)[0] == 502
    assert {request.header("accept-encoding") for request in rig.one.requests} == {"identity"}


def headed(body: bytes, headers: Headers) -> Script:
    """Return a 200 with these headers and no others, after which the vendor waits for the disconnect."""
    return (Send(head(200, headers) + body), Hang())


def vectors(stream: bool) -> list[Script]:
    """Return good responses under headers that no HTTP client should accept."""
    body = b"".join(completion_frames(["hello"])) if stream else orjson.dumps(completion("hello", "m"))
    kind = EVENTS if stream else JSON
    size = ("content-length", str(len(body)))
    return [
        headed(body, [kind, size, *((f"x-filler-{number}", "x") for number in range(200))]),
        headed(body, [kind, size, ("x-long", "x" * 9 * 1024)]),
        headed(body, [kind, size, ("x-nul", "a\0b")]),
        headed(body, [kind, size, ("transfer-encoding", "chunked")]),
        headed(body, [kind, size, ("content-length", str(len(body) - 1))]),
        headed(body, [kind, ("content-length", "-1")]),
        headed(body, [kind, size, ("no colon\r\nx", "y")]),
        (Send(b"HTTP/1.1 two hundred\r\n\r\n"), Hang()),
        (Send(b"SSH-2.0-OpenSSH_9.6\r\n"), Hang()),
    ]


@fault(41)
async def headers_that_make_no_sense(rig: Rig) -> None:
    for script in vectors(rig.stream):
        await fails_over(rig, script, 502, "malformed_upstream", "malformed")
        for request in rig.one.requests[-2:]:
            await request.gone.wait()


LEAKS: Final = (
    *("openai-organization", "openai-project", "openai-processing-ms", "anthropic-organization-id", "set-cookie"),
    *("server", "via", "x-powered-by", "x-request-id", "request-id", "cf-ray", "x-envoy-upstream-service-time"),
    *(
        "x-ratelimit-limit-requests",
        "x-ratelimit-remaining-tokens",
        "retry-after",
        "x-should-retry",
        "x-amzn-requestid",
    ),
    *("location", "www-authenticate", "strict-transport-security", "access-control-allow-origin", "x-account-id"),
    *("x-dragoman-deployment", "x-dragoman-emulated", "link", "alt-svc", "etag", "x-amzn-requestid"),
)
VENDORS_ID: Final = "req-of-the-vendor"
OURS: Final = {
    *("server", "date", "content-type", "content-length", "transfer-encoding", "cache-control", "vary", "x-request-id"),
    *("x-content-type-options", "x-accel-buffering", "x-dragoman-deployment", "x-dragoman-attempts", "x-should-retry"),
}


@fault(42)
async def headers_about_the_operator(rig: Rig) -> None:
    leaks = [(name, VENDORS_ID if name == "x-request-id" else f"leak-{name}") for name in LEAKS]
    frames = completion_frames(["hello"])
    answers = [
        sse_answer(frames, headers=leaks) if rig.stream else json_answer(200, completion("hello", "m"), leaks),
        *(json_answer(status, {"error": {"message": "no"}}, leaks) for status in (400, 401, 404, 502, 307)),
        json_answer(200, {"error": {"message": "no", "code": "invalid_api_key"}}, leaks),
    ]
    for path in SURFACES.values():
        for script in answers:
            rig.forget()
            rig.one.answer(script, script)
            answer = await rig.ask(path=path)
            # The vendor's request id reveals nothing about the operator.
            headers = dict(answer.headers)
            assert headers.pop("x-dragoman-upstream-request-id") == VENDORS_ID
            assert headers.keys() <= OURS
            assert headers["server"] == "dragoman"
            assert "leak-" not in str(headers)
            assert b"leak-" not in answer.body
            rig.one._queue.clear()
    rig.one.answer(ok(rig.stream))
    await rig.ask()
    assert all(request.header("cookie") is None for request in rig.one.requests)
    assert "leak-" not in rig.log.getvalue().decode()
