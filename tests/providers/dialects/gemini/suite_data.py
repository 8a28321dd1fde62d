"""The checks of sent bodies, the fixture sets and the benchmark streams of the Gemini dialect."""

from collections.abc import Mapping
from dataclasses import replace

from providers.failure import FailureKind
from tests.bench.streams import LONG_CHAT, Form, Stream
from tests.contracts.fixture_sets import FixtureSet, by_name
from tests.contracts.judged_by import JudgedBy
from tests.providers.dialects.answer_sets import AnswerSet
from tests.providers.dialects.kit import chat_request, sent_for, target_of

JUDGES: Mapping[str, tuple[JudgedBy, ...]] = {
    "gemini": (JudgedBy("gemini.sdk_types"),),
    "vertex": (JudgedBy("gemini.sdk_types"),),
}

FIXTURE_SETS: Mapping[str, FixtureSet] = {
    "gemini": FixtureSet(
        target_of("gemini", "gemini-2.5-flash"),
        chat_request(),
        by_name("gemini/answers", "json", "text tools length unknown", filtered="safety", uncounted="no_usage"),
        {
            **by_name("gemini/streams", "sse", "text tools length error_first", filtered="recitation", unknown="noise"),
            "error_after_text": "gemini/streams/error_event.sse",
            "uncounted": "gemini/checks/uncounted.sse",
        },
        (400, "gemini/errors/context.json"),
        "gemini/errors/rate_limit.json",
    )
}

ANSWER_SETS: Mapping[str, AnswerSet] = {
    "gemini": AnswerSet(
        "gemini",
        [sent_for(replace(chat_request(), stream=True), target_of("gemini", "gemini-3.1-pro-preview"))],
        "array blocked choice code empty image_first late_usage length logprobs noise pieces recitation "
        "safety_after_text signed_grounded text thinking tools tools_old",
        broken={
            "error_first": ("", FailureKind.OVERLOADED, None),
            **dict.fromkeys(
                ("error_bare", "error_event", "error_listed"), ("Checking Oslo", FailureKind.OVERLOADED, None)
            ),
        },
        bodies=[
            b'{"candidates":[]}',
            b'{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}',
            b'{"candidates":[{"finishReason":"FINISH_REASON_UNSPECIFIED"}]}',
            b'{"candidates":[{"index":"0","finishReason":"STOP"}]}',
            b'{"candidates":[{"index":1,"finishReason":"STOP"}]}',
            b'{"candidates":[{"index":-1,"finishReason":"STOP"},{"index":1000000000,"finishReason":"STOP"}]}',
            b'{"candidates":[{"content":{"parts":[{"functionCall":{"args":{}}}]},"finishReason":"STOP"}]}',
            b'{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","willContinue":true}}]},"finishReason":"STOP"}]}',
        ],
        events=[
            b"data: \xff\n\n",
            b'data: {"candidates":[{"index":{}}]}\n\n',
            b'data: {"candidates":[{"content":{"parts":[{"functionCall":{}}]}}]}\n\n',
        ],
        ends=False,
        numbers_pass=True,
    )
}

STREAMS: Mapping[str, Stream] = {
    "gemini": Stream("gemini", LONG_CHAT, Form("gemini/streams/text.sse", 0, 1, "Checking "), model="gemini-2.5-flash")
}
