"""The door to the vendors: the only outbound sockets of our own, behind `Transport.open`.

Never holds retries, translation, or a decision about what a status means.

Settings follow what probing aiohttp 3.14 showed: its connector queues silently beyond 100 connections (`limit=0`), a
peer's idle close races with a POST (`keepalive_timeout` below any vendor's), parse faults surface as
`ClientResponseError` with status 400 (mapped by phase, the status never copied).
"""

import asyncio
import socket
import ssl
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from email.utils import formatdate
from functools import lru_cache
from typing import Protocol

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from config.addresses import reach
from providers.auth import Authorities
from providers.dialect import UpstreamRequest
from providers.failure import Failure, FailureKind, UpstreamError
from proxy.connect_failures import WithheldAddress, connect_failure
from proxy.descriptors import lacking
from proxy.outbound import SESSION_HEADERS, call_headers
from proxy.reuse import ClosedUnsent, NotingConnector, reused

POOL_IDLE = 15.0
"""Seconds an idle connection is kept; below every vendor's own limit, so that the vendor never closes first."""

ONCE_IDLE = 1.0
"""The same for deployments whose requests are not sent twice, where a connection that is closed as it is used again
costs an answer: half of the shortest limit that servers have by themselves (gunicorn 2 s; uvicorn and Node.js 5 s)."""

REPLAY_WITHIN = 1.0
"""Seconds in which a reused connection must break for its request to count as unread; later, work may have begun."""

MAX_ERROR_BODY = 64 * 1024
"""Bytes of an error body that are read; the rest goes with the connection."""

ERROR_BODY_WAIT = 2.0
"""Seconds an error body may take."""

AHEAD = 64 * 1024
"""Bytes of an answer that are read before anybody wants them, and as much again until the vendor is held up; aiohttp's
own 256 KiB are what a client that does not read would cost."""

MAX_BODY = 32 * 1024 * 1024
"""Bytes of an answer that is not streamed."""


NO_DESCRIPTOR = "The gateway has no descriptor left for a connection to the upstream."
UNANSWERED = "The upstream closed the connection without answering."


class UpstreamResponse(Protocol):
    """An answer whose body is still coming. `headers` has lower-case names."""

    @property
    def status(self) -> int:
        """The HTTP status."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The response headers; the last of repeated ones."""

    async def read(self) -> bytes:
        """The next piece of the body, empty at its end. Raises UpstreamError when the body broke off."""

    def release(self) -> None:
        """Done with it: the connection may serve another request if the body was read to its end, else it is closed."""

    def close(self) -> None:
        """Give the answer up; the vendor sees the connection close at once."""


class Transport(Protocol):
    """Something that carries an upstream request and brings the beginning of its answer."""

    async def open(self, request: UpstreamRequest, request_id: str) -> UpstreamResponse:
        """Send and wait for the head of the answer; `request_id` travels as `x-request-id`. Raises UpstreamError."""

    async def aclose(self) -> None:
        """Close every connection."""


def fail(kind: FailureKind, message: str) -> UpstreamError:
    """An UpstreamError in our own words."""
    return UpstreamError(Failure(kind, message, ours=True))


def unwatched(piece: bytes) -> None:
    """For bodies of which only the request's total limits the silence."""


async def read_whole(response: UpstreamResponse, arrived: Callable[[bytes], None], limit: int = MAX_BODY) -> bytes:
    """The whole body; `arrived` is told of each piece. Raises UpstreamError when it is longer than `limit` bytes or
    breaks off."""
    # Not a list of pieces: a vendor that sends byte by byte would be given a hundred for each.
    body = bytearray()
    while piece := await response.read():
        arrived(piece)
        body += piece
        if len(body) > limit:
            raise fail(FailureKind.MALFORMED, f"The upstream's answer is larger than {limit} bytes.")
    return bytes(body)


