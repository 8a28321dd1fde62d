"""The checks of sent bodies, the fixture sets and the benchmark streams of the watsonx.ai dialect."""

from collections.abc import Mapping

from providers.failure import FailureKind
from tests.bench.streams import LONG_CHAT, LONG_TEXT, WRAPPED_TIMES, Form, Stream
from tests.contracts.fixture_sets import BROKEN, NO_CALLS, NO_FILTER, FixtureSet, by_name, files_in
from tests.contracts.judged_by import JudgedBy, only
from tests.providers.dialects.answer_sets import AnswerSet
from tests.providers.dialects.kit import chat_request, sent_for, target_of, text_request
from tests.providers.dialects.openai.suite_data import OPENAI_STREAMS, OPENAI_WHOLE

_TARGET = target_of("watsonx", base_url="https://eu-de.ml.cloud.ibm.com/projects/p")

JUDGES: Mapping[str, tuple[JudgedBy, ...]] = {"watsonx": (only("watsonx.sdk_types"),)}

FIXTURE_SETS: Mapping[str, FixtureSet] = {
    "watsonx": FixtureSet(
        _TARGET,
        text_request(),
        by_name("watsonx/answers", "json", "text length uncounted", unknown="new_word"),
        by_name("watsonx/streams", "sse", f"text length {BROKEN}", unknown="noise", uncounted="noise"),
        (400, "watsonx/errors/error_400_context.json"),
        "watsonx/errors/error_429.json",
        {**NO_CALLS, "filtered": NO_FILTER},
    ),
    "watsonx, chat": FixtureSet(
        _TARGET,
        chat_request(),
        {**OPENAI_WHOLE, **files_in("watsonx/answers", "json", text="chat", tool="chat_tools")},
        {
            **OPENAI_STREAMS,
            **files_in("watsonx/streams", "sse", text="chat", tool="chat_tools", error_after_text="chat_error"),
        },
        (400, "watsonx/errors/error_400_context.json"),
        "watsonx/errors/error_429.json",
    ),
}

ANSWER_SETS: Mapping[str, AnswerSet] = {
    "watsonx": AnswerSet(
        "watsonx",
        [sent_for(text_request("The sky"), _TARGET)],
        "text logprobs length noise",
        broken={
            "error_first": ("", FailureKind.CONTEXT_LENGTH, 400),
            "error_unnamed": ("", FailureKind.QUOTA, 403),
            "error_after_text": (" is blue", FailureKind.SERVER, 500),
            "error_word": (" is blue", FailureKind.SERVER, None),
        },
        bodies=[b'{"results": []}', b'{"results": [{"generated_text": "a"}]}'],
        events=[b'data: {"results": [3]}\n\n'],
        disguised=("error_403_quota.json", FailureKind.QUOTA),
    ),
    "watsonx, chat": AnswerSet(
        "watsonx",
        [sent_for(chat_request(), _TARGET)],
        "chat chat_tools",
        "chat chat_tools",
        {"chat_error": ("It", FailureKind.SERVER, 500)},
        ends=False,
    ),
}

STREAMS: Mapping[str, Stream] = {
    "watsonx": Stream("watsonx", LONG_TEXT, Form("watsonx/streams/text.sse", 1, 1, " is blue")),
    "watsonx, chat": Stream("watsonx", LONG_CHAT, Form("watsonx/streams/chat.sse", 1, 2, "It is blue"), WRAPPED_TIMES),
}
