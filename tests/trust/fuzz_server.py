"""Sends broken requests and broken bytes to a whole gateway, a limited number: `python -m tests.trust.fuzz_server
--count N`.

There are two kinds. The requests have valid framing, but broken targets, headers and bodies, and each must get a
response. The streams are connections with bytes that are hardly HTTP, and each response on them must be valid.
"""

import argparse
import asyncio
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import orjson
import uvloop

from tests.proxy.kit.raw_client import RawClient, connected
from tests.proxy.kit.smuggled_requests import REFUSED
from tests.support.gateway import running_gateway
from tests.support.vendor import FakeVendor
from tests.trust.figure_types import Result
from tests.trust.fuzz_mutate import Mutator
from tests.trust.fuzz_targets import CHATS, REQUESTS
from tests.trust.load_capacity import Lags, watched
from tests.trust.load_client import KEY
from tests.trust.load_rig import apart, port_of, quick, table

OPERATOR_KEY = b"sk-of-the-operator"
PATIENCE = 20.0
"""Seconds within which a complete request must get a response."""

LANES = 12
"""Concurrent connections."""

BATCH = 1200
"""The number of requests that are generated before they are sent."""

LOG_INTERVAL = 0.05
"""Seconds of silence after which a connection is abandoned, because the gateway may wait for more bytes."""

ANSWER = re.compile(rb"HTTP/1\.[01] (\d{3})[^\r]*\r\n((?:[^\r\n]+\r\n)*)\r\n")
LIMIT = 0.1
"""Seconds by which the event loop may be late."""

TARGETS = (
    b"/v1/completions",
    b"/v1/chat/completions",
    b"/v4/beta/completions",
    b"/v5/chat/completions",
    b"/inference/v1/completions",
    b"/api/v1/compatibility/openai/v1/chat/completions",
    b"/v1/fim/completions",
    b"/v1/models/mock/echo",
    b"/v1/embeddings",
    b"//v1//completions?a=b",
)
METHODS = (b"POST",) * 45 + (b"GET", b"PUT", b"HEAD", b"OPTIONS", b"DELETE")
HEADERS = (
    b"Content-Type: application/json",
    b"x-request-id: abc",
    b"x-request-timeout: 5",
    b"Accept: text/event-stream",
    b"Cookie: a=b",
    b"Connection: keep-alive",
)
FORBIDDEN = re.compile(rb"(?i)^(content-length|transfer-encoding|expect|upgrade|connection)\b|[\r\n\x00]")
"""Headers that a mutation must not make: they would change the framing, which the streams test."""


@dataclass(slots=True)
class Broken:
    """The counts: responses by status, and a line for each violation."""

    statuses: Counter[int] = field(default_factory=Counter)
    found: list[str] = field(default_factory=list)
    silent: int = 0
    lags: Lags = field(default_factory=Lags)

    def check(self, status: int, body: bytes, sent: bytes) -> None:
        """Count one complete response and check it."""
        self.statuses[status] += 1
        if status == 500 or status not in range(200, 600):
            self.found.append(f"status {status} to {sent[:400]!r}")
        elif status >= 400 and not enveloped(body):
            self.found.append(f"no envelope with {status}: {body[:200]!r} to {sent[:400]!r}")
        elif OPERATOR_KEY in body:
            self.found.append(f"the operator's key to {sent[:400]!r}")


def enveloped(body: bytes) -> bool:
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return False
    error = value.get("error") if isinstance(value, dict) else None
    return isinstance(error, dict) and isinstance(error.get("message"), str)


class Requests:
    def __init__(self, draw: Random) -> None:
        self._draw = draw
        self._seeds = [body.replace(b"v/m", b"fake/m") for body in (*REQUESTS, *CHATS)]
        self._bodies = Mutator(draw, self._seeds)
        self._lines = Mutator(draw, HEADERS)
        self._targets = Mutator(draw, TARGETS)

    def next(self) -> bytes:
        draw = self._draw
        target = draw.choice(TARGETS)
        if draw.random() < 0.1:
            target = re.sub(rb"[^!-~]", b"%00", self._targets.input()[:2000]) or b"/"
        body = self._bodies.input() if draw.random() < 0.8 else draw.choice(self._seeds)
        lines = [b"%s %s HTTP/1.1" % (draw.choice(METHODS), target), b"Host: localhost"]
        if draw.random() < 0.95:
            lines.append(b"Authorization: Bearer " + KEY.encode())
        lines += [draw.choice(HEADERS), b"Content-Length: %d" % len(body)]
        if draw.random() < 0.2 and not FORBIDDEN.search(line := self._lines.input()[:4000]):
            lines.append(line)
        return b"\r\n".join(lines) + b"\r\n\r\n" + body


class Streams:
    def __init__(self, draw: Random) -> None:
        requests = Requests(draw)
        seeds = [*REFUSED.values(), *(requests.next() for _ in range(50)), bytes(range(256))]
        tokens = (b"Transfer-Encoding: chunked\r\n", b"Content-Length: 5\r\n", b"HTTP/1.1", b"0\r\n\r\n", b"ffff\r\n")
        self._mutator = Mutator(draw, seeds, (*tokens, b"\r\n\r\n", b"Expect: 100-continue\r\n"))

    def next(self) -> bytes:
        return self._mutator.input()


NO_BODY = b'{"error":{"message":""}}'
"""The body of a response that has none, so that it is not reported as missing."""


