"""The bench of tracing: its tables, and the collector that it sends to."""

import urllib.request
from pathlib import Path

from config.load_config import load_text
from tests.bench.programs.gateway import gateway_table
from tests.bench.tracing import SHARES, settings, sink
from tests.bench.upstream import RunningUpstream


def test_the_first_gateway_traces_nothing_and_the_others_what_their_names_say() -> None:
    upstream = RunningUpstream(pid=1, port=9, tls_port=9, authority=Path("none"))
    shares = []
    for share in SHARES.values():
        table = gateway_table(upstream, f"server: {{port: 0, limits: {settings(9, share)}}}").replace(
            ', ca_file: "none"', ""
        )
        tracing = load_text(table, "t.yaml", {}).config.server.tracing
        shares.append(tracing and tracing.sample)
    assert shares == [None, 0.0, 0.1, 0.1, 1.0]


def test_the_collector_takes_what_it_is_sent() -> None:
    with sink() as port:
        url = f"http://127.0.0.1:{port}/v1/traces"
        with urllib.request.urlopen(url, data=b"x", timeout=5) as answer:
            assert answer.status == 200
