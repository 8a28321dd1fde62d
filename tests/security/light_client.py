"""A client that sends a light request every few milliseconds. It records how long each takes, and the gateway's CPU
time meanwhile: the effect of an attack on other clients. It runs as a process of its own, so that the attacker's work
in the test's process does not slow it down.

`python -m tests.security.light_client PORT PID` prints a line `begun`, and when standard input ends the milliseconds of
both and the statuses as JSON.
"""

import http.client
import json
import select
import sys
import time

from tests.bench.cpu import cpu_seconds

PAUSE = 0.005
BODY = json.dumps({"model": "mock/echo", "prompt": "hi", "max_tokens": 5}).encode()
HEADERS = {"Content-Type": "application/json"}


def main() -> None:
    port, pid = map(int, sys.argv[1:])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    took: list[float] = []
    worked: list[float] = []
    statuses: list[int] = []
    print("begun", flush=True)
    while not select.select([sys.stdin], [], [], PAUSE)[0]:
        began, cpu = time.perf_counter(), cpu_seconds(pid)
        connection.request("POST", "/v1/completions", BODY, HEADERS)
        answer = connection.getresponse()
        answer.read()
        took.append(1000 * (time.perf_counter() - began))
        worked.append(1000 * (cpu_seconds(pid) - cpu))
        statuses.append(answer.status)
    print(json.dumps({"took": took, "worked": worked, "statuses": statuses}))


if __name__ == "__main__":
    main()
