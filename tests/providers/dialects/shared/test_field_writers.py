"""Writers of fields that several vendors spell alike."""

import pytest

from providers.dialects.shared.field_writers import (
    above_zero,
    check_images,
    check_logprobs,
    keep_stop,
    neutral_as,
    sampled,
)
from providers.dialects.shared.request_body import RequestBody, plain
from providers.failure import Refusal
from providers.request_fields import STOP_STRING
from providers.unified_request import LogprobsWanted, UnifiedRequest
from tests.providers.dialects.kit import chat_request, target_of, text_request

TARGET = target_of("ollama_native")


def draft_of(request: UnifiedRequest) -> RequestBody:
    return RequestBody(request, TARGET, TARGET.dialect.capabilities(request, TARGET), {})


def test_the_stop_string_is_kept_where_there_is_one() -> None:
    kept, without = draft_of(text_request(stop=("a",))), draft_of(text_request())
    for draft in (kept, without):
        keep_stop(draft, True)
    assert (kept.emulated, without.emulated) == ([STOP_STRING], [])


def test_images_belong_to_a_prompt_that_goes_as_a_chat() -> None:
    images = (("data:image/png;base64,AA==",),)
    with pytest.raises(Refusal, match="in a chat put images into the messages"):
        check_images(draft_of(chat_request()), images)
    with pytest.raises(Refusal, match="it takes images in a chat only"):
        check_images(draft_of(text_request()), images)


@pytest.mark.parametrize("value", [0, -1, 1.5, "1", float("nan")])
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
