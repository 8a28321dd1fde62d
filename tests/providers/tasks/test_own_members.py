"""Fields that vendors add to their responses: counts are summed over the calls, other fields are passed on."""

from providers.json_types import JsonObject
from providers.tasks.own_members import sum_details, usage_details, vendor_fields


def test_what_is_not_read_is_kept_but_for_nulls() -> None:
    assert vendor_fields({"id": "a", "created": 1, "data": [], "error": None}, {"data"}) == {"id": "a", "created": 1}


def test_details_are_the_other_members_of_the_usage() -> None:
    usage: JsonObject = {"prompt_tokens": 1, "total_tokens": 1, "image_tokens": 0}
    assert usage_details({"usage": usage}) == {"image_tokens": 0}
    assert usage_details({"usage": 7}) == usage_details({}) == {}


def test_counts_that_every_call_has_are_summed() -> None:
    first: JsonObject = {
        "seconds": 0.5,
        "tier": "a",
        "n": 1,
        "only": 3,
        "prompt_tokens_details": {"text": 1, "deep": {"x": 1}},
    }
    second: JsonObject = {"seconds": 0.5, "tier": "b", "n": 2, "prompt_tokens_details": {"text": 4, "deep": {"x": 1}}}
    assert sum_details([first, second]) == {"n": 3, "prompt_tokens_details": {"text": 5}}
