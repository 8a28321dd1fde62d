"""One connection to a vendor: HTTP/1.1, one exchange at a time, parsed by llhttp (httptools 0.9, all leniencies off).

What comes is kept here, as state; the coroutine that waits for it is woken by `signal` within the callback that brought
it. So every method that wakes it does so last: when that call returns, this exchange may be over and the next begun.
"""

import asyncio
import select
from typing import Final, Literal, Protocol, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from proxy.eager_task import Signal
from proxy.http_client.answer_head import CODING, HEAD_LIMIT, LENGTH, is_uncoded, plainly_chunked, within_limits

State = Literal["idle", "head", "body", "ended", "dead"]
"""Serves no call; waits for an answer's head; reads its body; has all of it; is closed."""

Fault = Literal["unanswered", "garbled", "broken off", "lost"]
"""Why it is dead: closed before a head was complete; a head that makes no sense; a body that ended too early or whose
chunks make no sense; closed by us after the head, or reset where only the connection's end delimits the body."""

AHEAD: Final = 64 * 1024
"""Bytes of an answer that wait to be read, after which nothing more is read from the vendor; clients that do not read
cost that much each, and what one read of the socket brings."""

SHORT: Final = 64 * 1024
"""Bytes of a body that is copied behind its head, so that both leave in one write."""

INTERIM_LIMIT: Final = 1000
"""Interim answers (1xx) before an answer; after so many nothing more is read, and the caller's deadline passes."""

BARREN_LIMIT: Final = 16 * 1024
"""Bytes of framing in a row that bring nothing of a body: extensions of chunks, trailers."""

_END: Final = b"\r\n\r\n"
_INTERIM: Final = (b"HTTP/1.1 1", b"HTTP/1.0 1")
_PACKING: Final = b"\r\ncontent-encoding:"
_BODILESS: Final = frozenset({b"204", b"304"})
_PARSE_ERRORS: Final = (HttpParserError, HttpParserUpgrade)

_HUNG_UP: Final = getattr(select, "POLLRDHUP", 0)
"""The other side has closed; a reset shows whatever is polled for. Some systems show nothing but a reset."""


class Home(Protocol):
    """Where connections go between two exchanges."""

    def remember(self, connection: "Http1Connection") -> None:
        """Note that a connection is open."""

    def take_back(self, connection: "Http1Connection") -> None:
        """Keep a connection whose exchange is over and which may serve another."""

    def forget(self, connection: "Http1Connection") -> None:
        """Note that a connection is closed."""


