"""Writers of fields that several vendors spell the same way."""

import hashlib

import pytest

from providers.dialects.shared.field_writers import (
    above_zero,
    check_images,
    check_logprobs,
    emulate_stop_string,
    few_pairs,
    neutral_as,
    params_without_field,
    sampled,
    short_id,
    write_nothing,
)
from providers.dialects.shared.request_body import RequestBody, plain
from providers.failure import Refusal
from providers.request_fields import STOP_STRING
from providers.unified_request import LogprobsWanted, UnifiedRequest
from tests.providers.dialects.kit import chat_request, target_of, text_request
from tests.support.looped import looped

TARGET = target_of("ollama_native")


def draft_of(request: UnifiedRequest) -> RequestBody:
    return RequestBody(request, TARGET, TARGET.dialect.capabilities(request, TARGET), {})


def test_the_stop_string_is_kept_where_there_is_one() -> None:
    kept, without = draft_of(text_request(stop=("a",))), draft_of(text_request())
    for draft in (kept, without):
        emulate_stop_string(draft, True)
    assert (kept.emulated, without.emulated) == ([STOP_STRING], [])


def test_a_field_may_be_honoured_without_a_member() -> None:
    draft = draft_of(text_request())
    write_nothing(draft, 1)
    assert draft.body == {}
    assert params_without_field({"a": write_nothing, "b": emulate_stop_string}) == {"a"}


def test_images_belong_to_a_prompt_that_goes_as_a_chat() -> None:
    images = (("data:image/png;base64,AA==",),)
    with pytest.raises(Refusal, match="in a chat put images into the messages"):
        check_images(draft_of(chat_request()), images)
    with pytest.raises(Refusal, match="it takes images in a chat only"):
        check_images(draft_of(text_request()), images)


@looped("value", [0, -1, 1.5, "1", float("nan")])
def test_what_is_not_above_zero_or_too_much_is_refused(value: object) -> None:
    draft = draft_of(text_request())
    with pytest.raises(Refusal, match="must be above 0 and at most 1 on"):
        above_zero("top_p", "p", 1)(draft, value)
    above_zero("top_p", "p", 1)(draft, 1)
    above_zero("top_p", "q")(draft, 7)
    assert draft.body == {"p": 1, "q": 7}


def test_a_neutral_value_has_a_spelling_of_its_own() -> None:
    draft = draft_of(text_request())
    neutral_as("top_k", "k", -1)(draft, 0)
    neutral_as("top_k", "l", -1)(draft, 3)
    assert draft.body == {"k": -1, "l": 3}


def test_sampling_is_switched_on_unless_the_temperature_is_zero() -> None:
    for temperature, body in ((0, {}), (1, {"seed": 7, "do_sample": True})):
        draft = draft_of(text_request(temperature=temperature))
        sampled(plain("seed"), "do_sample", True)(draft, 7)
        assert draft.body == body
    draft = draft_of(text_request())
    sampled(plain("seed"))(draft, 7)
    assert draft.body == {"seed": 7}


def test_alternatives_are_limited() -> None:
    draft, wanted = draft_of(text_request()), LogprobsWanted(5, "content")
    assert check_logprobs(draft, wanted) is check_logprobs(draft, wanted, 5) is wanted
    with pytest.raises(Refusal, match="lists at most 4 tokens"):
        check_logprobs(draft, wanted, 4)
    with pytest.raises(TypeError):
        check_logprobs(draft, 5)


def test_an_id_that_is_too_long_goes_as_its_digest() -> None:
    draft = draft_of(text_request())
    for name, text in (("short", "x" * 64), ("long", "x" * 65), ("empty", "")):
        short_id(plain(name), 64)(draft, text)
    assert draft.body == {"short": "x" * 64, "long": hashlib.sha256(b"x" * 65).hexdigest(), "empty": ""}
    assert draft.dropped == []


def test_pairs_that_do_not_fit_are_left_out_and_the_field_is_named() -> None:
    write = few_pairs("metadata", plain("metadata"), 3, 4, 5)
    draft = draft_of(text_request())
    write(draft, {"a": "b", "": "b", "longer": "b", "n": 1, "o": {}, "long": "value", "v": "longer", "c": ""})
    assert (draft.body, draft.dropped) == ({"metadata": {"a": "b", "long": "value", "c": ""}}, ["metadata"])


def test_no_more_pairs_go_than_the_vendor_takes() -> None:
    write = few_pairs("metadata", plain("metadata"), 16, 64, 512)
    for count, dropped in ((16, []), (1000, ["metadata"])):
        draft = draft_of(text_request())
        write(draft, {str(number): "" for number in range(count)})
        assert (draft.body, draft.dropped) == ({"metadata": {str(number): "" for number in range(16)}}, dropped)


def test_without_a_pair_that_fits_nothing_is_sent() -> None:
    draft = draft_of(text_request())
    few_pairs("metadata", plain("metadata"), 16, 64, 512)(draft, {"a": None})
    assert (draft.body, draft.dropped) == ({}, ["metadata"])
