"""The CPU of parsing and serializing a body's JSON once under the gateway's own Python: the lower bound of every
request.

No gateway that reads a request's fields can cost less. The bound is measured in the same run as the requests, on the
same core, with the gateway's own orjson.
"""

import os
import subprocess
from collections.abc import Sequence

import orjson

PROGRAM = """\
import sys, time
import orjson
clock = time.process_time
def cost(body):
    best = float("inf")
    for _ in range(ROUNDS):
        began = clock()
        orjson.dumps(orjson.loads(body))
        best = min(best, clock() - began)
    return best
lengths = orjson.loads(sys.stdin.buffer.readline())
bodies = [sys.stdin.buffer.read(length) for length in lengths]
print(orjson.dumps([cost(body) for body in bodies]).decode())
"""

ROUNDS = 20


def json_floors(python: str, core: int, bodies: Sequence[bytes]) -> list[float]:
    """Return the seconds of CPU for each body, the least of several rounds. Raise CalledProcessError if the interpreter
    cannot run the measurement."""
    told = orjson.dumps([len(body) for body in bodies]) + b"\n" + b"".join(bodies)
    done = subprocess.run(
        [python, "-c", f"ROUNDS = {ROUNDS}\n{PROGRAM}"],
        input=told,
        capture_output=True,
        check=True,
        preexec_fn=lambda: os.sched_setaffinity(0, [core]),
    )
    found: list[float] = orjson.loads(done.stdout)
    return found
