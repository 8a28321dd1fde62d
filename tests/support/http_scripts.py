"""Scripts for the fake vendor: complete and broken HTTP responses, from a body or stream frames of the caller."""

from collections.abc import Iterable, Sequence

import orjson

from providers.json_types import JsonValue
from tests.support.vendor_script import Fin, Hang, Rst, Script, Send, Step

Headers = Sequence[tuple[str, str]]
Ending = Fin | Rst | Hang

FIN = Fin()
DONE = b"data: [DONE]\n\n"
LAST_CHUNK = b"0\r\n\r\n"
REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests"}


def head(status: int, headers: Headers) -> bytes:
    """Return a response head with its blank line. Add nothing to the headers."""
    lines = [f"HTTP/1.1 {status} {REASONS.get(status, 'Status')}", *(f"{name}: {value}" for name, value in headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def chunk(data: bytes) -> bytes:
    """Return one chunk of a chunked body. Return no bytes for no data, because an empty chunk would end the body."""
    return b"%x\r\n%s\r\n" % (len(data), data) if data else b""


def data_frames(*payloads: JsonValue) -> list[bytes]:
    return [b"data: " + orjson.dumps(payload) + b"\n\n" for payload in payloads]


def pieces(stream: bytes | Iterable[bytes], size: int | None = None) -> list[bytes]:
    """Return the stream in the given parts. Split bytes into parts of `size` bytes, regardless of frames."""
    if size is None:
        return [stream] if isinstance(stream, bytes) else list(stream)
    whole = stream if isinstance(stream, bytes) else b"".join(stream)
    return [whole[start : start + size] for start in range(0, len(whole), size)]


def body_answer(status: int, body: bytes, headers: Headers = ()) -> Script:
    """Send these bytes with a content-length. There is a content type only if `headers` contain one."""
    return (Send(head(status, [("content-length", str(len(body))), *headers]) + body),)


def json_answer(status: int, body: JsonValue, headers: Headers = ()) -> Script:
    """Send this value as `application/json` with a content-length."""
    return body_answer(status, orjson.dumps(body), [("content-type", "application/json"), *headers])


def sse_answer(stream: bytes | Iterable[bytes], piece_size: int | None = None, headers: Headers = ()) -> Script:
    """Send a 200 event stream in chunked framing, properly terminated. Each part is one write and one chunk."""
    return (*_sse_chunks(stream, piece_size, headers), Send(LAST_CHUNK))


def sse_unterminated(
    stream: bytes | Iterable[bytes], ending: Ending, piece_size: int | None = None, headers: Headers = ()
) -> Script:
    """Send an event stream that is not terminated: the vendor closes the connection or falls silent instead."""
    return (*_sse_chunks(stream, piece_size, headers), ending)


def sse_close_delimited(
    stream: bytes | Iterable[bytes], ending: Ending = FIN, piece_size: int | None = None, headers: Headers = ()
) -> Script:
    """Send a 200 event stream without framing. The end of the connection ends its body."""
    start = head(200, [("content-type", "text/event-stream"), ("connection", "close"), *headers])
    return (Send(start), *(Send(piece) for piece in pieces(stream, piece_size)), ending)


def _sse_chunks(stream: bytes | Iterable[bytes], piece_size: int | None, headers: Headers) -> list[Step]:
    start = head(200, [("content-type", "text/event-stream"), ("transfer-encoding", "chunked"), *headers])
    return [Send(start), *(Send(chunk(piece)) for piece in pieces(stream, piece_size))]


def size_of(script: Script) -> int:
    """Return the number of bytes that the script sends, with heads and framing. Steps inside a loop are not counted."""
    return sum(len(step.data) for step in script if isinstance(step, Send))


def cut(script: Script, size: int, ending: Ending = FIN) -> Script:
    """Return the script up to its first `size` bytes, with heads and framing, then `ending` and nothing else."""
    kept: list[Step] = []
    left = size
    for step in script:
        if isinstance(step, Send):
            kept.append(Send(step.data[:left]))
            left -= len(step.data)
            if left <= 0:
                break
        else:
            kept.append(step)
    return (*kept, ending)
