"""Responses of LLM Engine's completions, streaming and not."""

from providers.completion import Choice, ContentLogprobs, TokenLogprob, Usage
from tests.providers.dialects.kit import (
    decoded,
    fixture,
    gathered,
    only,
    reader,
    sent_for,
    streamed,
    target_of,
    text_request,
)
from tests.support.looped import looped

stream = reader("llm_engine", "streams", "sse")

TARGET = target_of("llm_engine", max_output_tokens=16)
SENT = sent_for(text_request("The sky"), TARGET)
LOGPROBS = ContentLogprobs((TokenLogprob("Oslo", -0.25), TokenLogprob(" 👋", -0.5)))
ANSWERS = {
    "text": (Choice(0, " is blue: 3 °C 👋.", "stop"), Usage(3, 7)),
    "length": (Choice(0, " is it", "length"), Usage(3, 16)),
    "logprobs": (Choice(0, "Oslo 👋", "stop", logprobs=LOGPROBS), Usage(3, 2)),
    "empty": (Choice(0, "", "stop"), Usage(3, 0)),
    "uncounted": (Choice(0, "Oslo.", "stop"), None),
}
STREAMS = {**ANSWERS, "length": (Choice(0, " la la la", "length"), Usage(3, 16))}


@looped("name", ANSWERS)
def test_a_whole_answer_is_one_choice(name: str) -> None:
    completion = decoded(SENT, fixture("llm_engine", "answers", f"{name}.json"))
    assert (only(completion), completion.usage) == ANSWERS[name]


@looped("name", STREAMS)
def test_a_stream_is_one_choice(name: str) -> None:
    completion = gathered(streamed(SENT, stream(name)))
    assert (only(completion), completion.usage) == STREAMS[name]


def test_a_window_that_is_full_ended_the_text() -> None:
    known = sent_for(text_request("The sky"), target_of("llm_engine", max_output_tokens=16, context_window=10))
    assert only(decoded(known, fixture("llm_engine", "answers", "text.json"))).finish_reason == "length"
