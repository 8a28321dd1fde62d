"""The checks of sent bodies, the fixture sets and the benchmark streams of the Cohere dialect."""

from collections.abc import Mapping
from dataclasses import replace

from providers.failure import FailureKind
from tests.bench.streams import LONG_CHAT, Form, Stream
from tests.contracts.fixture_sets import BROKEN, FixtureSet, by_name
from tests.contracts.judged_by import JudgedBy
from tests.providers.dialects.answer_sets import AnswerSet
from tests.providers.dialects.kit import chat_request, fixture, sent_for, target_of

JUDGES: Mapping[str, tuple[JudgedBy, ...]] = {"cohere": (JudgedBy("cohere.sdk_types"),)}

FIXTURE_SETS: Mapping[str, FixtureSet] = {
    "cohere": FixtureSet(
        target_of("cohere", "command-a-03-2025"),
        chat_request(),
        by_name("cohere/answers", "json", "text tools length unknown", filtered="toxic", uncounted="unknown"),
        {
            **by_name("cohere/streams", "sse", f"text tools length {BROKEN}", unknown="noise", uncounted="noise"),
            "filtered": "cohere/checks/toxic.sse",
        },
        (400, "cohere/errors/error_400_context.json"),
        "cohere/errors/error_429_rate.json",
    )
}

ANSWER_SETS: Mapping[str, AnswerSet] = {
    "cohere": AnswerSet(
        "cohere",
        [sent_for(replace(chat_request(), stream=True), target_of("cohere"))],
        "text tools thinking citations length empty choice logprobs noise",
        broken={
            "error_first": ("", FailureKind.TIMEOUT, None),
            "error_after_text": ("Checking Oslo", FailureKind.SERVER, None),
        },
        bodies=[
            b'{"finish_reason": "COMPLETE"}',
            b'{"finish_reason": 3, "message": {}}',
            b'{"finish_reason": "TOOL_CALL", "message": {"tool_calls": [{"id": "a"}]}}',
            fixture("cohere", "answers", "text.json")[:-40],
        ],
        events=[
            b"event: content-delta\ndata: {\n\n",
            b'data: {"type":"message-end","delta":{}}\n\n',
            b'data: {"type":"tool-call-start","index":0,"delta":{"message":{"tool_calls":{"id":"a"}}}}\n\n',
        ],
    )
}

STREAMS: Mapping[str, Stream] = {
    "cohere": Stream("cohere", LONG_CHAT, Form("cohere/streams/text.sse", 2, 2, "Checking "))
}
