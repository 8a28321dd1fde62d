"""The checks of sent bodies, the fixture sets and the benchmark streams of the TGI dialect."""

from collections.abc import Mapping

from providers.failure import FailureKind
from providers.unified_request import LogprobsWanted
from tests.bench.streams import LONG_TEXT, Form, Stream
from tests.contracts.fixture_sets import BROKEN, NO_CALLS, NO_FILTER, FixtureSet, by_name
from tests.contracts.judged_by import JudgedBy
from tests.providers.dialects.answer_sets import AnswerSet
from tests.providers.dialects.kit import sent_for, target_of, text_request

TGI_STREAMS = by_name("tgi/streams", "sse", f"text length {BROKEN}", unknown="noise", uncounted="noise")
"""For non-streaming responses, the server is called with a stream too."""

TGI_FORM = Form("tgi/streams/text.sse", 0, 1, " is blue")

JUDGES: Mapping[str, tuple[JudgedBy, ...]] = {"tgi_native": (JudgedBy(completions="tgi.sdk_types"),)}

FIXTURE_SETS: Mapping[str, FixtureSet] = {
    "tgi": FixtureSet(
        target_of("tgi_native"),
        text_request(),
        TGI_STREAMS,
        TGI_STREAMS,
        (422, "tgi/errors/error_422_context.json"),
        cannot={**NO_CALLS, "filtered": NO_FILTER},
        # The engine has no rate limits: its 429 means a full queue.
        limits=(503, "overloaded"),
    )
}

_TARGET = target_of("tgi_native")
_WANTED = {"logprobs": LogprobsWanted(2, "legacy")}

ANSWER_SETS: Mapping[str, AnswerSet] = {
    "tgi": AnswerSet(
        "tgi",
        [
            sent_for(text_request("The sky", **params), _TARGET)
            for params in ({}, _WANTED, {"stop": (", four", ", three")})
        ],
        "text length stop logprobs empty noise",
        broken={
            "error_first": ("", FailureKind.CONTEXT_LENGTH, 422),
            "error_validation": ("", FailureKind.INVALID_REQUEST, 422),
            "error_overloaded": ("", FailureKind.OVERLOADED, 429),
            "error_after_text": (" is blue", FailureKind.SERVER, 424),
        },
    ),
    "tgi, echo": AnswerSet(
        "tgi",
        [sent_for(text_request("The sky", echo=True, **_WANTED), _TARGET)],
        bodies=[b'{"generated_text": "a"}', b'{"details": {}}'],
        disguised=("error_422_inputs.json", FailureKind.CONTEXT_LENGTH),
    ),
}

STREAMS: Mapping[str, Stream] = {"tgi": Stream("tgi_native", LONG_TEXT, TGI_FORM)}
