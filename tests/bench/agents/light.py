"""Sends small requests at regular times, and prints how long each response took: `python -m tests.bench.agents.light`.

It is a process of its own, so that the load's work on large requests does not delay it. It shares its core with the
load, so its own waiting for the core is subtracted.
"""

import socket
import sys
import time
from pathlib import Path

import orjson

from tests.bench.load import whole_answer

SCHEDSTAT = Path("/proc/self/schedstat")


def own_wait() -> float:
    """Return the seconds for which this process has waited for a core (proc(5))."""
    return int(SCHEDSTAT.read_text(encoding="utf-8").split()[1]) / 1e9


def ask(connection: socket.socket, request: bytes) -> float:
    """Return the seconds that a request took. Raise WrongAnswer for any but a good response."""
    began, waited, data = time.monotonic(), own_wait(), b""
    connection.sendall(request)
    while not whole_answer(data):
        piece = connection.recv(65536)
        if not piece:
            raise ConnectionError("the connection was closed")
        data += piece
    return time.monotonic() - began - (own_wait() - waited)


def asked_times(port: int, count: int, every: float, request: bytes) -> list[float]:
    """Send `count` requests, one every `every` seconds, and return the time of each."""
    found = []
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        for _ in range(count):
            found.append(ask(connection, request))
            time.sleep(every)
    return found


if __name__ == "__main__":
    given_port, given_count, given_every = sys.argv[1:]
    given = asked_times(int(given_port), int(given_count), float(given_every), sys.stdin.buffer.read())
    print(orjson.dumps(given).decode())
