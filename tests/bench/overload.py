"""The cost of refusing a request beside serving one, in one run: `python -m tests.bench.overload`.

Both gateways are loaded with the same bytes in turns. One of them takes on one request at a time and has been given one
that never ends, so it refuses all others; the other serves from the bench's fake upstream. The cheapest round of each
counts.
"""

import asyncio
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import uvloop
from typing_extensions import override

from tests.bench import traffic
from tests.bench.load import OK, Caller, Load, WholeCaller, WrongAnswer, run_load, shown
from tests.bench.report import Reading, cheapest
from tests.bench.run import KEY, Measured, Plan, gateway_table, measure, measured, plan_from, running_upstream, separate
from tests.support.gateway import running_gateway

REFUSED = b"HTTP/1.1 503 "
ONE_AT_A_TIME = """\
server:
  port: ${PORT}
  admin:
    port: ${ADMIN_PORT}
  limits: {requests: 1}
"""


class RefusedCaller(WholeCaller):
    """Asks for what is refused: an answer that is no 503 ends the load."""

    @override
    def data_received(self, data: bytes) -> None:
        if self._data:
            super().data_received(data)
        elif data.startswith(REFUSED):
            super().data_received(OK + data.removeprefix(REFUSED))
        else:
            self.fail(WrongAnswer(shown(data)))


@asynccontextmanager
async def refusing_gateway(folder: Path) -> AsyncIterator[Measured]:
    """A gateway that refuses everything but health, because the one request it takes on waits for ever."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        table = gateway_table(silent.getsockname()[1]) + ONE_AT_A_TIME
        async with running_gateway(table, folder) as gateway:
            target = measured(gateway)
            _, writer = await asyncio.open_connection("127.0.0.1", target.port)
            writer.write(REQUEST)
            held, _ = await asyncio.to_thread(silent.accept)
            try:
                yield target
            finally:
                writer.transport.abort()
                held.close()


REQUEST = traffic.request_bytes(traffic.request_body(stream=False), KEY)


async def readings(
    targets: Sequence[tuple[Measured, Callable[[bytes, Iterator[int]], Caller]]], plan: Plan
) -> list[list[Reading]]:
    """The readings of each target under the plan's load, taken in turns."""
    load = Load(REQUEST, plan.requests, plan.connections)
    taken: list[list[Reading]] = [[] for _ in targets]
    for target, caller in targets:
        await run_load(target.port, Load(REQUEST, plan.requests // 10, plan.connections), caller)
    for _ in range(plan.rounds):
        for (target, caller), of_target in zip(targets, taken, strict=True):
            of_target.append(await measure(target, load, caller, 1))
    return taken


def line(refused: Sequence[Reading], served: Sequence[Reading]) -> str:
    """The figure: a refusal's CPU, as a share of a served request's, and how many a second."""
    less, more = cheapest(refused), cheapest(served)
    share = less.microseconds / more.microseconds
    return (
        f"refused request {less.microseconds:.1f} µs of CPU, {share:.1%} of the {more.microseconds:.1f} µs of one that "
        f"is served; {less.rate:.0f} refused a second"
    )


async def bench(plan: Plan, folder: Path, refusing_folder: Path) -> None:
    """Run both and print the figure."""
    with running_upstream(plan) as upstream:
        async with (
            running_gateway(gateway_table(upstream.port), folder) as serving,
            refusing_gateway(refusing_folder) as refusing,
        ):
            targets = [(refusing, RefusedCaller), (measured(serving), WholeCaller)]
            separate([target for target, _ in targets])
            refused, served = await readings(targets, plan)
    print(line(refused, served))


def main() -> None:
    """Measure as the command line says; what it says of streams is for the other figures."""
    plan = plan_from(sys.argv[1:])
    with tempfile.TemporaryDirectory() as serving, tempfile.TemporaryDirectory() as refusing:
        uvloop.run(bench(plan, Path(serving), Path(refusing)))


if __name__ == "__main__":
    main()
