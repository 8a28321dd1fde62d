"""The plain proxies forward the bench's traffic over reused connections, in plain HTTP and over TLS."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.bench.cases import Case
from tests.bench.measure import Times, measure_case
from tests.bench.programs.bare_relay import bare_relay
from tests.bench.programs.envoy import envoy
from tests.bench.programs.haproxy import haproxy
from tests.bench.programs.nginx import nginx
from tests.bench.programs.program import Program
from tests.bench.traffic import Ask
from tests.bench.upstream import running_upstream

QUICK = Times(turns=1, ramp=0.05, window=0.1)
CASES = [
    Case(f"{dialect}, {tls=}, {chunks} chunks", Ask(chunks=chunks, pace=1), 2, dialect, tls)
    for dialect in ("openai", "anthropic", "bedrock")
    for tls in (False, True)
    for chunks in (0, 9)
]


INSTALLED = [nginx, bare_relay, *(known for known in (haproxy, envoy) if known() is not None)]
"""The other proxies may be missing on a machine that checks a change."""


@pytest.mark.parametrize("known", INSTALLED)
async def test_a_forwarder_passes_on_every_dialect(known: Callable[[], Program | None], tmp_path: Path) -> None:
    program = known()
    if program is None:
        pytest.skip("nginx is not installed")
    assert program.version
    with running_upstream(tmp_path) as upstream, program.start(tmp_path, upstream) as target:
        for case in CASES:
            outcome = (await measure_case([target], case, [os.getpid()], QUICK))[program.name]
            assert (len(outcome.turns), outcome.failure) == (1, ""), case.name
