"""The bytes of the measured traffic: 2 KB in, 1.2 KB out, and stream frames of OpenAI's shape."""

import orjson

from tests.support.http_scripts import chunk, head
from tests.support.openai_wire import completion, completion_frames

REQUEST_BYTES = 2048
ANSWER_BYTES = 1200
MODEL = "bench/model"
STREAM_FLAG = b'"stream":true'


def request_body(stream: bool) -> bytes:
    """A completion request of 2 KB."""
    body = {"model": MODEL, "prompt": "", "max_tokens": 64, "temperature": 0.5, "stream": stream}
    body["prompt"] = "x" * (REQUEST_BYTES - len(orjson.dumps(body)))
    return orjson.dumps(body)


def request_bytes(body: bytes, key: str) -> bytes:
    """The whole HTTP request, the same for the gateway and for nginx."""
    lines = (
        "POST /v1/completions HTTP/1.1",
        "host: 127.0.0.1",
        f"authorization: Bearer {key}",
        "content-type: application/json",
        f"content-length: {len(body)}",
    )
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


def answer_bytes() -> bytes:
    """The fake upstream's whole answer, its body 1.2 KB."""
    empty = orjson.dumps(completion(""))
    body = orjson.dumps(completion("y" * (ANSWER_BYTES - len(empty))))
    return head(200, [("content-type", "application/json"), ("content-length", str(len(body)))]) + body


def stream_head() -> bytes:
    """The head of a streamed answer."""
    return head(200, [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")])


def stream_chunk() -> bytes:
    """One frame of text in chunked framing."""
    return chunk(completion_frames([" word"])[0])


def stream_tail() -> bytes:
    """The finish frame, usage and the terminator, then the end of the body."""
    return b"".join(chunk(frame) for frame in completion_frames([])) + b"0\r\n\r\n"
