"""Classify the network address of a URL or listener from its text alone. Never resolves or connects."""

import ipaddress
import re
from collections.abc import Iterable
from typing import Final, Literal
from urllib.parse import SplitResult, urlsplit

Reach = Literal["loopback", "private", "public", "unknown", "forbidden"]
"""The network that a host lies in. A DNS name is `unknown` until it is resolved. A `forbidden` host is never called."""

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_NAME: Final = re.compile(r"(?=.{1,253}\Z)[A-Za-z0-9_]([A-Za-z0-9_-]{0,62})(\.[A-Za-z0-9_][A-Za-z0-9_-]{0,62})*\.?")
# Resolvers read a host that ends in a number as an IPv4 address (`127.1`, `0x7f000001`, `2130706433`).
_NUMBER: Final = re.compile(r"([0-9]+|0[xX][0-9A-Fa-f]*)")
_NEVER_CALLED: Final = tuple(
    map(
        ipaddress.ip_network,
        (
            "0.0.0.0/8",  # RFC 1122: this host; Linux connects 0.0.0.0 to itself
            "255.255.255.255",
            "100.100.100.200",  # metadata: Alibaba Cloud, within the range of carrier-grade NAT
            "168.63.129.16",  # Azure's wire server, a public address at which the virtual machine's host responds
            "192.0.0.192",  # metadata: Oracle Cloud, classic
            "fd00:ec2::/32",  # metadata and pod identities: AWS
            "fd00:42::42",  # metadata: Scaleway
            "fd00:c1::a9fe:a9fe",  # metadata: Oracle Cloud
            "fd20:ce::254",  # metadata: Google Cloud
        ),
    )
)
"""Single addresses and networks that are never called, since cloud metadata services return the machine's credentials.
Sources: the providers' pages on instance metadata, November 2026."""

_GLOBAL_UNICAST: Final = ipaddress.IPv6Network("2000::/3")
"""The IPv6 addresses that IANA allocates for the internet. `is_global` is also true for addresses outside this
network."""

_RESERVED: Final = tuple(
    map(
        ipaddress.ip_network,
        (
            "192.0.0.0/24",  # IETF protocol assignments, RFC 6890
            "192.88.99.0/24",  # relays of 6to4, RFC 7526
            "3fff::/20",  # documentation, RFC 9637
        ),
    )
)
"""Networks that are not global, though `is_global` is true for them in some versions of Python."""

_NAT64: Final = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("64:ff9b:1::/48"))
"""The prefixes of RFC 6052 and, for prefixes that the network chooses, of RFC 8215. An IPv6-only network reaches IPv4
hosts by them, so such an address is classified by the IPv4 address that it embeds."""

_TEREDO: Final = ipaddress.IPv6Network("2001::/32")
"""Tunnels, RFC 4380: the address embeds a relay's address, and a client's address with its bits inverted."""

_EMBEDDING: Final[tuple[tuple[ipaddress.IPv6Network, tuple[int, ...]], ...]] = tuple(
    (ipaddress.IPv6Network(network), lengths)
    for network, lengths in (
        ("::ffff:0:0:0/96", (96,)),  # IPv4-translated, RFC 2765
        ("::/96", (96,)),  # IPv4-compatible, RFC 4291 2.5.5.1
        (_NAT64[0], (96,)),
        (_NAT64[1], (48, 56, 64, 96)),
        ("2002::/16", (16,)),  # 6to4, RFC 3056
    )
)
"""Networks whose addresses embed an IPv4 address, each with the possible lengths in bits of the prefix before it."""

_ISATAP: Final = frozenset({0x00005EFE, 0x02005EFE})
"""The third 32 bits of a tunnel address whose last 32 bits are an IPv4 address (RFC 5214)."""

_REACHES_BY_RISK: Final[tuple[Reach, ...]] = ("public", "private", "forbidden")
"""Kinds of reach in ascending order of risk. An address that embeds others has the riskiest reach of all of them."""


