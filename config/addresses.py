"""What kind of network address a URL or a listener names, judged from its text. Never resolves or connects."""

import ipaddress
import re
from typing import Final, Literal
from urllib.parse import SplitResult, urlsplit

Reach = Literal["loopback", "private", "public", "unknown", "forbidden"]
"""Where a host lies; a DNS name is `unknown` until it is resolved, `forbidden` is no host to call at all."""

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NAME: Final = re.compile(r"(?=.{1,253}\Z)[A-Za-z0-9_]([A-Za-z0-9_-]{0,62})(\.[A-Za-z0-9_][A-Za-z0-9_-]{0,62})*\.?")
# Resolvers read a host that ends in a number as an IPv4 address in disguise (`127.1`, `0x7f000001`, `2130706433`).
_NUMBER: Final = re.compile(r"([0-9]+|0[xX][0-9A-Fa-f]*)")
# AWS publishes its metadata service on this unique local IPv6 address; the link-local one is caught by its range.
_METADATA: Final = frozenset({ipaddress.ip_address("fd00:ec2::254")})


def reach(host: str) -> Reach:
    """Where a host name or IP literal (no brackets) lies, as far as the text says."""
    try:
        return _address_reach(ipaddress.ip_address(host))
    except ValueError:
        name = host.rstrip(".").lower()
        if not _NAME.fullmatch(host) or _NUMBER.fullmatch(name.rpartition(".")[2]):
            return "forbidden"
        return "loopback" if name == "localhost" or name.endswith(".localhost") else "unknown"


def _address_reach(address: _Address) -> Reach:
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return _address_reach(address.ipv4_mapped)
    if address.is_loopback:
        return "loopback"
    if address.is_unspecified or address.is_multicast or address.is_link_local or address in _METADATA:
        return "forbidden"
    return "public" if address.is_global else "private"


def listens_on_loopback(host: str) -> bool:
    """Whether a listener on this host can be reached from this machine only."""
    return reach(host) == "loopback"


def url_fault(url: str) -> str | None:
    """Why the text is no address to send requests to; None when it is one."""
    if not url.isascii() or not url.isprintable() or " " in url:
        return "must be an http or https address without spaces or control characters"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "is not a well-formed address (host or port)"
    return _scheme_fault(parts) or _rest_fault(url, parts) or _host_fault(parts, port)


def _scheme_fault(parts: SplitResult) -> str | None:
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return "must be an absolute http or https address such as https://llm.example.com/v1"
    return None


def _rest_fault(url: str, parts: SplitResult) -> str | None:
    if "@" in parts.netloc:
        return "may not hold a user name or password; use api_key"
    if "?" in url or "#" in url:
        return "may not hold a query or a fragment"
    if "{" in url or "}" in url:
        return "may not hold placeholders: they belong to a profile's own address, filled from url_params"
    if "\\" in url or any(step in (".", "..") for step in parts.path.split("/")):
        return "may not hold backslashes or the path steps . and .."
    return None


def _host_fault(parts: SplitResult, port: int | None) -> str | None:
    if port == 0 or parts.netloc.endswith(":"):
        return "has an empty or zero port"
    if reach(parts.hostname or "") == "forbidden":
        return "names no host to call (malformed, unspecified, multicast, link-local or metadata address)"
    return None


def address_fault(url: str, *, allow_private: bool) -> str | None:
    """Why requests may not go to this well-formed URL; None when they may.

    A DNS name is judged again when it is resolved. Until then plain http to it needs the operator's word that it is
    inside the own network.
    """
    parts = urlsplit(url)
    where = reach(parts.hostname or "")
    if where in ("loopback", "private") and not allow_private:
        return f"is a {where} address; if it is meant, add `allow_private: true` beside it"
    if parts.scheme == "http" and where == "public":
        return "https required: plain http would send prompts and keys in the clear"
    if parts.scheme == "http" and where == "unknown" and not allow_private:
        return "https required; for a server in your own network add `allow_private: true` beside it"
    return None


_DATABASE: Final = re.compile(r"(/[0-9]{0,5})?")


def redis_fault(url: str) -> str | None:
    """Why the text is no address of a Redis; None when it is one. It may hold a password, and no options: those of
    the client library would undo our limits."""
    if not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        return "must be an address of Redis without spaces, backslashes or control characters"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "is not a well-formed address (host or port; in a password write / ? # [ ] @ : as %2F and so on)"
    if "?" in url or "#" in url:
        return "may not hold options or a fragment (in a password write ? as %3F, # as %23)"
    return _redis_fault(parts, port)


def _redis_fault(parts: SplitResult, port: int | None) -> str | None:
    if parts.scheme == "unix":
        return None if not parts.hostname and len(parts.path) > 1 else "must be unix:// and the socket's whole path"
    if parts.scheme not in ("redis", "rediss") or not parts.hostname:
        return "must begin with redis://, rediss:// (TLS) or unix://, such as redis://cache.internal:6379/0"
    if not _DATABASE.fullmatch(parts.path):
        return "may hold nothing after the host but the number of a database"
    return _host_fault(parts, port)
