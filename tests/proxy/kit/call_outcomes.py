"""The outcome of one call whose response is given as bytes: through the gateway's transport, and through aiohttp's
client, which is widely used and has met more servers than the gateway.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import aiohttp

from providers.dialect import UpstreamRequest
from providers.failure import FailureKind, UpstreamError
from proxy.upstream.transport import Transport
from tests.proxy.kit.byte_vendor import ByteVendor, Ending, settle
from tests.proxy.kit.transport_calls import call, tidy_transport

End = Literal["ok", "malformed", "truncated", "unanswered", "waits"]
"""A complete response; a refused head; a truncated body; no head; a wait for more bytes."""

_ENDS: Mapping[FailureKind, End] = {
    FailureKind.MALFORMED: "malformed",
    FailureKind.TRUNCATED: "truncated",
    FailureKind.SERVER: "unanswered",
    FailureKind.STALE: "unanswered",
}


@dataclass(slots=True)
class Outcome:
    """The outcome of a call. `reused` says whether the next call used the same connection, `mixed_up` whether it got a
    response that was not its own.
    """

    end: End = "waits"
    status: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    reused: bool = False
    mixed_up: bool = False

    def told(self) -> str:
        """Return the outcome in one to three words."""
        parts = [str(self.status)] if self.status else []
        return " ".join(
            [*parts, self.end, *(["reused"] if self.reused else []), *(["mixed up"] if self.mixed_up else [])]
        )


class Caller(Protocol):
    """Makes one call and notes its outcome."""

    async def __call__(self, url: str, method: str, seen: Outcome) -> None: ...


def shown(headers: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return header fields with lower-case names, the last of repeated ones, without the date, which the gateway
    adds.
    """
    last = {name.lower(): value for name, value in headers.items()}
    last.pop("date", None)
    return tuple(sorted(last.items()))


@dataclass(frozen=True)
class ByTransport:
    """Calls through the gateway's transport."""

    transport: Transport

    async def __call__(self, url: str, method: str, seen: Outcome) -> None:
        request: UpstreamRequest = replace(call(url, body=b"" if method == "HEAD" else b"{}"), method=method)
        try:
            response = await self.transport.open(request, "req-1")
            seen.status, seen.headers = response.status, shown(response.headers)
            try:
                while piece := await response.read():
                    seen.body += piece
            except BaseException:
                response.close()
                raise
            response.release()
        except UpstreamError as error:
            seen.end = _ENDS[error.failure.kind]
        else:
            seen.end = "ok"


@dataclass(frozen=True)
class ByAiohttp:
    """Calls through aiohttp's client."""

    session: aiohttp.ClientSession

    async def __call__(self, url: str, method: str, seen: Outcome) -> None:
        body = None if method == "HEAD" else b"{}"
        try:
            response = await self.session.request(method, url, data=body, allow_redirects=False)
        except aiohttp.ClientResponseError:
            seen.end = "malformed"
            return
        except (aiohttp.ClientError, OSError):
            seen.end = "unanswered"
            return
        seen.status, seen.headers = response.status, shown(response.headers)
        content = response.content
        connection = response.connection
        protocol = None if connection is None else connection.protocol
        if protocol is not None and (closed := protocol.closed) is not None:
            # aiohttp 3.14 closes a connection over malformed chunks and leaves the body's reader waiting.
            closed.add_done_callback(lambda done: _end(done, content))
        try:
            while piece := await content.readany():
                seen.body += piece
        except (aiohttp.ClientError, OSError):
            seen.end = "truncated"
            response.close()
        except BaseException:
            response.close()
            raise
        else:
            seen.end = "ok"
            response.release()


def _end(closed: "asyncio.Future[None]", content: aiohttp.StreamReader) -> None:
    closed.exception()
    if not content.is_eof() and content.exception() is None:
        content.set_exception(aiohttp.ClientPayloadError("the connection was closed"))


@dataclass(frozen=True)
class Rig:
    """A vendor and its two callers."""

    vendor: ByteVendor
    ours: Caller
    theirs: Caller

    async def outcome(self, caller: Caller, pieces: Sequence[bytes], ending: Ending, method: str) -> Outcome:
        """Return the outcome of a call with this response."""
        vendor, seen = self.vendor, Outcome()
        url = f"http://127.0.0.1:{vendor.port}/"
        vendor.prepare(pieces, ending)
        calling = asyncio.get_running_loop().create_task(caller(url, method, seen))
        async with asyncio.timeout(30):
            await vendor.sent.wait()
        await settle(8)
        if not calling.done():
            # There are no further bytes. The loop may only be slow, above all to see the end, which ends every call.
            await asyncio.wait([calling], timeout=0.005 if ending == "stays" else 30.0)
        if not calling.done():
            calling.cancel()
            await asyncio.wait([calling])
            seen.end = "waits"
        else:
            calling.result()
        again = Outcome()
        async with asyncio.timeout(30):
            await caller(url, "POST", again)
        seen.reused = vendor.served == 1
        seen.mixed_up = (again.end, again.body) != ("ok", b"ok")
        await vendor.drop_connections()
        return seen


@asynccontextmanager
async def rig() -> AsyncIterator[Rig]:
    """Return a rig with both callers and a vendor."""
    vendor = ByteVendor()
    await vendor.start()
    connector = aiohttp.TCPConnector(limit=0)
    async with (
        tidy_transport() as transport,
        aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar(), read_bufsize=65536) as session,
    ):
        yield Rig(vendor, ByTransport(transport), ByAiohttp(session))
        await vendor.stop()
