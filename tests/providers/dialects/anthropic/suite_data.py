"""The judges, fixture sets and benchmark streams of the Anthropic dialect."""

from collections.abc import Mapping

from tests.bench.streams import LONG_CHAT, Form, Stream
from tests.contracts.fixture_sets import BROKEN, FixtureSet, by_name
from tests.contracts.judged_by import JudgedBy
from tests.providers.dialects.anthropic.native_kit import own_request
from tests.providers.dialects.kit import chat_request, target_of

CLAUDE_STREAMS = {
    **by_name("anthropic/streams", "sse", f"text tools length {BROKEN}", filtered="refusal", unknown="noise"),
    "uncounted": "anthropic/checks/uncounted.sse",
}
CLAUDE_WHOLE = {
    **by_name("anthropic/answers", "json", "text tools length unknown", filtered="refusal"),
    "uncounted": "anthropic/checks/uncounted.json",
}
CLAUDE_FORM = Form("anthropic/streams/text.sse", 3, 3, "Checking ")
_GOOGLE = "https://europe-west4-aiplatform.googleapis.com"
_CLAUDE_CONTEXT = (400, "anthropic/errors/error_400_context.json")

JUDGES: Mapping[str, tuple[JudgedBy, ...]] = {
    "anthropic": (JudgedBy("anthropic.sdk_types"),),
    "vertex_anthropic": (JudgedBy("anthropic.vertex_sdk_types"),),
}

FIXTURE_SETS: Mapping[str, FixtureSet] = {
    "anthropic": FixtureSet(
        target_of("anthropic", max_output_tokens=100),
        chat_request(),
        CLAUDE_WHOLE,
        CLAUDE_STREAMS,
        _CLAUDE_CONTEXT,
        "anthropic/errors/error_429.json",
    ),
    "anthropic_vertex": FixtureSet(
        target_of(
            "vertex_anthropic", max_output_tokens=100, base_url=f"{_GOOGLE}/v1/projects/p/locations/europe-west4"
        ),
        chat_request(),
        CLAUDE_WHOLE,
        CLAUDE_STREAMS,
        _CLAUDE_CONTEXT,
    ),
}

STREAMS: Mapping[str, Stream] = {
    "anthropic": Stream("anthropic", LONG_CHAT, CLAUDE_FORM),
    "anthropic, own": Stream("anthropic", own_request(stream=True), CLAUDE_FORM),
    "anthropic_vertex": Stream("vertex_anthropic", LONG_CHAT, CLAUDE_FORM),
}
