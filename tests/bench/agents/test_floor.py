"""The floor of each body is measured with the given interpreter. No test checks its amount."""

import os
import sys

from tests.bench.agents.floor import json_floors


def test_each_body_has_a_floor() -> None:
    core = min(os.sched_getaffinity(0))
    found = json_floors(sys.executable, core, [b'{"a": [1, 2]}', b'["\xc3\xa9\\n"]'])
    assert len(found) == 2
    assert all(each > 0 for each in found)
