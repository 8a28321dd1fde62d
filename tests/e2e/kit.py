"""What the tests from outside share: keys, and the reading of answers. Never a test, and never the gateway's code."""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from providers.unified import JsonObject, JsonValue
from tests.support.clients import Outcome
from tests.support.gateway import RunningGateway

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


async def line_of(gateway: RunningGateway, request_id: str) -> JsonObject:
    """Wait for the access log's line of a request; lines come a moment after their answers, in no order to rely on."""
    while True:
        for line in gateway.log():
            if line["request_id"] == request_id:
                return line
        await asyncio.sleep(0.01)
