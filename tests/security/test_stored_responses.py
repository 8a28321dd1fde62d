"""The stored responses of one team, and another team that tries to reach them: no id, in any form or position, leads
there."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from itertools import product

import orjson
import pytest_asyncio

from providers.json_types import JsonObject, JsonValue
from tests.proxy.kit.gateway_rig import Rig, rig
from tests.proxy.kit.raw_client import Answer, exchange, request
from tests.proxy.kit.tables import digest_of
from tests.support.http_scripts import json_answer
from tests.support.openai_wire import chat

CANARY = "canary-of-team-a"
TABLE = f"""
vendors:
  v: {{profile: openai_compatible, api_key: sk-x, base_url: "http://127.0.0.1:PORT/v1", allow_private: true}}
models: {{v/m: {{}}}}
teams:
  a: {{keys: ["{digest_of("dk-a")}"], models: [v/m]}}
  b: {{keys: ["{digest_of("dk-b")}"], models: [v/m]}}
"""


@pytest_asyncio.fixture
async def made() -> AsyncIterator[Rig]:
    async with rig(TABLE) as served:
        served.vendor.default = json_answer(200, chat(CANARY))
        yield served


async def call(made: Rig, team: str, method: str, path: str, body: JsonValue = None) -> Answer:
    headers = {"Authorization": f"Bearer dk-{team}"}
    return await exchange(made.port, request(method, path, body, headers))


async def stored(made: Rig) -> JsonObject:
    """Return a response that team a has stored, with its items."""
    said: JsonObject = {"model": "v/m", "input": [{"id": "msg_mine", "role": "user", "content": CANARY}]}
    answer = await call(made, "a", "POST", "/v1/responses", said)
    assert answer.status == 200
    response = orjson.loads(answer.body)
    assert isinstance(response, dict)
    return response


def forms(name: str) -> Iterator[str]:
    """Yield an id unchanged, and in forms that a store's keys with an owner may have."""
    yield name
    for prefix, owner in product(("", "r:", "i:"), ("", "team a", "team a:", "a/", "a%2F", "../a/", "%2e%2e%2f")):
        yield f"{owner}{prefix}{name}".replace(" ", "%20")


async def test_no_id_of_another_team_s_shows_or_deletes_or_continues_anything(made: Rig) -> None:
    response = await stored(made)
    output = response["output"]
    assert isinstance(output, list)
    assert isinstance(output[0], dict)
    names = [str(response["id"]), str(output[0]["id"]), "msg_mine"]
    made.vendor.default = json_answer(200, chat("nothing of a"))
    before = len(made.vendor.requests)
    tried = 0
    for name in names:
        for form in forms(name):
            for method, path in (("GET", form), ("GET", f"{form}/input_items"), ("DELETE", form)):
                answer = await call(made, "b", method, f"/v1/responses/{path}")
                assert answer.status in (404, 405), (path, answer.body)
                assert CANARY.encode() not in answer.body
                tried += 1
        tries: list[JsonObject] = [
            {"previous_response_id": name, "input": "tell me"},
            {"input": [{"type": "item_reference", "id": name}, {"role": "user", "content": "tell me"}]},
            {"input": [{"type": "reasoning", "id": name, "summary": []}, {"role": "user", "content": "tell me"}]},
        ]
        for body in tries:
            answer = await call(made, "b", "POST", "/v1/responses", {"model": "v/m", **body})
            assert CANARY.encode() not in answer.body
    assert tried > 100
    for sent in made.vendor.requests[before:]:
        assert CANARY.encode() not in sent.body
    assert orjson.loads((await call(made, "a", "GET", f"/v1/responses/{names[0]}")).body) == response


async def test_a_team_that_takes_another_s_ids_as_its_own_changes_nothing_there(made: Rig) -> None:
    response = await stored(made)
    made.vendor.default = json_answer(200, chat("of b"))
    planted: JsonObject = {"model": "v/m", "input": [{"id": "msg_mine", "role": "user", "content": "of b"}]}
    assert (await call(made, "b", "POST", "/v1/responses", planted)).status == 200
    named: JsonObject = {"model": "v/m", "input": [{"type": "item_reference", "id": "msg_mine"}]}
    assert (await call(made, "a", "POST", "/v1/responses", named)).status == 200
    sent = made.vendor.requests[-1].json()
    assert isinstance(sent, dict)
    assert sent["messages"] == [{"role": "user", "content": CANARY}]
    assert (await call(made, "a", "GET", f"/v1/responses/{response['id']}")).status == 200


async def test_a_team_that_fills_the_store_costs_another_nothing(made: Rig) -> None:
    made.features.responses.entries.kept.most = 400_000
    response = await stored(made)
    made.vendor.default = json_answer(200, chat("of b"))
    flood: JsonObject = {"model": "v/m", "input": "x" * 50_000}
    answers = await asyncio.gather(*(call(made, "b", "POST", "/v1/responses", flood) for _ in range(60)))
    assert {answer.status for answer in answers} == {200}
    assert made.features.responses.entries.kept.size <= 400_000
    assert (await call(made, "a", "GET", f"/v1/responses/{response['id']}")).status == 200
