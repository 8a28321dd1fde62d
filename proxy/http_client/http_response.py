"""A response whose body is still arriving, as the caller reads it."""

from collections.abc import Mapping
from email.utils import formatdate

from providers.failure import FailureKind, UpstreamError
from proxy.http_client.http1_connection import Http1Connection
from proxy.upstream.transport import Take, fail

BROKEN_OFF = "The upstream's response broke off."
LOST = "The connection to the upstream was lost during its response."


class HttpResponse:
    """The response of one exchange; it implements UpstreamResponse. When the exchange ends, it gives up its connection,
    which may then serve another call."""

    __slots__ = ("_connection", "_head", "_over", "status")

    def __init__(self, connection: Http1Connection) -> None:
        self._connection: Http1Connection | None = connection
        self._head = connection.head
        self._over = False
        self.status = int(self._head[9:12])

    @property
    def headers(self) -> Mapping[str, str]:
        """The response headers. They are parsed on demand, because successful responses do not need them. A response
        without a `Date` header gets the date of its arrival (RFC 9110, 6.6.1), because its other dates are relative to
        it."""
        headers = headers_of(self._head)
        headers.setdefault("date", formatdate(usegmt=True))
        return headers

    @property
    def head(self) -> bytes:
        return self._head

    def take_all(self) -> bytes | None:
        """Return the body if all of it has arrived, as with nearly every non-streaming response, else `None`."""
        connection = self._connection
        if connection is None or connection.state != "ended":
            return None
        body = connection.take()
        self.release()
        return body

    async def read(self) -> bytes:
        """Return all bytes that have arrived, empty at the body's end. Raises UpstreamError if the body broke off."""
        connection = self._connection
        if connection is None:
            if self._over:
                return b""
            raise fail(FailureKind.TRUNCATED, LOST)
        while not connection.pieces:
            if connection.state == "body":
                await connection.signal
            elif connection.state == "ended":
                self.release()
                return b""
            else:
                raise broken(connection)
        return connection.take()

    async def each(self, take: Take) -> None:
        """Pass each chunk to `take` within the callback that received it. This coroutine resumes only for bytes that
        arrived earlier, at the end, and when `take` returns False."""
        more = True
        while more:
            connection = self._connection
            if connection is None or connection.pieces or connection.state != "body":
                more = take(await self.read())
            else:
                more = await connection.signal.taking(take)

    def release(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._over = connection.state == "ended" and not connection.pieces
            connection.release()

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abort()


def broken(connection: Http1Connection) -> UpstreamError:
    """Return the failure of a body whose connection is closed."""
    return fail(FailureKind.TRUNCATED, BROKEN_OFF if connection.fault == "broken off" else LOST)


def headers_of(head: bytes) -> dict[str, str]:
    """Return the fields of a head that the parser accepted, with lower-case names. Of repeated fields the last one
    counts."""
    fields = {}
    for line in head.split(b"\r\n")[1:-2]:
        name, _, value = line.partition(b":")
        fields[name.decode("ascii", "replace").lower()] = value.strip(b" \t").decode("utf-8", "surrogateescape")
    return fields
