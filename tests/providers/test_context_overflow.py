"""The sizes in errors, the limit to try next, and sizes that are sure to fit."""

import orjson
from hypothesis import example, given
from hypothesis import strategies as st

from providers.context_overflow import (
    JSON_FACTOR,
    MAX_FITTING_CALLS,
    MAX_TEXT,
    MESSAGE_TOKENS,
    NFC_GROWTH,
    SPECIAL_TOKENS,
    TEMPLATE_TOKENS,
    Overflow,
    fits,
    most_prompt_tokens,
    next_limit,
    read_overflow,
)
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import ChatPrompt, Params, Prompt, TextPrompt, TokenPrompt
from tests.providers.overflows import NOT_OVERFLOWS, SAMPLES, Sample
from tests.support.looped import looped

every_sample = looped("sample", SAMPLES, ids=lambda sample: sample.text[:60])


@every_sample
def test_a_message_says_what_its_numbers_are(sample: Sample) -> None:
    said = read_overflow(sample.text, {})
    assert said == sample.overflow
    if said.window is not None and said.prompt is not None:
        assert said.window - said.prompt == sample.room
    else:
        assert sample.room is None


@looped("text", NOT_OVERFLOWS)
def test_other_errors_say_nothing_of_sizes(text: str) -> None:
    assert read_overflow(text, {}) is None


def test_the_error_s_own_numbers_come_before_its_words() -> None:
    members: JsonObject = {"n_prompt_tokens": 9412, "n_ctx": 8192, "type": "exceed_context_size_error"}
    expected = Overflow(8192, 9412, exact=True, prompt_alone=True)
    assert read_overflow("request (1 tokens) exceeds the available context size (2 tokens)", members) == expected
    assert read_overflow("Rate limit reached", members) == expected


@looped("odd", [None, True, 0, -1, "8192", 1.5])
def test_numbers_that_are_none_are_not_read(odd: JsonValue) -> None:
    assert read_overflow("no", {"n_prompt_tokens": odd, "n_ctx": 8192}) is None
    assert read_overflow("no", {"n_prompt_tokens": 9412, "n_ctx": odd}) is None


def test_only_the_beginning_of_a_message_is_read() -> None:
    assert read_overflow("x" * MAX_TEXT + "prompt is too long", {}) is None


@looped("piece", ["maximum context length is 1", "exceeds ", "input length 1", "max_tokens ", "1,"])
def test_a_message_that_begins_over_and_over_is_read(piece: str) -> None:
    said = read_overflow(piece * 100_000, {})
    assert said in (None, Overflow())


@given(st.text(), st.dictionaries(st.sampled_from(["n_ctx", "n_prompt_tokens"]), st.integers() | st.text()))
@example("9" * 5000 + " > " + "9" * 5000 + ", which is the maximum allowed number of output tokens", {})
def test_no_text_raises(text: str, members: dict[str, JsonValue]) -> None:
    said = read_overflow(text, members)
    assert said is None or isinstance(said, Overflow)


# The limit to try next ----------------------------------------------------------------------------------------------


@looped(
    ("limit", "overflow", "expected"),
    [
        (3072, Overflow(4097, 1044, 3072, exact=True), 3053),
        (3072, Overflow(4097, 4096, exact=True), 1),
        (3072, Overflow(4097, 4097, exact=True), None),
        (131000, Overflow(131072, 1463, 131000), 131072 - 1463 - 16),
        (32000, Overflow(32768, 32760), None),
        (32000, Overflow(32768, requested=32000), 16000),
        (64000, Overflow(32768), 16384),
        (64000, Overflow(8192, requested=9000, output_cap=8192), 8192),
        (64000, Overflow(output_cap=16384), 16384),
        (16384, Overflow(output_cap=16384), None),
        (40000, Overflow(262144, total=291351), 40000 - (291351 - 262144)),
        (20000, Overflow(262144, total=291351), None),
        (1000, Overflow(), 500),
        (1000, Overflow(prompt_alone=True), None),
        (1000, Overflow(8192, 9000, exact=True, prompt_alone=True), None),
        (1, Overflow(), None),
        (0, Overflow(output_cap=65536), None),
        # According to these numbers, the request would have fitted.
        (1000, Overflow(8192, 12, exact=True), 500),
        (1000, Overflow(262144, total=200000), 500),
    ],
)
def test_the_next_limit_is_what_fits_or_a_guess_below_it(limit: int, overflow: Overflow, expected: int | None) -> None:
    assert next_limit(limit, overflow, 1) == expected
    assert next_limit(limit, overflow, MAX_FITTING_CALLS) is None


sizes = st.none() | st.integers(0, 1 << 40)
overflows = st.builds(Overflow, sizes, sizes, sizes, st.booleans(), sizes, sizes, st.booleans())


