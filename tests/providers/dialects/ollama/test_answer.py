"""Responses of Ollama's own endpoints, in one body and in lines."""

from dataclasses import replace

from providers.completion import Choice, Chunk, ContentLogprobs, Extras, TokenLogprob, ToolCall, ToolCallDelta, Usage
from providers.dialects.ollama.answer import wants_logprobs
from providers.failure import FailureKind
from providers.json_types import JsonObject
from providers.unified_request import Guided, LogprobsWanted
from tests.providers.dialects.kit import (
    chat_request,
    chunks,
    decode_failure,
    decoded,
    gathered,
    only,
    reader,
    sent_for,
    stream_failure,
    streamed,
    target_of,
    text_of,
    text_request,
    usage_in,
)
from tests.support.looped import looped

answer = reader("ollama", "answers", "json")
stream = reader("ollama", "streams", "ndjson")

TARGET = target_of("ollama_native")
SENT = sent_for(chat_request(), TARGET)
CHOOSE = sent_for(chat_request(guided=Guided("choice", ("yes", "no"))), TARGET)
SCORED = sent_for(text_request(logprobs=LogprobsWanted(1, "legacy")), TARGET)
FIRST = TokenLogprob("Oslo", -0.25, (79, 115, 108, 111))
OTHER = TokenLogprob("Rome", -2.5, (82, 111, 109, 101))
LOGPROBS = ContentLogprobs(
    (
        replace(FIRST, top=(FIRST, OTHER)),
        TokenLogprob(" ", -0.5, (32,)),
        TokenLogprob("👋", -0.125, (240, 159, 145, 139)),
    )
)
CALLS = (ToolCall("call_9a2b", "get_weather", '{"city":"Oslo"}'), ToolCall("made", "now", "{}"))
ANSWERS = {
    "chat": Choice(0, "Checking Oslo: 3 °C 👋.", "stop"),
    "generate": Choice(0, " is blue\u2028ish.", "stop"),
    "tools": Choice(0, "Both.", "tool_calls", tool_calls=CALLS),
    "thinking": Choice(0, "Oslo.", "stop", reasoning="The user wants Oslo."),
    "length": Choice(0, "It never", "length"),
    "choice": Choice(0, '{"choice": "yes"}', "stop"),
    "logprobs": Choice(0, "Oslo 👋", "stop", logprobs=LOGPROBS),
    "unknown": Choice(0, "Still here.", "sunset", "sunset"),
}
ALSO_STREAMED = ("chat", "generate", "tools", "thinking", "length", "choice", "logprobs")


def with_made_ids(choice: Choice) -> Choice:
    """Return the choice with a fixed id for the calls whose id is not the engine's."""
    calls = tuple([replace(call, id="made") if call.id[5:] != "9a2b" else call for call in choice.tool_calls])
    return replace(choice, tool_calls=calls)


@looped("name", ANSWERS)
def test_an_answer_becomes_one_choice(name: str) -> None:
    assert with_made_ids(only(decoded(SENT, answer(name)))) == ANSWERS[name]


def test_what_is_zero_is_left_out_and_a_prompt_nobody_counted_is_not_told() -> None:
    assert decoded(SENT, answer("chat")).usage == Usage(163, 24)
    assert decoded(SENT, answer("chat").replace(b'"eval_count":24,', b"")).usage == Usage(163, 0)
    assert decoded(SENT, answer("unknown")).usage is None


def test_calls_have_the_clients_names_and_an_id_of_their_own() -> None:
    sent = replace(SENT, tool_names={"now": "right now"})
    first, second = only(decoded(sent, answer("tools"))).tool_calls
    assert second.name == "right now"
    assert second.id.startswith("call_")
    assert second.id != first.id


def test_a_choice_is_unwrapped_where_it_is_whole() -> None:
    assert only(decoded(CHOOSE, answer("choice"))).text == "yes"
    assert only(decoded(CHOOSE, answer("length"))).text == "It never"
    assert decode_failure(CHOOSE, answer("chat")) is FailureKind.MALFORMED


