"""Memory: at rest, of an idle stream, after load, and of a supervisor with two workers."""

import asyncio
from dataclasses import dataclass, replace

from tests.bench.cases import Case
from tests.bench.cpu import proportional_bytes, resident_bytes
from tests.bench.load import OK, WrongAnswer, shown
from tests.bench.programs.program import Target
from tests.bench.traffic import Ask

IDLE = Case("idle streams", Ask(chunks=2, pace=600_000))
"""Streams that have sent their first text and will send the next in ten minutes."""

WARM_UP = 20
"""Streams before those, for objects that a program creates only once."""


@dataclass(frozen=True, slots=True)
class Held:
    """Bytes of a program and its children: resident, and with shared pages counted in parts."""

    resident: int
    proportional: int


def held(pid: int) -> Held:
    return Held(resident_bytes(pid), proportional_bytes(pid))


async def opened(target: Target, case: Case) -> list[asyncio.StreamWriter]:
    """Open the case's streams and wait until each has sent its first text. Raise WrongAnswer for anything else."""
    request = target.request(case)
    assert request is not None
    event, writers = target.wire(case).event, []
    for _ in range(case.connections):
        reader, writer = await asyncio.open_connection("127.0.0.1", target.port_of(case))
        writers.append(writer)
        writer.write(request)
        data = b""
        async with asyncio.timeout(30):
            while event not in data:
                piece = await reader.read(65536)
                data += piece
                if not piece or not data.startswith(OK):
                    raise WrongAnswer(shown(data))
    return writers


async def idle_stream_bytes(target: Target, count: int, settle: float) -> float:
    """Return the bytes of each further idle stream: the growth of `count` streams, divided by `count`. Memory is read
    `settle` seconds after they opened.

    Call it before the program has had a load: otherwise the streams would use memory that the load returned to the
    allocator.
    """
    for writer in await opened(target, replace(IDLE, connections=WARM_UP)):
        writer.transport.abort()
    await asyncio.sleep(settle)
    before = resident_bytes(target.pid)
    writers = await opened(target, replace(IDLE, connections=count))
    await asyncio.sleep(settle)
    after = resident_bytes(target.pid)
    for writer in writers:
        writer.transport.abort()
    await asyncio.sleep(settle)
    return (after - before) / count
