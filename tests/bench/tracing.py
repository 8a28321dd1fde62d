"""The cost of tracing for a good request: `python -m tests.bench.tracing`, on Linux.

One gateway in this process gets a steady load from another one. After each turn of some dozen requests the share of
traced requests is set anew. So the same code and the same memory serve all shares, which separate processes would not
do. Every tenth request is sampled, not each by chance, so that no turn is cheap because it has few sampled requests.

The CPU includes the whole process: the loop's thread by turns, and the exporter's thread, which encodes and posts
later, by its own clock for each sampled request. The cheapest turns of each count, since other programs can only add to
a turn. The load, the vendor and the collector are processes of their own, on another core. The collector reads the
spans and discards them. Its cost is a figure of its own and part of no other.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BytesIO
from itertools import cycle, repeat
from pathlib import Path
from typing import Final

import uvloop

from proxy.gateway.handle_request import Gateway
from proxy.hooks.team_hooks import TeamHooks
from proxy.process.assemble_app import Addresses, running
from proxy.process.load_table import Source
from proxy.process.set_up_process import tune_garbage_collector
from proxy.request_record import RequestRecord
from proxy.tracing.begin_trace import TraceStarter
from proxy.tracing.export_queue import ExportQueue, ExportState
from proxy.tracing.trace_hook import attach_tracing
from proxy.tracing.tracing_service import TraceSetter
from tests.bench.cpu import cpu_seconds
from tests.bench.load import Load, WholeCaller, WrongAnswer, run_load
from tests.bench.measure import separate
from tests.bench.programs.gateway import gateway_table
from tests.bench.traffic import Ask, chat_request
from tests.bench.upstream import running_upstream
from tests.support.gateway import ROOT

SHARE: Final = 0.1
"""The share of sampled requests for the figure."""

SHARES: Final = (None, 0.0, SHARE)
"""The share of sampled requests in a turn. `None` means that tracing is off."""

MOST: Final = 0.05
"""The most that tracing may add to the cost of a request."""

TURN: Final = 50
"""Requests in a turn."""

CONNECTIONS: Final = 8

UNCOUNTED: Final = 2 * CONNECTIONS
"""Requests before a turn, so that all requests in flight have begun after the last turn."""

CHEAPEST: Final = 0.05
"""The share of turns that are cheaper than the turn that counts."""

SMALLEST: Final = 64
"""Requests of the smallest export that counts. The cost of a smaller export is mostly the cost of a connection, and
connections are few in a second."""

SINK: Final = """\
import http.server
class Sink(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()
    def log_message(self, *args):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Sink)
print(server.server_address[1], flush=True)
server.serve_forever()
"""
"""A collector that discards everything. It is a program, so that its work does not count for the gateway."""


@contextmanager
def sink() -> Iterator[tuple[int, int]]:
    """Run a collector that discards everything, for the duration of the block. Yield its port and its process."""
    with subprocess.Popen([sys.executable, "-c", SINK], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline()), process.pid
        finally:
            process.terminate()


@contextmanager
def loaded(port: int) -> Iterator[int]:
    """Run a load on a gateway's port for the duration of the block, from a process of its own. Yield that process."""
    with subprocess.Popen([sys.executable, "-m", "tests.bench.tracing", "--load", str(port)], cwd=ROOT) as process:
        try:
            yield process.pid
        finally:
            process.terminate()


def settings(port: int) -> str:
    """Return the `server` section of the configuration."""
    return f"tracing: {{endpoint: 'http://127.0.0.1:{port}', sample: 1}}"


@dataclass(frozen=True, slots=True)
class Costs:
    """CPU of a request in µs: with tracing off; the addition on the loop's thread if no request is sampled, and if
    SHARE is; and the cost of each sampled request in the exporter's thread, and in the collector."""

    plain: float
    none: float
    some: float
    exported: float
    collector: float

    @property
    def more(self) -> float:
        """Return the average addition to the cost of a request if SHARE is sampled."""
        return self.some + self.exported * SHARE


def cheap(readings: Sequence[float]) -> float:
    """Return the cost of the cheapest turns. The very cheapest may be an error of the clock."""
    return sorted(readings)[int(len(readings) * CHEAPEST)]


def costs(turns: Mapping[float | None, Sequence[float]], exports: Sequence[float], collector: float) -> Costs:
    """Return the costs from the turns of each share."""
    plain, none, some = (cheap(turns[share]) for share in SHARES)
    return Costs(plain, none - plain, some - plain, cheap(exports), collector)


def lines(found: Costs) -> list[str]:
    """Return the lines of figures."""
    verdict = "holds" if found.more <= MOST * found.plain else "MISSED"
    return [
        f"a request where tracing is off: {found.plain:.1f} µs of CPU",
        f"0% sampled: {found.none:+.1f} µs, {found.none / found.plain:+.1%}",
        f"{SHARE:.0%} sampled: {found.some:+.1f} µs on the loop's thread",
        f"and {found.exported * SHARE:+.1f} µs on the exporter's, {found.exported:.0f} µs for each that is sampled",
        f"of the whole process: {found.more:+.1f} µs, {found.more / found.plain:+.1%} (at most {MOST:.0%}: {verdict})",
        f"(the collector, a process of its own: {found.collector:.0f} µs for each that is sampled)",
    ]


