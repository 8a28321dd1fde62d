"""Real processes that share a limit in a real Redis, and the units that all of them were granted.

`python -m tests.proxy.limits.kit.fleet [PROCESSES LIMIT OFFERED SECONDS]` prints the figures of one run.
"""

import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.proxy.limits.kit.simulation import excess, quantile, within
from tests.support.redis import real_redis

ROOT = Path(__file__).resolve().parents[4]
START = 0.5
"""Seconds within which every process receives the time to begin."""


@dataclass(frozen=True, slots=True)
class FleetResult:
    """The units granted to all processes, from `begin` on, by their clocks, which are one on one machine."""

    begin: float
    admitted: list[tuple[float, int]]
    waits: list[float]
    refused: list[float]
    alone: int
    turns: int


def run_fleet(
    url: str, processes: int, limit: int, offered: float, seconds: float, burst: int | None = None
) -> FleetResult:
    """Offer `offered` requests per second to all processes together. The burst is one second of the limit, or
    `burst`."""
    module = "tests.proxy.limits.kit.real_process"
    words = (str(processes), str(limit), str(offered / processes), str(seconds), str(burst or limit))
    started = [
        subprocess.Popen(
            [sys.executable, "-m", module, url, f"p{number}", *words],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(processes)
    ]
    for each in started:
        assert each.stdout is not None
        assert each.stdout.readline() == "ready\n"
    begin = time.time() + START
    for each in started:
        assert each.stdin is not None
        each.stdin.write(f"{begin}\n")
        each.stdin.flush()
    shown = [json.loads(each.communicate()[0]) for each in started]
    return FleetResult(
        begin,
        sorted((at, 1) for each in shown for at in each["admitted"]),
        [wait for each in shown for wait in each["waits"]],
        [wait for each in shown for wait in each["refused"]],
        sum(each["alone"] for each in shown),
        sum(each["turns"] for each in shown),
    )


def figures(result: FleetResult, limit: int, seconds: float) -> str:
    """Return the figures of a run as text."""
    first = result.begin + min(3.0, seconds / 2)
    last = result.begin + seconds
    rate = within(result.admitted, first, last) / (last - first)
    p99, refused = (1000 * quantile(each or [0.0], 0.99) for each in (result.waits, result.refused))
    beyond = excess(result.admitted, limit, limit)
    return (
        f"{rate:.1f}/s of {limit} ({100 * (rate / limit - 1):+.2f} %), {beyond:.0f} beyond the envelope, "
        f"p99 of admitted {p99:.2f} ms, of refused {refused:.2f} ms, {result.turns / seconds:.0f} turns/s, "
        f"{result.alone} alone"
    )


if __name__ == "__main__":
    count, most, asked, span = (int(word) for word in sys.argv[1:] or ("8", "1000", "1500", "20"))
    with tempfile.TemporaryDirectory() as folder, real_redis(Path(folder)) as redis:
        sys.stdout.write(figures(run_fleet(redis.url, count, most, asked, span), most, span) + "\n")
