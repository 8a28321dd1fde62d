"""Calls over HTTP by aiohttp's client: the only outbound sockets to vendors.

Settings follow what probing aiohttp 3.14 showed: its connector queues silently beyond 100 connections (`limit=0`), a
peer's idle close races with a POST (`keepalive_timeout` below any vendor's), parse faults surface as
`ClientResponseError` with status 400 (mapped by phase, the status never copied).
"""

import asyncio
import errno
import ssl
import sys
import time
from collections.abc import Awaitable, Mapping
from email.utils import formatdate
from functools import lru_cache

import aiohttp
from yarl import URL

from providers.dialect import UpstreamRequest
from providers.failure import Failure, FailureKind, UpstreamError
from providers.vendor_credential import Authorities
from proxy.upstream.address_guard import GuardedResolver
from proxy.upstream.connect_failures import connect_failure
from proxy.upstream.connection_reuse import ClosedUnsent, NotingConnector, reused
from proxy.upstream.request_headers import SESSION_HEADERS, call_headers
from proxy.upstream.transport import RepeatableError, RepeatCause, Repeats, UpstreamResponse, fail

POOL_IDLE = 15.0
"""Seconds an idle connection is kept; below every vendor's own limit, so that the vendor never closes first."""

ONCE_IDLE = 1.0
"""The same for deployments whose requests are not sent twice, where a connection that closes as it is reused costs an
answer: half of the shortest default of servers (gunicorn 2 s; uvicorn and Node.js 5 s)."""

STALE_WITHIN = 1.0
"""Seconds in which a reused connection must break for its request to count as unread; later, work may have begun."""

AHEAD = 64 * 1024
"""Bytes of an answer that are read ahead, and as much again until the vendor is slowed down; with aiohttp's own 256
KiB, clients that do not read would cost that much each."""

NO_DESCRIPTOR_LEFT = frozenset({errno.EMFILE, errno.ENFILE})
NO_DESCRIPTOR = "The gateway has no descriptor left for a connection to the upstream."

UNANSWERED = "The upstream closed the connection without answering."


@lru_cache(maxsize=256)
def tls(authorities: Authorities | None = None) -> ssl.SSLContext:
    """Return the TLS context of https calls: a certificate for the host, from one of the given authorities or else from
    one that the system trusts or the file SSL_CERT_FILE holds, and TLS 1.2 or newer, which some builds of Python leave
    to OpenSSL's configuration.

    Cached, because connections are pooled by their context; bounded, because files of authorities change.
    """
    context = ssl.create_default_context(cadata=None if authorities is None else authorities.pem)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


class HttpResponse:
    """aiohttp's response as an `UpstreamResponse`."""

    __slots__ = ("_content", "_inner", "status")

    def __init__(self, inner: aiohttp.ClientResponse) -> None:
        self._inner = inner
        self._content = inner.content
        self.status = inner.status

    @property
    def headers(self) -> Mapping[str, str]:
        """See UpstreamResponse. Made on demand: of good answers they are not needed. A response without a date gets
        that of its arrival (RFC 9110, 6.6.1), to which the dates in it relate."""
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

    A server that closes an idle connection at the moment it is reused has very likely not read the request. aiohttp
    sends such a request again, but never a POST: here it raises RepeatableError. Deployments whose `retries.safety`
    forbids the repeat have sessions that do not reuse connections which were idle for long.
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

    async def open(self, request: UpstreamRequest, request_id: str, repeats: Repeats = ()) -> UpstreamResponse:
        """See Transport. Redirects are never followed: they would carry the operator's key to another host."""
        target = request.target
        if RepeatCause.STALE_CONNECTION in repeats:
            session = self._fresh[target.allow_private]
        else:
            session = self._pooled[target.allow_private, target.retries.safety == "safe"]
        sent = time.monotonic()
        try:
            response = await self._send(session, request, request_id)
        except (aiohttp.ConnectionTimeoutError, aiohttp.ClientConnectorError) as error:
            if isinstance(error, OSError) and error.errno in NO_DESCRIPTOR_LEFT:
                raise UpstreamError(Failure(FailureKind.BUSY, NO_DESCRIPTOR, retry_after=1.0, unsent=True)) from None
            raise UpstreamError(connect_failure(error, request.url)) from None
        except aiohttp.ClientResponseError:
            raise fail(FailureKind.MALFORMED, "The upstream's answer was not valid HTTP.") from None
        except ClosedUnsent:
            raise UpstreamError(Failure(FailureKind.SERVER, UNANSWERED, unsent=True, ours=True)) from None
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
            if reused.get(False) and time.monotonic() - sent < STALE_WITHIN:
                stale = Failure(FailureKind.STALE, UNANSWERED, ours=True)
                raise RepeatableError(stale, RepeatCause.STALE_CONNECTION) from None
            raise fail(FailureKind.SERVER, UNANSWERED) from None
        except (aiohttp.ClientError, OSError):
            raise fail(FailureKind.SERVER, UNANSWERED) from None
        self._watch(response)
        return HttpResponse(response)

    def _send(
        self, session: aiohttp.ClientSession, request: UpstreamRequest, request_id: str
    ) -> Awaitable[aiohttp.ClientResponse]:
        target = request.target
        return session.request(
            request.method,
            # Encoded already: yarl would unquote what needs no quoting, but a signature covers the path as written.
            URL(request.url, encoded=True),
            data=request.body if request.upload is None else request.upload.pieces(),
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
        """Pass the end of each connection on to the last body it carried: aiohttp 3.14 closes a connection over
        malformed chunks and leaves the body's reader waiting."""
        connection = response.connection
        protocol = None if connection is None else connection.protocol
        closed = None if protocol is None else protocol.closed
        if closed is not None:
            if closed not in self._bodies:
                closed.add_done_callback(self._closed)
            self._bodies[closed] = response.content

    def _closed(self, closed: asyncio.Future[None]) -> None:
        closed.exception()  # retrieved, or the loop logs that it never was
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
        """Return a session whose connections stay for `idle` seconds (None: serve one call each)."""
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
