"""The checks of sent bodies, the fixture sets and the benchmark streams of the llama.cpp dialect."""

from collections.abc import Mapping
from dataclasses import replace

from providers.failure import FailureKind
from providers.unified_request import TextPrompt, TokenPrompt
from tests.bench.streams import LONG_TEXT, Form, Stream
from tests.contracts.fixture_sets import BROKEN, NO_CALLS, NO_FILTER, FixtureSet, by_name
from tests.contracts.judged_by import JudgedBy
from tests.providers.dialects.answer_sets import AnswerSet
from tests.providers.dialects.kit import fixture, sent_for, target_of, text_request

JUDGES: Mapping[str, tuple[JudgedBy, ...]] = {"llamacpp_native": (JudgedBy(completions="llamacpp.sdk_types"),)}

FIXTURE_SETS: Mapping[str, FixtureSet] = {
    "llamacpp": FixtureSet(
        target_of("llamacpp_native"),
        text_request(),
        by_name("llamacpp/answers", "json", "text unknown", length="limit", uncounted="unknown"),
        by_name("llamacpp/streams", "sse", f"text {BROKEN}", length="limit", unknown="noise", uncounted="noise"),
        (400, "llamacpp/errors/error_400_context.json"),
        cannot={**NO_CALLS, "filtered": NO_FILTER},
    )
}

_TARGET = target_of("llamacpp_native")
_BATCHES = (TextPrompt(("a", "b")), TokenPrompt(((1, 2), (3,))))

ANSWER_SETS: Mapping[str, AnswerSet] = {
    "llamacpp": AnswerSet(
        "llamacpp",
        [sent_for(text_request(), _TARGET)],
        "text limit word empty logprobs noise",
        "text limit word empty logprobs",
        {
            "error_first": ("", FailureKind.SERVER, 500),
            "error_after_text": (" is blue", FailureKind.SERVER, 500),
            "error_context": ("", FailureKind.CONTEXT_LENGTH, 400),
        },
        [
            b"[3]",
            b'{"content": "a"}',
            b'{"content": 3, "stop_type": "eos"}',
            b'[{"index": 0, "content": "", "stop_type": "eos"}, {"index": 0, "content": "", "stop_type": "eos"}]',
            fixture("llamacpp", "answers", "text.json")[:-40],
        ],
        [b'data: {"stop":true}\n\n', b'data: {"index":1,"content":"a"}\n\n'],
        ("error_400_context.json", FailureKind.CONTEXT_LENGTH),
    ),
    "llamacpp, batch": AnswerSet(
        "llamacpp",
        [sent_for(replace(text_request(), prompt=prompt), _TARGET) for prompt in _BATCHES],
        "batch",
        "batch",
        choices=2,
    ),
}

STREAMS: Mapping[str, Stream] = {
    "llamacpp": Stream("llamacpp_native", LONG_TEXT, Form("llamacpp/streams/text.sse", 0, 1, " is"))
}
