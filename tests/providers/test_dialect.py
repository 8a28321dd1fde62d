"""A request on the wire: how much memory its body keeps."""

import tracemalloc

import orjson

from providers.dialect import UpstreamRequest
from providers.unified_request import Operation
from tests.providers.dialects.anthropic.kit import TARGET


def test_a_request_on_the_wire_keeps_no_more_of_a_body_than_its_bytes() -> None:
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        kept = [UpstreamRequest(TARGET, Operation.CHAT, "u", orjson.dumps([number]), False) for number in range(100)]
        each = (tracemalloc.get_traced_memory()[0] - before) / len(kept)
    finally:
        tracemalloc.stop()
    assert kept[7].body == b"[7]"
    assert each < 1000
