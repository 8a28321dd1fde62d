"""The checks of sent bodies, the fixture sets and the benchmark streams of the Ollama dialect."""

from collections.abc import Mapping

from providers.failure import FailureKind
from tests.bench.streams import LONG_CHAT, LONG_TEXT, Form, Stream
from tests.contracts.fixture_sets import BROKEN, NO_FILTER, FixtureSet, by_name
from tests.contracts.judged_by import JudgedBy, only
from tests.providers.dialects.answer_sets import AnswerSet
from tests.providers.dialects.kit import chat_request, fixture, sent_for, target_of

JUDGES: Mapping[str, tuple[JudgedBy, ...]] = {"ollama_native": (only("ollama.sdk_types"),)}

FIXTURE_SETS: Mapping[str, FixtureSet] = {
    "ollama": FixtureSet(
        target_of("ollama_native"),
        chat_request(),
        by_name("ollama/answers", "json", "tools length unknown", text="chat", uncounted="unknown"),
        by_name("ollama/streams", "ndjson", f"tools length {BROKEN}", text="chat", unknown="noise", uncounted="noise"),
        (400, "ollama/errors/error_400_context.json"),
        cannot={"filtered": NO_FILTER},
    )
}

ANSWER_SETS: Mapping[str, AnswerSet] = {
    "ollama": AnswerSet(
        "ollama",
        [sent_for(chat_request(), target_of("ollama_native"))],
        "chat generate tools thinking length choice logprobs noise",
        broken={
            "error_first": ("", FailureKind.SERVER, None),
            "error_after_text": ("Checking Oslo", FailureKind.SERVER, None),
            "error_context": ("", FailureKind.CONTEXT_LENGTH, None),
        },
        bodies=[
            b'{"done": false, "response": "a"}',
            b'{"done": true, "message": {"tool_calls": [{"function": {}}]}}',
            fixture("ollama", "answers", "chat.json")[:-40],
        ],
        events=[b'{"message":{"tool_calls":[{}]}}\n'],
        disguised=("error_400_context.json", FailureKind.CONTEXT_LENGTH),
        suffix="ndjson",
    )
}

STREAMS: Mapping[str, Stream] = {
    "ollama": Stream("ollama_native", LONG_CHAT, Form("ollama/streams/chat.ndjson", 0, 1, "Checking ")),
    "ollama, prompt": Stream("ollama_native", LONG_TEXT, Form("ollama/streams/generate.ndjson", 0, 1, " is")),
}
