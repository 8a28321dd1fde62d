"""Keys, requests and helpers that read responses, for the tests from outside."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp
import orjson
import pytest
import pytest_asyncio

from providers.json_types import JsonObject, JsonValue
from tests.support.clients import USUAL, Client, Options, Outcome
from tests.support.gateway import RunningGateway, running_gateway

CLIENTS = [pytest.mark.clients, pytest.mark.timeout(300)]
"""Marks of a module that drives the vendors' SDKs; the first run installs them."""


def gateway_of(table: str) -> object:
    """Return the fixture of a module's gateway."""

    @pytest_asyncio.fixture(scope="module", loop_scope="module")
    async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningGateway]:
        async with running_gateway(table, tmp_path_factory.mktemp("gateway")) as running:
            yield running

    return gateway


@dataclass(frozen=True, slots=True)
class Sdks:
    """The vendors' SDKs as clients of the module's gateway."""

    clients: Callable[[str], Client]
    gateway: RunningGateway

    async def run(self, sdk: str, scenario: str, fields: Mapping[str, JsonValue], options: Options = USUAL) -> Outcome:
        """Make one call with an SDK, as `Client.run` does."""
        return await self.clients(sdk).run(scenario, self.gateway.url, fields, options)


TOTALS = ("prompt_tokens", "completion_tokens", "total_tokens")


def totals(usage: Mapping[str, JsonValue] | None) -> list[JsonValue] | None:
    """Return prompt, completion and total tokens. Return `None` without a usage."""
    return None if usage is None else [usage[name] for name in TOTALS]


def choices_of(outcome: Outcome) -> Sequence[dict[str, Any]]:  # Any: an SDK's own shape
    """Return every choice that an SDK returned, in order, from a response or from chunks."""
    answers = outcome["chunks"] or [outcome["result"]]
    return [choice for answer in answers for choice in answer["choices"]]


Wire = dict[str, Any]  # Any: a response from the wire


async def post(http: aiohttp.ClientSession, path: str, body: Mapping[str, JsonValue]) -> Wire:
    """Return a non-streaming response of the requested model."""
    async with http.post(path, json=body) as answer:
        text = await answer.text()
        assert answer.status == 200, text
        assert answer.headers["x-dragoman-deployment"] == f"{body['model']}/default"
    return dict(orjson.loads(text))


async def streamed(http: aiohttp.ClientSession, path: str, body: Mapping[str, JsonValue]) -> Sequence[Wire]:
    """Return the chunks of a streamed response that ended well."""
    async with http.post(path, json={**body, "stream": True}) as answer:
        text = await answer.text()
        assert answer.status == 200, text
    *frames, done = text.strip().split("\n\n")
    assert done == "data: [DONE]"
    return [orjson.loads(frame.removeprefix("data: ")) for frame in frames]


async def refused(http: aiohttp.ClientSession, path: str, body: Mapping[str, JsonValue]) -> Wire:
    """Return the `error` object of a 400."""
    async with http.post(path, json=body) as answer:
        facts = await answer.json()
        assert answer.status == 400, facts
    return dict(facts["error"])


def text_of(choice: Mapping[str, Any]) -> str:  # Any: as in Wire
    """Return the text of a choice of either kind, from a response or a chunk."""
    holder = choice.get("message") or choice.get("delta") or {}
    return str(choice.get("text") or holder.get("content") or "")


async def line_of(gateway: RunningGateway, request_id: str) -> JsonObject:
    """Wait for the access log's line of a request. Lines arrive a moment after their responses, in no fixed order."""
    while True:
        for line in gateway.log():
            if line["request_id"] == request_id:
                return line
        await asyncio.sleep(0.01)
