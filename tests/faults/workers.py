"""F61: one of several processes is killed. Never what happens within one of them."""

import asyncio
import os
import re
import signal
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Final

from tests.faults.lifecycle import held
from tests.faults.process import process
from tests.faults.registry import fault
from tests.faults.rig import AUTH, Rig
from tests.proxy.raw_client import RawClient, connected, exchange, request
from tests.support.gateway import RunningGateway

LINE: Final = re.compile(r"worker (\d+) \(process (\d+)\), table [0-9a-f]{12}, (\d+) in flight")


async def workers(gateway: RunningGateway) -> Mapping[int, int]:
    """The processes that serve, each with what it has in flight."""
    answer = await exchange(int(gateway.admin_url.rpartition(":")[2]), request("GET", "/status"))
    lines = answer.json()["workers"]
    assert isinstance(lines, list)
    return {int(found[2]): int(found[3]) for found in map(LINE.fullmatch, map(str, lines)) if found}


async def both_serve(gateway: RunningGateway, restarts: int) -> None:
    """Wait until two processes serve, after so many were replaced."""
    while True:
        series = await gateway.metrics()
        if (series["dragoman_workers"], series["dragoman_worker_restarts_total"]) == (2, restarts):
            return
        await asyncio.sleep(0.02)


def completion(model: str, stream: bool) -> bytes:
    """A request's bytes."""
    return request("POST", "/v1/completions", {"model": model, "prompt": "hi", "stream": stream}, AUTH)


async def whole(client: RawClient, stream: bool) -> bool:
    """Whether the rest of an answer comes, which was held back at a worker that may be gone."""
    try:
        if stream:
            body, ended = await client.chunks()
            return ended and body.endswith(b"data: [DONE]\n\n")
        return (await client.answer()).status == 200
    except (asyncio.IncompleteReadError, ConnectionError):
        return False


@fault(61)
async def one_of_two_workers_is_killed(rig: Rig) -> None:
    gate = asyncio.Event()
    rig.one.default = held(rig.stream, gate)
    async with process(rig, ["workers: 2"]) as gateway, AsyncExitStack() as stack:
        await both_serve(gateway, 0)
        port = int(gateway.url.rpartition(":")[2])
        clients: list[RawClient] = []
        while len(clients) < 6 or not all((await workers(gateway)).values()):
            client = await stack.enter_async_context(connected(port))
            await client.send(completion("one/m", rig.stream))
            clients.append(client)
            await rig.one.received(len(clients))
            if rig.stream:
                await client.head()
        (victim, lost), (survivor, _) = (await workers(gateway)).items()
        os.kill(victim, signal.SIGKILL)
        # For some milliseconds the kernel still gives connections to the dead one; R08 measures how many.
        while f"(process {victim}) ended on SIGKILL" not in gateway.messages():  # noqa: ASYNC110 - a file tells no one
            await asyncio.sleep(0.001)
        for _ in range(20):
            answer = await exchange(port, completion("two/m", stream=False))
            assert answer.status == 200
        await both_serve(gateway, 1)
        assert survivor in await workers(gateway)
        gate.set()
        ends = [await whole(client, rig.stream) for client in clients]
        assert ends.count(False) == lost
        series = await gateway.metrics()
        counted = sum(value for name, value in series.items() if name.startswith("dragoman_requests_total"))
        assert counted == 20 + len(clients) - lost
        assert await gateway.stop() == 0
