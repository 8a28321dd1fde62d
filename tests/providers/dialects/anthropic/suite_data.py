"""The checks of sent bodies, the fixture sets and the benchmark streams of the Anthropic dialect."""

from collections.abc import Mapping
from dataclasses import replace

from providers.failure import FailureKind
from tests.bench.streams import LONG_CHAT, Form, Stream
from tests.contracts.fixture_sets import BROKEN, FixtureSet, by_name
from tests.contracts.judged_by import JudgedBy
from tests.providers.dialects.answer_sets import AnswerSet
from tests.providers.dialects.anthropic.native_kit import own_request
from tests.providers.dialects.kit import chat_request, fixture, sent_for, target_of

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

ANSWER_SETS: Mapping[str, AnswerSet] = {
    "anthropic": AnswerSet(
        "anthropic",
        [sent_for(replace(chat_request(), stream=True), target_of("anthropic", max_output_tokens=100))],
        "text tools thinking refusal refusal_after_text length stop_sequence cached empty choice noise signed "
        "server_tools deferred cited",
        broken={
            "error_first": ("", FailureKind.OVERLOADED, None),
            "error_after_text": ("Checking Oslo", FailureKind.OVERLOADED, None),
        },
        bodies=[
            b"[]",
            b'{"content": []}',
            b'{"content": {}, "stop_reason": "end_turn"}',
            b'{"content": [{"type": "text"}], "stop_reason": "end_turn"}',
            b'{"content": [{"type": "tool_use", "id": "a", "name": "b"}], "stop_reason": "tool_use"}',
            fixture("anthropic", "answers", "text.json")[:-40],
            b"\xff",
        ],
        events=[
            b"event: content_block_delta\ndata: {\n\n",
            b'data: {"type":"message_stop"}\n\n',
            b'data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use"}}\n\n',
            b"event: message_delta\ndata: \xff\n\n",
        ],
        disguised=("error_400_context.json", FailureKind.CONTEXT_LENGTH),
        numbers_pass=True,
    )
}

STREAMS: Mapping[str, Stream] = {
    "anthropic": Stream("anthropic", LONG_CHAT, CLAUDE_FORM),
    "anthropic, own": Stream("anthropic", own_request(stream=True), CLAUDE_FORM),
    "anthropic_vertex": Stream("vertex_anthropic", LONG_CHAT, CLAUDE_FORM),
}
