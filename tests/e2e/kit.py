"""What the tests from outside share: keys, and the reading of answers. Never a test, and never the gateway's code."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from providers.unified import JsonValue
from tests.support.clients import Outcome

CLIENTS = [pytest.mark.clients, pytest.mark.timeout(300)]
"""Marks of a module that drives the vendors' SDKs; the first run installs them."""

TOTALS = ("prompt_tokens", "completion_tokens", "total_tokens")


def digest(key: str) -> str:
    """A team's key as a table holds it."""
    return "sha256:" + hashlib.sha256(key.encode()).hexdigest()


def totals(usage: Mapping[str, JsonValue] | None) -> list[JsonValue] | None:
    """Prompt, completion and total tokens; None without a usage."""
    return None if usage is None else [usage[name] for name in TOTALS]


def choices_of(outcome: Outcome) -> Sequence[dict[str, Any]]:  # Any: an SDK's own shape
    """Every choice that an SDK handed over, in order, whole or in pieces."""
    answers = outcome["chunks"] or [outcome["result"]]
    return [choice for answer in answers for choice in answer["choices"]]
