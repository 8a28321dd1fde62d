"""Checks that a configuration does not send requests to the gateway that serves it, and that its listeners do not share
a port, as far as the written addresses show.

The check never resolves a name or inspects the machine's interfaces. Loops that the check misses are detected by
counting hops.
"""

import ipaddress
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from config.addresses import reach
from config.load_config import Loaded
from config.problem import Path, Problem
from config.table.inheritance import effective_settings
from proxy.routing.snapshot import Snapshot

_PORTS: Final = {"http": 80, "https": 443}
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1"})
_EVERYWHERE: Final = {"0.0.0.0": 4, "::": 6}  # noqa: S104 - only compared


@dataclass(frozen=True, slots=True)
class Listener:
    """The public listener: its host as written, its port, and the names under which clients call it."""

    host: str
    port: int
    names: Collection[str]

    def answers(self, url: str) -> bool:
        """Return whether requests to this URL reach the listener. Port 0, which the system chooses, never matches."""
        parts = urlsplit(url)
        called = (parts.hostname or "").rstrip(".")
        if (parts.port or _PORTS.get(parts.scheme)) != self.port:
            return False
        if called in (self.host.lower(), *self.names):
            return True
        version = _EVERYWHERE.get(self.host)
        own = _addresses(self.host)
        return any(
            address in own or (ipaddress.ip_address(address).version == version and reach(address) == "loopback")
            for address in _addresses(called)
        )


def _addresses(host: str) -> frozenset[str]:
    """Return the addresses of a host that is an address or a loopback name; empty for another name."""
    try:
        return frozenset({str(ipaddress.ip_address(host))})
    except ValueError:
        return _LOOPBACK if reach(host) == "loopback" else frozenset()


def self_calls(loaded: Loaded, snapshot: Snapshot, host: str | None, port: int | None) -> tuple[Problem, ...]:
    """Return a problem for each deployment whose address is the gateway's own. `host` and `port` come from the command
    line and override the configuration."""
    server = loaded.config.server
    listener = Listener(host or server.host, server.port if port is None else port, server.hosts)
    return tuple(dict.fromkeys(_found(loaded, snapshot, listener)))


def doubled_port(loaded: Loaded, host: str | None, port: int | None) -> tuple[Problem, ...]:
    """Return a problem if both listeners have the same port; `host` and `port` as for `self_calls`."""
    server = loaded.config.server
    taken = server.port if port is None else port
    if taken != server.admin.port or not taken or not _overlap(host or server.host, server.admin.host):
        return ()
    path: Path = ("server", "admin", "port")
    where = "server.port" if port is None else "--port"
    message = f"the public listener ({where}) takes port {taken} of this address already"
    return (Problem.at(loaded.locate(path), path, message),)


def _overlap(one: str, other: str) -> bool:
    """Return whether listeners on these hosts cannot have the same port."""
    if one.lower() == other.lower():
        return True
    for everywhere, address in ((one, other), (other, one)):
        if (version := _EVERYWHERE.get(everywhere)) is not None:
            return any(ipaddress.ip_address(each).version == version for each in _addresses(address))
    return bool(_addresses(one) & _addresses(other))


def _found(loaded: Loaded, snapshot: Snapshot, listener: Listener) -> Iterator[Problem]:
    for target in snapshot.targets():
        if listener.answers(target.base_url):
            settings = effective_settings(loaded.config, target.vendor, target.model_key, target.deployment)
            path: Path = settings.origins.get("base_url", ("vendors", target.vendor))
            message = f"this is the gateway's own address (port {listener.port}): requests would come back to it"
            yield Problem.at(loaded.locate(path), path, message)
