"""Requests and responses between the supervisor and one worker, over a socket pair.

A frame is its length and the number of the request, four bytes each in network order, then a name and a line feed, then
a body. A response has the number of its request; a message that answers no request has the number 0. Each side notices
by the end of the stream that the other process has ended.
"""

import asyncio
import struct
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

MAX_FRAME: Final = 64 * 2**20
"""The most bytes of a frame. A configuration with everything that it includes may have some MiB, as may the metrics of
5,000 label sets."""

_HEAD: Final = struct.Struct("!II")

ChannelHandlers = Mapping[str, Callable[[bytes], Awaitable[bytes]]]
"""The handlers by the name of the request. A handler takes the body of the request and returns the body of the
response."""


class PeerGone(Exception):
    """The error that is raised if the other process has ended, or did not respond in time."""


async def receive(reader: asyncio.StreamReader) -> tuple[int, str, bytes]:
    """Return the number, name and body of the next frame. Raises PeerGone at the end of the stream."""
    try:
        length, number = _HEAD.unpack(await reader.readexactly(_HEAD.size))
        if length > MAX_FRAME:
            raise PeerGone(f"a frame of {length} bytes")
        name, _, body = (await reader.readexactly(length)).partition(b"\n")
    except (asyncio.IncompleteReadError, OSError):
        raise PeerGone("the connection has ended") from None
    return number, name.decode(), body


def send(writer: asyncio.StreamWriter, number: int, name: str, body: bytes = b"") -> None:
    """Send a frame without waiting until it is read. There are so few frames that they do not fill the memory."""
    content = name.encode() + b"\n" + body
    writer.write(_HEAD.pack(len(content), number) + content)


@dataclass(slots=True, eq=False)
class ChannelClient:
    """The supervisor's end of the socket pair. Responses arrive while `run` runs; `on_message` is called with the name
    and the body of each message without a request."""

    _reader: asyncio.StreamReader
    _writer: asyncio.StreamWriter
    _on_message: Callable[[str, bytes], None]
    _pending: dict[int, asyncio.Future[bytes]] = field(default_factory=dict)
    _last_number: int = 0

    async def run(self) -> None:
        """Receive frames until the worker ends; pending requests then raise PeerGone."""
        try:
            while True:
                self._take(*await receive(self._reader))
        except PeerGone as gone:
            for response in self._pending.values():
                if not response.done():
                    response.set_exception(gone)
        finally:
            self._writer.close()

    def _take(self, number: int, name: str, body: bytes) -> None:
        response = self._pending.get(number)
        if number == 0:
            self._on_message(name, body)
        elif response is not None and not response.done():  # `notify` does not wait for the response that comes
            response.set_result(body)

    def notify(self, name: str, body: bytes = b"") -> None:
        """Send a request without waiting for its response."""
        if not self._writer.is_closing():
            send(self._writer, self._next_number(), name, body)

    async def request(self, name: str, seconds: float, body: bytes = b"") -> bytes:
        """Send a request and return the body of the response. Raises PeerGone if no response comes within `seconds`."""
        if self._writer.is_closing():
            raise PeerGone("the worker is gone")
        number = self._next_number()
        response: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._pending[number] = response
        send(self._writer, number, name, body)
        try:
            async with asyncio.timeout(seconds):
                return await response
        except TimeoutError:
            raise PeerGone(f"no response to '{name}' within {seconds:g} s") from None
        finally:
            del self._pending[number]

    def _next_number(self) -> int:
        self._last_number = self._last_number % (2**32 - 1) + 1
        return self._last_number


async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, handlers: ChannelHandlers) -> None:
    """Respond to the supervisor's requests, several at a time, until the supervisor ends."""

    async def respond_to(number: int, name: str, body: bytes) -> None:
        send(writer, number, name, await handlers[name](body))

    async with asyncio.TaskGroup() as group:
        while True:
            try:
                frame = await receive(reader)
            except PeerGone:
                return
            group.create_task(respond_to(*frame))
