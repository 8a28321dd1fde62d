"""The parts of the overload bench: the check for a refusal, and the line of figures."""

import asyncio

import pytest

from tests.bench.load import Load, WrongAnswer, run_load
from tests.bench.overload import RefusedCaller, line
from tests.bench.readings import Reading


async def sends(answer: bytes) -> "asyncio.Server":
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(1000):
            writer.write(answer[:40])
            await writer.drain()
            await asyncio.sleep(0)
            writer.write(answer[40:])
        writer.close()

    return await asyncio.start_server(serve, "127.0.0.1", 0)


async def load(answer: bytes) -> None:
    async with await sends(answer) as server:
        await run_load(server.sockets[0].getsockname()[1], Load(b"ask", 3, 1), RefusedCaller)


async def test_a_refusal_in_pieces_is_read_whole() -> None:
    await load(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 2\r\n\r\n{}")


@pytest.mark.parametrize("status", [b"200 OK", b"500 Internal Server Error"])
async def test_any_other_answer_ends_the_load(status: bytes) -> None:
    with pytest.raises(WrongAnswer):
        await load(b"HTTP/1.1 " + status + b"\r\ncontent-length: 2\r\n\r\n{}")


def test_the_share_is_that_of_the_cheapest_rounds() -> None:
    refused = [Reading(0.9, 1.0, 10_000), Reading(0.3, 1.0, 10_000)]
    served = [Reading(3.0, 10.0, 10_000), Reading(4.0, 10.0, 10_000)]
    assert line(refused, served) == (
        "refused request 30.0 µs of CPU, 10.0% of the 300.0 µs of one that is served; 10000 refused a second"
    )
