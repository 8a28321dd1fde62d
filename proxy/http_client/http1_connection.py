"""One connection to a vendor: HTTP/1.1, one exchange at a time, parsed by llhttp (httptools 0.9, all leniencies off).

Received data is stored here as state. `signal` wakes the waiting coroutine within the callback that received the data.
So every method that calls `signal` must do so last: when the call returns, this exchange may be over and the next one
begun.
"""

import asyncio
import select
from typing import Final, Literal, Protocol, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from proxy.eager_task import Signal
from proxy.http_client.answer_head import CODING, HEAD_LIMIT, LENGTH, is_uncoded, plainly_chunked, within_limits

State = Literal["idle", "head", "body", "ended", "dead"]
"""In this order: the connection serves no call; it waits for a response's head; it reads the body; the response is
complete; it is closed."""

Fault = Literal["unanswered", "garbled", "broken off", "lost"]
"""Why the connection is dead, in this order: it was closed before a head was complete; the head is invalid; the body
ended too early or its chunks are invalid; the gateway closed it after the head, or it was reset while reading a body
that only the end of the connection delimits."""

AHEAD: Final = 64 * 1024
"""The most unread bytes of a response, after which reading from the vendor pauses. Each client that does not read takes
this much memory, and the bytes of one socket read."""

SHORT: Final = 64 * 1024
"""The most bytes of a request's body that is copied behind the head, so that both are sent in one write."""

INTERIM_LIMIT: Final = 1000
"""The most interim responses (1xx) before a response. After them reading stops, so that the caller's deadline
passes."""

FRAMING_LIMIT: Final = 16 * 1024
"""The most consecutive bytes of framing without body bytes: chunk extensions and trailers."""

_END: Final = b"\r\n\r\n"
_INTERIM: Final = (b"HTTP/1.1 1", b"HTTP/1.0 1")
_PACKING: Final = b"\r\ncontent-encoding:"
_BODILESS: Final = frozenset({b"204", b"304"})
_PARSE_ERRORS: Final = (HttpParserError, HttpParserUpgrade)

_HUNG_UP: Final = getattr(select, "POLLRDHUP", 0)
"""The poll event for a close by the other side. A reset is always reported. Some systems report only a reset."""


class ConnectionOwner(Protocol):
    """The owner of connections between two exchanges."""

    def remember(self, connection: "Http1Connection") -> None:
        """Note that a connection is open."""

    def take_back(self, connection: "Http1Connection") -> None:
        """Take a connection whose exchange is over and which may serve another."""

    def forget(self, connection: "Http1Connection") -> None:
        """Note that a connection is closed."""


