"""Non-streaming responses of Anthropic's API. Every fixture can be read by the vendor's own types."""

from dataclasses import replace

import orjson
import pytest
from anthropic.types import Message

from providers.completion import Choice, Extras, ToolCall, Usage
from providers.dialects.anthropic.answer import finish_reason, usage_of
from providers.failure import FailureKind
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import Guided
from tests.providers.dialects.anthropic.kit import DIALECT, FIXTURES, answer, encode
from tests.providers.dialects.kit import chat_request
from tests.providers.kit import failure_of
from tests.support.looped import looped

SENT = encode(chat_request())
# The SDK's types list the stop reasons of their day; the vendor adds more.
BEYOND_THE_SDK = frozenset({"unknown"})


@looped("path", sorted((FIXTURES / "answers").glob("*.json")), ids=lambda path: path.stem)
def test_every_fixture_is_a_message_to_the_vendors_types(path: object) -> None:
    name = str(getattr(path, "stem", ""))
    if name not in BEYOND_THE_SDK:
        assert Message.model_validate(orjson.loads(answer(name))).type == "message"


@looped(
    ("name", "choice"),
    [
        ("text", Choice(0, "Checking Oslo: 3 °C.", "stop")),
        ("empty", Choice(0, "", "stop")),
        ("length", Choice(0, "It never", "length")),
        ("window", Choice(0, "Cut by the window", "length", "model_context_window_exceeded")),
        ("stop_sequence", Choice(0, "one, two", "stop", matched_stop=", three")),
        (
            "refusal",
            Choice(0, "The request was declined.", "content_filter", "refusal", refusal="The request was declined."),
        ),
        (
            "tools",
            Choice(
                0,
                "Both cities.",
                "tool_calls",
                tool_calls=(
                    ToolCall("toolu_01Qz", "get_weather", '{"city":"Oslo"}'),
                    ToolCall("toolu_02Qz", "now", "{}"),
                ),
            ),
        ),
    ],
)
def test_an_answer_becomes_one_choice(name: str, choice: Choice) -> None:
    assert DIALECT.decode(SENT, answer(name)).choices == (choice,)


def test_thinking_keeps_its_blocks_with_their_signatures() -> None:
    (choice,) = DIALECT.decode(SENT, answer("thinking")).choices
    assert (choice.text, choice.reasoning) == ("Oslo.", "The user wants Oslo.")
    claude: JsonObject = {"format": "anthropic-claude-v1"}
    assert choice.extras == Extras(
        reasoning_details=(
            {"type": "reasoning.text", "text": "The user wants Oslo.", "signature": "c2ln", "index": 0, **claude},
            {"type": "reasoning.encrypted", "data": "eHg=", "index": 1, **claude},
        )
    )


def test_blocks_of_unknown_types_are_passed_on() -> None:
    (choice,) = DIALECT.decode(SENT, answer("unknown")).choices
    assert (choice.text, choice.finish_reason, choice.native_finish_reason) == ("Still here.", "sunset", "sunset")
    assert choice.extras == Extras(message={"content_blocks": [{"type": "hologram", "shape": "cube"}]})


@looped(
    ("name", "usage"),
    [
        ("text", Usage(21, 9, {"cached_tokens": 0, "cache_write_tokens": 0})),
        (
            "cached",
            Usage(
                3210,
                2,
                {
                    "cached_tokens": 3000,
                    "cache_write_tokens": 200,
                    "ephemeral_5m_input_tokens": 200,
                    "ephemeral_1h_input_tokens": 0,
                },
                tier="priority",
            ),
        ),
        ("thinking", Usage(21, 30, {"cached_tokens": 0, "cache_write_tokens": 0}, {"reasoning_tokens": 24})),
    ],
)
def test_usage_counts_cached_tokens_as_part_of_the_prompt(name: str, usage: Usage) -> None:
    assert DIALECT.decode(SENT, answer(name)).usage == usage


