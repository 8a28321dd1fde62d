"""The bench of tracing: its configuration, its collector, and its arithmetic."""

import asyncio
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import pytest

from config.load_config import load_text
from proxy.request_record import RequestRecord
from proxy.tracing.begin_trace import TraceStarter
from tests.bench.programs.gateway import gateway_table
from tests.bench.tracing import SHARE, SHARES, Costs, Turns, cheap, costs, lines, settings, sink
from tests.bench.upstream import RunningUpstream


def test_the_gateway_traces_and_its_turns_sample_what_their_names_say() -> None:
    upstream = RunningUpstream(pid=1, port=9, tls_port=9, authority=Path("none"))
    table = gateway_table(upstream, f"server: {{port: 0, {settings(9)}}}").replace(', ca_file: "none"', "")
    tracing = load_text(table, "t.yaml", {}).config.server.tracing
    assert tracing is not None
    assert tracing.sample == 1
    assert SHARES == (None, 0.0, SHARE)


def test_the_collector_takes_what_it_is_sent() -> None:
    with sink() as (port, pid):
        url = f"http://127.0.0.1:{port}/v1/traces"
        with urllib.request.urlopen(url, data=b"x", timeout=5) as answer:
            assert answer.status == 200
        assert pid > 0


def test_the_cheapest_turns_count_and_the_exporter_for_what_is_sampled() -> None:
    found = costs({None: [200.0, 100.0], 0.0: [102.0, 203.0], SHARE: [104.0, 204.0]}, [90.0, 30.0], 7.0)
    assert found == Costs(100.0, 2.0, 4.0, 30.0, 7.0)
    assert found.more == pytest.approx(4.0 + 3.0)
    assert "0% sampled: +2.0 µs, +2.0%" in lines(found)
    assert "+7.0 µs, +7.0% (at most 5%: MISSED)" in lines(found)[-2]
    assert "holds" in lines(Costs(200.0, 2.0, 4.0, 30.0, 7.0))[-2]
    assert "7 µs" in lines(found)[-1]


def test_of_many_turns_not_the_very_cheapest_counts() -> None:
    assert cheap([*range(40)]) == 2


@dataclass
class Gateway:
    traces: TraceStarter | None = None

    def trace(self, traces: TraceStarter | None) -> None:
        self.traces = traces


async def test_every_tenth_request_is_sampled_and_a_turn_ends_with_its_last_one() -> None:
    gateway = Gateway()
    turns = Turns(gateway.trace)
    turns.trace(None)
    turns.ended()
    assert [gateway.traces] == [None]
    for share, count in ((0.0, 0), (SHARE, 4)):
        turns.trace(share)
        over = asyncio.create_task(turns.after(40))
        await asyncio.sleep(0)
        sampled = 0
        for _ in range(40):
            assert not over.done()
            record = RequestRecord("r", 0.0, "openai", "/v1/chat/completions")
            assert gateway.traces is not None
            gateway.traces.begin("POST", record)
            turns.ended()
            sampled += record.sampled is not None
        assert (sampled, await over > 0) == (count, True)
