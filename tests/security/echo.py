"""A vendor that returns everything it received, in every form of a response."""

from collections.abc import Callable, Mapping

from providers.json_types import JsonObject, JsonValue
from tests.support import openai_wire
from tests.support.http_scripts import LAST_CHUNK, body_answer, chunk, data_frames, head, json_answer, sse_answer
from tests.support.vendor_script import Behaviour, Received, Rst, Script, Send


def said(request: Received) -> str:
    """Return everything that was sent: the head, then the body."""
    lines = [f"{name}: {value}" for name, value in request.headers]
    return f"{request.target} {'; '.join(lines)} {request.body.decode('latin-1')}"


def headers(request: Received) -> list[tuple[str, str]]:
    """Return it as headers of a response, some of them headers that clients know from the vendors."""
    echoed = [(f"x-echo-{number}", value) for number, (_, value) in enumerate(request.headers)]
    key = next((value for name, value in request.headers if name.lower() in ("authorization", "x-api-key")), "none")
    named = (
        "set-cookie",
        "server",
        "openai-organization",
        "x-request-id",
        "www-authenticate",
        "x-ratelimit-limit-tokens",
    )
    return [
        *echoed,
        *((name, key) for name in named),
        ("retry-after", key),
        ("location", f"https://evil.example/{key}"),
    ]


def error(request: Received) -> JsonObject:
    """Return an error in OpenAI's format with all of it in every field."""
    text = said(request)
    return {"error": {"message": text, "type": text, "code": text, "param": text}}


def with_status(status: int) -> Behaviour:
    """Return a status with such an error."""
    return lambda request: json_answer(status, error(request), headers(request))


def padded(size: int) -> Behaviour:
    """Return a 400 whose text before the key is so long that it is truncated within the key."""
    return lambda request: json_answer(400, {"error": {"message": "x" * size + " " + keys(request)}})


def keys(request: Received) -> str:
    """Return all parts that look like the credential, without any text around them."""
    values = [value for name, value in request.headers if name.lower() in ("authorization", "x-api-key", "x-account")]
    return ",".join(value.removeprefix("Bearer ") for value in values)


def page(request: Received) -> Script:
    """Return a proxy's page in HTML."""
    return body_answer(502, f"<html>{said(request)}</html>".encode(), [("content-type", "text/html")])


def nonsense(request: Received) -> Script:
    """Return a 200 that is not JSON."""
    return body_answer(200, said(request).encode(), headers(request))


def good(request: Received) -> Script:
    """Return a good response under headers that repeat the request."""
    return json_answer(200, openai_wire.completion("good"), headers(request))


def frames(request: Received) -> list[bytes]:
    """Return the first text of a stream, and an error event after it."""
    start = openai_wire.completion_frames(["a"])[:1]
    broken: JsonValue = error(request)
    return [*start, *data_frames(broken)]


def error_within(request: Received) -> Script:
    """Return a stream that begins and then contains an error."""
    return sse_answer(frames(request), headers=headers(request))


def error_first(request: Received) -> Script:
    """Return a stream of only an error."""
    return sse_answer(frames(request)[1:], headers=headers(request))


def not_a_frame(request: Received) -> Script:
    """Return a stream of another format."""
    return sse_answer([b"data: " + said(request).encode() + b"\n\n"])


def broken_off(request: Received) -> Script:
    """Return a stream that breaks off within the error."""
    whole = b"".join(frames(request))
    start = head(200, [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")])
    return (Send(start), Send(chunk(whole[:-10])), Rst())


def bad_head(request: Received) -> Script:
    """Return bytes that are not HTTP."""
    return (Send(b"HTTP/1.1 abc " + keys(request).encode() + b"\r\nx y\r\n\r\n"),)


def bad_chunks(request: Received) -> Script:
    """Return a body with invalid framing."""
    start = head(200, [("content-type", "application/json"), ("transfer-encoding", "chunked")])
    return (Send(start), Send(keys(request).encode() + b"\r\n"), Send(LAST_CHUNK))


WAYS: Mapping[str, Callable[[Received], Script] | Behaviour] = {
    **{str(status): with_status(status) for status in (302, 400, 401, 403, 404, 409, 413, 422, 429, 500, 503, 529)},
    **{f"cut at {size}": padded(size) for size in (440, 460, 480, 985)},
    "a page": page,
    "nonsense": nonsense,
    "a good answer": good,
    "an error within a stream": error_within,
    "an error as a stream": error_first,
    "no frame": not_a_frame,
    "a stream broken off": broken_off,
    "a bad head": bad_head,
    "bad chunks": bad_chunks,
}
"""The ways in which a vendor may repeat the request."""
