"""The effect of ten large requests in flight on a light one, and their memory."""

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import repeat

import orjson

from tests.bench.agents.measure import body_of, checked
from tests.bench.agents.rows import Row
from tests.bench.cases import CASES, REQUEST
from tests.bench.cpu import PROC, family_pids, pin_pids, resident_bytes
from tests.bench.latency import quantile
from tests.bench.load import WholeCaller, WrongAnswer
from tests.bench.programs.program import Target
from tests.support.gateway import ROOT

IN_FLIGHT = 10
LIGHT_REQUESTS, LIGHT_EVERY = 300, 0.01


@dataclass(frozen=True, slots=True)
class Beside:
    """The result of ten large requests in flight: the light requests' times in seconds, alone and beside them; and the
    program's peak memory minus its memory before, for each byte of the bodies. `failure` is why there is no result."""

    row: Row
    alone: Sequence[float] = ()
    light: Sequence[float] = ()
    memory: float | None = None
    failure: str = ""

    @property
    def wait(self) -> float | None:
        """Return the milliseconds at the 99th percentile beyond the time that a light request takes alone."""
        if not self.light:
            return None
        return (quantile(self.light, 0.99) - quantile(self.alone, 0.5)) * 1e3


def peak_bytes(pids: Sequence[int]) -> int:
    """Return the peak memory of processes since the peak was last reset (`VmHWM`, proc(5))."""
    lines = [(PROC / str(pid) / "status").read_text(encoding="utf-8") for pid in pids]
    return sum(int(text.partition("VmHWM:")[2].split()[0]) for text in lines) * 1024


def forget_peak(pids: Sequence[int]) -> None:
    """Reset the peak memory of processes to their current memory."""
    for pid in pids:
        (PROC / str(pid) / "clear_refs").write_text("5", encoding="utf-8")


@asynccontextmanager
async def in_flight(port: int, request: bytes) -> AsyncIterator[list[WholeCaller]]:
    """Send requests on ten connections, again and again until the block ends. Raise their failures."""
    loop, callers = asyncio.get_running_loop(), list[WholeCaller]()
    try:
        for _ in range(IN_FLIGHT):
            _, caller = await loop.create_connection(lambda: WholeCaller(request, repeat(0)), "127.0.0.1", port)
            callers.append(caller)
        yield callers
        for caller in callers:
            if caller.done.done():
                caller.done.result()
    finally:
        for caller in callers:
            caller.fail(ConnectionError("the measurement is over"))
            caller.done.exception()


async def light_times(target: Target, core: int) -> list[float]:
    """Return the times of light requests. Raise WrongAnswer if one failed."""
    request = target.request(next(case for case in CASES if case.name == REQUEST))
    assert request is not None
    command = [sys.executable, "-m", "tests.bench.agents.light"]
    numbers = [str(target.port), str(LIGHT_REQUESTS), str(LIGHT_EVERY)]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, *numbers, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe)
    pin_pids([process.pid], [core])
    said, failed = await process.communicate(request)
    if process.returncode:
        raise WrongAnswer(failed.decode(errors="replace").splitlines()[-1])
    found: list[float] = orjson.loads(said)
    return found


async def measured_beside(target: Target, row: Row, core: int) -> Beside | None:
    """Measure the effect of ten requests of a row on a program. Return `None` if the program cannot serve the row."""
    request = row.request(target)
    if request is None:
        return None
    pids = family_pids(target.pid)
    try:
        await checked(target.port, request)
        alone = await light_times(target, core)
        before = resident_bytes(target.pid)
        forget_peak(pids)
        async with in_flight(target.port, request):
            light = await light_times(target, core)
        memory = (peak_bytes(pids) - before) / (IN_FLIGHT * len(body_of(request)))
    except (WrongAnswer, OSError, TimeoutError) as error:
        return Beside(row, failure=str(error)[:200] or type(error).__name__)
    return Beside(row, alone, light, memory)