def reach(host: str) -> Reach:
    """Classify a host name or IP literal (without brackets)."""
    try:
        return _address_reach(ipaddress.ip_address(host))
    except ValueError:
        name = host.rstrip(".").lower()
        if not _NAME.fullmatch(host) or _NUMBER.fullmatch(name.rpartition(".")[2]):
            return "forbidden"
        return "loopback" if name == "localhost" or name.endswith(".localhost") else "unknown"


def _address_reach(address: _Address) -> Reach:
    if isinstance(address, ipaddress.IPv4Address):
        return _own_reach(address, address.is_global)
    if address.ipv4_mapped is not None:
        return _address_reach(address.ipv4_mapped)
    inner = _embedded_addresses(address)
    translated = any(address in network for network in _NAT64)
    tunnelled = any(address in network for network, _ in _EMBEDDING)
    own = _own_reach(address, translated or (not tunnelled and address.is_global and address in _GLOBAL_UNICAST))
    return max((own, *map(_reach_through_tunnel, inner)), key=_REACHES_BY_RISK.index) if inner else own


def _own_reach(address: _Address, public: bool) -> Reach:
    """Classify an address, ignoring an embedded one. `public` is the result for an address of no special kind: true for
    `public`, false for `private`."""
    if address.is_loopback:
        return "loopback"
    if address.is_unspecified or address.is_multicast or address.is_link_local:
        return "forbidden"
    if _within(address, _NEVER_CALLED):
        return "forbidden"
    return "public" if public and not _within(address, _RESERVED) else "private"


def _within(address: _Address, networks: Iterable[_Network]) -> bool:
    return any(address in network for network in networks if network.version == address.version)


def _reach_through_tunnel(address: ipaddress.IPv4Address) -> Reach:
    """Classify an embedded address. A loopback address is `forbidden`: it is the relay's, not this machine's."""
    found = _address_reach(address)
    return "forbidden" if found == "loopback" else found


def _embedded_addresses(address: ipaddress.IPv6Address) -> tuple[ipaddress.IPv4Address, ...]:
    """Return the IPv4 addresses that an IPv6 address embeds, one for each possible length of the prefix."""
    if address.is_loopback or address.is_unspecified:
        return ()
    if address in _TEREDO:
        bits = int(address)
        return ipaddress.IPv4Address(bits >> 64 & 0xFFFFFFFF), ipaddress.IPv4Address(~bits & 0xFFFFFFFF)
    for network, lengths in _EMBEDDING:
        if address in network:
            found = tuple(read for length in lengths if (read := _embedded_after(int(address), length)) is not None)
            # The network's prefix may have any of these lengths. A wrong length gives a.0.0.0 or 0.b.c.d.
            return tuple(each for each in found if int(each) >> 24 and int(each) & 0xFFFFFF) or found
    if int(address) >> 32 & 0xFFFFFFFF in _ISATAP:
        return (ipaddress.IPv4Address(int(address) & 0xFFFFFFFF),)
    return ()


def _embedded_after(bits: int, length: int) -> ipaddress.IPv4Address | None:
    """Return the IPv4 address after a prefix of `length` bits; `None` if a bit is set that RFC 6052 requires to be
    zero. From 48 bits on, the IPv4 address skips bits 64 to 71, and the rest of the IPv6 address is zero."""
    if length in (16, 96):
        return ipaddress.IPv4Address(bits >> (96 - length) & 0xFFFFFFFF)
    if bits >> 56 & 0xFF or bits & ((1 << (88 - length)) - 1):
        return None
    joined = (bits >> 64) << 56 | bits & ((1 << 56) - 1)
    return ipaddress.IPv4Address(joined >> (88 - length) & 0xFFFFFFFF)


def listens_on_loopback(host: str) -> bool:
    """Return whether only this machine can reach a listener on this host."""
    return reach(host) == "loopback"


def url_fault(url: str) -> str | None:
    """Return why requests cannot be sent to this text as an address; `None` if they can."""
    if not url.isascii() or not url.isprintable() or " " in url:
        return "must be an http or https address without spaces or control characters"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "is not a well-formed address (host or port)"
    return _scheme_fault(parts) or _forbidden_part_fault(url, parts) or _host_fault(parts, port)


