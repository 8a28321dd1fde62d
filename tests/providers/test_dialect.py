"""A request on the wire: the memory that its body needs, and its API."""

import tracemalloc
from dataclasses import replace

import orjson

from providers.dialect import UpstreamRequest, encode_again, encode_native
from providers.unified_request import Operation
from tests.providers.dialects.anthropic.kit import TARGET
from tests.providers.dialects.anthropic.native_kit import own_request


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


def test_a_changed_request_stays_in_the_api_of_its_call() -> None:
    request = own_request(unheard_of=1)
    changed = replace(request, params={"max_tokens": 3})
    native = encode_native(request, TARGET)
    assert native is not None
    again = encode_again(native, changed)
    assert (again.native, orjson.loads(again.body)["max_tokens"], b"unheard_of" in again.body) == (True, 3, True)
    translated = encode_again(replace(native, native=False), changed)
    assert (translated.native, orjson.loads(translated.body)["max_tokens"]) == (False, 3)
    assert b"unheard_of" not in translated.body
