"""One connection of a fake vendor: request bytes in, script steps out."""

import asyncio
import socket
import struct
from collections.abc import Coroutine, Mapping
from typing import Final, Protocol, cast

from typing_extensions import override

from tests.support.vendor_script import Delay, Fin, Hang, Loop, Received, Rst, Script, Send, Step, Until


class BadRequest(Exception):
    """An error of the peer, which sent bytes that are not an HTTP/1.1 request."""


class Owner(Protocol):
    """The methods of the fake vendor that its connections call."""

    def began(self, connection: "Connection") -> None:
        """Note that a connection was made."""

    def ended(self, connection: "Connection") -> None:
        """Note that a connection has ended completely."""

    def failed(self, error: Exception) -> None:
        """Note that a script function raised, or that the peer sent no HTTP."""

    def script_at_accept(self) -> Script:
        """Return the script for a connection that was just made."""

    def script_for(self, request: Received) -> Script:
        """Return the script for a request."""


_RESET: Final = struct.pack("ii", 1, 0)
"""SO_LINGER with no time to linger: closing discards the connection with a reset."""


class _PeerLeft(Exception):
    """The end of a connection before a complete request arrived."""


class Connection(asyncio.Protocol):
    """One connection: it receives requests and runs scripts. It reads at all times, so that it notices at once when the
    peer leaves."""

    def __init__(self, vendor: Owner, number: int) -> None:
        self._vendor = vendor
        self._number = number
        self._buffer = bytearray()
        self._more = asyncio.Event()
        self._writable = asyncio.Event()
        self._gone = asyncio.Event()
        self._closed = asyncio.Event()

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's has its methods but not its type
        self._transport.set_write_buffer_limits(0)  # writes wait for the kernel, so data precedes FIN and RST
        self._writable.set()
        self._vendor.began(self)
        self._task = asyncio.get_running_loop().create_task(self._serve())

    @override
    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._more.set()

    @override
    def eof_received(self) -> bool:
        self._gone.set()
        self._more.set()
        return True  # keeps our side open until the task closes it

    @override
    def pause_writing(self) -> None:
        self._writable.clear()

    @override
    def resume_writing(self) -> None:
        self._writable.set()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._gone.set()
        self._more.set()
        self._writable.set()
        self._closed.set()

    async def end(self) -> None:
        """Drop the connection and wait until nothing of it is left."""
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _serve(self) -> None:
        try:
            await self._run(self._vendor.script_at_accept())
            while not self._transport.is_closing():
                request = await self._request()
                await self._run(self._vendor.script_for(request))
                if (request.header("connection") or "").lower() == "close":
                    break
            self._transport.close()
        except _PeerLeft:
            pass
        except Exception as error:  # an exception of a test's script function is reported to the test
            self._vendor.failed(error)
        finally:
            self._transport.abort()
            try:
                await self._closed.wait()
            finally:
                self._vendor.ended(self)

    @property
    def _over(self) -> bool:
        return self._gone.is_set() or self._transport.is_closing()

    async def _run(self, script: Script) -> None:
        for step in script:
            if self._over:
                return
            await self._do(step)

    async def _do(self, step: Step) -> None:
        match step:
            case Send(data):
                self._transport.write(data)
                await asyncio.sleep(0)  # a loop of small writes must not starve everything else
                await self._writable.wait()
            case Delay(seconds):
                await self._unless_gone(asyncio.sleep(seconds))
            case Until(event):
                await self._unless_gone(event.wait())
            case Hang():
                await self._gone.wait()
            case Fin():
                self._transport.close()
            case Rst():
                self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                self._transport.abort()
            case Loop(steps):
                while not self._over:
                    await self._run(steps)

    async def _unless_gone(self, waiting: Coroutine[None, None, object]) -> None:
        tasks = [asyncio.ensure_future(waiting), asyncio.ensure_future(self._gone.wait())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _request(self) -> Received:
        method, target, headers = parse_head(await self._take_until(b"\r\n\r\n"))
        body = await self._body({key.lower(): value for key, value in headers})
        return Received(method, target, headers, body, self._number, self._gone)

    async def _body(self, headers: Mapping[str, str]) -> bytes:
        match headers:
            case {"transfer-encoding": _, "content-length": _}:
                raise BadRequest("both transfer-encoding and content-length")
            case {"transfer-encoding": "chunked"}:
                return await self._chunks()
            case {"transfer-encoding": coding}:
                raise BadRequest(f"transfer-encoding {coding!r}")
            case {"content-length": length} if length.isdigit():
                return await self._take(int(length))
            case {"content-length": length}:
                raise BadRequest(f"content-length {length!r}")
            case _:
                return b""

    async def _chunks(self) -> bytes:
        body = bytearray()
        while size := int(await self._take_until(b"\r\n"), 16):
            body += await self._take(size)
            await self._take_until(b"\r\n")
        while await self._take_until(b"\r\n"):
            pass  # trailers
        return bytes(body)

    async def _take_until(self, end: bytes) -> bytes:
        while (found := self._buffer.find(end)) < 0:
            await self._wait_for_more()
        taken = bytes(self._buffer[:found])
        del self._buffer[: found + len(end)]
        return taken

    async def _take(self, size: int) -> bytes:
        while len(self._buffer) < size:
            await self._wait_for_more()
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    async def _wait_for_more(self) -> None:
        if self._over:
            raise _PeerLeft
        self._more.clear()
        await self._more.wait()


def parse_head(head: bytes) -> tuple[str, str, list[tuple[str, str]]]:
    """Return method, target and headers of a request head without its blank line. Raise `BadRequest`."""
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or words[2] != "HTTP/1.1":
        raise BadRequest(f"request line {first!r}")
    headers = []
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise BadRequest(f"header line {line!r}")
        headers.append((name, value.strip()))
    if sum(name.lower() == "host" for name, _ in headers) != 1:
        raise BadRequest("not exactly one host header")
    return words[0], words[1], headers
