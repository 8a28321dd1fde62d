"""The checks of sent bodies, the fixture sets and the benchmark streams of the LLM Engine dialect."""

from collections.abc import Mapping

from providers.failure import FailureKind
from tests.bench.streams import LONG_TEXT, Form, Stream
from tests.contracts.fixture_sets import BROKEN, NO_CALLS, NO_FILTER, FixtureSet, by_name
from tests.contracts.judged_by import JudgedBy
from tests.providers.dialects.answer_sets import AnswerSet
from tests.providers.dialects.kit import sent_for, target_of, text_request

JUDGES: Mapping[str, tuple[JudgedBy, ...]] = {"llm_engine": (JudgedBy(completions="llm_engine.sdk_types"),)}

FIXTURE_SETS: Mapping[str, FixtureSet] = {
    "llm_engine": FixtureSet(
        target_of("llm_engine", max_output_tokens=16),
        text_request(),
        {**by_name("llm_engine/answers", "json", "text length uncounted"), "unknown": "llm_engine/checks/unknown.json"},
        {
            **by_name("llm_engine/streams", "sse", f"text length uncounted {BROKEN}"),
            "unknown": "llm_engine/checks/noise.sse",
        },
        (400, "llm_engine/errors/error_400_context.json"),
        "llm_engine/errors/error_429.json",
        {**NO_CALLS, "filtered": NO_FILTER},
    )
}

ANSWER_SETS: Mapping[str, AnswerSet] = {
    "llm_engine": AnswerSet(
        "llm_engine",
        [sent_for(text_request("The sky"), target_of("llm_engine", max_output_tokens=16))],
        "text length logprobs empty uncounted",
        broken={
            "error_first": ("", FailureKind.CONTEXT_LENGTH, 400),
            "error_missing": ("", FailureKind.NOT_FOUND, 404),
            "error_after_text": (" is blue", FailureKind.SERVER, 500),
        },
        bodies=[b'{"output": null}', b'{"output": {}}'],
        events=[b'data: {"output": {"text": 3}}\n\n'],
    )
}

STREAMS: Mapping[str, Stream] = {
    "llm_engine": Stream("llm_engine", LONG_TEXT, Form("llm_engine/streams/text.sse", 0, 1, " is blue"))
}
