"""Measuring the gateway beside nginx in one run: `python -m tests.bench` prints figures.

The gateway checks a key, resolves a model, reads and writes JSON both ways, counts and logs; nginx forwards the same
bytes and logs nothing. Each round loads one and then the other; the cheapest round of each counts. At the end, without
a socket, come the costs of a chunk in each dialect, and of requests and chunks on each surface.
"""

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import uvloop

from tests.bench import dialects, surfaces, traffic
from tests.bench.cpu import cpu_seconds, pin, resident_bytes
from tests.bench.load import Caller, Load, StreamCaller, WholeCaller, run_load
from tests.bench.nginx import HINT, nginx_path, running_nginx
from tests.bench.report import Reading, Row, table
from tests.support.gateway import ROOT, RunningGateway, running_gateway, start_gateway, until_ready

KEY = "sk-bench"
STARTS = 5


@dataclass(frozen=True, slots=True)
class Plan:
    """The amount to measure. `pace` is the time between two chunks of a stream in seconds."""

    requests: int
    connections: int
    streams: int
    chunks: int
    pace: float
    rounds: int


@dataclass(frozen=True, slots=True)
class Measured:
    """A program under load: where it listens, and the process to account for, its children included."""

    port: int
    pid: int


def gateway_table(upstream: int) -> str:
    """One team with a key, one vendor at the fake upstream."""
    return f"""\
version: 1
vendors:
  bench: {{profile: openai_compatible, base_url: "http://127.0.0.1:{upstream}/v1", allow_private: true, api_key: sk-up}}
models:
  {traffic.MODEL}: {{}}
teams:
  load: {{keys: ["sha256:{hashlib.sha256(KEY.encode()).hexdigest()}"], models: ["*"]}}
"""


@contextmanager
def running_upstream(plan: Plan) -> Iterator[Measured]:
    """The fake upstream in a process of its own."""
    command = [sys.executable, "-m", "tests.bench.upstream", str(plan.chunks), str(plan.pace)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield Measured(int(process.stdout.readline()), process.pid)


async def measure(target: Measured, load: Load, caller: Callable[[bytes, Iterator[int]], Caller], each: int) -> Reading:
    """The cost of one load; `each` is how many chunks a request stands for."""
    before = cpu_seconds(target.pid)
    wall = await run_load(target.port, load, caller)
    return Reading(cpu_seconds(target.pid) - before, wall, load.count * each)


async def rounds(
    targets: Sequence[Measured], plan: Plan, load: Load, caller: Callable[[bytes, Iterator[int]], Caller], each: int
) -> list[list[Reading]]:
    """The readings of each target, taken in turns."""
    readings: list[list[Reading]] = [[] for _ in targets]
    for _ in range(plan.rounds):
        for target, taken in zip(targets, readings, strict=True):
            taken.append(await measure(target, load, caller, each))
    return readings


async def compare(targets: Sequence[Measured], plan: Plan) -> list[Row]:
    """Return both rows of the table; the gateway is the first target, nginx the second if it is there."""
    request = traffic.request_bytes(traffic.request_body(stream=False), KEY)
    stream = traffic.request_bytes(traffic.request_body(stream=True), KEY)
    warm_up = Load(request, plan.requests // 10, plan.connections)
    for target in targets:
        await run_load(target.port, warm_up, WholeCaller)
    whole = await rounds(targets, plan, Load(request, plan.requests, plan.connections), WholeCaller, 1)
    streamed = await rounds(
        targets,
        plan,
        Load(stream, plan.streams, plan.streams, spread=plan.pace),
        partial(StreamCaller, chunks=plan.chunks),
        plan.chunks,
    )
    return [
        Row(name, readings[0], readings[1] if len(targets) > 1 else ())
        for name, readings in (("request", whole), ("streamed chunk", streamed))
    ]


async def start_seconds(upstream: int, folder: Path) -> float:
    """The quickest of several starts, from the start of the process to being ready."""
    taken = []
    for number in range(STARTS):
        (folder / str(number)).mkdir()
        started = time.perf_counter()
        gateway = start_gateway(gateway_table(upstream), folder / str(number), {})
        try:
            await until_ready(gateway)
            taken.append(time.perf_counter() - started)
        finally:
            gateway.process.kill()
            gateway.process.wait()
    return min(taken)


async def bench(plan: Plan, folder: Path) -> None:
    with ExitStack() as stack:
        upstream = stack.enter_context(running_upstream(plan))
        start = await start_seconds(upstream.port, folder)
        async with running_gateway(gateway_table(upstream.port), folder) as gateway:
            targets = [measured(gateway)]
            if program := nginx_path():
                targets.append(Measured(*stack.enter_context(running_nginx(program, folder, upstream.port))))
            else:
                print(HINT)
            separate(targets)
            at_rest = resident_bytes(gateway.process.pid)
            rows = await compare(targets, plan)
            loaded = resident_bytes(gateway.process.pid)
    print(table(rows))
    print(
        f"\nmemory at rest {at_rest / 2**20:.0f} MB, after the load {loaded / 2**20:.0f} MB; ready after {start:.2f} s"
    )


def separate(targets: Sequence[Measured]) -> None:
    """Give what is measured one core and all the rest another, so that neither is in the other's way."""
    cores = sorted(os.sched_getaffinity(0))
    pin(os.getpid(), cores[-1])
    for target in targets:
        pin(target.pid, cores[0])


def measured(gateway: RunningGateway) -> Measured:
    """A gateway as something to measure."""
    return Measured(int(gateway.url.rpartition(":")[2]), gateway.process.pid)


def plan_from(arguments: Sequence[str]) -> Plan:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--requests", type=int, default=20_000, help="requests a round (%(default)s)")
    parser.add_argument("--connections", type=int, default=32, help="connections they are sent on (%(default)s)")
    parser.add_argument("--streams", type=int, default=100, help="streams a round, all at once (%(default)s)")
    parser.add_argument("--chunks", type=int, default=200, help="chunks a stream (%(default)s)")
    parser.add_argument("--pace", type=float, default=0.02, help="seconds between two chunks (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds, of which the cheapest counts (%(default)s)")
    return Plan(**vars(parser.parse_args(arguments)))


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        # On asyncio's own loop the load would be slower than nginx, and a program that waits costs more a request.
        uvloop.run(bench(plan_from(sys.argv[1:]), Path(folder)))
    print()
    dialects.main()
    print()
    surfaces.main()
