"""R14: of 500 clients that leave, none keeps a vendor busy, in whatever state the gateway was."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

import pytest

from providers.json_types import JsonObject
from tests.faults.fault_rig import AUTH, Rig
from tests.proxy.kit.raw_client import RawClient, connected, request
from tests.support.http_scripts import chunk, head, json_answer
from tests.support.openai_wire import completion_frames
from tests.support.vendor_script import Hang, Script, Send
from tests.trust.unlimited_rig import unlimited_rig

ABORTS: Final = 500
AT_ONCE: Final = 25

START: Final = Send(head(200, [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")]))
CONTENT: Final = Send(chunk(completion_frames(["one", "two"])[0]))
WITHIN: Final = 30.0
"""Seconds within which all departures must be noticed. Only a failure takes that long."""


async def nothing(client: RawClient) -> None:
    """Leave before anything has come."""


async def content(client: RawClient) -> None:
    """Leave with the first content."""
    await client.head()
    await client.chunk()


@dataclass(frozen=True, slots=True)
class Moment:
    """The moment when clients leave: the vendor's behaviour, and the bytes that the clients have read. `attempt` is its
    outcome in the log."""

    script: Script
    seen: Callable[[RawClient], Awaitable[None]]
    attempt: str
    stays: bool = False
    """Whether the vendor's connection is idle then, and may stay."""


LIMITED: Final = json_answer(429, {"error": {"message": "slow down"}}, [("retry-after", "1")])
MOMENTS: Final[Mapping[str, Moment]] = {
    "before headers": Moment((Hang(),), nothing, "cancelled"),
    "before content": Moment((START, Hang()), nothing, "cancelled"),
    "in the middle": Moment((START, CONTENT, Hang()), content, "cancelled"),
    "in a wait to try again": Moment(LIMITED, nothing, "rate_limited", stays=True),
}


async def until_received(made: Rig, name: str) -> None:
    """Wait until the vendor has received this request."""
    while all(received.header("x-request-id") != name for received in made.one.requests):
        await made.one.received(len(made.one.requests) + 1)


async def depart(made: Rig, moment: Moment, number: int, slots: asyncio.Semaphore) -> None:
    """Run one client that comes and leaves. Every second one closes its connection in good order."""
    body: JsonObject = {"model": "one/m", "prompt": "hi", "stream": True}
    async with slots, connected(made.port) as client:
        headers = {**AUTH, "x-request-id": f"r{number}"}
        await client.send(request("POST", "/v1/completions", body, headers))
        await until_received(made, headers["x-request-id"])
        await moment.seen(client)
        if moment.stays:
            while (await made.ledger()).acquired:  # noqa: ASYNC110 - a pool has no event
                await asyncio.sleep(0.001)
        if number % 2:
            client.writer.transport.abort()
        else:
            await client.leave()
        if moment.stays:
            await made.app.front.gateway.idle.wait()
            made.forget()


@pytest.mark.parametrize("name", MOMENTS)
async def test_who_leaves_leaves_nothing_running(name: str, tmp_path: Path) -> None:
    moment, count = MOMENTS[name], ABORTS // len(MOMENTS)
    async with unlimited_rig(tmp_path) as made:
        made.one.default = moment.script
        before = await made.ledger()
        # A deployment that was rate limited gets one client at a time.
        slots = asyncio.Semaphore(1 if moment.stays else AT_ONCE)
        async with asyncio.timeout(WITHIN):
            await asyncio.gather(*(depart(made, moment, number, slots) for number in range(count)))
            if not moment.stays:
                for received in made.one.requests:
                    await received.gone.wait()
        made.asked = count
        lines = await made.logged()
        status = 200 if moment.seen is content else 499
        assert {(line["status"], line["outcome"]) for line in lines} == {(status, "client_gone")}
        attempts = [attempt for line in lines for attempt in cast(list[JsonObject], line["attempts"])]
        assert [attempt["outcome"] for attempt in attempts] == [moment.attempt] * count
        assert len(lines) == len(made.one.requests) == count
        after = await made.settled(before)
        assert after.settled, after
        assert after.tasks <= before.tasks