@looped("raw", [None, 3, {}, {"input_tokens": 3}, {"output_tokens": 3}])
def test_without_counts_there_is_no_usage(raw: JsonValue) -> None:
    assert usage_of(raw) is None


NO_COUNTS: tuple[JsonValue, ...] = (-1_000_000, True, 2.5, "7", 10**15, 1e300)


@looped("value", NO_COUNTS)
def test_what_is_no_count_is_taken_as_absent(value: JsonValue) -> None:
    counts: JsonObject = {"input_tokens": 3, "output_tokens": 4}
    assert usage_of({**counts, "cache_creation_input_tokens": value}) == Usage(3, 4)
    assert usage_of({**counts, "cache_read_input_tokens": value}) == Usage(3, 4)
    assert usage_of({**counts, "cache_creation": {"ephemeral_1h_input_tokens": value}}) == Usage(3, 4)
    assert usage_of({**counts, "output_tokens_details": {"thinking_tokens": value}}) == Usage(3, 4)
    assert usage_of({**counts, "input_tokens": value}) is None
    assert usage_of({**counts, "output_tokens": value}) is None


def test_what_was_written_for_an_hour_is_not_more_than_what_was_written() -> None:
    raw: JsonObject = {
        "input_tokens": 3,
        "output_tokens": 4,
        "cache_creation_input_tokens": 5,
        "cache_creation": {"ephemeral_5m_input_tokens": 5, "ephemeral_1h_input_tokens": 6},
    }
    assert usage_of(raw) == Usage(8, 4, {"cache_write_tokens": 5, "ephemeral_5m_input_tokens": 5})


def test_details_hold_only_what_the_vendor_gave() -> None:
    assert usage_of({"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": None}) == Usage(3, 4)


@looped(("name", "tier"), [("text", "default"), ("cached", "priority"), ("tools", None)])
def test_the_tier_has_openais_name(name: str, tier: str | None) -> None:
    assert DIALECT.decode(SENT, answer(name)).service_tier == tier


def test_tools_get_back_the_names_the_client_gave() -> None:
    sent = replace(SENT, tool_names={"get_weather": "get weather"})
    calls = DIALECT.decode(sent, answer("tools")).choices[0].tool_calls
    assert [call.name for call in calls] == ["get weather", "now"]


def test_the_stop_string_is_put_back_when_it_was_asked_for() -> None:
    sent = encode(chat_request(stop=(", three",), include_stop_str_in_output=True))
    assert DIALECT.decode(sent, answer("stop_sequence")).choices[0].text == "one, two, three"
    assert DIALECT.decode(sent, answer("text")).choices[0].text == "Checking Oslo: 3 °C."


CHOOSE = encode(chat_request(guided=Guided("choice", ("yes", "no"))))


def test_a_choice_is_unwrapped() -> None:
    assert DIALECT.decode(CHOOSE, answer("choice")).choices[0].text == "yes"


def test_a_choice_that_was_cut_or_declined_is_left_as_it_is() -> None:
    assert DIALECT.decode(CHOOSE, answer("length")).choices[0].text == "It never"
    assert DIALECT.decode(CHOOSE, answer("refusal")).choices[0].finish_reason == "content_filter"


@pytest.mark.parametrize("name", ["text", "stop_sequence"])
def test_an_answer_without_the_choice_is_malformed(name: str) -> None:
    assert failure_of(DIALECT.decode, CHOOSE, answer(name)).kind is FailureKind.MALFORMED


@looped(
    ("reason", "expected"),
    [
        ("end_turn", ("stop", None)),
        ("stop_sequence", ("stop", None)),
        ("pause_turn", ("length", "pause_turn")),
        ("max_tokens", ("length", None)),
        ("compaction", ("length", "compaction")),
        ("tool_use", ("tool_calls", None)),
        ("refusal", ("content_filter", "refusal")),
        ("never_seen", ("never_seen", "never_seen")),
    ],
)
def test_stop_reasons_become_the_common_ones(reason: str, expected: tuple[str, str | None]) -> None:
    assert finish_reason(reason) == expected
