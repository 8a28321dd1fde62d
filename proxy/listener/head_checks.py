"""Refuses request heads that aiohttp's parser accepts but another server in front might read differently (request
smuggling).

The parser of aiohttp 3.14.5 refuses the rest by itself: folded lines, two Hosts, two framings, bare line feeds
(probed in November 2026; the corpus in the tests holds both).
"""

from aiohttp import HttpVersion10, HttpVersion11, hdrs
from aiohttp.http_parser import RawRequestMessage

MAX_TARGET = 2048
"""Bytes of a path and its query; the longest useful one holds an escaped model name of 256 characters."""


def head_fault(message: RawRequestMessage) -> str | None:
    """Return why a request is refused with 400; None for a sound one.

    The target must be a path, or `http://HOST/path` where HOST equals the Host header (RFC 9112 3.2.2): a rule in front
    may have read either of the two.
    """
    version = message.version
    # The parser reuses the constant for HTTP/1.1, so identity is the usual case.
    if version is not HttpVersion11 and version != HttpVersion10:
        return "Only HTTP/1.0 and HTTP/1.1 are spoken here."
    target = message.path
    if target[0] != "/" and target != "*" and not _names_host(message):
        return "The request's target must be a path."
    if len(target) > MAX_TARGET:
        return f"The request's target is longer than {MAX_TARGET} bytes."
    if "#" in target:
        return "The request's target must not hold '#'."
    if message.chunked and message.headers.get(hdrs.TRANSFER_ENCODING, "").lower() != "chunked":
        return "The only Transfer-Encoding taken is 'chunked'."
    return None


def _names_host(message: RawRequestMessage) -> bool:
    url, host = message.url, message.headers.get(hdrs.HOST, "")
    return url.scheme in ("http", "https") and url.raw_authority.lower() == host.lower() != ""
