"""Answers to requests that are refused at the door: under overload refusing must cost next to nothing.

Never decides who is refused, and never reads a body.
"""

from typing import cast

from aiohttp import HttpVersion11, web

from proxy.admission import Admitted, Reason
from proxy.errors import overloaded
from proxy.ready import ReadyResponse, lines
from proxy.server import PublicHandler
from proxy.surfaces.surface import Surface

BRIEF = 64 * 1024
"""Bytes of an unread body that are worth reading so that the connection can be kept."""


class Shedding:
    """Makes the refusals. Each surface's envelope is made once for each reason."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, Reason], tuple[int, bytes, str]] = {}

    def answer(self, surface: Surface, reason: Reason, request_id: str, keep: bool) -> ReadyResponse:
        """The refusal of a request; the connection stays after it, or it does not."""
        made = self._made.get((surface.name, reason))
        if made is None:
            facts = overloaded(reason).facts
            made = self._made[surface.name, reason] = (*surface.error(facts), lines(facts.headers))
        status, body, own = made
        # An id is made here or has been found fit for a header.
        response = ReadyResponse(status, body, f"x-request-id: {request_id}\r\n{own}")
        if not keep:
            response.force_close()
        return response


def claimed(http: web.BaseRequest) -> Admitted | None:
    """The place of a request that was let in at the door."""
    return cast(PublicHandler, http.protocol).claim()


def may_stay(http: web.BaseRequest) -> bool:
    """Whether the connection can serve another request after one whose body nobody read.

    What little of it has yet to come is read and thrown away by the protocol, which takes less than a new connection.
    A client that waits to be invited may send its body or the next request, and nothing tells which.
    """
    if not http.keep_alive or http.version < HttpVersion11:
        return False
    return http.content.is_eof() or ((http.content_length or BRIEF) < BRIEF and "expect" not in http.headers)