class Http1Connection(asyncio.Protocol):
    """A connection to a vendor, as the module describes.

    `head` is the head of the final response, unchanged. `packed` says whether it names a content coding. `pieces` are
    the received chunks of the body that the reader has not yet taken. `fault` says why the state is `dead`. `key`,
    `may_idle` (seconds) and `idle_until` belong to the pool.
    """

    __slots__ = (
        *("_arrivals", "_framing_bytes", "_bodiless", "_end", "_owner", "_interims", "_keep", "_parser", "_paused"),
        *("_spoilt", "_transport", "_unread", "_until_close"),
        *("fault", "head", "idle_until", "key", "may_idle", "on_body", "packed", "pieces", "signal", "state"),
        "writing_held",
    )

    def __init__(self, owner: ConnectionOwner, key: object, may_idle: float) -> None:
        self.key = key
        self.may_idle = may_idle
        self.state: State = "idle"
        self.fault: Fault = "lost"
        self.head = b""
        self.packed = False
        self.pieces: list[bytes] = []
        self.on_body = self.pieces.append  # called by the parser for each chunk of a body
        self.signal = Signal()
        self.writing_held = False
        self.idle_until = 0.0
        self._owner: ConnectionOwner | None = owner
        self._parser: HttpResponseParser = HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._arrivals: select.poll | None = None
        self._paused = False
        self._until_close = self._bodiless = self._keep = self._spoilt = False
        self._end = -1
        self._framing_bytes = self._unread = self._interims = 0

    # The exchange, as the caller drives it ---------------------------------------------------------------------------

    @property
    def closed_unsent(self) -> bool:
        """Whether the vendor has closed a fresh connection, which the event loop may not have noticed yet."""
        return self.state == "dead" or bool(self._poll(_HUNG_UP).poll(0))

    @property
    def has_no_input(self) -> bool:
        """Whether nothing has arrived since the last exchange, including data still in the socket. Bytes, or an end of
        the data, that the event loop has not yet processed would be read as the next response. The check takes one
        system call, 0.5 us."""
        if self.state != "idle":
            return False
        if self._arrivals is None:
            self._arrivals = self._poll(select.POLLIN)
        return not self._arrivals.poll(0)

    @property
    def heard(self) -> bool:
        """Whether any part of a response has arrived in this exchange."""
        return bool(self.head or self._interims)

    @property
    def wants_no_more(self) -> bool:
        """Whether the rest of a request need not be sent: the vendor has disconnected, or refused the request before
        its end."""
        return self.state == "dead" or (self.state != "head" and self.head[9:10] != b"2")

    def begin(self, head: bytes, body: bytes, bodiless: bool) -> None:
        """Send a request and expect its response. If `bodiless` is set (for HEAD), the response has no body, even if
        its head announces one."""
        self.state = "head"
        self.head = b""
        self._end = -1
        self._bodiless = bodiless
        self._until_close = self._spoilt = False
        self._framing_bytes = self._unread = self._interims = 0
        if len(body) <= SHORT:
            if self._transport is not None:
                self._transport.write(head + body)
        else:
            self.write(head)
            self.write(body)

    def write(self, data: bytes) -> None:
        """Write a part of the request."""
        if self._transport is not None:
            self._transport.write(data)

    def take(self) -> bytes:
        """Return all bytes of the body that arrived since the last call."""
        pieces = self.pieces
        taken = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        self._unread = 0
        if self._paused:
            self._paused = False
            if self._transport is not None:
                self._transport.resume_reading()
        return taken

    def spoil(self) -> None:
        """Close the connection after this exchange."""
        self._spoilt = True

    def release(self) -> None:
        """End the exchange. The connection is reused if the exchange is complete on both sides, else it is closed."""
        transport, owner = self._transport, self._owner
        if (
            self.state != "ended"
            or self._spoilt
            or not self._keep
            or self.pieces
            or transport is None
            or owner is None
            or transport.is_closing()
            or transport.get_write_buffer_size()
        ):
            self.abort()
            return
        self.state = "idle"
        self.head = b""
        owner.take_back(self)

    def abort(self) -> None:
        """Close the connection at once. A graceful close would wait until all bytes for the vendor are sent, which a
        vendor that is still sending may prevent."""
        if self.state != "dead":
            self.fault = "unanswered" if self.state == "head" else "lost"
            self.state = "dead"
        self.pieces.clear()
        if self._transport is not None:
            self._transport.abort()

    # Callbacks of the parser
    # --------------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self._end >= 0:
            self._spoilt = True  # more bytes than the response, of unknown origin

    def on_message_complete(self) -> None:
        if self._end < 0:
            self._end = len(self.pieces)
            self._keep = self._parser.should_keep_alive()

    # Callbacks of the event loop
    # ----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        # This is asyncio's own limit for plain connections. Its limit under TLS is eight times as high.
        self._transport.set_write_buffer_limits(AHEAD)
        if self._owner is not None:
            self._owner.remember(self)

    def data_received(self, data: bytes) -> None:
        if self.state != "body":
            self._receive_other(data)
            return
        # These steps are not separate functions: with cold caches, each call costs a chunk of a stream 0.5 us.
        before, sensible = len(self.pieces), True
        try:
            self._parser.feed_data(data)
        except _PARSE_ERRORS:
            self._spoilt, sensible = True, False
        if self._end >= 0:
            self._complete()
        elif not sensible:
            self._die("broken off")
        elif len(self.pieces) == before:
            self._limit_framing(len(data))
        else:
            self._framing_bytes = 0
            take = self.signal.take
            if take is not None:  # the reader of a stream gets each chunk here, so nothing is left for `take`
                try:
                    more = take(self.pieces.pop() if len(self.pieces) == 1 else self.take())
                except BaseException as error:  # the error is raised in the waiting reader, not in the event loop
                    self.signal.refuse(error)
                else:
                    if not more:
                        self.signal.refuse(None)
                return
            self._unread += len(data)
        self._wake_reader()

    def eof_received(self) -> None:
        self._end_of_data(clean=True)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._transport = None
        owner, self._owner = self._owner, None
        # The parser holds bound methods of this object, a cycle that only the garbage collector would free.
        del self._parser
        self._arrivals = None
        if owner is not None:
            owner.forget(self)
        self._end_of_data(clean=exc is None)

    def pause_writing(self) -> None:
        self.writing_held = True

    def resume_writing(self) -> None:
        self.writing_held = False
        self.signal.set()

    # The states -------------------------------------------------------------------------------------------------------

    def _receive_other(self, data: bytes) -> None:
        """Receive data before the body has begun, or while no data is expected."""
        if self.state == "head":
            self._receive_head(data)
            # This is `_wake_reader`, without a call.
            self.signal.set()
            if self._unread > AHEAD:
                self._pause()
            return
        # No data is expected. The bytes of a complete response stay.
        self._spoilt = True
        if self.state == "ended" and self._transport is not None:
            self._transport.abort()
        else:
            self.abort()

    def _wake_reader(self) -> None:
        """Wake the waiting reader."""
        self.signal.set()
        if self._unread > AHEAD:
            self._pause()

    def _receive_head(self, data: bytes) -> None:
        """Parse more of a response's head, and of the body if it begins in the same bytes."""
        while data:
            begun = len(self.head)
            head = self.head + data if begun else data
            end = head.find(_END, max(begun - 3, 0)) + 4
            if end < 4:
                self.head = head
                if len(head) > HEAD_LIMIT or not self._parse(data):
                    self._die("garbled")
                return
            self.head = head[:end]
            if not head.startswith(_INTERIM):
                self._begin_body(data, begun + len(data) - end)
                return
            end -= begun
            if not self._parse(data[:end]):
                self._die("garbled")
                return
            if self._interims >= INTERIM_LIMIT:
                self._pause()
                return
            self.head = b""
            self._end = -1
            self._interims += 1
            data = data[end:]

    def _begin_body(self, data: bytes, behind: int) -> None:
        """Begin the body after a complete head. `data` holds the end of the head and `behind` bytes after it."""
        head = self.head
        sensible = True
        try:
            self._parser.feed_data(data)
        except _PARSE_ERRORS:
            self._spoilt, sensible = True, self._end >= 0
        lines = head.lower()
        coded = CODING in lines and not is_uncoded(lines)
        if (not sensible and not self.pieces) or not within_limits(head) or (coded and not plainly_chunked(lines)):
            self.pieces.clear()
            self._die("garbled")
            return
        self.state = "body"
        self.packed = _PACKING in lines
        self._until_close = not coded and LENGTH not in lines
        # HTTP/1.0 has no chunked coding, so the framing of the next response cannot be trusted (RFC 9112, 6.1).
        self._spoilt = self._spoilt or (coded and head[7:8] == b"0")
        if self._bodiless or head[9:12] in _BODILESS:
            self._spoilt = self._spoilt or self._end < 0 or behind > 0
            self.pieces.clear()
            self.state = "ended"
        elif self._end >= 0:
            # This is `_complete`, without a call.
            del self.pieces[self._end :]
            self.state = "ended"
        elif not sensible:
            self._die("broken off")
        elif self.pieces:
            self._unread = behind
        else:
            # There is no body to read, so no reader would resume a paused socket.
            self._limit_framing(behind)

    def _limit_framing(self, size: int) -> None:
        self._framing_bytes += size
        if self._framing_bytes > FRAMING_LIMIT:
            self._die("broken off")

    def _parse(self, data: bytes) -> bool:
        """Pass bytes to the parser, and return whether they are valid HTTP."""
        try:
            self._parser.feed_data(data)
        except _PARSE_ERRORS:
            self._spoilt = True
            return False
        return True

    def _complete(self) -> None:
        # Bytes that the parser took for the body of another response are dropped.
        del self.pieces[self._end :]
        self.state = "ended"

    def _pause(self) -> None:
        """Pause reading until the received bytes are taken. They are joined, because each small chunk has a cost."""
        if not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()
            self.pieces[:] = [b"".join(self.pieces)] if self.pieces else []

    def _end_of_data(self, clean: bool) -> None:
        """Handle the end of the data: the vendor closed the connection (`clean`), or it broke."""
        self._spoilt = True
        if self.state == "body" and self._until_close and clean:
            self.state = "ended"
        elif self.state in ("head", "body"):
            self.fault = "unanswered" if self.state == "head" else "lost" if self._until_close else "broken off"
            self.state = "dead"
        elif self.state == "idle":
            self.state = "dead"
        self.signal.set()

    def _die(self, fault: Fault) -> None:
        self.state, self.fault = "dead", fault
        if self._transport is not None:
            self._transport.abort()

    def _poll(self, sign: int) -> "select.poll":
        signs = select.poll()
        if self._transport is not None:
            signs.register(self._transport.get_extra_info("socket").fileno(), sign)
        return signs
