"""Responses of an overloaded gateway, prepared once for each surface and reason, since refusing must cost little."""

import time

from aiohttp import HttpVersion11, web

from proxy.errors import OverloadReason, overloaded
from proxy.listener.buffered_response import BufferedResponse, header_lines, response_head
from proxy.surfaces.registry import ID_HEADERS
from proxy.surfaces.surface import Surface

DRAIN_BYTES = 64 * 1024
"""The most bytes of an unread body that are read and dropped so that the connection can stay open."""

_ID_PLACE = "x" * 24


class RefusalResponse:
    """The response to a surface's requests that are refused for one reason."""

    __slots__ = ("_around_ids", "_body", "_headers", "_ids", "_second", "reason", "status", "surface")

    def __init__(self, surface: Surface, reason: OverloadReason) -> None:
        facts = overloaded(reason).facts
        self.status, self._body = surface.error(facts)
        self._headers = header_lines(facts.headers)
        self._ids = ["x-request-id", *(ID_HEADERS[name] for name in ID_HEADERS if name == surface.name)]
        self._second = -1
        self._around_ids: list[bytes] = []
        self.surface = surface.name
        self.reason = reason

    def response(self, request_id: str, keep: bool) -> BufferedResponse:
        """Return the response for aiohttp. With `keep` the connection stays open. The id must be a valid header
        value."""
        ids = header_lines(dict.fromkeys(self._ids, request_id))
        response = BufferedResponse(self.status, self._body, ids + self._headers)
        if not keep:
            response.force_close()
        return response

    def encode(self, request_id: str) -> bytes:
        """Return the bytes that `response` sends over HTTP/1.1 on a connection that stays open."""
        if (second := int(time.time())) != self._second:
            self._second = second
            headers = header_lines(dict.fromkeys(self._ids, _ID_PLACE)) + self._headers
            text = response_head(HttpVersion11, self.status, headers, len(self._body), keep=True) + self._body
            self._around_ids = text.split(_ID_PLACE.encode())
        return request_id.encode().join(self._around_ids)


class RefusalResponses:
    """The prepared responses. Each is made when it is first needed."""

    __slots__ = ("_prepared",)

    def __init__(self) -> None:
        self._prepared: dict[tuple[str, OverloadReason], RefusalResponse] = {}

    def get(self, surface: Surface, reason: OverloadReason) -> RefusalResponse:
        """Return the response of a surface for a reason."""
        prepared = self._prepared.get((surface.name, reason))
        if prepared is None:
            prepared = self._prepared[surface.name, reason] = RefusalResponse(surface, reason)
        return prepared


def may_keep_connection(http: web.BaseRequest) -> bool:
    """Return whether the connection can serve another request after a request whose body was not read.

    The protocol reads and drops the rest of a short body, which costs less than a new connection. After `Expect:
    100-continue` either the body or the next request may follow, and they cannot be distinguished.
    """
    if not http.keep_alive or http.version < HttpVersion11:
        return False
    return http.content.is_eof() or (
        (http.content_length or DRAIN_BYTES) < DRAIN_BYTES and "expect" not in http.headers
    )
