"""Conversations without their oldest turns: which messages are left, and that they are still valid."""

from functools import partial

import pytest

from providers.json_types import JsonObject
from providers.unified_request import ChatPrompt, Operation, TextPrompt, TranslationLosses, UnifiedRequest
from proxy.dispatch.shorten_conversation import UNKNOWN_SHARE, kept_share, latest_turns, shortened
from tests.support.cpu_growth import growth
from tests.support.looped import looped

SYSTEM: JsonObject = {"role": "system", "content": "Be brief."}


def turn(number: int, size: int = 1000) -> list[JsonObject]:
    """Return a turn whose response needed a tool."""
    call: JsonObject = {"id": f"call_{number}", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    return [
        {"role": "user", "content": f"{number} " + "x" * size},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"call_{number}", "content": "ok"},
        {"role": "assistant", "content": "done"},
    ]


def turns(count: int, size: int = 1000) -> list[JsonObject]:
    return [SYSTEM, *(message for number in range(count) for message in turn(number, size))]


def test_the_oldest_turns_go_whole_and_the_instructions_and_the_latest_stay() -> None:
    kept = latest_turns(turns(8), 0.5)
    assert kept is not None
    assert kept[0] == SYSTEM
    assert [*kept[1:]] == [message for number in (5, 6, 7) for message in turn(number)]
    kept = latest_turns([*turns(3), *turn(9, 100_000)], 0.5)
    assert kept == (SYSTEM, *turn(9, 100_000))


@looped("messages", [[], [SYSTEM], turns(1), [SYSTEM, SYSTEM], turn(1), turn(1)[1:]])
def test_where_there_is_one_turn_nothing_can_be_left_out(messages: list[JsonObject]) -> None:
    assert latest_turns(messages, 0.5) is None


def test_something_is_left_out_each_time() -> None:
    messages, lengths = turns(20), []
    while (kept := latest_turns(messages, 0.99)) is not None:
        messages = [*kept]
        lengths.append(len(messages))
    assert lengths == [1 + 4 * count for count in range(19, 0, -1)]


def test_what_begins_with_an_answer_belongs_to_the_oldest_turn() -> None:
    kept = latest_turns([SYSTEM, *turn(1)[1:], *turn(2), *turn(3)], 0.95)
    assert kept is not None
    assert kept[:2] == (SYSTEM, turn(2)[0])


@looped(
    ("refusal", "share"),
    [
        ("This model's maximum context length is 4096 tokens. However, your messages resulted in 8192 tokens.", 0.45),
        ("prompt is too long: 400000 tokens > 200000 maximum", 0.45),
        ("Too long.", UNKNOWN_SHARE),
    ],
)
def test_how_much_fits_is_what_the_refusal_says(refusal: str, share: float) -> None:
    assert kept_share(refusal) == pytest.approx(share)


def test_a_shortened_request_says_what_it_goes_without() -> None:
    request = UnifiedRequest(
        Operation.CHAT, "v/m", ChatPrompt(tuple(turns(8))), {}, losses=TranslationLosses({}, ("user",))
    )
    shorter = shortened(request, "Too long.")
    assert shorter is not None
    assert shorter.losses is not None
    assert shorter.losses.left_out == ("user", "input")
    again = shortened(shorter, "Too long.")
    assert again is not None
    assert again.losses == shorter.losses
    assert shortened(UnifiedRequest(Operation.COMPLETIONS, "v/m", TextPrompt(("x",)), {}), "Too long.") is None


def test_four_thousand_messages_are_shortened_quickly() -> None:
    messages: list[JsonObject] = [{"role": "user", "content": "x" * 4000}] * 4096
    assert latest_turns(messages, 0.001) is not None
    assert growth(partial(latest_turns, messages[:1024], 0.001), partial(latest_turns, messages, 0.001)) == ""
