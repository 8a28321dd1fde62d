"""A fake upstream that costs little: fixed bytes for whole answers, a frame at a fixed pace for streams. It parses no
JSON.

    python -m tests.bench.upstream CHUNKS SECONDS

prints its port and serves until standard input ends.
"""

import asyncio
import re
import sys
from typing import cast

import uvloop
from typing_extensions import override

from tests.bench.traffic import STREAM_FLAG, answer_bytes, stream_chunk, stream_head, stream_tail

LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)

ANSWER, HEAD, CHUNK, TAIL = answer_bytes(), stream_head(), stream_chunk(), stream_tail()


class Upstream(asyncio.Protocol):
    """One kept-alive connection with one request at a time."""

    def __init__(self, chunks: int, pace: float) -> None:
        self._chunks = chunks
        self._pace = pace
        self._buffer = b""
        self._left = 0

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one without inheriting from it

    @override
    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n") + 4
        if end < 4:
            return
        length = LENGTH.search(self._buffer, 0, end)
        if length is None:
            self._transport.abort()  # a request without a length is none of this bench's
        elif len(self._buffer) >= end + int(length[1]):
            stream = STREAM_FLAG in self._buffer
            self._buffer = b""
            if stream:
                self._start()
            else:
                self._transport.write(ANSWER)

    def _start(self) -> None:
        self._left = self._chunks
        self._transport.write(HEAD)
        self._next = asyncio.get_running_loop().time()
        self._tick()

    def _tick(self) -> None:
        if self._transport.is_closing():
            return
        if not self._left:
            self._transport.write(TAIL)
            return
        self._transport.write(CHUNK)
        self._left -= 1
        self._next += self._pace
        asyncio.get_running_loop().call_at(self._next, self._tick)


async def serve(chunks: int, pace: float) -> None:
    """Serve until standard input ends."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Upstream(chunks, pace), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.buffer.read)


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), float(sys.argv[2])))
