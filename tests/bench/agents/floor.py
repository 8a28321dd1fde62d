"""What reading and writing a body's JSON once costs under the gateway's own Python: the floor of every request.

No gateway that looks at a request's fields can be below it. It is measured in the same run as the requests, on the same
core, with the gateway's own orjson.
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
    """The seconds of CPU for each body, the least of several rounds. Raises CalledProcessError where the interpreter
    cannot run it."""
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
