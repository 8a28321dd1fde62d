"""A client on a raw socket, which sends exact bytes and checks whether a response's body ended as its framing
promised.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import orjson

from providers.json_types import JsonObject, JsonValue


@dataclass(frozen=True, slots=True)
class Answer:
    """One response. `whole` says that the body reached the end that its framing promised; header names are lower
    case.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    whole: bool

    def json(self) -> JsonObject:
        value: JsonObject = orjson.loads(self.body)
        return value

    def error(self) -> JsonObject:
        error = self.json()["error"]
        assert isinstance(error, dict)
        return error

    @property
    def code(self) -> JsonValue:
        return self.error()["code"]

    @property
    def message(self) -> str:
        return str(self.error()["message"])

    def events(self) -> list[bytes]:
        """Return the data of each event of a stream, in order."""
        frames = [frame for frame in self.body.split(b"\n\n") if frame]
        return [line.removeprefix(b"data: ") for frame in frames for line in frame.split(b"\n") if line[:5] == b"data:"]


def request(method: str, path: str, body: JsonValue | bytes = None, headers: Mapping[str, str] | None = None) -> bytes:
    """Return a request's bytes, to the host `localhost` unless the headers name another. A body that is not bytes is
    sent as JSON; `None` sends no body.
    """
    data = body if isinstance(body, bytes) else b"" if body is None else orjson.dumps(body)
    fields = {"Host": "localhost", "Content-Length": str(len(data)), **(headers or {})}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + data


class RawClient:
    """One connection to the gateway."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def head(self) -> tuple[int, dict[str, str]]:
        """Return the status and headers of the next response."""
        first, *lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in lines if line)
        return int(first.split(" ")[1]), {name.lower(): value.strip() for name, _, value in pairs}

    async def answer(self) -> Answer:
        status, headers = await self.head()
        body, whole = await self._body(headers)
        return Answer(status, headers, body, whole)

    async def chunk(self) -> bytes:
        """Return the next chunk of a chunked body, empty at its end. Raises IncompleteReadError if the data ends."""
        size = int(await self.reader.readuntil(b"\r\n"), 16)
        return (await self.reader.readexactly(size + 2))[:-2]

    async def chunks(self) -> tuple[bytes, bool]:
        """Return the rest of a chunked body, and whether it ended."""
        body = bytearray()
        try:
            while piece := await self.chunk():
                body += piece
        except (asyncio.IncompleteReadError, ConnectionResetError):
            return bytes(body), False
        return bytes(body), True

    async def closed(self) -> bytes:
        """Wait until the other side closes, and return the bytes before that."""
        return await self.reader.read()

    async def leave(self) -> None:
        self.writer.close()
        await self.writer.wait_closed()

    async def _body(self, headers: Mapping[str, str]) -> tuple[bytes, bool]:
        if headers.get("transfer-encoding") == "chunked":
            return await self.chunks()
        if "content-length" not in headers:
            return await self.reader.read(), True
        try:
            return await self.reader.readexactly(int(headers["content-length"])), True
        except asyncio.IncompleteReadError as error:
            return error.partial, False


@asynccontextmanager
async def connected(port: int, host: str = "127.0.0.1") -> AsyncIterator[RawClient]:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        yield RawClient(reader, writer)
    finally:
        writer.transport.abort()


async def exchange(port: int, data: bytes) -> Answer:
    async with connected(port) as client:
        await client.send(data)
        return await client.answer()