@dataclass(frozen=True, slots=True)
class Got:
    """One response. `last` means that the connection closes after it."""

    status: int
    body: bytes
    whole: bool
    last: bool


async def answer(client: RawClient, sent: bytes) -> Got:
    """Return the response to a request. Raise IncompleteReadError and OSError if there is none."""
    first, *lines = (await client.reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
    fields = dict(line.split(b": ", 1) for line in lines if line)
    status, last = int(first.split()[1]), first.startswith(b"http/1.0") or fields.get(b"connection") == b"close"
    if sent.startswith(b"HEAD "):
        return Got(status, NO_BODY, True, last)
    if fields.get(b"transfer-encoding") == b"chunked":
        body, whole = await client.chunks()
        return Got(status, body, whole, last)
    return Got(status, await client.reader.readexactly(int(fields[b"content-length"])), True, last)


async def ask_all(port: int, requests: Sequence[bytes], broken: Broken) -> None:
    """Send the requests one after the other, on one connection for as long as it is open."""
    left = list(reversed(requests))
    while left:
        async with connected(port) as client:
            stands = True
            while left and stands:
                stands = await ask(client, left.pop(), broken)


async def ask(client: RawClient, sent: bytes, broken: Broken) -> bool:
    """Send one request, and return whether its connection can serve another."""
    try:
        async with asyncio.timeout(PATIENCE):
            await client.send(sent)
            got = await answer(client, sent)
    except TimeoutError:
        broken.found.append(f"no answer in {PATIENCE:g} s to {sent[:400]!r}")
        return False
    except (asyncio.IncompleteReadError, OSError) as error:
        broken.found.append(f"{type(error).__name__} instead of an answer to {sent[:400]!r}")
        return False
    if not got.whole and b'"error":' not in got.body:
        broken.found.append(f"a cut answer to {sent[:400]!r}")
    broken.check(got.status, got.body, sent)
    return got.whole and not got.last


async def throw(port: int, data: bytes, broken: Broken) -> None:
    """Send these bytes on a connection, and check all that comes back until nothing more comes."""
    got = bytearray()
    async with connected(port) as client:
        try:
            await client.send(data)
            while piece := await asyncio.wait_for(client.reader.read(65536), LOG_INTERVAL):
                got += piece
        except (TimeoutError, OSError):
            pass  # the gateway waits for more bytes, or has closed the connection with bytes unread
    if not got:
        broken.silent += 1
    for status, body in answers_in(bytes(got)):
        broken.check(status, body, data)
    if b"Traceback" in got or OPERATOR_KEY in got:
        broken.found.append(f"{bytes(got)[:200]!r} to {data[:400]!r}")


def answers_in(got: bytes) -> list[tuple[int, bytes]]:
    """Return the complete responses with a length in the bytes from a connection. For a stream, and for a truncated
    response, return only the status."""
    found = []
    while match := ANSWER.match(got):
        status, rest = int(match[1]), got[match.end() :]
        length = re.search(rb"(?i)content-length: *(\d+)", match[2])
        size = int(length[1]) if length else 0
        if status == 100:
            got = rest
            continue
        body, got = rest[:size], rest[size:] if length else b""
        # A response to HEAD has a length and no body.
        cut = status >= 400 and (not body or len(body) < size)
        found.append((status, NO_BODY if cut else body))
    return found


async def fuzz(folder: Path, requests: int, streams: int, seed: int) -> Broken:
    """Send `requests` requests and `streams` connections, a dozen at once."""
    broken, draw = Broken(), Random(seed)
    async with FakeVendor(quick) as vendor:
        text = table({"fake": vendor.base_url}, ["fake/*: {}", "mock/*: {}"])
        text = text.replace("vendors:", "vendors:\n  mock: {}")
        async with running_gateway(text, folder) as gateway:
            with apart(gateway.process.pid):
                async with watched(gateway) as broken.lags:
                    port, made, thrown = port_of(gateway), Requests(draw), Streams(draw)
                    for start in range(0, requests, BATCH):
                        batch = [made.next() for _ in range(min(BATCH, requests - start))]
                        await asyncio.gather(*(ask_all(port, batch[lane::LANES], broken) for lane in range(LANES)))
                        vendor.requests.clear()
                    for start in range(0, streams, LANES * 4):
                        lanes = range(min(LANES * 4, streams - start))
                        await asyncio.gather(*(throw(port, thrown.next(), broken) for _ in lanes))
            assert await gateway.stop() == 0
    return broken


def whole_server(folder: Path, requests: int, streams: int) -> Result:
    """Return the figure."""
    broken = uvloop.run(fuzz(folder, requests, streams, 0))
    counts = ", ".join(f"{count} x {status}" for status, count in broken.statuses.most_common(6))
    first = f"; first: {broken.found[0]}" if broken.found else ""
    value = (
        f"{len(broken.found)} answers that were 500, no envelope or none, of {requests} requests and {streams} raw "
        f"connections ({counts}, {broken.silent} connections waited for more); the loop was late by "
        f"{broken.lags.text}{first}"
    )
    return Result(value, not broken.found and broken.lags.worst <= LIMIT)


def r25(folder: Path) -> Result:
    """Return the figure for a hundred thousand requests and twenty thousand connections."""
    return whole_server(folder, 100_000, 20_000)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.trust.fuzz_server", description=__doc__)
    parser.add_argument("--count", type=int, default=100_000, help="requests; connections are a fifth (%(default)s)")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        result = whole_server(Path(folder), given.count, given.count // 5)
    print(result.value)
    return 0 if result.good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