def test_log_probabilities_that_a_server_is_too_old_for_are_missed() -> None:
    assert only(decoded(SCORED, answer("logprobs"))).logprobs == LOGPROBS
    assert decode_failure(SCORED, answer("generate")) is FailureKind.MALFORMED
    assert stream_failure(SCORED, stream("generate"))[1].failure.kind is FailureKind.MALFORMED
    assert gathered(streamed(SCORED, stream("logprobs"))).choices[0].logprobs == LOGPROBS


def test_only_the_calls_own_member_asks_for_log_probabilities() -> None:
    nested: JsonObject = {"type": "object", "properties": {"logprobs": {"const": True}}, "default": {"logprobs": True}}
    assert not wants_logprobs(sent_for(chat_request(guided=Guided("json", nested)), TARGET))
    assert not wants_logprobs(sent_for(text_request('"logprobs":true'), TARGET))
    assert wants_logprobs(SCORED)


# Streams ------------------------------------------------------------------------------------------------------------


@looped("name", ALSO_STREAMED)
def test_a_stream_says_what_the_whole_answer_says(name: str) -> None:
    made, whole = gathered(streamed(SENT, stream(name))), decoded(SENT, answer(name))
    assert with_made_ids(only(made)) == with_made_ids(only(whole))
    assert made.usage == whole.usage


@looped("reason", ["load", "unload"])
def test_a_model_that_was_only_loaded_or_unloaded_has_not_answered(reason: str) -> None:
    said = answer("empty").replace(b'"load"', f'"{reason}"'.encode())
    assert decode_failure(SENT, said) is FailureKind.NONCONFORMING
    assert stream_failure(SENT, said + b"\n")[1].failure.kind is FailureKind.NONCONFORMING


def test_calls_come_whole_and_are_counted_through_the_lines() -> None:
    events = streamed(SENT, stream("tools"))
    deltas = [delta for chunk in chunks(events) for delta in chunk.tool_calls]
    assert deltas[0] == ToolCallDelta(0, "call_9a2b", "get_weather", '{"city":"Oslo"}')
    assert (deltas[1].index, deltas[1].name, deltas[1].arguments) == (1, "now", "{}")
    assert chunks(events)[-1].finish_reason == "tool_calls"


def test_noise_changes_nothing() -> None:
    events = streamed(SENT, stream("noise"))
    assert events == [
        Chunk(text="Still "),
        Chunk(text="here."),
        Chunk(
            finish_reason="sunset",
            native_finish_reason="sunset",
            extras=Extras(answer={"total_duration": 912000000, "load_duration": 11000000}),
        ),
    ]
    assert usage_in(events) is None


def test_a_choice_comes_unwrapped_in_one_piece() -> None:
    end, usage = streamed(CHOOSE, stream("choice"), 1)
    assert isinstance(end, Chunk)
    assert (end.text, end.finish_reason, usage) == ("yes", "stop", Usage(90, 6))
    assert text_of(streamed(CHOOSE, stream("length"))) == "It never"


def test_durations_keep_the_engine_s_names_whole_and_streamed() -> None:
    whole = decoded(SENT, answer("thinking")).extra
    assert whole is not None
    assert whole.keys() == {"total_duration", "load_duration", "prompt_eval_duration", "eval_duration"}
    end = chunks(streamed(SENT, stream("thinking")))[-1].extras
    assert end is not None
    assert end.answer is not None
    assert end.answer.keys() == whole.keys()


def test_images_and_members_that_have_no_common_form_are_passed_on() -> None:
    body = answer("chat").replace(b'"role":"assistant"', b'"role":"assistant","images":["/9j/AA=="],"mood":"fine"')
    url: JsonObject = {"url": "data:image/jpeg;base64,/9j/AA=="}
    expected = Extras(images=({"type": "image_url", "image_url": url},), choice={"mood": "fine"})
    assert only(decoded(SENT, body)).extras == expected


def test_a_call_of_a_custom_tool_has_its_text() -> None:
    sent = replace(SENT, custom_tools=frozenset({"get_weather"}))
    body, lines = answer("tools").replace(b"city", b"input"), stream("tools").replace(b"city", b"input")
    call = only(decoded(sent, body)).tool_calls[0]
    assert (call.kind, call.arguments) == ("custom", "Oslo")
    delta = next(delta for chunk in chunks(streamed(sent, lines)) for delta in chunk.tool_calls)
    assert (delta.kind, delta.arguments) == ("custom", "Oslo")
