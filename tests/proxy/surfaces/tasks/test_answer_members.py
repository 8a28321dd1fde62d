"""The id and the usage that responses of tasks have."""

from providers.completion import Usage
from providers.json_types import JsonValue
from proxy.surfaces.tasks.answer_members import usage_fields, with_id
from tests.support.looped import looped


@looped("own", [None, "", 7, {}])
def test_an_answer_has_an_id_whatever_the_vendor_calls_one(own: JsonValue) -> None:
    assert with_id({"id": own, "created": 1}, "embd-1") == {"id": "embd-1", "created": 1}


def test_the_vendor_s_id_stays() -> None:
    assert with_id({"id": "abc"}, "embd-1") == {"id": "abc"}


def test_the_vendor_s_details_stand_beside_the_tokens() -> None:
    details: dict[str, JsonValue] = {"prompt_tokens_details": {"text_tokens": 3}}
    assert usage_fields(Usage(3, 0), details) == {**details, "prompt_tokens": 3, "total_tokens": 3}
    assert usage_fields(None, details) == details
    assert usage_fields(None, {}) == {}
    assert usage_fields(Usage(3, 0, estimated=True), {})["estimated"] is True