class Switched:
    """A switch before each request for the part of the gateway that begins traces. The hooks for it are made once."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._made: dict[TraceStarter | None, TeamHooks] = {}

    def use(self, traces: TraceStarter | None) -> None:
        """Use `traces` to begin the traces of requests from now on."""
        hooks = self._made.get(traces)
        if hooks is None:
            hooks = self._made[traces] = TeamHooks()
            attach_tracing(hooks, self._gateway.guard, traces)
        self._gateway.hooks = hooks


class Turns:
    """A meter of the loop's thread over a number of requests. Call `ended` when each ends. It decides, in the same way
    in all turns, how the next trace begins: for a share, exactly that many are sampled."""

    def __init__(self, set_traces: TraceSetter) -> None:
        self._set_traces = set_traces
        none, every = TraceStarter(0.0, content=False), TraceStarter(1.0, content=False)
        self._orders: Mapping[float | None, Iterator[TraceStarter | None]] = {
            None: repeat(None),
            0.0: repeat(none),
            SHARE: cycle([every, *[none] * (round(1 / SHARE) - 1)]),
        }
        self._order = self._orders[None]
        self._left = 0
        self._over: asyncio.Future[float] | None = None

    def trace(self, share: float | None) -> None:
        """Sample this share of the requests that begin from now on."""
        self._order = self._orders[share]
        self._set_traces(next(self._order))

    def ended(self) -> None:
        """Count a request that has ended."""
        self._set_traces(next(self._order))
        self._left -= 1
        if not self._left and self._over is not None:
            self._over.set_result(time.thread_time())

    async def after(self, requests: int) -> float:
        """Return the CPU that the thread has used when `requests` more have ended."""
        self._left, self._over = requests, asyncio.get_running_loop().create_future()
        return await self._over


def measured_exports(queue: ExportQueue, state: ExportState) -> list[float]:
    """Return a list to which the queue's thread adds the cost of each request of an export from now on."""
    exports: list[float] = []
    drain = queue._drain

    def drained() -> None:
        cpu, count = time.thread_time(), state.exported
        drain()
        if (sent := state.exported - count) >= SMALLEST:
            exports.append((time.thread_time() - cpu) / sent * 1e6)

    queue._drain = drained  # type: ignore[method-assign]
    return exports


async def measure(turns: Turns, rounds: int) -> Mapping[float | None, Sequence[float]]:
    """Take turns for `rounds` rounds, and return the cost of a request in each."""
    found: dict[float | None, list[float]] = {share: [] for share in SHARES}
    for number in range(rounds):
        at = number % len(SHARES)
        for share in (*SHARES[at:], *SHARES[:at]):
            turns.trace(share)
            before = await turns.after(UNCOUNTED)
            found[share].append((await turns.after(TURN) - before) / TURN * 1e6)
    return found


async def bench(rounds: int, folder: Path) -> Costs:
    """Run a gateway under load, and return the readings."""
    with running_upstream(folder) as upstream, sink() as (port, collector):
        table = gateway_table(upstream, f"server: {{port: 0, watch: false, admin: {{port: 0}}, {settings(port)}}}")
        path = folder / "gateway.yaml"
        path.write_text(table, encoding="utf-8")
        source, anywhere = Source(path, {}), Addresses("127.0.0.1", 0, "127.0.0.1", 0)
        async with running(source, source.load(), anywhere, BytesIO()) as app:
            gateway, emit = app.front.gateway, app.front.gateway._emit
            turns = Turns(Switched(gateway).use)

            def counted(record: RequestRecord) -> None:
                emit(record)
                turns.ended()

            gateway._emit = counted
            tracing, running_now = app.front.tracing, app.front.tracing._running
            assert running_now is not None
            tune_garbage_collector()
            with loaded(int(app.url.rpartition(":")[2])) as load:
                separate([os.getpid()], [load, upstream.pid, collector])
                await asyncio.sleep(3)
                exports, sent = measured_exports(running_now.queue, tracing.state), tracing.state.exported
                began = cpu_seconds(collector)
                found = await measure(turns, rounds)
                took = (cpu_seconds(collector) - began) / (tracing.state.exported - sent) * 1e6
                return costs(found, exports, took)


async def load(port: int) -> None:
    """Send requests without end. On a busy machine the gateway may refuse some. They are few, and count in every turn
    alike."""
    while True:
        with suppress(WrongAnswer):
            await run_load(port, Load(chat_request(Ask()), 10_000, CONNECTIONS), WholeCaller)


def main() -> None:
    """Measure as the command line orders."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.tracing", description=__doc__)
    parser.add_argument("--rounds", type=int, default=1000, help="rounds of a turn of each (%(default)s)")
    parser.add_argument("--load", type=int, metavar="PORT", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.load is not None:
        uvloop.run(load(chosen.load))
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        for line in lines(asyncio.run(bench(chosen.rounds, Path(folder)))):
            print(line)


if __name__ == "__main__":
    main()
