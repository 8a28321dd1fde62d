"""The libraries that only some tables need, imported where they are used, and what to install for a missing one."""

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
"""By the kind of credentials. OIDC needs none."""

REDIS: Final = Extra("redis", ("redis",))
"""For state that processes share."""

POSTGRES: Final = Extra("postgres", ("psycopg",))
"""For a ledger that several gateways share."""

OTEL: Final = Extra("otel", ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.common"))
"""For traces and metrics by OTLP."""

ODD: Final = (AttributeError, LookupError, OSError, RuntimeError, TypeError, ValueError)
"""What a vendor's library raises, besides its own errors, when a file or a response makes no sense to it."""


def missing(kind: str) -> str | None:
    """Return what to install for this kind of credentials; None when it is installed."""
    extra = EXTRAS.get(kind)
    return None if extra is None else without(extra, f"credentials of the kind {kind} need")


def without(extra: Extra, need: str) -> str | None:
    """Return who needs an extra that is not installed, and what to install; None when it is installed."""
    if all(_present(module) for module in extra.modules):
        return None
    return f"{need} an extra: make extras, or pip install '.[{extra.name}]' in Dragoman's source"


def _present(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package around it
        return False


def silence(*loggers: str) -> None:
    """Keep a library from logging: its warnings quote what servers answered, and its tracebacks what they were sent."""
    for name in loggers:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
