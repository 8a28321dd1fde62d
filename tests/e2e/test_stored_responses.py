"""Stored responses from outside: openai's SDK continues, retrieves, lists and deletes them, and workers share them."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from providers.json_types import JsonObject
from tests.e2e.kit import CLIENTS, Sdks, gateway_of
from tests.proxy.kit.tables import digest_of
from tests.support.clients import Options, Outcome
from tests.support.gateway import SERVER, RunningGateway, running_gateway
from tests.support.redis import real_redis

Sdk = Callable[..., Any]

TABLE = f"""\
version: 1
vendors: {{mock: {{}}}}
models: {{mock/echo: {{context_window: 4096}}}}
teams:
  a: {{keys: ["{digest_of("dk-a")}"], models: ["mock/*"]}}
  b: {{keys: ["{digest_of("dk-b")}"], models: ["mock/*"]}}
"""

ONE: JsonObject = {"model": "mock/echo", "input": "one"}


gateway = gateway_of(TABLE)


async def drive(sdks: Sdks, sdk: str, scenario: str, fields: JsonObject, team: str = "a") -> Outcome:
    return await sdks.run(sdk, scenario, fields, Options(api_key=f"dk-{team}"))


def good(outcome: Outcome) -> dict[str, Any]:  # an SDK's own shape
    assert outcome["error"] is None, outcome["error"]
    return dict(outcome["result"])


BOTH = pytest.mark.parametrize("sdk", ["openai2", "openai3"])


@pytest.mark.asyncio(loop_scope="module")
class TestOpenai:
    pytestmark = CLIENTS

    @BOTH
    async def test_it_continues_an_answer_by_its_id(self, sdks: Sdks, sdk: str) -> None:
        first = good(await drive(sdks, sdk, "response", ONE))
        fields: JsonObject = {"model": "mock/echo", "input": "two", "previous_response_id": first["id"]}
        streamed = await drive(sdks, sdk, "response_stream", fields)
        assert streamed["error"] is None
        final = streamed["chunks"][-1]["response"]
        assert final["previous_response_id"] == first["id"]
        assert good(await drive(sdks, sdk, "response_retrieve", {"response_id": final["id"]})) == final

    @BOTH
    async def test_it_lists_what_was_said_by_pages(self, sdks: Sdks, sdk: str) -> None:
        last = None
        for number in range(4):
            fields: JsonObject = {"model": "mock/echo", "input": f"turn {number}"}
            if last is not None:
                fields["previous_response_id"] = last
            last = good(await drive(sdks, sdk, "response", fields))["id"]
        listed = await drive(sdks, sdk, "response_items", {"response_id": last, "limit": 2, "order": "asc"})
        assert listed["error"] is None
        assert [each["role"] for each in listed["chunks"]] == ["user", "assistant"] * 3 + ["user"]
        assert len({each["id"] for each in listed["chunks"]}) == 7

    @BOTH
    async def test_what_it_deletes_is_gone(self, sdks: Sdks, sdk: str) -> None:
        first = good(await drive(sdks, sdk, "response", ONE))
        assert (await drive(sdks, sdk, "response_delete", {"response_id": first["id"]}))["error"] is None
        gone = (await drive(sdks, sdk, "response_retrieve", {"response_id": first["id"]}))["error"]
        assert gone is not None
        assert (gone["kind"], gone["status_code"]) == ("NotFoundError", 404)

    @BOTH
    async def test_another_team_finds_nothing(self, sdks: Sdks, sdk: str) -> None:
        first = good(await drive(sdks, sdk, "response", ONE))
        for scenario in ("response_retrieve", "response_delete", "response_items"):
            error = (await drive(sdks, sdk, scenario, {"response_id": first["id"]}, "b"))["error"]
            assert error is not None
            assert error["kind"] == "NotFoundError"
        fields: JsonObject = {"model": "mock/echo", "input": "two", "previous_response_id": first["id"]}
        error = (await drive(sdks, sdk, "response", fields, "b"))["error"]
        assert error is not None
        assert (error["status_code"], error["code"]) == (400, "previous_response_not_found")

    @BOTH
    async def test_an_item_that_it_names_is_found(self, sdks: Sdks, sdk: str) -> None:
        first = good(await drive(sdks, sdk, "response", ONE))
        named: JsonObject = {
            "model": "mock/echo",
            "input": [
                {"type": "item_reference", "id": first["output"][0]["id"]},
                {"role": "user", "content": "two"},
            ],
        }
        good(await drive(sdks, sdk, "response", named))


async def test_workers_that_share_a_redis_go_on_with_each_other_s_answers(tmp_path: Path) -> None:
    server = tmp_path / "redis"
    server.mkdir()
    with real_redis(server) as redis:
        table = f"{TABLE}{SERVER}  workers: 2\n  shared: {{redis: '{redis.url}'}}\n"
        async with running_gateway(table, tmp_path) as gateway:
            await gateway.serving(2)
            await linked(gateway)
            last = None
            for number in range(20):
                body = {"model": "mock/echo", "input": str(number)}
                last = (await post(gateway, body if last is None else {**body, "previous_response_id": last}))["id"]
            async with client() as http, http.get(f"{gateway.url}/v1/responses/{last}/input_items?limit=100") as answer:
                assert len((await answer.json())["data"]) == 39


def client() -> aiohttp.ClientSession:
    """Return a client that opens a new connection for each request, so that any worker may get it."""
    return aiohttp.ClientSession(
        headers={"Authorization": "Bearer dk-a"}, connector=aiohttp.TCPConnector(force_close=True)
    )


async def post(gateway: RunningGateway, body: dict[str, Any]) -> dict[str, Any]:  # a response from the wire
    async with client() as http, http.post(f"{gateway.url}/v1/responses", json=body) as answer:
        read = await answer.json()
        assert answer.status == 200, read
        return dict(read)


async def linked(gateway: RunningGateway) -> None:
    """Wait until every worker can reach Redis."""
    async with asyncio.timeout(30):
        while (await gateway.metrics()).get("dragoman_shared_state_up") != 1.0:  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.05)
