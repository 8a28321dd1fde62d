"""The cost of a stop under load for the clients: nothing, or an error in the stream if it takes too long (R05, R06).

No second gateway takes over: a client whose connection closes is done.
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import uvloop

from tests.proxy.kit.raw_client import connected
from tests.support.gateway import running_gateway
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Delay, Received, Script
from tests.trust.figure_types import Result
from tests.trust.load_client import End, Ended, answered, ask, ask_on, asking, failures
from tests.trust.load_rig import WHOLE, apart, many, port_of, slow_stream, streams, table

SERVER = "server:\n  port: ${PORT}\n  admin:\n    port: ${ADMIN_PORT}\n  drain_grace: 0s\n  drain_timeout: "
PIECES = 20
"""The number of chunks of a slow upload."""


@dataclass(frozen=True, slots=True)
class Crowd:
    """The clients at the time of the signal: streams and uploads of `seconds` seconds, busy keep-alive clients."""

    streams: int = 200
    seconds: float = 3.0
    keepers: int = 40
    uploads: int = 20
    pause: float = 0.03


@dataclass(frozen=True, slots=True)
class Stopped:
    """One stop: how each kind ended, the exit code, and seconds from the signal to the end."""

    streams: list[Ended]
    kept: list[Ended]
    uploads: list[Ended]
    code: int
    seconds: float

    @property
    def all(self) -> list[Ended]:
        return [*self.streams, *self.kept, *self.uploads]


async def keep(port: int, data: bytes, pause: float) -> list[Ended]:
    """Send requests on one connection until the gateway announces its close, or does not respond."""
    ends: list[Ended] = []
    async with connected(port) as client:
        while not ends or (ends[-1].well and not ends[-1].closes):
            ends.append(await ask_on(client, data))
            await asyncio.sleep(pause)
    return ends


async def upload(port: int, data: bytes, seconds: float) -> Ended:
    """Run a client whose body takes `seconds` seconds to arrive."""
    began = asyncio.get_running_loop().time()
    async with connected(port) as client:
        size = -(-len(data) // PIECES)
        for start in range(0, len(data), size):
            await client.send(data[start : start + size])
            await asyncio.sleep(seconds / PIECES)
        return await answered(client, began)


async def stop_once(folder: Path, crowd: Crowd) -> Stopped:
    """Start the crowd, send SIGTERM when every stream flows, and wait for all clients."""

    def serve(received: Received) -> Script:
        return slow_stream(crowd.seconds, 15) if streams(received) else WHOLE

    loop = asyncio.get_running_loop()
    async with FakeVendor(serve) as vendor:
        models = many("fake", crowd.streams + crowd.keepers + crowd.uploads)
        text = table({"fake": vendor.base_url}, [f"{model}: {{}}" for model in models])
        async with running_gateway(text, folder) as gateway, asyncio.TaskGroup() as group:
            port = port_of(gateway)
            with apart(gateway.process.pid):
                streamed = [
                    group.create_task(ask(port, asking(models[number % len(models)], stream=True)))
                    for number in range(crowd.streams)
                ]
                await vendor.received(crowd.streams)
                large = asking(models[0], user="x" * 100_000)
                uploads = [group.create_task(upload(port, large, crowd.seconds / 2)) for _ in range(crowd.uploads)]
                kept = [group.create_task(keep(port, asking(models[-1]), crowd.pause)) for _ in range(crowd.keepers)]
                await asyncio.sleep(crowd.seconds / 10)
                signalled = loop.time()
                code = await gateway.stop()
                seconds = loop.time() - signalled
                return Stopped(
                    [await task for task in streamed],
                    [ended for task in kept for ended in await task],
                    [await task for task in uploads],
                    code,
                    seconds,
                )


def stop_under_load(folder: Path, crowd: Crowd, times: int) -> Result:
    """Run several stops, each of a gateway of its own."""
    stops = []
    for number in range(times):
        (folder / f"stop{number}").mkdir()
        stops.append(uvloop.run(stop_once(folder / f"stop{number}", crowd)))
    ends = [ended for stop in stops for ended in stop.all]
    codes, slowest = {stop.code for stop in stops}, max(stop.seconds for stop in stops)
    value = (
        f"dropped or cut {failures(ends)} of {sum(len(stop.streams) for stop in stops)} streams, "
        f"{sum(len(stop.kept) for stop in stops)} requests of {crowd.keepers} keep-alive clients and "
        f"{sum(len(stop.uploads) for stop in stops)} uploads in {times} stops; "
        f"exit codes {sorted(codes)}, after {slowest:.1f} s at most"
    )
    good = all(ended.well for ended in ends) and codes == {0} and slowest <= crowd.seconds + 1
    return Result(value, good)


async def _stop_beyond(
    folder: Path, waiting: int, seconds: float, limit: int
) -> tuple[list[Ended], list[Ended], int, float]:
    def serve(received: Received) -> Script:
        return slow_stream(seconds, 20) if streams(received) else (Delay(seconds), *WHOLE)

    loop = asyncio.get_running_loop()
    async with FakeVendor(serve) as vendor:
        models = many("fake", 2 * waiting)
        text = table({"fake": vendor.base_url}, [f"{model}: {{}}" for model in models], f"{SERVER}{limit}s\n")
        async with running_gateway(text, folder) as gateway, asyncio.TaskGroup() as group:
            port = port_of(gateway)
            kinds = [
                [
                    group.create_task(ask(port, asking(models[number % len(models)], stream=stream)))
                    for number in range(waiting)
                ]
                for stream in (True, False)
            ]
            await vendor.received(2 * waiting)
            await asyncio.sleep(0.2)  # the first texts are in flight
            signalled = loop.time()
            code = await gateway.stop()
            took = loop.time() - signalled
            streamed, whole = [[await task for task in tasks] for tasks in kinds]
            return streamed, whole, code, took


def stop_beyond_the_limit(folder: Path, waiting: int, seconds: float, limit: int) -> Result:
    """Stop with `waiting` streams and non-streaming responses, all of which take longer than the drain limit."""
    streamed, whole, code, took = uvloop.run(_stop_beyond(folder, waiting, seconds, limit))
    told = sum(ended.end is End.TOLD for ended in streamed)
    refused = sum(ended.end is End.REFUSED for ended in whole)
    value = (
        f"{told} of {waiting} streams got an error event and {refused} of {waiting} whole answers an envelope, "
        f"exit code {code} after {took:.1f} s at a limit of {limit} s"
    )
    return Result(value, told == refused == waiting and code == 0)


def r05(folder: Path) -> Result:
    """Return the figure: SIGTERM under load, five times."""
    return stop_under_load(folder, Crowd(), 5)


def r06(folder: Path) -> Result:
    """Return the figure: SIGTERM with responses that take longer than the drain."""
    return stop_beyond_the_limit(folder, 100, 10.0, 2)
