"""The checks of sent bodies, the fixture sets and the benchmark streams of the Bedrock dialect."""

import re
from collections.abc import Mapping

from tests.bench.streams import LONG_CHAT, LONG_TEXT, WRAPPED_TIMES, Form, Framed, Stream
from tests.contracts.fixture_sets import BROKEN, NO_CALLS, FixtureSet, by_name
from tests.contracts.judged_by import JudgedBy
from tests.providers.dialects.anthropic.suite_data import CLAUDE_FORM, CLAUDE_STREAMS, CLAUDE_WHOLE
from tests.providers.dialects.bedrock.kit import chunk, event, frame, framed_lines, target
from tests.providers.dialects.kit import chat_request, text_request

_LLAMA = "meta.llama3-1-8b-instruct-v1:0"


def _framed_events(data: bytes) -> bytes:
    """Frame Anthropic's events as InvokeModel does; a payload that is no JSON becomes an event of an unknown type."""
    events = re.findall(rb"^data: ?(.*)$", data, re.MULTILINE)
    return b"".join(chunk(each) if each.startswith(b"{") else event("hologram", each) for each in events)


def _converse_frame(line: bytes) -> bytes:
    return frame(line.decode().rstrip("\n"))


def _invoke_frame(data: bytes) -> bytes:
    """Frame the JSON of an event, with or without its `data: `, as InvokeModel does."""
    return chunk(data.rpartition(b"data: ")[2].rstrip(b"\n"))


JUDGES: Mapping[str, tuple[JudgedBy, ...]] = {
    "bedrock": (JudgedBy("bedrock.sdk_types"),),
    "bedrock_anthropic": (JudgedBy("bedrock.anthropic_sdk_types"),),
    "bedrock_invoke": (JudgedBy(completions="bedrock.invoke_sdk_types"),),
}

FIXTURE_SETS: Mapping[str, FixtureSet] = {
    "bedrock": FixtureSet(
        target(),
        chat_request(),
        {
            **by_name("bedrock/answers", "json", "text tools length filtered unknown"),
            "uncounted": "bedrock/checks/uncounted.json",
        },
        {
            **by_name(
                "bedrock/streams", "events", f"text tools length {BROKEN}", filtered="guardrail", unknown="noise"
            ),
            "uncounted": "bedrock/checks/uncounted.events",
        },
        (400, "bedrock/errors/400_window.json"),
        "bedrock/errors/429.json",
        framed=framed_lines,
    ),
    "bedrock_anthropic": FixtureSet(
        target(profile="bedrock_anthropic"),
        chat_request(),
        CLAUDE_WHOLE,
        CLAUDE_STREAMS,
        (400, "bedrock/errors/400_too_long.json"),
        "bedrock/errors/429.json",
        framed=_framed_events,
    ),
    "bedrock_invoke": FixtureSet(
        target("amazon.titan-text-express-v1", "bedrock_invoke"),
        text_request(),
        {**by_name("bedrock/titan", "json", "length filtered unknown uncounted"), "text": "bedrock/invoke/titan.json"},
        {
            **by_name("bedrock/titan", "events", f"length filtered unknown uncounted {BROKEN}"),
            "text": "bedrock/invoke/titan.events",
        },
        (400, "bedrock/errors/400_window.json"),
        "bedrock/errors/429.json",
        NO_CALLS,
        framed_lines,
    ),
}

STREAMS: Mapping[str, Stream] = {
    "bedrock": Stream(
        "bedrock",
        LONG_CHAT,
        Framed(Form("bedrock/streams/text.events", 1, 3, "Checking "), _converse_frame),
        WRAPPED_TIMES,
    ),
    "bedrock_anthropic": Stream("bedrock_anthropic", LONG_CHAT, Framed(CLAUDE_FORM, _invoke_frame), WRAPPED_TIMES),
    "bedrock_invoke": Stream(
        "bedrock_invoke",
        LONG_TEXT,
        Framed(Form("bedrock/invoke/llama.events", 0, 1, " It is"), _invoke_frame),
        WRAPPED_TIMES,
        model=_LLAMA,
    ),
    "bedrock_invoke, list": Stream(
        "bedrock_invoke",
        LONG_TEXT,
        Framed(Form("bedrock/invoke/mistral.events", 0, 1, " It is"), _invoke_frame),
        WRAPPED_TIMES,
        model="mistral.mistral-7b-instruct-v0:2",
    ),
}