def _scheme_fault(parts: SplitResult) -> str | None:
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return "must be an absolute http or https address such as https://llm.example.com/v1"
    return None


def _forbidden_part_fault(url: str, parts: SplitResult) -> str | None:
    if "@" in parts.netloc:
        return "may not hold a user name or password; use api_key"
    if "?" in url or "#" in url:
        return "may not hold a query or a fragment"
    if "{" in url or "}" in url:
        return "may not hold placeholders: they belong to a profile's own address, filled from url_params"
    if "\\" in url or any(step in (".", "..") for step in parts.path.split("/")):
        return "may not hold backslashes or the path steps . and .."
    return None


_NO_HOST: Final = "names no host to call (malformed, unspecified, multicast, link-local or metadata address)"


def _host_fault(parts: SplitResult, port: int | None) -> str | None:
    if port == 0 or parts.netloc.endswith(":"):
        return "has an empty or zero port"
    if reach(parts.hostname or "") == "forbidden":
        return _NO_HOST
    return None


def address_fault(url: str, *, allow_private: bool) -> str | None:
    """Return why requests may not go to this well-formed URL; `None` if they may.

    A DNS name is checked again when it is resolved. Until then, plain http to a DNS name needs `allow_private`.
    """
    parts = urlsplit(url)
    network = reach(parts.hostname or "")
    if network == "forbidden":
        return _NO_HOST
    if network in ("loopback", "private") and not allow_private:
        return f"is a {network} address; to allow it, add `allow_private: true` beside it"
    if parts.scheme == "http" and network == "public":
        return "https required: plain http would send prompts and keys in the clear"
    if parts.scheme == "http" and network == "unknown" and not allow_private:
        return "https required; for a server in your own network add `allow_private: true` beside it"
    return None


_DATABASE_PATH: Final = re.compile(r"(/[0-9]{0,5})?")


def redis_fault(url: str) -> str | None:
    """Return why the text is not a Redis address; `None` if it is one. The address may hold a password but no options:
    options of the client library would override the gateway's limits."""
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
        return None if not parts.hostname and len(parts.path) > 1 else "must be unix:// and the socket's absolute path"
    if parts.scheme not in ("redis", "rediss") or not parts.hostname:
        return "must begin with redis://, rediss:// (TLS) or unix://, such as redis://cache.internal:6379/0"
    if not _DATABASE_PATH.fullmatch(parts.path):
        return "may hold nothing after the host except the number of a database"
    return _host_fault(parts, port)


_MOST_PATH_CHARACTERS: Final = 1024


def ledger_fault(url: str) -> str | None:
    """Return why the text is not the address of a ledger; `None` if it is one. A PostgreSQL address may hold a password
    and options of its client library, such as sslmode."""
    if url.startswith("sqlite:"):
        return _file_fault(url.removeprefix("sqlite:"))
    if not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        return "must be sqlite:FILE, postgresql://… or off, without spaces, backslashes or control characters"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "is not a well-formed address (host or port; in a password write / ? # [ ] @ : as %2F and so on)"
    return _postgres_fault(parts, port)


def _postgres_fault(parts: SplitResult, port: int | None) -> str | None:
    if parts.scheme not in ("postgresql", "postgres"):
        return "must be sqlite:FILE, postgresql://… or off, such as postgresql://dragoman@db.internal/ledger"
    if parts.fragment:
        return "may not hold a fragment (in a password write # as %23)"
    if not parts.hostname:
        return None if "host=" in parts.query else "names no host (for a socket add ?host=/its/folder)"
    return _host_fault(parts, port)


def _file_fault(path: str) -> str | None:
    if path.startswith("//"):
        return "is written sqlite:FILE, with the file's path directly after the colon"
    if not path or len(path) > _MOST_PATH_CHARACTERS or not path.isprintable() or path.endswith("/"):
        return "must name a file after sqlite:, in printable characters"
    if path.startswith(":"):
        return "must name a file after sqlite:; a ledger in memory would be lost with the process"
    return None
