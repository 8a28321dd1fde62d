"""The names of a target: one for people, one whose values a client cannot multiply; and what a request keeps."""

import tracemalloc
from dataclasses import replace

import orjson

from providers.dialect import UpstreamRequest
from providers.unified import Operation
from tests.providers.dialects.anthropic_kit import TARGET


def test_a_targets_name_is_what_the_answer_is_said_to_come_from() -> None:
    assert TARGET.name == "anthropic/claude-haiku-4-5/default"


def test_a_targets_label_is_its_row_of_the_table_whatever_model_was_asked_for() -> None:
    wildcard = replace(TARGET, row="anthropic/*")
    assert wildcard.label == replace(wildcard, model="anything").label == "anthropic/*/default"


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
