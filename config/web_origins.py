"""Parse and match the Host and Origin headers of browsers, and normalise the configured patterns for them."""

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from config.addresses import reach

ANY_ORIGIN: Final = "*"

_AUTHORITY: Final = re.compile(r"(?:\[([0-9a-f:.]{2,45})\]|([^\s:\[\]@/,]{1,254}))(?::[0-9]{1,5})?")
_WEB_ORIGIN: Final = re.compile(r"(https?)://(\[[0-9a-f:.]+\]|[^\s:\[\]@/?#*]+)(?::([0-9]{1,5}|\*))?")
# `chrome-extension://ID`, `vscode-webview://ID`, `tauri://localhost`, and Electron's `file://`, which has no host.
_APP_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]{0,31}://(\*|[A-Za-z0-9._~-]{0,253}(:[0-9]{1,5})?)")
_DEFAULT_PORT: Final = {"http": "80", "https": "443"}


def host_of(authority: str) -> str | None:
    """Return the host of a Host header in lower case, without port, brackets or trailing dot; `None` if it is
    malformed."""
    found = _AUTHORITY.fullmatch(authority.lower())
    if found is None:
        return None
    return found[1] or found[2].removesuffix(".")


@dataclass(frozen=True, slots=True)
class HostPatterns:
    """The configured host patterns: whole names and addresses, and `.domain` for each `*.domain`."""

    names: frozenset[str]
    suffixes: tuple[str, ...]

    @classmethod
    def of(cls, patterns: Iterable[str]) -> "HostPatterns":
        listed = tuple(patterns)
        names = frozenset(each for each in listed if not each.startswith("*"))
        return cls(names, tuple(each[1:] for each in listed if each.startswith("*")))

    def match(self, host: str) -> bool:
        """Return whether a host, as `host_of` returns it, matches a pattern."""
        return host in self.names or host.endswith(self.suffixes)


@dataclass(frozen=True, slots=True)
class OriginPatterns:
    """The configured origin patterns: whole origins, `scheme://host` for any port, and `scheme://` for any host of a
    scheme other than http and https. `any` is true if `*` is configured."""

    any: bool
    whole: frozenset[str]
    any_port: frozenset[str]
    any_host: tuple[str, ...]

    @classmethod
    def of(cls, patterns: Iterable[str]) -> "OriginPatterns":
        listed = frozenset(patterns)
        any_port = frozenset(each[:-2] for each in listed if each.endswith(":*"))
        any_host = tuple(each[:-1] for each in sorted(listed) if each.endswith("//*"))
        return cls(ANY_ORIGIN in listed, listed, any_port, any_host)

    def match(self, origin: str) -> bool:
        """Return whether the value of an Origin header matches a pattern other than `*`."""
        if origin == ANY_ORIGIN:
            return False
        if origin in self.whole:
            return True
        if self.any_port and (found := _WEB_ORIGIN.fullmatch(origin)) and found[3] != "*":
            return f"{found[1]}://{found[2]}" in self.any_port
        return origin.startswith(self.any_host) and bool(_APP_ORIGIN.fullmatch(origin))


def normal_host(value: str) -> str:
    """Normalise a configured host pattern. Raises ValueError with the message for the operator."""
    lowered = value.lower().removesuffix(".")
    bare = lowered[1:-1] if lowered.startswith("[") and lowered.endswith("]") else lowered
    try:
        return str(ipaddress.ip_address(bare))
    except ValueError:
        name = bare.removeprefix("*.")
    if bare != lowered or "*" in name or reach(name) == "forbidden":
        raise ValueError(
            "must be a host name or an IP address as clients write it, without scheme and port; "
            "*.example.com stands for all names below example.com"
        )
    return bare


def normal_origin(value: str) -> str:
    """Normalise a configured origin pattern. Raises ValueError with the message for the operator."""
    if value == ANY_ORIGIN:
        return value
    if value.lower() == "null":
        raise ValueError("null is the origin of any sandboxed page and of local files alike, and cannot be allowed")
    lowered = value.lower()
    if lowered.startswith(("http://", "https://")):
        found = _WEB_ORIGIN.fullmatch(lowered)
        host = found[2].strip("[]") if found else ""
        if found is None or reach(host) == "forbidden":
            raise ValueError(
                "must be an origin as browsers send it: scheme, host and port without a path, such as "
                "https://app.example.com, or http://localhost:* for any port"
            )
        port = None if found[3] == _DEFAULT_PORT[found[1]] else found[3]
        return f"{found[1]}://{found[2]}" + (f":{port}" if port else "")
    if not _APP_ORIGIN.fullmatch(value):
        raise ValueError("must be *, or an origin such as https://app.example.com or chrome-extension://ID")
    return value