async def read_error(response: UpstreamResponse) -> bytes:
    """As much of an error body as is worth reading; what the vendor sent before breaking off is kept."""
    pieces: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(ERROR_BODY_WAIT):
            while size < MAX_ERROR_BODY and (piece := await response.read()):
                pieces.append(piece)
                size += len(piece)
    except (TimeoutError, UpstreamError):
        # The status alone already says that the attempt failed; a broken body adds nothing to it.
        response.close()
    return b"".join(pieces)[:MAX_ERROR_BODY]


class GuardedResolver(AbstractResolver):
    """Resolves names and withholds addresses that a public base URL has no business with.

    A vendor's name that resolves to a private or metadata address would send the operator's key inside; link-local
    (cloud metadata) is refused even where private addresses are allowed.
    """

    def __init__(self, allow_private: bool) -> None:
        self._inner = aiohttp.ThreadedResolver()
        self._allow_private = allow_private

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The permitted addresses. Raises OSError when there is none."""
        found = await self._inner.resolve(host, port, family)
        allowed = [entry for entry in found if address_allowed(entry["host"], self._allow_private)]
        if found and not allowed:
            raise WithheldAddress(None, "the name leads only to addresses that may not be called")
        return allowed

    async def close(self) -> None:
        """Release the inner resolver."""
        await self._inner.close()


def address_allowed(address: str, allow_private: bool) -> bool:
    """Whether a deployment may be reached at an IP address."""
    where = reach(address.partition("%")[0])
    return where == "public" or (allow_private and where in ("private", "loopback"))


@lru_cache(maxsize=256)
def tls(authorities: Authorities | None = None) -> ssl.SSLContext:
    """What every https call demands: a certificate for the host, from one of the authorities, without any from one that
    the system trusts or the file SSL_CERT_FILE holds, and TLS 1.2 or newer, which some builds of Python leave to
    OpenSSL's configuration.

    Kept, because connections are shared by their context; bounded, because files of authorities change.
    """
    context = ssl.create_default_context(cadata=None if authorities is None else authorities.pem)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


class HttpResponse:
    """aiohttp's response behind the `UpstreamResponse` protocol."""

    __slots__ = ("_content", "_inner", "status")

    def __init__(self, inner: aiohttp.ClientResponse) -> None:
        self._inner = inner
        self._content = inner.content
        self.status = inner.status

    @property
    def headers(self) -> Mapping[str, str]:
        """See UpstreamResponse. Made when asked for: of good answers nobody asks. An answer without a date has that of
        its arrival (RFC 9110, 6.6.1), against which the dates in it are held."""
        headers = {name.lower(): value for name, value in self._inner.headers.items()}
        headers.setdefault("date", formatdate(usegmt=True))
        return headers

    async def read(self) -> bytes:
        """See UpstreamResponse."""
        try:
            return await self._content.readany()
        except aiohttp.ClientPayloadError:
            raise fail(FailureKind.TRUNCATED, "The upstream's answer broke off.") from None
        except (aiohttp.ClientError, OSError):
            raise fail(FailureKind.TRUNCATED, "The connection to the upstream was lost during its answer.") from None

    def release(self) -> None:
        """See UpstreamResponse."""
        if self._content.at_eof():
            self._inner.release()
        else:
            self._inner.close()

    def close(self) -> None:
        """See UpstreamResponse."""
        self._inner.close()


