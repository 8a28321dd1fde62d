"""A client that sends a light request every few milliseconds and notes how long each takes: what others feel of an
attack. Run as a process of its own, so that the attacker's work in the test's process does not slow it down.

`python -m tests.security.light_client PORT` prints a line `begun`, and when standard input ends the milliseconds and
statuses as JSON.
"""

import http.client
import json
import select
import sys
import time

PAUSE = 0.005
BODY = json.dumps({"model": "mock/echo", "prompt": "hi", "max_tokens": 5}).encode()
HEADERS = {"Content-Type": "application/json"}


def main() -> None:
    connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=60)
    took: list[float] = []
    statuses: list[int] = []
    print("begun", flush=True)
    while not select.select([sys.stdin], [], [], PAUSE)[0]:
        began = time.perf_counter()
        connection.request("POST", "/v1/completions", BODY, HEADERS)
        answer = connection.getresponse()
        answer.read()
        took.append(1000 * (time.perf_counter() - began))
        statuses.append(answer.status)
    print(json.dumps({"took": took, "statuses": statuses}))


if __name__ == "__main__":
    main()
