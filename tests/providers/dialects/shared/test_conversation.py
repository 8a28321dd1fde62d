"""What is shared in reading a conversation."""

import pytest

from providers.dialects.shared.conversation import FunctionCall, Walk, data_uri
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue


def walk(*messages: JsonValue) -> list[tuple[str, JsonObject]]:
    return list(Walk("messages").each(messages))


def test_messages_come_with_their_roles() -> None:
    message: JsonObject = {"role": "tool", "content": "x", "name": "f", "tool_call_id": "a", "audio": None}
    assert walk(message) == [("tool", message)]


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("hi", r"messages\[1\] is not an object"),
        ({"content": "x"}, r"messages\[1\] has no role"),
        ({"role": "user", "content": "x", "name": "ann"}, r"messages\[1\] has the member 'name'"),
        ({"role": "user", "content": "x", "prefix": True}, r"messages\[1\] has the member 'prefix'"),
        ({"role": "user", "content": "x", "extra_content": {"a": 1}}, r"messages\[1\] has the member 'extra_content'"),
    ],
)
def test_what_no_vendor_has_a_place_for_is_refused_by_its_place(message: JsonValue, reason: str) -> None:
    with pytest.raises(Refusal, match=reason):
        walk({"role": "user", "content": "x"}, message)


def test_another_vendor_s_signature_of_a_text_is_no_reason_to_refuse_its_turn() -> None:
    said: JsonObject = {"role": "assistant", "content": "x", "extra_content": {"google": {"thought_signature": "c2ln"}}}
    assert walk(said) == [("assistant", said)]


@pytest.mark.parametrize("extra", [{"google": {}, "own": {}}, {"own": {}}, "google"])
def test_what_others_say_beside_a_text_is_refused(extra: JsonValue) -> None:
    with pytest.raises(Refusal, match="has the member 'extra_content'"):
        walk({"role": "assistant", "content": "x", "extra_content": extra})


def test_a_refusal_names_the_field_that_the_messages_came_in() -> None:
    reading = Walk("prompt")
    assert [*reading.each([{"role": "user"}])]
    assert reading.no_role("x").message == "'prompt' has the role 'x', which cannot be translated."
    assert reading.no_part("video").param == "prompt"


def test_a_call_is_read_with_its_arguments() -> None:
    call: JsonObject = {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"b":1}'}}
    assert Walk("messages").read_call(call) == FunctionCall("a", "f", {"b": 1})
    assert Walk("messages").read_call({"id": "a", "function": {"name": "f", "arguments": ""}}).given == {}


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (3, "unsupported_parameter"),
        ({"id": "a", "type": "custom", "custom": {}}, "unsupported_parameter"),
        ({"id": "a", "function": {"name": "f", "arguments": "{"}}, "invalid_value"),
        ({"id": "a", "function": {"name": "f", "arguments": "[]"}}, "invalid_value"),
    ],
)
def test_calls_that_are_none_are_refused(call: JsonValue, code: str) -> None:
    with pytest.raises(Refusal) as caught:
        Walk("messages").read_call(call)
    assert caught.value.code == code


def test_an_image_has_an_address() -> None:
    assert Walk("messages").image_address({"image_url": {"url": "x"}}) == "x"
    assert Walk("messages").image_address({"image_url": "x"}) == "x"
    with pytest.raises(Refusal):
        Walk("messages").image_address({"image_url": {}})


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("data:image/PNG;base64,AA==", ("image/png", "AA==")),
        ("DATA:application/pdf;name=a.pdf;base64,AA==", ("application/pdf", "AA==")),
        ("data:image/png,AA", ("", "")),
        ("data:image/png;base64,", ("", "")),
        ("data:image/png;base64;charset=x,AA==", ("", "")),
        ("https://example.org/a,b", ("", "")),
        ("", ("", "")),
    ],
)
def test_a_data_uri_is_its_type_and_its_data(url: str, found: tuple[str, str]) -> None:
    assert data_uri(url) == found
