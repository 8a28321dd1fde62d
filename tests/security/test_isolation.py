"""2,000 concurrent requests of 50 teams, with failures and open circuits: no response contains a word of another
request."""

import asyncio
import re
from random import Random

import orjson

from providers.json_types import JsonObject
from tests.proxy.kit.gateway_rig import Rig, rig
from tests.proxy.kit.raw_client import Answer, connected, request
from tests.proxy.kit.tables import digest_of
from tests.support import openai_wire
from tests.support.http_scripts import json_answer, sse_answer
from tests.support.vendor_script import Received, Script

TEAMS, REQUESTS, AT_ONCE = 50, 2_000, 50
MARK = re.compile(rb"mark-\d+-\d+-")
TABLE = """
vendors:
  v: {profile: openai_compatible, base_url: "http://127.0.0.1:PORT/v1", allow_private: true}
models:
  v/a: {completions: true, deployments: {first: {}, second: {}}}
  v/b: {completions: true}
routes:
  both: {targets: [v/a, v/b]}
teams:
""" + "".join(
    f'  team{number}: {{keys: ["{digest_of(f"key-{number}")}"], models: [both, "v/*"]}}\n' for number in range(TEAMS)
)


def mark(team: int, number: int) -> str:
    """Return a text that only this request's prompt contains."""
    return f"mark-{team}-{number}-"


def marks(data: bytes) -> set[str]:
    """Return the marks in the data."""
    return {found.decode() for found in MARK.findall(data)}


def vendor(received: Received) -> Script:
    """Respond with the prompt. Some responses are errors that contain the prompt, some streams break off."""
    sent = received.json()
    assert isinstance(sent, dict)
    text = str(sent["prompt"])
    number = int(text.split("-")[2])
    if number % 25 == 0 and sent["model"] == "a":
        return json_answer(500, {"error": {"message": text, "type": "x", "code": None}})
    if sent.get("stream") is not True:
        return json_answer(200, openai_wire.completion(text))
    frames = openai_wire.completion_frames([text, text])
    return sse_answer(frames[: 2 if number % 29 == 0 else None])


async def one(made: Rig, slots: asyncio.Semaphore, team: int, number: int) -> Answer | None:
    draw = Random(number)
    body: JsonObject = {
        "model": draw.choice(("both", "v/a", "v/b", "v/a/second")),
        "prompt": mark(team, number),
        "stream": draw.random() < 0.5,
    }
    headers = {"Authorization": f"Bearer key-{team}", "x-request-id": mark(team, number)}
    async with slots, connected(made.port) as client:
        await client.send(request("POST", "/v1/completions", body, headers))
        if number % 7 == 0:
            await asyncio.sleep(draw.random() / 100)
            return None
        return await client.answer()


async def test_two_thousand_requests_of_fifty_teams_never_meet() -> None:
    async with rig(TABLE) as made:
        made.vendor.default = vendor
        slots = asyncio.Semaphore(AT_ONCE)
        asked = [(number % TEAMS, number) for number in range(1, REQUESTS + 1)]
        answers = await asyncio.gather(*(one(made, slots, *each) for each in asked))
        await made.gateway.idle.wait()
        good = 0
        for (team, number), answer in zip(asked, answers, strict=True):
            if answer is None:
                continue
            own = mark(team, number)
            good += answer.status == 200
            assert answer.headers["x-request-id"] == own
            assert marks(answer.body) <= {own}
            assert answer.status != 200 or marks(answer.body) == {own}
        assert good > REQUESTS / 2
        records = {record.request_id: record for record in made.records}
        assert len(made.records) == len(records)
        assert any(len(record.attempts) > 1 and record.outcome == "ok" for record in made.records)
        for name, record in records.items():
            assert record.team == f"team{name.split('-')[1]}"
            assert marks(repr(record).encode()) <= {name}
        for received in made.vendor.requests:
            assert marks(received.body) == {received.header("x-request-id")}


async def test_the_same_body_of_two_teams_is_two_calls() -> None:
    async with rig(TABLE) as made:
        made.vendor.default = vendor
        data = orjson.dumps({"model": "v/b", "prompt": mark(0, 1), "seed": 1, "temperature": 0})
        for team in (0, 1, 0):
            async with connected(made.port) as client:
                await client.send(request("POST", "/v1/completions", data, {"x-api-key": f"key-{team}"}))
                assert (await client.answer()).status == 200
        assert len(made.vendor.requests) == 3
        assert [record.team for record in await made.finished(3)] == ["team0", "team1", "team0"]
