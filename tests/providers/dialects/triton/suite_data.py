"""The checks of sent bodies, the fixture sets and the benchmark streams of the Triton dialect."""

from collections.abc import Mapping

from providers.failure import FailureKind
from tests.bench.streams import LONG_TEXT, Form, Stream
from tests.contracts.fixture_sets import BROKEN, NO_CALLS, NO_FILTER, FixtureSet, by_name
from tests.contracts.judged_by import JudgedBy
from tests.providers.dialects.answer_sets import AnswerSet
from tests.providers.dialects.kit import sent_for, target_of, text_request

JUDGES: Mapping[str, tuple[JudgedBy, ...]] = {"triton": (JudgedBy(completions="triton.sdk_types"),)}

FIXTURE_SETS: Mapping[str, FixtureSet] = {
    "triton": FixtureSet(
        target_of("triton", max_output_tokens=16),
        text_request(),
        {**by_name("triton/answers", "json", "text length uncounted"), "unknown": "triton/checks/unknown.json"},
        {**by_name("triton/streams", "sse", f"text length uncounted {BROKEN}"), "unknown": "triton/checks/noise.sse"},
        (500, "triton/errors/error_500_context.json"),
        "triton/errors/error_429.json",
        {**NO_CALLS, "filtered": NO_FILTER},
        ends_with_its_body=True,
    )
}

ANSWER_SETS: Mapping[str, AnswerSet] = {
    "triton": AnswerSet(
        "triton",
        [
            sent_for(text_request("The sky", **params), target_of("triton", max_output_tokens=16))
            for params in ({}, {"stop": (", four", ", three")})
        ],
        "text length stop empty uncounted",
        broken={
            "error_first": ("", FailureKind.CONTEXT_LENGTH, None),
            "error_after_text": (" is blue", FailureKind.SERVER, None),
        },
        bodies=[b'{"text_output": ["a", "b"]}'],
        events=[b'data: {"text_output": 3}\n\n'],
        disguised=("error_500.json", FailureKind.SERVER),
        ends=False,
    )
}

STREAMS: Mapping[str, Stream] = {
    "triton": Stream("triton", LONG_TEXT, Form("triton/streams/text.sse", 0, 0, " is blue"))
}
