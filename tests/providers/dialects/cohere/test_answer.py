"""Non-streaming responses of Cohere's v2 chat."""

from dataclasses import replace

import pytest

from providers.completion import Choice, ContentLogprobs, Extras, TokenLogprob, ToolCall, Usage
from providers.dialects.cohere.answer import logprobs_of, plan_detail, reasoning_detail, usage_of
from providers.failure import FailureKind
from providers.json_types import JsonValue
from providers.unified_request import Guided
from tests.providers.dialects.kit import chat_request, decode_failure, decoded, only, reader, sent_for, target_of
from tests.support.looped import looped

answer = reader("cohere", "answers", "json")

TARGET = target_of("cohere")
SENT = sent_for(chat_request(), TARGET)
CHOOSE = sent_for(chat_request(guided=Guided("choice", ("yes", "no"))), TARGET)
CALLS = (ToolCall("get_weather_a1", "get_weather", '{"city":"Oslo"}'), ToolCall("now_b2", "now", "{}"))
PLAN, WANT = "I will look up both.", "The user wants Oslo."
LOGPROBS = ContentLogprobs((TokenLogprob("Oslo", -0.25), TokenLogprob(" 👋", -0.5), TokenLogprob("", -0.125)))
ANSWERS = {
    "text": Choice(0, "Checking Oslo: 3 °C 👋.", "stop"),
    "tools": Choice(0, "", "tool_calls", reasoning=PLAN, tool_calls=CALLS, extras=Extras((plan_detail(PLAN),))),
    "thinking": Choice(0, "Oslo.", "stop", reasoning=WANT, extras=Extras((reasoning_detail(0, WANT),))),
    "length": Choice(0, "It never", "length"),
    "stop": Choice(0, "one, two", "stop"),
    "toxic": Choice(0, "First, ", "content_filter", "ERROR_TOXIC"),
    "unknown": Choice(
        0,
        "Still here.",
        "SUNSET",
        "SUNSET",
        extras=Extras(message={"content_blocks": [{"type": "hologram", "hologram": "?"}]}),
    ),
    "empty": Choice(0, "", "stop"),
    "choice": Choice(0, '{"choice": "yes"}', "stop"),
    "logprobs": Choice(0, "Oslo 👋", "stop", logprobs=LOGPROBS),
}


@looped("name", ANSWERS)
def test_an_answer_becomes_one_choice(name: str) -> None:
    assert only(decoded(SENT, answer(name))) == ANSWERS[name]


def test_citations_of_documents_without_an_address_are_passed_on_as_they_came() -> None:
    found = only(decoded(SENT, answer("citations"))).extras
    assert found is not None
    assert found.annotations == ()
    assert found.message is not None
    citations = found.message["citations"]
    assert isinstance(citations, list)
    assert [each["text"] for each in citations if isinstance(each, dict)] == [
        "Automation of tasks",
        "Better decision-making",
        "Cost reduction",
    ]


def test_members_that_have_no_common_form_keep_the_vendors_names() -> None:
    assert decoded(SENT, answer("text")).extra == {"billed_units": {"input_tokens": 12.0, "output_tokens": 9.0}}
    assert decoded(SENT, answer("unknown")).extra == {"novelty": 1}


def test_a_call_of_a_custom_tool_has_its_text() -> None:
    sent = replace(SENT, custom_tools=frozenset({"get_weather"}))
    body = answer("tools").replace(b"city", b"input")
    assert [(call.kind, call.arguments) for call in only(decoded(sent, body)).tool_calls] == [
        ("custom", "Oslo"),
        ("function", "{}"),
    ]


def test_usage_is_what_the_model_read_and_wrote() -> None:
    assert decoded(SENT, answer("text")).usage == Usage(512, 11, {"cached_tokens": 448})
    assert decoded(SENT, answer("tools")).usage == Usage(912, 48)
    assert decoded(SENT, answer("unknown")).usage is None


@looped("raw", [None, 3, {}, {"tokens": {}}, {"tokens": {"input_tokens": 1, "output_tokens": "2"}}])
def test_without_counts_there_is_no_usage(raw: JsonValue) -> None:
    assert usage_of(raw) is None


def test_calls_have_the_clients_names_and_always_an_id() -> None:
    sent = replace(SENT, tool_names={"get_weather": "get weather"})
    body = answer("tools").replace(b'"id":"now_b2",', b"")
    first, second = only(decoded(sent, body)).tool_calls
    assert first.name == "get weather"
    assert second.id.startswith("call_")


def test_a_choice_is_unwrapped_where_it_is_whole() -> None:
    assert only(decoded(CHOOSE, answer("choice"))).text == "yes"
    assert only(decoded(CHOOSE, answer("length"))).text == "It never"
    assert decode_failure(CHOOSE, answer("text")) is FailureKind.MALFORMED


def test_the_only_stop_is_the_one_that_matched() -> None:
    for stops, matched in (((", three",), ", three"), (("a", "b"), None)):
        assert only(decoded(sent_for(chat_request(stop=stops), TARGET), answer("stop"))).matched_stop == matched
    assert only(decoded(sent_for(chat_request(stop=("a",)), TARGET), answer("text"))).matched_stop is None


@pytest.mark.parametrize(("reason", "kind"), [(b"ERROR", FailureKind.SERVER), (b"TIMEOUT", FailureKind.TIMEOUT)])
def test_reasons_that_mean_failure_are_failures(reason: bytes, kind: FailureKind) -> None:
    assert decode_failure(SENT, answer("text").replace(b"COMPLETE", reason)) is kind


@looped("raw", [None, 3, [], [3], [{}], [{"text": "a", "logprobs": []}]])
def test_log_probabilities_that_nobody_gave_are_none(raw: JsonValue) -> None:
    assert logprobs_of(raw) is None