class HttpTransport:
    """HTTP over aiohttp's client: sessions for public hosts and for hosts that may be private.

    A server that closes an idle connection at the moment it is reused has not read the request (very likely, not
    certainly): such a call is sent once more, on a fresh connection. aiohttp does the same, but never for a POST. Where
    a deployment's `retries.safety` rules that out, connections that were idle for long are not used again.
    """

    def __init__(self) -> None:
        self._bodies: dict[asyncio.Future[None], aiohttp.StreamReader] = {}
        idle = {True: POOL_IDLE, False: ONCE_IDLE}
        self._pooled = {
            (allow_private, twice): self._session(allow_private, idle[twice])
            for allow_private in (False, True)
            for twice in (False, True)
        }
        self._fresh = {allow_private: self._session(allow_private, None) for allow_private in (False, True)}
        self._timeouts: dict[float, aiohttp.ClientTimeout] = {}

    async def open(self, request: UpstreamRequest, request_id: str) -> UpstreamResponse:
        """See Transport. Redirects are never followed: they would carry the operator's key to another host."""
        try:
            response = await self._sent(request, request_id)
        except (aiohttp.ConnectionTimeoutError, aiohttp.ClientConnectorError) as error:
            if isinstance(error, OSError) and lacking(error):
                raise UpstreamError(Failure(FailureKind.BUSY, NO_DESCRIPTOR, retry_after=1.0, unsent=True)) from None
            raise UpstreamError(connect_failure(error, request.url)) from None
        except aiohttp.ClientResponseError:
            raise fail(FailureKind.MALFORMED, "The upstream's answer was not valid HTTP.") from None
        except ClosedUnsent:
            raise UpstreamError(Failure(FailureKind.SERVER, UNANSWERED, unsent=True, ours=True)) from None
        except (aiohttp.ClientError, OSError):
            raise fail(FailureKind.SERVER, UNANSWERED) from None
        self._watch(response)
        return HttpResponse(response)

    async def _sent(self, request: UpstreamRequest, request_id: str) -> aiohttp.ClientResponse:
        private, twice = request.target.allow_private, request.target.retries.safety == "safe"
        begun = time.monotonic()
        try:
            return await self._send(self._pooled[private, twice], request, request_id)
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
            unread = reused.get(False) and time.monotonic() - begun < REPLAY_WITHIN
            if isinstance(error, aiohttp.ClientConnectorError) or not unread:
                raise
        if not twice:
            # A table that wants no generation paid for twice does not take likely for certain.
            raise fail(FailureKind.STALE, UNANSWERED)
        return await self._send(self._fresh[private], request, request_id)

    def _send(
        self, session: aiohttp.ClientSession, request: UpstreamRequest, request_id: str
    ) -> Awaitable[aiohttp.ClientResponse]:
        target = request.target
        return session.request(
            request.method,
            # As it stands: yarl would unquote what needs no quoting, and a signature is made over the path as written.
            URL(request.url, encoded=True),
            data=request.body,
            headers=call_headers(request, target.credential.headers(), request_id),
            timeout=self._timeout(target.timeouts.connect),
            ssl=True if target.authorities is None else tls(target.authorities),
            allow_redirects=False,
        )

    async def aclose(self) -> None:
        """See Transport."""
        for session in (*self._pooled.values(), *self._fresh.values()):
            await session.close()

    def _watch(self, response: aiohttp.ClientResponse) -> None:
        """aiohttp 3.14 closes a connection over chunks that make no sense and leaves the body's reader waiting: the end
        of each connection is passed on to the last body it carried."""
        connection = response.connection
        protocol = None if connection is None else connection.protocol
        closed = None if protocol is None else protocol.closed
        if closed is not None:
            if closed not in self._bodies:
                closed.add_done_callback(self._closed)
            self._bodies[closed] = response.content

    def _closed(self, closed: asyncio.Future[None]) -> None:
        closed.exception()  # looked at, or the loop complains that nobody did
        body = self._bodies.pop(closed)
        if not body.is_eof() and body.exception() is None:
            body.set_exception(aiohttp.ClientPayloadError("the connection was closed"))

    def _timeout(self, connect: float) -> aiohttp.ClientTimeout:
        timeout = self._timeouts.get(connect)
        if timeout is None:
            timeout = aiohttp.ClientTimeout(total=None, connect=connect)
            self._timeouts[connect] = timeout
        return timeout

    def _session(self, allow_private: bool, idle: float | None) -> aiohttp.ClientSession:
        """A session whose connections stay for `idle` seconds, or serve one call only."""
        connector = NotingConnector(
            limit=0,
            keepalive_timeout=idle,
            force_close=idle is None,
            resolver=GuardedResolver(allow_private),
            ssl=tls(),
            # Below 3.12.7 CPython leaks TLS transports that never finish their shutdown.
            enable_cleanup_closed=sys.version_info < (3, 12, 7),
        )
        return aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            headers=SESSION_HEADERS,
            read_bufsize=AHEAD,
        )
