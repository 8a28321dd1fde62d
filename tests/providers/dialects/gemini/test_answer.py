"""Gemini's non-streaming responses, and the reading code that streams share."""

from dataclasses import replace

from providers.completion import Choice, ContentLogprobs, Extras, TokenLogprob, ToolCall, Usage
from providers.dialects.shared.thought_signatures import pack_call_id, unpack_call_id
from providers.failure import FailureKind
from providers.json_types import JsonValue
from tests.providers.dialects.gemini.kit import DIALECT, SAID, SIGNATURE, SIGNED, answer, sent
from tests.providers.kit import failure_of


def only(name: str) -> Choice:
    (choice,) = DIALECT.decode(sent(), answer(name)).choices
    return choice


def usage(name: str) -> Usage | None:
    return DIALECT.decode(sent(), answer(name)).usage


def kind_of(body: bytes) -> FailureKind:
    return failure_of(DIALECT.decode, sent(), body).kind


def test_texts_are_joined() -> None:
    completion = DIALECT.decode(sent(), answer("text"))
    assert completion.choices == (Choice(0, "Oslo: 3 °C 👋.", "stop"),)
    assert completion.usage == Usage(9, 7)


def test_calls_have_ids_in_which_their_signatures_travel() -> None:
    choice = only("tools")
    assert (choice.text, choice.finish_reason) == ("I look both up.", "tool_calls")
    assert choice.tool_calls == (
        ToolCall(
            pack_call_id("fc-1", SIGNATURE, None, "studio"), "get_weather", '{"city":"Oslo","days":[1,2]}', extra=SIGNED
        ),
        ToolCall("fc-2", "get_weather", '{"city":"Bergen"}'),
    )


def test_calls_without_ids_get_some_and_the_first_carries_the_signature_of_the_text() -> None:
    first, second = only("tools_old").tool_calls
    assert unpack_call_id(first.id)[1:] == (None, SAID, "studio")
    assert unpack_call_id(second.id)[1:] == (None, None, None)
    assert unpack_call_id(first.id)[0].startswith("call_")
    assert first.id != second.id
    assert (second.name, second.arguments) == ("now", "{}")


def test_calls_get_back_the_names_the_client_gave() -> None:
    call = replace(sent(), tool_names={"get_weather": "get weather"})
    assert [one.name for one in DIALECT.decode(call, answer("tools")).choices[0].tool_calls] == ["get weather"] * 2


def test_thoughts_are_reasoning_and_no_text() -> None:
    choice = only("thinking")
    assert (choice.text, choice.reasoning, choice.signature) == ("Oslo.", "The user wants Oslo.", SIGNATURE)
    assert usage("thinking") == Usage(9, 33, None, {"reasoning_tokens": 31})


def test_the_signature_of_a_text_that_a_call_took_along_is_not_said_twice() -> None:
    assert [only(name).signature for name in ("tools", "tools_old", "text")] == [None, None, None]


def test_thoughts_that_are_counted_already_are_not_counted_again() -> None:
    assert usage("thinking_old") == Usage(9, 33, None, {"reasoning_tokens": 31})


def test_an_answer_may_have_no_content() -> None:
    assert only("length") == Choice(0, "", "length")
    assert only("empty") == Choice(0, "", "stop")
    assert usage("length") == Usage(9, 60, None, {"reasoning_tokens": 60})


def test_a_withheld_answer_is_filtered_and_says_why() -> None:
    words = "The answer was withheld."
    ratings: JsonValue = [{"category": "HARM_CATEGORY_HARASSMENT", "probability": "HIGH", "blocked": True}]
    extras = Extras(choice={"safety_ratings": ratings})
    assert only("safety") == Choice(0, words, "content_filter", "SAFETY", refusal=words, extras=extras)


def test_a_blocked_prompt_is_an_answer_that_was_filtered() -> None:
    assert only("blocked") == Choice(0, "", "content_filter", "PROHIBITED_CONTENT")
    words = "The prompt was withheld."
    assert only("blocked_told") == Choice(0, words, "content_filter", "SAFETY", refusal=words)
    assert usage("blocked") == Usage(12, 0)


def test_log_probabilities_have_their_alternatives_and_one_left_out_is_certain() -> None:
    top = (TokenLogprob("Yes", -0.25), TokenLogprob("No", -1.5))
    other = (TokenLogprob(", no", 0.0), TokenLogprob(".", -14.5))
    assert only("logprobs").logprobs == ContentLogprobs(
        (TokenLogprob("Yes", -0.25, None, top), TokenLogprob(", no", 0.0, None, other))
    )


def test_a_choice_comes_bare() -> None:
    assert only("choice").text == "yes"
    assert only("json").text == '{"city":"Oslo"}'


def test_usage_is_the_vendors_in_openais_meaning_or_none() -> None:
    assert usage("cached") == Usage(
        3215, 2, {"cached_tokens": 3000, "tool_use_prompt_tokens": 5}, {"reasoning_tokens": 0}
    )
    assert usage("no_usage") is None


def test_several_candidates_are_several_choices() -> None:
    choices = DIALECT.decode(replace(sent(), choices=2), answer("two")).choices
    assert [(one.index, one.text, one.finish_reason) for one in choices] == [(0, "a", "stop"), (1, "b", "length")]


def test_parts_without_a_common_form_and_unknown_reasons_are_passed_on() -> None:
    parts: JsonValue = [{"hologram": {"size": 3}}, {"executableCode": {"language": "PYTHON", "code": "1"}}]
    extras = Extras(message={"google_parts": parts})
    assert only("unknown") == Choice(0, "Still here.", "SUNSET", "SUNSET", extras=extras)


def test_an_answer_that_the_model_broke_is_a_failure() -> None:
    assert kind_of(answer("malformed_call")) is FailureKind.NONCONFORMING
    body = answer("malformed_call").replace(b"MALFORMED_FUNCTION_CALL", b"MISSING_THOUGHT_SIGNATURE")
    assert kind_of(body) is FailureKind.INVALID_REQUEST


def test_an_error_in_disguise_is_the_error() -> None:
    assert kind_of(b'[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}]') is FailureKind.RATE_LIMITED
