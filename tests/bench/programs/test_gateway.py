"""The measured gateway serves every case, and reports its commit."""

import os
import re
from pathlib import Path

import pytest

from tests.bench.cases import Case
from tests.bench.measure import Times, measure_case
from tests.bench.memory import held, idle_stream_bytes
from tests.bench.programs.gateway import Build, gateway_table
from tests.bench.traffic import KEY, Ask
from tests.bench.upstream import RunningUpstream, running_upstream

QUICK = Times(turns=1, ramp=0.05, window=0.1)


def test_the_table_has_the_teams_key_only_as_a_digest() -> None:
    table = gateway_table(RunningUpstream(1234, 1235, 1, Path("/ca.pem")))
    assert KEY not in table
    assert "127.0.0.1:1234/v1" in table
    assert "https://localhost:1235/v1" in table


@pytest.mark.timeout(180)
async def test_it_answers_every_dialect_whole_and_streamed_over_tls_and_not(tmp_path: Path) -> None:
    program = Build().program()
    assert re.match(r"[0-9a-f]{12}", program.version)
    with running_upstream(tmp_path) as upstream, program.start(tmp_path, upstream) as target:
        for dialect in ("openai", "anthropic", "bedrock"):
            for tls in (False, True):
                for chunks in (0, 9):
                    case = Case("small", Ask(chunks=chunks, pace=1), 2, dialect, tls)
                    outcome = (await measure_case([target], case, [os.getpid()], QUICK))["gateway"]
                    assert (len(outcome.turns), outcome.failure) == (1, ""), (dialect, tls, chunks)
        assert 0 < held(target.pid).proportional <= held(target.pid).resident * 1.1
        assert await idle_stream_bytes(target, count=3, settle=0.05) >= 0
