"""The receipts of 10,000 requests compared with the time that their clients measured (R49).

Each client is a thread with a blocking socket, in a process of its own, so that only the kernel stands between the
bytes and its clock. The difference between a client's time and the sum of the parts is the network, and the work of the
event loop before it read the request. Time for which the client or the gateway waited for a core is subtracted if a
difference is beyond the limit.
"""

import asyncio
import json
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import uvloop

from providers.json_types import JsonObject
from tests.bench.cpu import PROC
from tests.proxy.kit.raw_client import request
from tests.proxy.receipt.kit import told
from tests.support.gateway import running_gateway
from tests.support.http_scripts import json_answer, sse_answer
from tests.support.openai_wire import completion, completion_frames
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Delay, Received, Script
from tests.trust.figure_types import Result
from tests.trust.load_client import quantile
from tests.trust.load_rig import port_of

REQUESTS = 10_000
CLIENTS = 4
LIMIT = 2.0
"""The largest difference in milliseconds between a client's time and the sum of the parts, at the 99th percentile."""

PATIENCE = 300.0
"""Seconds for all of them."""

SHAKY = 12
"""One of so many calls of one deployment fails, too few to open its circuit."""

TABLE = """\
version: 1
server:
  port: ${PORT}
  admin:
    port: ${ADMIN_PORT}
  receipt: true
  watch: false
vendors:
  v: {profile: openai_compatible, base_url: "http://127.0.0.1:VENDOR/v1", allow_private: true}
models:
  v/quick: {}
  v/shaky: {}
  v/narrow: {concurrent: 2}
  v/kept: {cache: {ttl: 10m}}
routes:
  either: {targets: [v/shaky, v/quick]}
"""

ASKED: Sequence[JsonObject] = (
    {"model": "v/quick"},
    {"model": "v/quick", "stream": True},
    {"model": "either"},
    {"model": "either", "stream": True},
    {"model": "v/narrow"},
    {"model": "v/kept", "temperature": 0},
)


@dataclass(frozen=True, slots=True)
class Compared:
    """The milliseconds by which a client's time is longer than the sum of the parts, to the head or to the end of a
    stream; the parts that occurred; and the number of bad responses."""

    beyond: Sequence[float]
    parts: Counter[str]
    bad: int

    @property
    def result(self) -> Result:
        """Return the result of the figure: every kind of part must have occurred."""
        ninety_nine, least = quantile(self.beyond, 0.99), min(self.beyond)
        missing = {"queue", "attempt1", "backoff", "connect", "cache", "stream"} - self.parts.keys()
        value = f"{ninety_nine:.2f} ms at p99, {quantile(self.beyond, 0.5):.2f} at p50, of {len(self.beyond)}"
        value += f"; {self.bad} bad responses" if self.bad else ""
        value += f"; never: {', '.join(sorted(missing))}" if missing else ""
        return Result(value, ninety_nine <= LIMIT and least >= -0.1 and not missing and not self.bad)


def r49(folder: Path) -> Result:
    """Return the figure for 10,000 requests, with failovers, queues and hits of the response cache."""
    return uvloop.run(compared(folder, REQUESTS)).result


async def compared(folder: Path, requests: int) -> Compared:
    """Run the clients against a gateway of its own, and return their comparisons."""
    calls = 0

    def answer(received: Received) -> Script:
        nonlocal calls
        body = received.json()
        assert isinstance(body, dict)
        if body["model"] == "shaky":
            calls += 1
            if calls % SHAKY == 0:
                return (Delay(0.003), *json_answer(500, {"error": {"message": "shaky"}}))
        if body.get("stream"):
            return (Delay(0.002), *sse_answer(completion_frames(["one", "two"])))
        return (Delay(0.002), *json_answer(200, completion("hi")))

    async with (
        FakeVendor(answer) as vendor,
        running_gateway(TABLE.replace("VENDOR", str(vendor.port)), folder) as gateway,
    ):
        told_by = str(port_of(gateway)), str(gateway.process.pid), str(requests)
        command = [sys.executable, "-m", "tests.trust.load_receipts", *told_by]
        ran = partial(subprocess.run, command, stdout=subprocess.PIPE, check=True, timeout=PATIENCE)
        seen = json.loads((await asyncio.to_thread(ran)).stdout)
        return Compared(seen["beyond"], Counter(seen["parts"]), seen["bad"])


class Client:
    """One client that sends one request after the other on one connection."""

    def __init__(self, port: int, gateway: int) -> None:
        self.beyond: list[float] = []
        self.parts: Counter[str] = Counter()
        self.bad = 0
        self._port = port
        self._socket = socket.create_connection(("127.0.0.1", port), 30)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._tasks = PROC / "thread-self", PROC / str(gateway) / "task" / str(gateway)

    def ask(self, number: int) -> None:
        """Send a request, and compare its receipt."""
        body: JsonObject = {**ASKED[number % len(ASKED)], "prompt": f"hi {number // 60}", "max_tokens": 9}
        data = request("POST", "/v1/completions", body, {"x-dragoman-receipt": "last"})
        waited, began = self._waited(), time.monotonic()
        self._socket.sendall(data)
        received = self._until(b"", b"\r\n\r\n")
        came = time.monotonic()
        head, _, rest = received.partition(b"\r\n\r\n")
        fields = dict(line.split(b": ", 1) for line in head.lower().split(b"\r\n")[1:])
        streams = b"transfer-encoding" in fields
        if streams:
            rest = self._until(rest, b"0\r\n\r\n")
        else:
            while len(rest) < int(fields[b"content-length"]):
                rest += self._socket.recv(65536)
        ended = time.monotonic()
        if b" 200 " not in head.split(b"\r\n", 1)[0]:
            self.bad += 1
        waited = self._waited() - waited
        self._compare(fields[b"server-timing"], came - began, waited)
        if streams:
            comment = rest.rpartition(b": server-timing: ")[2].partition(b"\n")[0]
            self._compare(comment, ended - began, waited)

    def _compare(self, value: bytes, seconds: float, waited: float) -> None:
        parts = told(value.decode())
        self.parts.update(parts.keys())
        beyond = 1000 * seconds - sum(parts.values())
        self.beyond.append(beyond if beyond <= LIMIT else max(0.0, beyond - 1000 * waited))

    def _waited(self) -> float:
        """Return the seconds for which this thread and the gateway have waited for a core (proc(5), `schedstat`)."""
        found = [(task / "schedstat").read_text(encoding="utf-8").split()[1] for task in self._tasks]
        return sum(map(int, found)) / 1e9

    def _until(self, data: bytes, end: bytes) -> bytes:
        while end not in data:
            more = self._socket.recv(65536)
            if not more:
                raise ConnectionError("the gateway has closed the connection")
            data += more
        return data

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


def main() -> None:
    """Run the clients of the gateway with a port and a process id, for a number of requests, and print their
    comparisons."""
    port, gateway, requests = map(int, sys.argv[1:])
    clients = [Client(port, gateway) for _ in range(CLIENTS)]

    def run(client: Client) -> None:
        for number in range(requests // CLIENTS):
            client.ask(number)

    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(run, clients))
    for client in clients:
        client.close()
    beyond = [each for client in clients for each in client.beyond]
    parts = sum((client.parts for client in clients), Counter[str]())
    print(json.dumps({"beyond": beyond, "parts": parts, "bad": sum(client.bad for client in clients)}))


if __name__ == "__main__":
    main()
