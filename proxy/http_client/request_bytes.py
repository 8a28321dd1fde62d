"""The head of a call as bytes. The part that all calls of a target share is built once.

It does no I/O. The last head of each method, URL and deployment is cached with its inputs. If the credential has
changed, a new head is built.
"""

import re
from dataclasses import dataclass, field
from typing import Final

from yarl import URL

from providers.dialect import UpstreamRequest
from providers.target import Target
from proxy.bounded_dict import BoundedDict
from proxy.http_client.dialer import Destination
from proxy.upstream.loop_detection import HOPS, may_lead_back, onward
from proxy.upstream.request_headers import DEFAULT_HEADERS, call_headers, sent_id

CACHED_HEADS: Final = 1024

_OURS: Final = frozenset({"x-request-id", HOPS, "content-length", "transfer-encoding", "connection"})
"""Headers that differ from call to call, or that depend on the framing."""

_SPLITS: Final = re.compile(r"[\r\n\0]")
_SPLITS_LINE: Final = re.compile(r"[\x00-\x20\x7f]")


@dataclass(frozen=True, slots=True, eq=False)
class CallHead:
    """The common part of calls with the same method, URL, target and headers: their destination, and the lines of their
    head. The lines hold the credential in clear text."""

    target: Target
    headers: dict[str, str] = field(repr=False)
    content_type: str
    to: Destination
    lines: bytes = field(repr=False)
    counts_hops: bool

    def serves(self, request: UpstreamRequest) -> bool:
        """Return whether another call with the same method, URL and deployment has the same head."""
        target, own = request.target, self.target
        return (
            self.headers == request.headers
            and self.content_type == request.content_type
            and (
                target is own
                or (
                    target.credential == own.credential
                    and target.profile is own.profile
                    and target.base_url == own.base_url
                    and target.allow_private == own.allow_private
                    and target.authorities == own.authorities
                    and target.retries.safety == own.retries.safety
                )
            )
        )

    def bytes_for(self, request: UpstreamRequest, request_id: str, fresh: bool) -> bytes:
        """Return the complete head of a call. If `fresh` is set, the head requests that the vendor close the connection
        after its response."""
        if ":" in request_id:  # an id without a colon is sent unchanged
            request_id = sent_id(request_id, self.target)
        if not request_id.isprintable():
            raise ValueError("a request id that splits the head")
        more = f"{HOPS}: {onward()}\r\n" if self.counts_hops else ""
        if fresh:
            more += "Connection: close\r\n"
        length = len(request.body) if request.upload is None else request.upload.length
        if length or request.method != "GET":
            more += f"Content-Length: {length}\r\n"
        return self.lines + f"X-Request-Id: {request_id}\r\n{request.trace}{more}\r\n".encode()


class CallHeads:
    """The cached heads."""

    __slots__ = ("_cached",)

    def __init__(self) -> None:
        self._cached: BoundedDict[tuple[str, str, str], CallHead] = BoundedDict(CACHED_HEADS)

    def of(self, request: UpstreamRequest) -> CallHead:
        """Return the head of a call."""
        key = (request.url, request.target.label, request.method)
        cached = self._cached.get(key)
        if cached is None or not cached.serves(request):
            cached = self._cached[key] = _make_head(request)
        return cached


def _make_head(request: UpstreamRequest) -> CallHead:
    target, url = request.target, URL(request.url, encoded=True)
    headers = call_headers(request, target.credential.headers(), "")
    lines = [f"{name}: {value}" for name, value in headers.items() if name.lower() not in _OURS]
    lines += [f"{name}: {value}" for name, value in DEFAULT_HEADERS.items() if name not in headers]
    if "host" not in headers:
        lines.insert(0, f"Host: {url.host_port_subcomponent}")
    # The path is encoded already. yarl would unquote characters that need no quoting, but a signature covers the path
    # as written.
    start = f"{request.method} {url.raw_path_qs} HTTP/1.1"
    if any(map(_SPLITS.search, lines)) or _SPLITS_LINE.search(url.raw_path_qs):
        raise ValueError("a line of a head that is not one line")
    return CallHead(
        target,
        dict(request.headers),
        request.content_type,
        Destination(
            url.raw_host or "",
            url.port or 0,
            url.scheme == "https",
            target.allow_private,
            target.authorities,
            target.retries.safety == "safe",
        ),
        "".join(f"{line}\r\n" for line in (start, *lines)).encode(),
        may_lead_back(target),
    )
