"""A connection of the HTTP client on a wire without a network."""

import asyncio
import socket
from dataclasses import dataclass, field

from typing_extensions import override

from proxy.http_client.http1_connection import Http1Connection

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


class Wire(asyncio.Transport):
    """The transport of a connection, with a record of its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.aborted = self.paused = False
        self.unsent = 0
        self._ends: tuple[socket.socket, socket.socket] | None = None

    @override
    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))

    @override
    def abort(self) -> None:
        self.aborted = True

    @override
    def is_closing(self) -> bool:
        return self.aborted

    @override
    def pause_reading(self) -> None:
        self.paused = True

    @override
    def resume_reading(self) -> None:
        self.paused = False

    @override
    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self.high = high

    @override
    def get_write_buffer_size(self) -> int:
        return self.unsent

    @override
    def get_extra_info(self, name: str, default: object = None) -> object:
        return self.ends[0] if name == "socket" else default

    @property
    def ends(self) -> tuple[socket.socket, socket.socket]:
        """Sockets at both ends, for code that inspects the near one. The test closes them."""
        if self._ends is None:
            self._ends = socket.socketpair()
        return self._ends


@dataclass
class Shelf:
    """The pool that connections are returned to."""

    taken_back: list[Http1Connection] = field(default_factory=list)
    open: int = 0

    def remember(self, connection: Http1Connection) -> None:
        self.open += 1

    def take_back(self, connection: Http1Connection) -> None:
        self.taken_back.append(connection)

    def forget(self, connection: Http1Connection) -> None:
        self.open -= 1


@dataclass
class Line:
    """A connection on a wire, with a request on it."""

    wire: Wire = field(default_factory=Wire)
    shelf: Shelf = field(default_factory=Shelf)
    body: bytes = b""

    def __post_init__(self) -> None:
        self.connection = Http1Connection(self.shelf, "key", 1.0)
        self.connection.connection_made(self.wire)
        self.ask()

    def ask(self, bodiless: bool = False) -> None:
        self.connection.begin(b"POST / HTTP/1.1\r\n\r\n", b"{}", bodiless)

    def feed(self, *pieces: bytes) -> "Line":
        for piece in pieces:
            if not self.wire.aborted:
                self.connection.data_received(piece)
        return self

    def read(self) -> bytes:
        self.body += self.connection.take()
        return self.body

    @property
    def reading(self) -> str:
        """Whether the vendor's bytes are read: `paused` or `resumed`."""
        return "paused" if self.wire.paused else "resumed"

    @property
    def told(self) -> tuple[str, bytes]:
        """The state, or the fault, and the whole body."""
        made = self.connection
        return made.fault if made.state == "dead" else made.state, self.body + b"".join(made.pieces)

    @property
    def reused(self) -> bool:
        """Whether the connection is returned to the pool after the response."""
        self.read()
        self.connection.release()
        return bool(self.shelf.taken_back)
