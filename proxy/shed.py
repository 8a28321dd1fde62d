"""Answers to requests that are refused at the door: under overload refusing must cost next to nothing.

Never decides who is refused, and never reads a body.
"""

from aiohttp import HttpVersion11, web

from proxy.admission import Reason
from proxy.errors import overloaded
from proxy.server import BASE_HEADERS, JSON
from proxy.surfaces.surface import Surface

BRIEF = 64 * 1024
"""Bytes of an unread body that are worth reading so that the connection can be kept."""


class ReadyResponse(web.StreamResponse):
    """An answer whose bytes stand ready. Making headers out of a mapping is most of what a small answer costs."""

    # Not the parent's, which makes those headers: of an answer the protocol asks only what stands here.
    def __init__(self, head: bytes, body: bytes, keep_alive: bool) -> None:
        self._head = head
        self._content = body
        self._keep_alive = keep_alive

    async def prepare(self, request: web.BaseRequest) -> None:
        """Send everything, and wait for a client that does not read."""
        await request.writer.write_eof(self._head if request.method == "HEAD" else self._head + self._content)

    async def write_eof(self, data: bytes = b"") -> None:
        """Everything has been sent."""


class Shedding:
    """Makes the refusals. Each surface's envelope is made once for each reason."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, Reason], tuple[bytes, bytes]] = {}

    def answer(self, surface: Surface, reason: Reason, request_id: str, keep: bool) -> ReadyResponse:
        """The refusal of a request; the connection stays after it, or it does not."""
        made = self._made.get((surface.name, reason))
        if made is None:
            made = self._made[surface.name, reason] = _made(surface, reason)
        head, body = made
        close = "" if keep else "Connection: close\r\n"
        return ReadyResponse(head + f"x-request-id: {request_id}\r\n{close}\r\n".encode("ascii"), body, keep)


def may_stay(http: web.BaseRequest) -> bool:
    """Whether the connection can serve another request after one whose body nobody read.

    What little of it has yet to come is read and thrown away by the protocol, which takes less than a new connection.
    A client that waits to be invited may send its body or the next request, and nothing tells which.
    """
    if not http.keep_alive or http.version < HttpVersion11:
        return False
    return http.content.is_eof() or ((http.content_length or BRIEF) < BRIEF and "expect" not in http.headers)


def _made(surface: Surface, reason: Reason) -> tuple[bytes, bytes]:
    """The head without its last lines, and the body."""
    facts = overloaded(reason).facts
    status, body = surface.error(facts)
    headers = {**BASE_HEADERS, "Content-Type": JSON, "Content-Length": str(len(body)), **facts.headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} Service Unavailable\r\n{lines}".encode("ascii"), body
