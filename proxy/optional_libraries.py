"""The libraries that only some configurations need, and the install hint for a missing one. Each library is imported
only by the code that uses it."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final


@dataclass(frozen=True, slots=True)
class Extra:
    """An extra of the distribution: its name and the modules that it installs."""

    name: str
    modules: tuple[str, ...]


EXTRAS: Final[Mapping[str, Extra]] = {
    "aws": Extra("aws", ("botocore",)),
    "google": Extra("gcp", ("google.auth", "requests")),
    "entra": Extra("azure", ("azure.identity",)),
}
"""The extra for each kind of credentials. OIDC needs no extra."""

REDIS: Final = Extra("redis", ("redis",))
"""The extra for state that processes share."""

POSTGRES: Final = Extra("postgres", ("psycopg",))
"""The extra for a ledger that several gateways share."""

OTEL: Final = Extra("otel", ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.common"))
"""The extra for traces and metrics that are sent by OTLP."""

LIBRARY_ERRORS: Final = (AttributeError, LookupError, OSError, RuntimeError, TypeError, ValueError)
"""The exceptions that a vendor's library raises, besides its own, for a file or a response that it cannot
understand."""


def missing_extra(kind: str) -> str | None:
    """Return the install hint for this kind of credentials; `None` if its extra is installed."""
    extra = EXTRAS.get(kind)
    return None if extra is None else extra_hint(extra, f"credentials of the kind {kind} need")


def extra_hint(extra: Extra, need: str) -> str | None:
    """Return a message that names the need for an extra and how to install it; `None` if the extra is installed."""
    if all(_present(module) for module in extra.modules):
        return None
    return f"{need} an extra: make extras, or pip install '.[{extra.name}]' in Dragoman's source"


def _present(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the parent package is missing
        return False


def silence(*loggers: str) -> None:
    """Disable a library's logging: its warnings quote responses of servers, and its tracebacks quote the data sent to
    them."""
    for name in loggers:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
