"""Builds the headers of a call to a vendor, with their precedence. The module opens no socket, so that a dry run can
show the headers."""

from collections.abc import Iterable, Mapping
from typing import Final

from multidict import CIMultiDict

from providers.client_extras.hosts_paths_and_code import names_address
from providers.dialect import UpstreamRequest
from providers.target import Target
from proxy.upstream.loop_detection import HOPS, may_lead_back, onward
from proxy.version import USER_AGENT

# `identity` is requested because a compressed stream cannot be split into events while it arrives, and because it
# excludes decompression bombs.
DEFAULT_HEADERS: Final[Mapping[str, str]] = {"User-Agent": USER_AGENT, "Accept-Encoding": "identity", "Accept": "*/*"}
"""The default headers of every call. `Host` and `Content-Length` follow from the URL and the body."""

_LISTS: Final = frozenset({"anthropic-beta"})
"""Headers that list a vendor's switches. Adding one entry must not remove the others."""


def call_headers(sent: UpstreamRequest, credential: Mapping[str, str], request_id: str) -> CIMultiDict[str]:
    """Return a call's headers, with names in any case. `credential` holds the headers of the target's credential. They
    are in clear text for a socket, and masked for people.

    The operator's headers replace headers of the request, some of which come from the client. Lists are joined.
    """
    headers = CIMultiDict(sent.headers)
    lists = {name: headers.getall(name) for name in _LISTS if name in headers}
    headers.update(credential)
    for name, lines in lists.items():
        headers[name] = _joined([*headers.getall(name), *lines])
    headers["Content-Type"] = sent.content_type
    if sent.upload is not None:
        headers["Content-Length"] = str(sent.upload.length)
    headers["X-Request-Id"] = sent_id(request_id, sent.target)
    if may_lead_back(sent.target):
        headers[HOPS] = onward()
    return headers


def sent_id(request_id: str, target: Target) -> str:
    """Return a request's id in the form that is sent to a target. An id that contains an address is changed for
    engines, because vLLM's connectors for disaggregated serving parse the addresses of their peers from this header."""
    if ":" in request_id and target.is_engine and names_address(request_id):
        return request_id.replace(":", "-")
    return request_id


TRACE_HEADERS: Final = frozenset({"traceparent", "tracestate"})
"""Trace headers, which the trace of the request replaces. A trace that the client adds to a single call would otherwise
bypass the gateway's span."""


def _joined(lines: Iterable[str]) -> str:
    """Return comma-separated lists as one, each entry once."""
    entries = [entry.strip() for line in lines for entry in line.split(",")]
    return ",".join(dict.fromkeys(filter(None, entries)))
