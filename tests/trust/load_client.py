"""Requests of a client under load, and the end of each."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import orjson

from providers.json_types import JsonValue
from tests.proxy.kit.raw_client import RawClient, connected, request

KEY = "dk-of-the-load"
AUTH = {"Authorization": f"Bearer {KEY}"}


class End(StrEnum):
    """How a request ended. The first three ends are allowed, the others are violations."""

    WHOLE = "whole"
    REFUSED = "refused in an envelope"
    TOLD = "told in the stream that it broke"
    CUT = "cut"
    UNANSWERED = "not answered"
    HUNG = "hung"


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of one request that began at this second of the loop's clock. `first` are the seconds to its head.

    `closes` means that the response announced the end of its connection.
    """

    end: End
    began: float
    seconds: float
    first: float = 0.0
    status: int = 0
    closes: bool = False

    @property
    def well(self) -> bool:
        """Return whether the client got the requested response."""
        return self.end is End.WHOLE


def asking(model: str, stream: bool = False, **fields: JsonValue) -> bytes:
    """Return a completion request's bytes."""
    body: JsonValue = {"model": model, "prompt": "hi", "max_tokens": 16, "stream": stream, **fields}
    return request("POST", "/v1/completions", body, AUTH)


async def ask(port: int, data: bytes, patience: float = 60.0) -> Ended:
    """Send these bytes on a connection of their own."""
    began = asyncio.get_running_loop().time()
    try:
        async with asyncio.timeout(patience), connected(port) as client:
            return await ask_on(client, data)
    except TimeoutError:
        return _ended(End.HUNG, began)
    except OSError:
        return _ended(End.UNANSWERED, began)


async def ask_on(client: RawClient, data: bytes) -> Ended:
    """Send these bytes on an open connection, and read the response to its end, without a time limit."""
    began = asyncio.get_running_loop().time()
    try:
        await client.send(data)
        return await answered(client, began)
    except OSError:
        return _ended(End.UNANSWERED, began)


async def answered(client: RawClient, began: float) -> Ended:
    """Return the end of a request whose bytes were sent."""
    loop = asyncio.get_running_loop()
    try:
        status, headers = await client.head()
    except (asyncio.IncompleteReadError, OSError):
        return _ended(End.UNANSWERED, began)
    first = loop.time() - began
    try:
        if headers.get("transfer-encoding") == "chunked":
            end = _end_of_stream(*await client.chunks())
        else:
            end = _end_of_answer(status, await client.reader.readexactly(int(headers["content-length"])))
    except (asyncio.IncompleteReadError, OSError):
        end = End.CUT
    return Ended(end, began, loop.time() - began, first, status, headers.get("connection") == "close")


def _ended(end: End, began: float) -> Ended:
    return Ended(end, began, asyncio.get_running_loop().time() - began)


def _end_of_stream(body: bytes, whole: bool) -> End:
    if whole and body.endswith(b"data: [DONE]\n\n"):
        return End.WHOLE
    return End.TOLD if b'data: {"error":' in body and b"[DONE]" not in body else End.CUT


def _end_of_answer(status: int, body: bytes) -> End:
    if status == 200:
        return End.WHOLE
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        return End.CUT
    return End.REFUSED if isinstance(answer, dict) and "error" in answer else End.CUT


async def paced(rate: float, count: int, job: Callable[[int], Awaitable[Ended]]) -> list[Ended]:
    """Begin `count` jobs, `rate` a second, whether or not the earlier ones ended, and wait for all of them."""
    loop = asyncio.get_running_loop()
    start = loop.time()
    async with asyncio.TaskGroup() as group:
        tasks = []
        for number in range(count):
            if (early := start + number / rate - loop.time()) > 0:
                await asyncio.sleep(early)
            tasks.append(group.create_task(_awaited(job, number)))
    return [task.result() for task in tasks]


async def _awaited(job: Callable[[int], Awaitable[Ended]], number: int) -> Ended:
    return await job(number)


def failures(ends: Sequence[Ended]) -> str:
    """Return the counts of the requests that did not end well, by their ends. Return `0` if there is none."""
    counts = Counter(f"{ended.end} {ended.status or ''}".strip() for ended in ends if not ended.well)
    return ", ".join(f"{count} {name}" for name, count in counts.most_common()) or "0"


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value that `share` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
