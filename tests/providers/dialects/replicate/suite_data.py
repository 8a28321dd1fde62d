"""The checks of sent bodies, the fixture sets and the benchmark streams of the Replicate dialect."""

from collections.abc import Mapping, Sequence
from typing import cast

import orjson

from providers.json_types import JsonObject
from tests.bench.streams import LONG_TEXT, Stream
from tests.contracts.fixture_sets import NO_CALLS, NO_FILTER, FixtureSet, by_name
from tests.contracts.judged_by import JudgedBy
from tests.providers.dialects.kit import fixture, target_of, text_request

_WHOLE_ANSWERS_ONLY = "its answers come whole"
_ANSWERS = {
    **by_name("replicate/answers", "json", "text length", uncounted="string"),
    "unknown": "replicate/checks/unknown.json",
    "error_first": "replicate/errors/failed.json",
}
"""Streams are made from non-streaming responses."""


def _cut_prediction(pieces: Sequence[str]) -> list[bytes]:
    """Return a prediction, cut behind each item of its output."""
    form = cast(JsonObject, orjson.loads(fixture("replicate", "answers", "text.json")))
    head, _, tail = orjson.dumps({**form, "output": []}).partition(b'"output":[')
    *before, last = [orjson.dumps(piece) for piece in pieces]
    return [head + b'"output":[', *(piece + b"," for piece in before), last, tail]


JUDGES: Mapping[str, tuple[JudgedBy, ...]] = {"replicate": (JudgedBy(completions="replicate.sdk_types"),)}

FIXTURE_SETS: Mapping[str, FixtureSet] = {
    "replicate": FixtureSet(
        target_of("replicate", "meta/llama"),
        text_request(max_tokens=16),
        _ANSWERS,
        _ANSWERS,
        (200, "replicate/errors/too_long.json"),
        "replicate/errors/error_429.json",
        {**NO_CALLS, "filtered": NO_FILTER, "error_after_text": _WHOLE_ANSWERS_ONLY},
    )
}

STREAMS: Mapping[str, Stream] = {
    "replicate": Stream("replicate", LONG_TEXT, _cut_prediction, model="meta/meta-llama-3-70b")
}