class Http1Connection(asyncio.Protocol):
    """See the module.

    `head` is the final answer's, as it came; `packed` says whether it names a content coding; `pieces` is what has come
    of its body and was not taken; `fault` says why the state is `dead`. `key`, `may_idle` (seconds) and `idle_until`
    are the pool's.
    """

    __slots__ = (
        *("_arrivals", "_barren", "_bodiless", "_end", "_home", "_interims", "_keep", "_parser", "_paused"),
        *("_spoilt", "_transport", "_unread", "_until_close"),
        *("fault", "head", "idle_until", "key", "may_idle", "on_body", "packed", "pieces", "signal", "state"),
        "writing_held",
    )

    def __init__(self, home: Home, key: object, may_idle: float) -> None:
        self.key = key
        self.may_idle = may_idle
        self.state: State = "idle"
        self.fault: Fault = "lost"
        self.head = b""
        self.packed = False
        self.pieces: list[bytes] = []
        self.on_body = self.pieces.append  # called by the parser for each piece of a body
        self.signal = Signal()
        self.writing_held = False
        self.idle_until = 0.0
        self._home: Home | None = home
        self._parser: HttpResponseParser = HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._arrivals: select.poll | None = None
        self._paused = False
        self._until_close = self._bodiless = self._keep = self._spoilt = False
        self._end = -1
        self._barren = self._unread = self._interims = 0

    # The exchange, as the caller drives it ---------------------------------------------------------------------------

    @property
    def closed_unsent(self) -> bool:
        """Whether a fresh connection has been closed by the vendor, of which the loop may not know yet."""
        return self.state == "dead" or bool(self._poll(_HUNG_UP).poll(0))

    @property
    def untouched(self) -> bool:
        """Whether nothing has come since the last exchange, neither read nor still in the socket: bytes or an end that
        the loop has not got to would be taken for the next answer. One system call, 0.5 us."""
        if self.state != "idle":
            return False
        if self._arrivals is None:
            self._arrivals = self._poll(select.POLLIN)
        return not self._arrivals.poll(0)

    @property
    def heard(self) -> bool:
        """Whether anything of an answer has come in this exchange."""
        return bool(self.head or self._interims)

    @property
    def wants_no_more(self) -> bool:
        """Whether the rest of a request is of no use: the vendor has gone, or refused it before its end."""
        return self.state == "dead" or (self.state != "head" and self.head[9:10] != b"2")

    def begin(self, head: bytes, body: bytes, bodiless: bool) -> None:
        """Send a request and expect its answer, which has no body whatever it says where it is `bodiless`: one to
        HEAD."""
        self.state = "head"
        self.head = b""
        self._end = -1
        self._bodiless = bodiless
        self._until_close = self._spoilt = False
        self._barren = self._unread = self._interims = 0
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
        """Return all that has come of the body since the last call."""
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
        """Let this exchange be the connection's last."""
        self._spoilt = True

    def release(self) -> None:
        """End the exchange. The connection serves another one if this one is over on both sides, else it is closed."""
        transport, home = self._transport, self._home
        if (
            self.state != "ended"
            or self._spoilt
            or not self._keep
            or self.pieces
            or transport is None
            or home is None
            or transport.is_closing()
            or transport.get_write_buffer_size()
        ):
            self.abort()
            return
        self.state = "idle"
        self.head = b""
        home.take_back(self)

    def abort(self) -> None:
        """Close the connection without a word: the vendor may hold bytes of an answer that nobody will read, which a
        close that waits for its own bytes to leave would wait for as well."""
        if self.state != "dead":
            self.fault = "unanswered" if self.state == "head" else "lost"
            self.state = "dead"
        self.pieces.clear()
        if self._transport is not None:
            self._transport.abort()

    # What the parser tells --------------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self._end >= 0:
            self._spoilt = True  # more than the answer: whose it is nobody knows

    def on_message_complete(self) -> None:
        if self._end < 0:
            self._end = len(self.pieces)
            self._keep = self._parser.should_keep_alive()

    # What the event loop tells ----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        # asyncio's own limit for plain connections; its limit under TLS is eight times as high.
        self._transport.set_write_buffer_limits(AHEAD)
        if self._home is not None:
            self._home.remember(self)

    def data_received(self, data: bytes) -> None:
        if self.state != "body":
            self._receive_other(data)
            return
        # Not in functions of their own: with cold caches, a chunk of a stream pays 0.5 us for each call.
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
            self._limit_barren(len(data))
        else:
            self._barren = 0
            take = self.signal.take
            if take is not None:  # whoever reads a stream gets each piece here, so that none is left to be read
                try:
                    more = take(self.pieces.pop() if len(self.pieces) == 1 else self.take())
                except BaseException as error:  # is raised where the reader waits, not in the event loop
                    self.signal.refuse(error)
                else:
                    if not more:
                        self.signal.refuse(None)
                return
            self._unread += len(data)
        self._tell()

    def eof_received(self) -> None:
        self._end_of_data(clean=True)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._transport = None
        home, self._home = self._home, None
        # Which holds bound methods of this object: a cycle that only the collector would free.
        del self._parser
        self._arrivals = None
        if home is not None:
            home.forget(self)
        self._end_of_data(clean=exc is None)

    def pause_writing(self) -> None:
        self.writing_held = True

    def resume_writing(self) -> None:
        self.writing_held = False
        self.signal.set()

    # The states -------------------------------------------------------------------------------------------------------

    def _receive_other(self, data: bytes) -> None:
        """Read on where the body has not begun, or nothing is expected."""
        if self.state == "head":
            self._receive_head(data)
            # As `_tell`, without its call.
            self.signal.set()
            if self._unread > AHEAD:
                self._pause()
            return
        # Nobody asked for it, or no longer. What has come of a whole answer stays.
        self._spoilt = True
        if self.state == "ended" and self._transport is not None:
            self._transport.abort()
        else:
            self.abort()

    def _tell(self) -> None:
        """Wake whoever waits."""
        self.signal.set()
        if self._unread > AHEAD:
            self._pause()

    def _receive_head(self, data: bytes) -> None:
        """Read on in the head of an answer, and in the body if that begins in the same bytes."""
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
        """Go on after a complete head, which `data` ends; `behind` bytes of it may be of the body."""
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
        # HTTP/1.0 has no chunks: the next answer may be framed as oddly (RFC 9112, 6.1).
        self._spoilt = self._spoilt or (coded and head[7:8] == b"0")
        if self._bodiless or head[9:12] in _BODILESS:
            self._spoilt = self._spoilt or self._end < 0 or behind > 0
            self.pieces.clear()
            self.state = "ended"
        elif self._end >= 0:
            # As `_complete`, without its call.
            del self.pieces[self._end :]
            self.state = "ended"
        elif not sensible:
            self._die("broken off")
        elif self.pieces:
            self._unread = behind
        else:
            # Nothing to read, so nobody would have reading begin again if it were paused.
            self._limit_barren(behind)

    def _limit_barren(self, size: int) -> None:
        self._barren += size
        if self._barren > BARREN_LIMIT:
            self._die("broken off")

    def _parse(self, data: bytes) -> bool:
        """Give bytes to the parser; returns whether they are HTTP."""
        try:
            self._parser.feed_data(data)
        except _PARSE_ERRORS:
            self._spoilt = True
            return False
        return True

    def _complete(self) -> None:
        # What the parser took for the body of another answer goes.
        del self.pieces[self._end :]
        self.state = "ended"

    def _pause(self) -> None:
        """Read no more until what has come is taken, which may be many small pieces: each has a cost of its own."""
        if not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()
            self.pieces[:] = [b"".join(self.pieces)] if self.pieces else []

    def _end_of_data(self, clean: bool) -> None:
        """The vendor has closed, or the connection broke."""
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
