"""Clients make up the names of end users: any number, of any length, with any characters."""

import asyncio

import pytest

from providers.json_types import JsonObject
from proxy.limits.limit import user_digest
from tests.proxy.gateway.test_team_limits import chatting, limited
from tests.proxy.kit.gateway_rig import Rig
from tests.support.http_scripts import json_answer
from tests.support.openai_wire import chat

pytestmark = pytest.mark.smoke

MOST = 64
NAMES = 400
LARGE = "canary" * 15_000 + "\r\nx-canary: 1\x00\u202e"
"""90 KB, of the 100 KB that a body of this gateway may have."""


def named(user: str) -> JsonObject:
    return chatting(max_tokens=1, user=user)


async def test_threat_19_any_number_of_users_of_any_length_leave_room_for_each_other() -> None:
    async with limited("each_user: {limits: {requests_per_day: 500, requests_per_minute: 500}}") as served:
        served.vendor.default = json_answer(200, chat("x"))
        served.limits.users._most = MOST
        hostile = [named(f"{LARGE}{number}" if number % 100 == 0 else f"user {number}") for number in range(NAMES)]

        async def light() -> list[int]:
            return [(await served.post("/v1/chat/completions", named("light"))).status for _ in range(50)]

        async def others(some: list[JsonObject]) -> list[int]:
            return [(await served.post("/v1/chat/completions", body)).status for body in some]

        parts = [others(hostile[start::8]) for start in range(8)]
        found = await asyncio.gather(light(), *parts)
        assert {status for statuses in found for status in statuses} == {200}
        assert len(served.limits.users) == MOST
        assert used(served, "light") == 50
        assert all(len(record.user or "") <= 256 for record in served.records)


def used(served: Rig, user: str) -> int:
    """Return the requests of a user today."""
    found = served.limits.users.views(*served.limits.times())
    return max(each.used for each in found if each.scope == f"user t/{user_digest(user)}")


async def test_threat_19_what_refuses_a_user_tells_no_name_and_makes_no_series() -> None:
    async with limited("each_user: {limits: {requests_per_day: 1}}") as served:
        served.vendor.default = json_answer(200, chat("x"))
        assert (await served.post("/v1/chat/completions", named(LARGE))).status == 200
        refused = await served.post("/v1/chat/completions", named(LARGE))
        for number in range(5):
            for status in (200, 429):
                body = named(f"canary {number}")
                assert (await served.post("/v1/chat/completions", body)).status == status
        await served.finished(12)
        assert refused.status == 429
        assert f"user t/{user_digest(LARGE)}" in refused.message
        told = f"{refused.headers}{refused.body!r}{[record.limit for record in served.records]}"
        assert "canary" not in told
        assert "canary" not in str([*served.series("")])


async def test_threat_19_one_user_on_two_apis_is_one() -> None:
    async with limited("each_user: {limits: {requests_per_day: 4}}") as served:
        served.vendor.default = json_answer(200, chat("x"))
        asked: list[tuple[str, JsonObject]] = [
            ("/v1/chat/completions", named("ann")),
            ("/v1/chat/completions", chatting(max_tokens=1, safety_identifier="ann")),
            ("/v1/messages", chatting(max_tokens=1, metadata={"user_id": "ann"})),
            ("/v1/responses", {"model": "v/m", "input": "hi", "safety_identifier": "ann", "store": False}),
            ("/v1/chat/completions", named(user_digest("ann"))),
        ]
        statuses = [(await served.post(path, body)).status for path, body in asked]
    assert statuses == [200, 200, 200, 200, 429]
