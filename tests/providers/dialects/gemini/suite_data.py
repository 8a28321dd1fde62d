"""The judges, fixture sets and benchmark streams of the Gemini dialect."""

from collections.abc import Mapping

from tests.bench.streams import LONG_CHAT, Form, Stream
from tests.contracts.fixture_sets import FixtureSet, by_name
from tests.contracts.judged_by import JudgedBy
from tests.providers.dialects.kit import chat_request, target_of

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
    ),
}

STREAMS: Mapping[str, Stream] = {
    "gemini": Stream("gemini", LONG_CHAT, Form("gemini/streams/text.sse", 0, 1, "Checking "), model="gemini-2.5-flash"),
}
