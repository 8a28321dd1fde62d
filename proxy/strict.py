"""What is refused of a request's head although aiohttp's parser takes it: whatever another server in front might read
differently. Never a surface's rules.

The parser of aiohttp 3.14.5 refuses the rest by itself: folded lines, two Hosts, two framings, bare line feeds
(probed in November 2026; the corpus in the tests holds both).
"""

from aiohttp import HttpVersion10, HttpVersion11, hdrs
from aiohttp.http_parser import RawRequestMessage

MAX_TARGET = 2048
"""Bytes of a path and its query; the longest that means anything is a model's name of 256 characters, escaped."""


def fault(message: RawRequestMessage) -> str | None:
    """Why a request is refused with 400; None for a sound one.

    A target is a path. `http://HOST/path` is taken where HOST is also the Host header's, as RFC 9112 3.2.2 wants it: a
    rule in front may have looked at either of the two.
    """
    version = message.version
    # The parser makes no new object of the usual version.
    if version is not HttpVersion11 and version != HttpVersion10:
        return "Only HTTP/1.0 and HTTP/1.1 are spoken here."
    target = message.path
    if target[0] != "/" and target != "*" and not _ours(message):
        return "The request's target must be a path."
    if len(target) > MAX_TARGET:
        return f"The request's target is longer than {MAX_TARGET} bytes."
    if "#" in target:
        return "The request's target must not hold '#'."
    if message.chunked and message.headers.get(hdrs.TRANSFER_ENCODING, "").lower() != "chunked":
        return "The only Transfer-Encoding taken is 'chunked'."
    return None


def _ours(message: RawRequestMessage) -> bool:
    url, host = message.url, message.headers.get(hdrs.HOST, "")
    return url.scheme in ("http", "https") and url.raw_authority.lower() == host.lower() != ""
