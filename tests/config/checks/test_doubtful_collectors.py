"""Warnings about the addresses of collectors."""

from tests.config.tables import BASE, warnings
from tests.support.looped import looped

TWICE = "is appended to this address: leave it out"
GRPC = "4317 is the port of OTLP over gRPC; the gateway sends OTLP over HTTP, whose port is 4318"
CLEAR = "plain http sends headers and exported data in the clear: write https"


@looped(
    ("endpoint", "told"),
    [
        ("http://127.0.0.1:4318", []),
        ("http://collector:4318", []),
        ("http://10.1.2.3:4318/otlp", []),
        ("http://otel.observe.svc.cluster.local:4318", []),
        ("https://otlp.example.com", []),
        ("http://collector:4318/v1/traces", [f"/v1/traces {TWICE}"]),
        ("https://otlp.example.com/otlp/v1/traces/", [f"/v1/traces {TWICE}"]),
        ("http://localhost:4317", [GRPC]),
        ("http://otlp.example.com:4318", [CLEAR]),
        ("http://8.8.8.8:4317/v1/traces", [f"/v1/traces {TWICE}", GRPC, CLEAR]),
    ],
)
def test_an_address_that_hardly_leads_to_a_collector_is_a_warning(endpoint: str, told: list[str]) -> None:
    found = warnings(f"{BASE}server:\n  tracing: {{endpoint: '{endpoint}'}}\n")
    assert [each.partition(": ")[2] for each in found if "server.tracing.endpoint" in each] == told


def test_so_is_that_of_a_payload_log() -> None:
    found = warnings(f"{BASE}server:\n  payload_log: {{teams: ['*'], otlp: {{endpoint: 'http://c:4318/v1/logs'}}}}\n")
    assert [each.partition(" ")[2] for each in found if "otlp" in each] == [
        f"server.payload_log.otlp.endpoint: /v1/logs {TWICE}"
    ]
