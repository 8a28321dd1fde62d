"""F61: one of several processes is killed."""

import asyncio
import os
import signal
from contextlib import AsyncExitStack

from tests.faults.fault_rig import AUTH, Rig
from tests.faults.lifecycle import held
from tests.faults.process import process
from tests.faults.registry import fault
from tests.proxy.kit.raw_client import RawClient, connected, exchange, request


def completion(model: str, stream: bool) -> bytes:
    """Return a request's bytes."""
    return request("POST", "/v1/completions", {"model": model, "prompt": "hi", "stream": stream}, AUTH)


async def whole(client: RawClient, stream: bool) -> bool:
    """Return whether the rest of a delayed response arrives from a worker which may be gone."""
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
        await gateway.serving(2)
        port = int(gateway.url.rpartition(":")[2])
        clients: list[RawClient] = []
        while len(clients) < 6 or not all((await gateway.in_flight()).values()):
            client = await stack.enter_async_context(connected(port))
            await client.send(completion("one/m", rig.stream))
            clients.append(client)
            await rig.one.received(len(clients))
            if rig.stream:
                await client.head()
        (victim, lost), (survivor, _) = (await gateway.in_flight()).items()
        os.kill(victim, signal.SIGKILL)
        # For some milliseconds the kernel still gives connections to the dead worker; R08 measures how many.
        while f"(process {victim}) ended on SIGKILL" not in gateway.messages():  # noqa: ASYNC110 - a file has no event
            await asyncio.sleep(0.001)
        for _ in range(20):
            answer = await exchange(port, completion("two/m", stream=False))
            assert answer.status == 200
        await gateway.serving(2, restarts=1)
        assert survivor in await gateway.in_flight()
        gate.set()
        ends = [await whole(client, rig.stream) for client in clients]
        assert ends.count(False) == lost
        series = await gateway.metrics()
        counted = sum(value for name, value in series.items() if name.startswith("dragoman_requests_total"))
        assert counted == 20 + len(clients) - lost
        assert await gateway.stop() == 0
