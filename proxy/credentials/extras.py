"""The libraries that only some tables need, and what to install for one that is missing.

Never imports them: only what uses them does, when a table needs it.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final


@dataclass(frozen=True, slots=True)
class Extra:
    """An extra of the distribution: its name and the modules that it brings."""

    name: str
    modules: tuple[str, ...]


EXTRAS: Final[Mapping[str, Extra]] = {
    "aws": Extra("aws", ("botocore",)),
    "google": Extra("gcp", ("google.auth", "requests")),
    "entra": Extra("azure", ("azure.identity",)),
}
"""By the kind of credentials. OIDC needs none."""

REDIS: Final = Extra("redis", ("redis",))
"""For what processes share."""


ODD: Final = (AttributeError, LookupError, OSError, RuntimeError, TypeError, ValueError)
"""What a vendor's library lets through, besides its own errors, when a file or an answer makes no sense to it."""


def missing(kind: str) -> str | None:
    """What to install for this kind of credentials; None when it is there."""
    extra = EXTRAS.get(kind)
    return None if extra is None else without(extra, f"credentials of the kind {kind} need")


def without(extra: Extra, need: str) -> str | None:
    """Who needs an extra that is not there, and what to install; None when it is there."""
    if all(_present(module) for module in extra.modules):
        return None
    return f"{need} an extra: pip install 'dragoman[{extra.name}]'"


def _present(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package around it
        return False


def silence(*loggers: str) -> None:
    """Keep a library from logging: its warnings hold what servers answered, and its tracebacks what they were asked."""
    for name in loggers:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
