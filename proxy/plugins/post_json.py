"""POST requests for plugins. They use the dialer of vendor calls, with the same rules for addresses and certificates.

Connections are not reused, because a sink posts batches rarely.
"""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from config.addresses import url_fault
from providers.failure import UpstreamError
from proxy.http_client.connection_pool import ConnectionPool
from proxy.http_client.dialer import Destination, Dialer
from proxy.http_client.http_response import HttpResponse

CONNECT_SECONDS: Final = 5.0

_LINE_BREAKS: Final = frozenset("\r\n\0")


class JsonPoster:
    """An implementation of `proxy.plugins.api.Poster`."""

    def __init__(self) -> None:
        self._pool = ConnectionPool()
        self._dialer = Dialer(self._pool)

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        return await self._post(url, body, headers, allow_private=False)

    async def post_inside(self, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        return await self._post(url, body, headers, allow_private=True)

    async def aclose(self) -> None:
        """Close every connection."""
        await self._pool.aclose()

    async def _post(self, url: str, body: bytes, headers: Mapping[str, str], *, allow_private: bool) -> int:
        parts = urlsplit(url)
        secure = parts.scheme == "https"
        if (fault := url_fault(parts._replace(query="").geturl())) is not None:
            raise OSError(f"the URL {fault}")
        if not secure and not allow_private:
            raise OSError("the URL is not https")
        port = parts.port or (443 if secure else 80)
        host = parts.hostname or ""
        head = _head(parts.netloc, parts.path or "/", parts.query, headers, len(body))
        to = Destination(host, port, secure, allow_private, None, False)
        connection = await self._dialer.dial(to, CONNECT_SECONDS, CONNECT_SECONDS)
        try:
            connection.begin(head, body, False)
            connection.spoil()
            while connection.state == "head":
                await connection.signal
            if connection.state == "dead" and connection.fault in ("unanswered", "garbled"):
                raise OSError("the server sent no response")
            return HttpResponse(connection).status
        except UpstreamError as error:
            raise OSError(error.failure.kind.value) from None
        finally:
            connection.abort()


def _head(host: str, path: str, query: str, headers: Mapping[str, str], length: int) -> bytes:
    """Return the head of a POST request. Raises OSError if a header contains a line break."""
    target = f"{path}?{query}" if query else path
    lines = [f"POST {target} HTTP/1.1", f"Host: {host}", f"Content-Length: {length}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if any(not _LINE_BREAKS.isdisjoint(line) for line in lines):
        raise OSError("a header holds a line break")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")
