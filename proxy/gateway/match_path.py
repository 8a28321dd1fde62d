"""Resolves a URL path to its surface and actions, and reads the other fields of a head that the gateway needs."""

import re
from collections.abc import Container
from typing import Final

from aiohttp import web

from providers.unified_request import Operation, Task
from proxy.listener.client_request import Incoming
from proxy.receipt.server_timing import RECEIPT_HEADER
from proxy.request_record import given_id
from proxy.surfaces.registry import NAMING, PATHS, VERSION_HEADER, PathMatch, for_anthropics_client, surface_for_path
from proxy.surfaces.surface import Action
from proxy.teams.client_keys import key_digest
from proxy.upstream.loop_detection import HOPS

TIMEOUT_HEADER: Final = "x-request-timeout"
"""The header with the seconds within which the client wants the response."""

_SLASHES = re.compile(r"/{2,}")


class RequestHead:
    """The fields of a head that the gateway reads, read once for all requests with equal heads (`HeadFindings`): most
    requests of a client differ only in the body and its length, and reading the fields would take 6 us for each.

    So it holds nothing that depends on the configuration or the time. It holds the digest of the key, with which each
    request finds its team in the current configuration. `action` is `None` if the path or the method is not served,
    `given_id` is `None` if the client gave no id that is fit for headers and logs. `from_gateway` is set if another
    gateway of this kind sent the request, `aside` if no deployment is called for it. `receipt` is the header that
    requests a receipt, `timeout` the header with the seconds in which the client wants the response.
    """

    __slots__ = (
        *("_digest", "_digested", "action", "aside", "from_gateway", "given_id", "match", "path"),
        *("receipt", "timeout"),
    )

    def __init__(self, http: web.BaseRequest, path: str) -> None:
        headers = http.headers
        self.path = path
        self.match = resolve_path(path, headers)
        self.action: Action | None = self.match.methods.get(http.method)
        self.aside = not isinstance(self.action, Operation | Task)
        self.from_gateway = HOPS in headers
        self.given_id = given_id(headers)
        self.receipt = headers.get(RECEIPT_HEADER)
        self.timeout = headers.get(TIMEOUT_HEADER)
        self._digest: str | None = None
        self._digested = False

    def key_digest(self, http: web.BaseRequest) -> str | None:
        """Return the digest of the key of a request with this head. Raises as `client_keys.key_digest` does."""
        if not self._digested:
            self._digest = key_digest(http.headers, self.match.surface.key_headers)
            self._digested = True
        return self._digest


def head_of(http: web.BaseRequest) -> RequestHead:
    """Return the fields of a request's head that the gateway reads."""
    incoming: Incoming = http  # type: ignore[assignment]  # listeners create only Incoming
    read = incoming.found.call
    if not isinstance(read, RequestHead):
        read = incoming.found.call = RequestHead(http, incoming.safe_path)
    return read


def resolve_path(path: str, headers: Container[str] = ()) -> PathMatch:
    """Return the match of a path as `proxy.listener.http_connection.path_of` returns it. The match of an unknown path
    has no methods. If several APIs share a path, the headers decide.

    Repeated slashes collapse, since clients join base URLs carelessly. An escaped slash separates no segments: it is
    part of a name, or the path is unknown.
    """
    match = PATHS.get(path) or _normal_match(path)
    return for_anthropics_client(match) if "GET" in match.methods and VERSION_HEADER in headers else match


def _normal_match(path: str) -> PathMatch:
    clean = _SLASHES.sub("/", path)
    match = PATHS.get(clean) or PATHS.get(clean.rstrip("/"))
    if match is not None:
        return match
    for naming in NAMING:
        name = naming.name_in(clean)
        if name is not None:
            tail = name.replace("%2F", "/").replace("%25", "%")
            return PathMatch(naming.match.surface, clean, naming.match.methods, tail)
    return PathMatch(surface_for_path(clean), clean)
