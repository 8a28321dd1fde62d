"""Processes that share nothing choose the same deployments."""

import os
import subprocess
import sys

PROGRAM = """
from proxy.routing.session_affinity import MemberGroup, rank
from proxy.routing.session_key import session_number
group = MemberGroup("g", tuple(f"v/m/{name}" for name in "abcd"), (3, 1, 1, 2))
print([rank(session_number("team", f"session {each}"), group) for each in range(500)])
"""


def test_four_workers_of_two_replicas_choose_alike() -> None:
    said = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": str(process)},
            capture_output=True,
            check=True,
            timeout=60,
        ).stdout
        for process in range(8)
    }
    assert len(said) == 1
    assert len(said.pop()) > 500
