"""A gateway that anybody on the network could use: without teams, and beyond this machine."""

from typing import Protocol

from config.addresses import listens_on_loopback
from config.problems import COMMAND_LINE, Locate, Path, Problem
from config.schema import GatewayConfig


class Placed(Protocol):
    """A table whose values can be found in its files."""

    @property
    def config(self) -> GatewayConfig: ...
    @property
    def locate(self) -> Locate: ...


def exposure_problems(loaded: Placed, host: str | None, insecure_open: bool) -> tuple[Problem, ...]:
    """The problem of a gateway that anybody on the network could use, unless the operator insists on it.

    Apart from the other checks because the command line may name another host than the table, and may insist.
    """
    if insecure_open:
        return ()
    message = "without teams anybody who reaches this address could use the keys: add teams, or listen on 127.0.0.1"
    insist = "" if host is None else "; --insecure-open serves everybody all the same"
    return _exposed(loaded, host, message + insist)


def exposure_warnings(loaded: Placed, host: str | None, insecure_open: bool) -> tuple[Problem, ...]:
    """What an operator is told all the same who insists on such a gateway."""
    if not insecure_open:
        return ()
    return _exposed(loaded, host, "there are no teams: anybody who reaches this address can use the keys")


def _exposed(loaded: Placed, host: str | None, message: str) -> tuple[Problem, ...]:
    if loaded.config.teams or listens_on_loopback(host or loaded.config.server.host):
        return ()
    if host is not None:
        return (Problem.at(COMMAND_LINE, ("--host",), message),)
    path: Path = ("server", "host")
    return (Problem.at(loaded.locate(path), path, message),)
