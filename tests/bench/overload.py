"""The cost of refusing a request compared with serving one, in one run: `python -m tests.bench.overload`.

Both gateways get the same bytes in alternate turns. One of them accepts one request at a time and is occupied by one
that never ends, so it refuses all others. The other serves from the bench's fake upstream. The cheapest round of each
counts.
"""

import argparse
import asyncio
import os
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import uvloop
from typing_extensions import override

from tests.bench.cpu import cpu_seconds
from tests.bench.load import OK, Caller, Load, WholeCaller, WrongAnswer, run_load, shown
from tests.bench.measure import separate
from tests.bench.programs.gateway import Build
from tests.bench.programs.program import Target
from tests.bench.readings import Reading, cheapest
from tests.bench.traffic import Ask, chat_request
from tests.bench.upstream import RunningUpstream, running_upstream

REFUSED = b"HTTP/1.1 503 "
REQUEST = chat_request(Ask())


class RefusedCaller(WholeCaller):
    """A caller that expects refusals: a response that is not a 503 ends the load."""

    @override
    def data_received(self, data: bytes) -> None:
        if self._data:
            super().data_received(data)
        elif data.startswith(REFUSED):
            super().data_received(OK + data.removeprefix(REFUSED))
        else:
            self.fail(WrongAnswer(shown(data)))


@asynccontextmanager
async def refusing_gateway(folder: Path, upstream: RunningUpstream) -> AsyncIterator[Target]:
    """Run a gateway that refuses everything but health checks, because the one request that it accepts waits for
    ever."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        mute = replace(upstream, port=silent.getsockname()[1])
        with Build("refusing", limits="{requests: 1}").start(folder, mute) as target:
            _, writer = await asyncio.open_connection("127.0.0.1", target.port)
            writer.write(REQUEST)
            held, _ = await asyncio.to_thread(silent.accept)
            try:
                yield target
            finally:
                writer.transport.abort()
                held.close()


@dataclass(frozen=True, slots=True)
class Amount:
    """The amount to measure: requests in a round, connections, and rounds."""

    requests: int
    connections: int
    rounds: int


async def measure(target: Target, load: Load, caller: Callable[[bytes, Iterator[int]], Caller]) -> Reading:
    """Return the cost of one load."""
    before = cpu_seconds(target.pid)
    wall = await run_load(target.port, load, caller)
    return Reading(cpu_seconds(target.pid) - before, wall, load.count)


async def readings(
    targets: Sequence[tuple[Target, Callable[[bytes, Iterator[int]], Caller]]], amount: Amount
) -> list[list[Reading]]:
    """Return the readings of each target, taken in alternate turns."""
    load = Load(REQUEST, amount.requests, amount.connections)
    taken: list[list[Reading]] = [[] for _ in targets]
    for target, caller in targets:
        await run_load(target.port, Load(REQUEST, amount.requests // 10, amount.connections), caller)
    for _ in range(amount.rounds):
        for (target, caller), of_target in zip(targets, taken, strict=True):
            of_target.append(await measure(target, load, caller))
    return taken


def line(refused: Sequence[Reading], served: Sequence[Reading]) -> str:
    """Return the line of figures: a refusal's CPU, its ratio to a served request's, and the number per second."""
    less, more = cheapest(refused), cheapest(served)
    share = less.microseconds / more.microseconds
    return (
        f"refused request {less.microseconds:.1f} µs of CPU, {share:.1%} of the {more.microseconds:.1f} µs of one that "
        f"is served; {less.rate:.0f} refused a second"
    )


async def bench(amount: Amount, folder: Path) -> None:
    """Run both and print the figure."""
    places = [folder / name for name in ("serving", "refusing")]
    for place in places:
        place.mkdir()
    with running_upstream(folder) as upstream, Build("serving").start(places[0], upstream) as serving:
        async with refusing_gateway(places[1], upstream) as refusing:
            separate([refusing.pid, serving.pid], [os.getpid(), upstream.pid])
            refused, served = await readings([(refusing, RefusedCaller), (serving, WholeCaller)], amount)
    print(line(refused, served))


def amount_of(arguments: Sequence[str]) -> Amount:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.overload", description=__doc__)
    parser.add_argument("--requests", type=int, default=20_000, help="requests a round (%(default)s)")
    parser.add_argument("--connections", type=int, default=32, help="connections they are sent on (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds, of which the cheapest counts (%(default)s)")
    return Amount(**vars(parser.parse_args(arguments)))


def main() -> None:
    """Measure as the command line orders."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        uvloop.run(bench(amount_of(sys.argv[1:]), Path(folder)))


if __name__ == "__main__":
    main()
