"""However a client's bytes are split, and whenever requests are refused before they are parsed, each request gets its
own response, in order, and no bytes within a body are read as a request."""

import asyncio
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from types import SimpleNamespace
from typing import cast

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from proxy.listener.cors_and_host_names import BrowserGuard
from proxy.overload.admission_limits import Admitted
from proxy.overload.malformed_requests import MalformedRequests
from proxy.overload.refuse_before_parsing import EarlyRefusal, read_whole_request
from proxy.overload.refusing_connection import EarlyRefusingConnection, EarlyRefusingServer
from tests.proxy.kit.eager_tasks import LOOPS
from tests.proxy.kit.raw_client import RawClient, connected, request
from tests.support.examples import examples

Found = tuple[bytes, int, bytes]


@dataclass
class ChanceRefusal:
    """A policy that refuses at random before parsing; the refusal contains the path that it read."""

    chance: random.Random
    admission: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(sheds=False))
    queue: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(coming=0))
    refused: int = 0

    def shed(self, sheds: bool) -> None:
        """Begin or end a period in which all bytes pass here."""
        self.admission.sheds = sheds

    def read(self, data: bytes) -> Found | None:
        return read_whole_request(data)

    def refusal(self, found: Found) -> bytes | None:
        if self.chance.random() < 0.3:
            return None
        self.refused += 1
        return b"HTTP/1.1 503 No\r\nContent-Length: %d\r\n\r\n%s" % (len(found[0]), found[0])

    def admit(self, found: Found) -> Admitted:
        self.queue.coming += 1
        return cast(Admitted, SimpleNamespace(end=int))

    def look(self) -> None:
        """Report nothing."""


class PathHandler:
    """A handler that responds with the path; on `/wait...` after it has read the body and `opened` is set."""

    def __init__(self) -> None:
        self.opened = asyncio.Event()

    async def __call__(self, http: web.BaseRequest) -> web.StreamResponse:
        cast(EarlyRefusingConnection, http.protocol).claim()
        if http.path.startswith("/wait"):
            await http.read()
            await self.opened.wait()
        return web.Response(text=http.path)


INNER = request("POST", "/inner", b"x")
BODIES = (b"", b"{}", INNER, INNER + b"x", b"x" + INNER, INNER * 2)


@st.composite
def conversations(draw: st.DrawFn) -> tuple[list[str], list[bytes | str]]:
    """Yield the paths of requests, and the steps: parts of their bytes, and words for everything else."""
    paths, data, ends = [], b"", [0]
    for number in range(draw(st.integers(1, 6))):
        paths.append(f"/{draw(st.sampled_from(['a', 'a', 'wait']))}/{number}")
        form = draw(st.sampled_from(["plain", "plain", "chunked", "hidden"]))
        method = draw(st.sampled_from(["POST", "POST", "POST", "GET"]))
        body = draw(st.sampled_from(BODIES))
        if form == "hidden":
            # A line that looks like a request's first line is a header field of this request.
            data += f"{method} {paths[-1]} HTTP/1.1\r\nA: ".encode()
            ends.append(len(data))
            data += request("POST", "/hidden", body)
        elif form == "chunked":
            chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"
            data += f"{method} {paths[-1]} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode() + chunks
        else:
            data += request(method, paths[-1], body)
        ends.append(len(data))
        if INNER in body and draw(st.booleans()):
            ends.append(len(data) - len(body) + body.index(INNER))
            ends.append(ends[-1] + len(INNER))
    kept = draw(st.lists(st.sampled_from(ends), max_size=12))
    marks = sorted({0, len(data), *kept, *draw(st.lists(st.integers(0, len(data)), max_size=3))})
    happens: list[bytes | str] = []
    for start, end in pairwise(marks):
        happens += draw(st.lists(st.sampled_from(["shed", "shed", "admit", "open", "settle", "close"]), max_size=2))
        happens.append(data[start:end])
    return paths, happens


@pytest.fixture(scope="module", params=LOOPS)
def runner(request: pytest.FixtureRequest) -> Iterator[asyncio.Runner]:
    with asyncio.Runner(loop_factory=LOOPS[request.param]) as made:
        yield made


async def response_bodies(client: RawClient, count: int) -> list[str]:
    """Return the bodies of `count` responses."""
    bodies = []
    for _ in range(count):
        _, headers = await client.head()
        bodies.append((await client.reader.readexactly(int(headers["content-length"]))).decode())
    return bodies


async def converse(happens: list[bytes | str], count: int, seed: int) -> tuple[list[str], int]:
    """Return the responses' bodies, and how many were refused before parsing."""
    early, shop = ChanceRefusal(random.Random(seed)), PathHandler()
    guard = cast(BrowserGuard, SimpleNamespace(judge=lambda method, headers: None, rules=object()))
    malformed = cast(MalformedRequests, SimpleNamespace(count=int, look=lambda: None))
    server = EarlyRefusingServer(
        shop, 1 << 20, cast(EarlyRefusal, early), guard, lambda http, error: web.Response(status=500), malformed
    )
    listener = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
    try:
        async with asyncio.timeout(30), connected(listener.sockets[0].getsockname()[1]) as client:
            for event in happens:
                if isinstance(event, bytes):
                    await client.send(event)
                elif event in ("shed", "admit"):
                    early.shed(event == "shed")
                elif event == "open":
                    shop.opened.set()
                elif event == "close":
                    shop.opened.clear()
                for _ in range(6):
                    await asyncio.sleep(0)
            shop.opened.set()
            found = await response_bodies(client, count)
            await client.send(request("GET", "/last"))
            return found + await response_bodies(client, 1), early.refused
    finally:
        shop.opened.set()
        listener.close()
        server.pre_shutdown()
        await server.shutdown(0.2)


@given(conversation=conversations(), seed=st.integers(0, 9))
@examples(150)
def test_each_request_gets_its_own_answer_in_order(
    runner: asyncio.Runner, conversation: tuple[list[str], list[bytes | str]], seed: int
) -> None:
    paths, happens = conversation
    found, _ = runner.run(converse(happens, len(paths), seed))
    assert found == [*paths, "/last"]


def test_such_conversations_have_requests_that_are_refused_before_parsing(runner: asyncio.Runner) -> None:
    whole: list[bytes | str] = ["shed", *(request("POST", f"/a/{number}", INNER) for number in range(20))]
    found, refused = runner.run(converse(whole, 20, 1))
    assert found == [*(f"/a/{number}" for number in range(20)), "/last"]
    assert refused > 5
