"""Parses the heads of plain requests, as nearly all requests are. Pure: it takes bytes and returns a head or `None`.

The plain form is far narrower than HTTP: every parser reads it in the same way. All other heads are left to aiohttp's
parser: heads with another version, bytes beyond ASCII, a repeated name, or a field that frames the body or changes the
connection. The tests compare each parsed head with the result of aiohttp's parser (3.14).

One regular expression without state takes 2.2 us for 4 fields and 6.0 us for 17. httptools with a callback for each
field takes as long (2.4 us, 5.7 us), and its results would have to be checked as well. Except for the body's length,
most requests of a client have the same head. So the parsed head and the findings about it are cached. A look-up takes 1
us.

This module also refuses heads that aiohttp's parser accepts but a server in front might read differently (request
smuggling).

The parser of aiohttp 3.14.5 itself refuses folded lines, two Hosts, two framings and bare line feeds (probed in
November 2026; the corpus in the tests holds both kinds).
"""

import re
from functools import lru_cache
from typing import Final, NamedTuple

from aiohttp import HttpVersion10, HttpVersion11, hdrs
from aiohttp.http_parser import RawRequestMessage
from multidict import CIMultiDict, CIMultiDictProxy

MAX_TARGET = 2048
"""The most bytes of a path and its query. The longest useful one holds an escaped model name of 256 characters."""


def head_fault(message: RawRequestMessage) -> str | None:
    """Return why a request is refused with 400; `None` if it is valid.

    The target must be a path, or `http://HOST/path` whose HOST equals the Host header (RFC 9112 3.2.2), since a proxy
    in front may have read either of the two.
    """
    version = message.version
    # The parser reuses the constant for HTTP/1.1, so the identity check usually suffices.
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


MAX_PLAIN_HEAD: Final = 8000
"""The most bytes of a head that is parsed here. aiohttp's parser accepts more in a single line."""

CACHED_HEADS: Final = 256
MAX_CACHED_HEAD: Final = 2048
"""The most heads that are cached in parsed form, and the most bytes of one of them. Together they take at most 2 MB."""

_HEAD: Final = re.compile(
    rb"(GET|POST|HEAD|DELETE|OPTIONS) (/[!-\"$-~]*+) HTTP/1\.1\r\n"
    # At most as many fields as the listener accepts.
    rb"((?:[!#$%&'*+.^_`|~0-9A-Za-z-]++:[\t -~]*+\r\n){1,100}+)\r\n"
)

_LEFT_TO_AIOHTTP: Final = frozenset(
    {"transfer-encoding", "upgrade", "expect", "proxy-connection", "sec-websocket-key1", "http2-settings"}
)
"""Fields that frame the body, offer another protocol, or have rules in the parser."""

_KEEPS_ALIVE: Final = {"keep-alive": True, "close": False}

_LENGTH: Final = re.compile(r"[0-9]{1,9}")
_LENGTH_FIELD: Final = re.compile(rb"\r\n[Cc]ontent-[Ll]ength: ([0-9]{1,9})\r\n")


class HeadFindings:
    """The findings of packages about a head, made once for all requests with equal heads.

    Each package has its own field, which is empty until the package has set it. The value must depend on the head
    alone: not on the configuration, the time, the client's address or the body.
    """

    __slots__ = ("browser", "call", "takes_body")

    def __init__(self) -> None:
        self.takes_body = False
        """Whether the header fields declare a body of JSON without compression."""
        self.browser: object = None
        """The browser guard's lists that permit the request (`proxy.listener.cors_and_host_names`)."""
        self.call: object = None
        """The called endpoint and the digest of the key (`proxy.gateway.match_path`)."""


class PlainHead(NamedTuple):
    """A head of `size` bytes, followed by a body of `length` bytes. `target` is in ASCII and begins with a slash.
    `headers` are all fields except Content-Length. `found` are the findings about heads with equal bytes."""

    method: str
    target: str
    headers: CIMultiDictProxy[str]
    keep_alive: bool
    found: HeadFindings
    size: int
    length: int


def read_plain_head(data: bytes) -> PlainHead | None:
    """Return the head at the beginning of the bytes; `None` if they do not begin with a complete head in the plain
    form."""
    end = data.find(b"\r\n\r\n", 0, MAX_PLAIN_HEAD) + 4
    if end < 4:
        return None
    found = _LENGTH_FIELD.search(data, 0, end)
    read = _read if end > MAX_CACHED_HEAD else _read_cached
    if found is None:
        return read(data[:end])
    first, last = found.span(1)
    same = read(data[:first] + b"0" + data[last:end])
    if same is None:
        return None
    method, target, headers, keep_alive, findings, _, _ = same
    fields = method, target, headers, keep_alive, findings, end, int(found[1])
    return tuple.__new__(PlainHead, fields)  # does the same as the named tuple's constructor, without its cost


def _read(head: bytes) -> PlainHead | None:
    """Return the parsed head of bytes that end with the first empty line; `None` if it is not in the plain form."""
    found = _HEAD.fullmatch(head)
    if found is None:
        return None
    method, target, lines = found.groups()
    fields: dict[str, str] = {}
    for line in lines.decode("ascii").splitlines():
        name, _, value = line.partition(":")
        name = name.lower()
        if name in fields:
            return None
        fields[name] = value.strip(" \t")
    keep_alive = _KEEPS_ALIVE.get(fields.get("connection", "keep-alive").lower())
    length = fields.pop("content-length", "0")
    if (
        keep_alive is None
        or len(target) > MAX_TARGET
        or "host" not in fields
        or not _LENGTH.fullmatch(length)
        or not _LEFT_TO_AIOHTTP.isdisjoint(fields)
    ):
        return None
    headers = CIMultiDictProxy(CIMultiDict(fields))
    texts = method.decode("ascii"), target.decode("ascii")
    return PlainHead(*texts, headers, keep_alive, HeadFindings(), len(head), int(length))


_read_cached = lru_cache(CACHED_HEADS)(_read)
