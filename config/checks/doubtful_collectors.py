"""Warn of the addresses of OpenTelemetry collectors that hardly lead to one."""

from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from config.addresses import reach
from config.checks.check_between_sections import CheckContext
from config.problem import Path, Problem

_GRPC_PORT: Final = 4317
_SIGNALS: Final = ("/v1/traces", "/v1/metrics", "/v1/logs")
_INSIDE: Final = (".internal", ".local", ".lan", ".localdomain", ".svc", ".cluster.local")
"""Endings of names that the public DNS does not have."""


def doubtful_collectors(context: CheckContext) -> Iterator[Problem]:
    """Yield a warning for each doubt about an address of a collector."""
    server = context.config.server
    payloads = None if server.payload_log is None else server.payload_log.otlp
    for path, section in ((("server", "tracing"), server.tracing), (("server", "payload_log", "otlp"), payloads)):
        if section is not None:
            at: Path = (*path, "endpoint")
            yield from (context.at_value(at, doubt) for doubt in _doubts(section.endpoint))


def _doubts(endpoint: str) -> Iterator[str]:
    parts = urlsplit(endpoint)
    signal = next((each for each in _SIGNALS if parts.path.rstrip("/").endswith(each)), None)
    if signal is not None:
        yield f"{signal} is added to what is written here: leave it out"
    if parts.port == _GRPC_PORT:
        yield "4317 is the port of OTLP over gRPC; OTLP over HTTP, which is spoken here, has 4318"
    if parts.scheme == "http" and _is_public(parts.hostname or ""):
        yield "plain http sends headers and what is exported in the clear: write https"


def _is_public(host: str) -> bool:
    """Return whether a host is on the internet, as far as its text tells. Names without a dot are of a network of the
    operator's own."""
    where, name = reach(host), host.rstrip(".").lower()
    return where == "public" or (where == "unknown" and "." in name and not name.endswith(_INSIDE))
