"""The headers of an upstream call, in the one order in which they may replace each other.

Never a socket, so that a dry run can show them.
"""

from collections.abc import Mapping
from typing import Final

from multidict import CIMultiDict

from providers.dialect import UpstreamRequest
from proxy.version import USER_AGENT

# Identity: a compressed stream cannot be split into events as it comes, and a bomb cannot be sent.
SESSION_HEADERS: Final[Mapping[str, str]] = {"User-Agent": USER_AGENT, "Accept-Encoding": "identity", "Accept": "*/*"}
"""What every call carries unless it says otherwise; `Host` and `Content-Length` follow from the URL and the body."""


def call_headers(sent: UpstreamRequest, credential: Mapping[str, str], request_id: str) -> CIMultiDict[str]:
    """A call's own headers, names in any case; `credential` is the target's, in clear for a socket, masked for people.

    The operator's come after the request's, some of which come from the client.
    """
    headers = CIMultiDict(sent.headers)
    headers.update(credential)
    headers["Content-Type"] = sent.content_type
    headers["X-Request-Id"] = request_id
    return headers
