"""The checks of sent bodies, the fixture sets and the benchmark streams of the SGLang dialect."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

import orjson

from providers.failure import FailureKind
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import LogprobsWanted, TextPrompt
from tests.bench.streams import LONG_TEXT, WRAPPED_TIMES, Stream
from tests.contracts.fixture_sets import NO_CALLS, NO_FILTER, FixtureSet, by_name
from tests.contracts.judged_by import JudgedBy
from tests.providers.dialects.answer_sets import AnswerSet
from tests.providers.dialects.kit import fixture, sent_for, target_of, text_request


def _repeated_events(pieces: Sequence[str]) -> list[bytes]:
    """Return SGLang's events, each with the whole text so far."""
    form = cast(JsonObject, orjson.loads(fixture("sglang", "streams", "text.sse").partition(b"\n")[0][6:]))
    told = cast(JsonObject, form["meta_info"])

    def event(count: int, **meta: JsonValue) -> bytes:
        ids: list[JsonValue] = [*range(1000, 1000 + count)]
        known: JsonObject = {**told, "completion_tokens": count, **meta}
        said: JsonObject = {"text": "".join(pieces[:count]), "output_ids": ids, "meta_info": known}
        return b"data: %b\n\n" % orjson.dumps(said)

    last = event(len(pieces), finish_reason={"type": "stop", "matched": 2})
    return [*(event(place + 1) for place in range(len(pieces))), last, b"data: [DONE]\n\n"]


JUDGES: Mapping[str, tuple[JudgedBy, ...]] = {"sglang_native": (JudgedBy(completions="sglang.sdk_types"),)}

FIXTURE_SETS: Mapping[str, FixtureSet] = {
    "sglang": FixtureSet(
        target_of("sglang_native"),
        text_request(),
        by_name("sglang/answers", "json", "text length unknown", uncounted="unknown"),
        {
            **by_name("sglang/streams", "sse", "text length error_after_text", unknown="noise", uncounted="noise"),
            "error_first": "sglang/streams/error_context.sse",
        },
        (400, "sglang/errors/error_400_context.json"),
        cannot={**NO_CALLS, "filtered": NO_FILTER},
    )
}

_WANTED = {"logprobs": LogprobsWanted(2, "legacy")}

ANSWER_SETS: Mapping[str, AnswerSet] = {
    "sglang": AnswerSet(
        "sglang",
        [sent_for(text_request("The sky", **wanted), target_of("sglang_native")) for wanted in ({}, _WANTED)],
        "text length stop empty logprobs text_incremental repeated_incremental logprobs_incremental echo noise",
        "text length stop empty logprobs",
        {
            "error_context": ("", FailureKind.CONTEXT_LENGTH, 400),
            "error_after_text": (" Paris", FailureKind.SERVER, 500),
            "abort": (" Paris", FailureKind.OVERLOADED, 503),
            "abort_bare": (" Paris", FailureKind.SERVER, None),
            "done_early": (" Paris", FailureKind.TRUNCATED, None),
        },
        [
            b"[3]",
            b'{"text": "a", "meta_info": {"finish_reason": null}}',
            b'{"text": null, "meta_info": {"finish_reason": {"type": "stop"}}}',
            fixture("sglang", "answers", "text.json")[:-40],
        ],
        [b'data: {"index":7,"text":"a"}\n\n', b'data: {"index":-1,"text":"a"}\n\n'],
    ),
    "sglang, batch": AnswerSet(
        "sglang",
        [sent_for(replace(text_request(n=2), prompt=TextPrompt(("a", "b"))), target_of("sglang_native"))],
        "batch",
        "batch",
        choices=4,
    ),
}

STREAMS: Mapping[str, Stream] = {
    "sglang": Stream("sglang_native", LONG_TEXT, _repeated_events, WRAPPED_TIMES, (200, 400))
}
