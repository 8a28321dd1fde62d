"""Detect an exposed gateway: a gateway without teams that listens on an address other than loopback."""

from typing import Protocol

from config.addresses import listens_on_loopback
from config.problem import COMMAND_LINE, Locate, Path, Problem
from config.table.table_schema import GatewayConfig


class LocatedConfig(Protocol):
    """A configuration whose values have positions."""

    @property
    def config(self) -> GatewayConfig: ...
    @property
    def locate(self) -> Locate: ...


def exposure_problems(loaded: LocatedConfig, host: str | None, insecure_open: bool) -> tuple[Problem, ...]:
    """Return the problem of an exposed gateway, unless the operator insists on it (`--insecure-open`).

    `host` is the host of the command line, which overrides the host of the configuration.
    """
    if insecure_open:
        return ()
    message = "without teams anyone who reaches this address could use the keys: add teams, or listen on 127.0.0.1"
    insist = "" if host is None else "; --insecure-open accepts this"
    return _exposed(loaded, host, message + insist)


def exposure_warnings(loaded: LocatedConfig, host: str | None, insecure_open: bool) -> tuple[Problem, ...]:
    """Return the warning for an operator who insists on an exposed gateway."""
    if not insecure_open:
        return ()
    return _exposed(loaded, host, "there are no teams: anyone who reaches this address can use the keys")


def _exposed(loaded: LocatedConfig, host: str | None, message: str) -> tuple[Problem, ...]:
    if loaded.config.teams or listens_on_loopback(host or loaded.config.server.host):
        return ()
    if host is not None:
        return (Problem.at(COMMAND_LINE, ("--host",), message),)
    path: Path = ("server", "host")
    return (Problem.at(loaded.locate(path), path, message),)
