"""The headers of an upstream call, and which replace which. Opens no socket, so that a dry run can show them."""

from collections.abc import Iterable, Mapping
from typing import Final

from multidict import CIMultiDict

from providers.client_extras.hosts_paths_and_code import names_address
from providers.dialect import UpstreamRequest
from providers.target import Target
from proxy.upstream.loop_detection import HOPS, may_lead_back, onward
from proxy.version import USER_AGENT

# Identity: a compressed stream cannot be split into events as it comes, and a bomb cannot be sent.
DEFAULT_HEADERS: Final[Mapping[str, str]] = {"User-Agent": USER_AGENT, "Accept-Encoding": "identity", "Accept": "*/*"}
"""Sent with every call unless it has its own; `Host` and `Content-Length` follow from the URL and the body."""

_LISTS: Final = frozenset({"anthropic-beta"})
"""Headers that list switches of a vendor: turning one on must not turn off the others."""


def call_headers(sent: UpstreamRequest, credential: Mapping[str, str], request_id: str) -> CIMultiDict[str]:
    """Return a call's headers, names in any case; `credential` holds the target's, in clear for a socket, masked for
    people.

    The operator's replace those of the request, some of which come from the client; lists are joined.
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
    """Return a request's id as a target is sent it: one that names an address does not reach an engine as such. vLLM's
    connectors for disaggregated serving read the addresses of their peers out of this header."""
    if ":" in request_id and target.is_engine and names_address(request_id):
        return request_id.replace(":", "-")
    return request_id


TRACE_HEADERS: Final = frozenset({"traceparent", "tracestate"})
"""What a client says in them of a trace for one call alone gives way to the trace of its request, which would lead past
the gateway otherwise."""


def _joined(lines: Iterable[str]) -> str:
    """Return comma-separated lists as one, each entry once."""
    entries = [entry.strip() for line in lines for entry in line.split(",")]
    return ",".join(dict.fromkeys(filter(None, entries)))
