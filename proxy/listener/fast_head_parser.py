"""Reads the heads of plain requests, all of which but few are. Pure: bytes in, a head or None out.

The form is far narrower than HTTP: what is read here, every parser reads the same. Anything else is left to aiohttp's
parser with the same bytes: another version, bytes beyond ASCII, a name that occurs twice, a field that frames the body
or changes the connection. The tests hold each head that is read here against what aiohttp's parser (3.14) makes of it.

One expression without state: with 4 fields it takes 2.2 us and with 17 6.0, as long as httptools with a callback for
each field (2.4, 5.7), whose findings would have to be judged besides. But for the length of the body, the head is the
same in most requests of a client: what it says is kept, which takes 1 us to find, and so is what follows from it.

Refuses request heads that aiohttp's parser accepts but another server in front might read differently (request
smuggling).

The parser of aiohttp 3.14.5 refuses the rest by itself: folded lines, two Hosts, two framings, bare line feeds
(probed in November 2026; the corpus in the tests holds both).
"""

import re
from functools import lru_cache
from typing import Final, NamedTuple

from aiohttp import HttpVersion10, HttpVersion11, hdrs
from aiohttp.http_parser import RawRequestMessage
from multidict import CIMultiDict, CIMultiDictProxy

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


MAX_PLAIN_HEAD: Final = 8000
"""Bytes of a head; fewer than aiohttp's parser takes in one line."""

KEPT_HEADS: Final = 256
MAX_KEPT_HEAD: Final = 2048
"""Heads that are kept with what they say, and bytes of one: 2 MB at most."""

_HEAD: Final = re.compile(
    rb"(GET|POST|HEAD|DELETE|OPTIONS) (/[!-\"$-~]*+) HTTP/1\.1\r\n"
    # At most as many fields as the listener takes.
    rb"((?:[!#$%&'*+.^_`|~0-9A-Za-z-]++:[\t -~]*+\r\n){1,100}+)\r\n"
)

_LEFT_TO_AIOHTTP: Final = frozenset(
    {"transfer-encoding", "upgrade", "expect", "proxy-connection", "sec-websocket-key1", "http2-settings"}
)
"""Fields that say how the body is framed, offer another protocol, or have rules in the parser."""

_KEEPS: Final = {"keep-alive": True, "close": False}

_LENGTH: Final = re.compile(r"[0-9]{1,9}")
_LENGTH_FIELD: Final = re.compile(rb"\r\n[Cc]ontent-[Ll]ength: ([0-9]{1,9})\r\n")


class HeadFindings:
    """What the rooms that a request passes have found in its head, once for all requests whose heads are equal.

    Each room has a slot of its own, empty until it has looked, and puts nothing into it that follows from anything but
    the head: neither from the table, nor from the time, the client's address or the body.
    """

    __slots__ = ("browser", "call", "takes_body")

    def __init__(self) -> None:
        self.takes_body = False
        """Whether the fields say that the body is JSON without compression."""
        self.browser: object = None
        """The rules by which no page has sent the request: `proxy.listener.cors_and_host_names`."""
        self.call: object = None
        """What is called, and by which key: `proxy.gateway.match_path`."""


class PlainHead(NamedTuple):
    """A head of `size` bytes, which a body of `length` bytes follows. `target` is in ASCII and begins with a slash.
    `headers` are all fields but the length of the body; `found` is what has been found in heads of equal bytes."""

    method: str
    target: str
    headers: CIMultiDictProxy[str]
    keep_alive: bool
    found: HeadFindings
    size: int
    length: int


def read_plain_head(data: bytes) -> PlainHead | None:
    """Return the head that the bytes begin with; None where they do not begin with a whole one in the plain form."""
    end = data.find(b"\r\n\r\n", 0, MAX_PLAIN_HEAD) + 4
    if end < 4:
        return None
    found = _LENGTH_FIELD.search(data, 0, end)
    read = _read if end > MAX_KEPT_HEAD else _kept
    if found is None:
        return read(data[:end])
    first, last = found.span(1)
    same = read(data[:first] + b"0" + data[last:end])
    if same is None:
        return None
    method, target, headers, keep_alive, findings, _, _ = same
    fields = method, target, headers, keep_alive, findings, end, int(found[1])
    return tuple.__new__(PlainHead, fields)  # what a named tuple's own function does, without a call of it


def _read(head: bytes) -> PlainHead | None:
    """Return what these bytes say, which end with the first empty line."""
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
    keep_alive = _KEEPS.get(fields.get("connection", "keep-alive").lower())
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


_kept = lru_cache(KEPT_HEADS)(_read)