@given(st.integers(0, 1 << 40), st.lists(overflows, min_size=MAX_FITTING_CALLS, max_size=MAX_FITTING_CALLS))
def test_limits_fall_stay_positive_and_end_after_three_calls(limit: int, answers: list[Overflow]) -> None:
    calls = 0
    for calls, overflow in enumerate(answers, 1):
        smaller = next_limit(limit, overflow, calls)
        if smaller is None:
            break
        assert 1 <= smaller < limit
        limit = smaller
    else:
        raise AssertionError("a fourth call")
    assert calls <= MAX_FITTING_CALLS


@given(st.integers(1, 100_000), st.integers(2, 100_000), st.integers(1, 100_000))
def test_one_more_call_is_enough_where_the_vendor_counts(limit: int, window: int, prompt: int) -> None:
    if prompt + limit <= window:
        return
    following = next_limit(limit, Overflow(window, prompt, exact=True), 1)
    assert following == (window - prompt if prompt < window else None)


def test_a_derived_number_is_not_obeyed_for_ever() -> None:
    """vLLM derives its lower bound from the limit. Subtracting it from the window would lower the limit by one per
    call."""
    limit, said = 32000, "However, you requested {} output tokens and your prompt contains at least {} input tokens"
    for tries in (1, 2):
        text = "This model's maximum context length is 32768 tokens. " + said.format(limit, 32768 + 1 - limit)
        overflow = read_overflow(text, {})
        assert overflow is not None
        following = next_limit(limit, overflow, tries)
        assert following == limit // 2
        limit = following
    assert limit == 8000


# Sizes that are sure to fit ----- -------------------------------------------------------------------------------------

ADDED = TEMPLATE_TOKENS + SPECIAL_TOKENS
TOOL: JsonObject = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


def said(text: JsonValue, **more: JsonValue) -> JsonObject:
    return {"role": "user", "content": text, **more}


def test_a_text_has_at_most_a_token_a_byte() -> None:
    assert most_prompt_tokens(TextPrompt(("hello",)), {}) == 5 + MESSAGE_TOKENS + ADDED
    assert most_prompt_tokens(TextPrompt(("Grüße",)), {}) == 7 + MESSAGE_TOKENS + ADDED
    assert most_prompt_tokens(TextPrompt(("ab", "abcd", "abc")), {"suffix": "xy"}) == 4 + 2 + MESSAGE_TOKENS + ADDED


def test_a_text_that_normalisation_may_lengthen_counts_for_more() -> None:
    assert most_prompt_tokens(TextPrompt(("\u0958",)), {}) == 3 * NFC_GROWTH + MESSAGE_TOKENS + ADDED


def test_token_ids_are_counted() -> None:
    assert most_prompt_tokens(TokenPrompt(((1, 2, 3), (4,))), {}) == 3 + SPECIAL_TOKENS


def test_every_message_and_all_its_text_count() -> None:
    parts: list[JsonValue] = [{"type": "text", "text": "hello"}, {"type": "input_text", "text": "é"}]
    messages = (said("hi"), said(parts), said(None, name="ann"))
    text = len("userhi") + len("userhello") + 2 + len("userann")
    assert most_prompt_tokens(ChatPrompt(messages), {}) == text + 3 * MESSAGE_TOKENS + ADDED


def test_tools_and_their_calls_count_with_room_for_indentation() -> None:
    size = JSON_FACTOR * len(orjson.dumps([TOOL]))
    base = most_prompt_tokens(ChatPrompt((said("hi"),)), {})
    assert base is not None
    assert most_prompt_tokens(ChatPrompt((said("hi"),)), {"tools": [TOOL]}) == base + size
    assert most_prompt_tokens(ChatPrompt((said("hi", tool_calls=[TOOL]),)), {}) == base + size


@looped(
    ("prompt", "params"),
    [
        (TextPrompt(("<image>",)), {"images": (("data:image/png;base64,AA",),)}),
        (ChatPrompt((said([{"type": "image_url", "image_url": {"url": "data:,"}}]),)), {}),
        (ChatPrompt((said("hi"), said(["odd"]))), {}),
        (ChatPrompt((said("hi", audio={"id": "audio_1"}),)), {}),
        (ChatPrompt((said("hi"),)), {"audio": {"voice": "ash"}}),
    ],
)
def test_what_is_not_text_has_no_bound(prompt: Prompt, params: Params) -> None:
    assert most_prompt_tokens(prompt, params) is None


def test_no_images_are_no_reason_to_give_up() -> None:
    assert most_prompt_tokens(TextPrompt(("hi",)), {"images": ((),)}) is not None


@given(st.text())
def test_no_text_has_more_characters_or_bytes_than_its_bound(text: str) -> None:
    most = most_prompt_tokens(TextPrompt((text,)), {})
    assert most is not None
    assert most >= len(text.encode())


def test_a_request_fits_when_bound_and_limit_do() -> None:
    assert fits(100, 28, 128)
    assert not fits(100, 29, 128)
    assert not fits(None, 1, 128)
    assert not fits(100, 1, None)
