"""Thought signatures in conversations with Gemini, and the parts that are sent back with them."""

from typing import Any, cast

import pytest

from providers.dialects.shared.thought_signatures import SKIP_SIGNATURE, Service, mark_service, pack_call_id
from providers.json_types import JsonObject
from providers.target import Target
from tests.providers.dialects.gemini.kit import DIALECT, SAID, SIGNATURE, TARGET, VERTEX, contents_of
from tests.providers.dialects.gemini.turns import calls, result, says, text, turn
from tests.providers.dialects.kit import chat_request, user


def details(*listed: JsonObject) -> JsonObject:
    return {"reasoning_details": [{"format": "google-gemini-v1", **one} for one in listed]}


def test_details_of_googles_format_are_signatures_of_the_calls_they_name() -> None:
    signed = details({"type": "reasoning.encrypted", "id": "b", "data": SIGNATURE, "index": 0})
    message = {**calls(("a", "f", "{}"), ("b", "g", "{}")), **signed}
    contents = contents_of(user("hi"), message, result("a", "1"), result("b", "2"))
    assert [part.get("thoughtSignature") for part in contents[1]["parts"]] == [SKIP_SIGNATURE, SIGNATURE]  # type: ignore


def test_a_detail_that_names_no_call_belongs_to_the_first_and_without_calls_to_the_text() -> None:
    loose = details({"type": "reasoning.encrypted", "data": SIGNATURE, "index": 0})
    called = contents_of(user("hi"), {**calls(("a", "f", "{}")), **loose}, result("a", "1"))
    assert called[1]["parts"][0]["thoughtSignature"] == SIGNATURE  # type: ignore[index,call-overload]
    said = contents_of(user("hi"), {**says("Yes."), **loose}, user("go on"))
    assert said[1] == turn("model", text("Yes.", thoughtSignature=SIGNATURE))  # type: ignore[index]


def test_a_signed_thought_of_googles_format_signs_the_text() -> None:
    signed = details({"type": "reasoning.text", "text": "Hm.", "signature": SIGNATURE, "index": 0})
    said = contents_of(user("hi"), {**says("Yes."), **signed}, user("go on"))
    assert cast(Any, said)[1] == turn("model", text("Yes.", thoughtSignature=SIGNATURE))
    broken = details({"type": "reasoning.text", "text": "Hm.", "signature": "not base64!", "index": 0})
    unsigned = contents_of(user("hi"), {**says("Yes."), **broken}, user("go on"))
    assert cast(Any, unsigned)[1] == turn("model", text("Yes."))


def test_other_vendors_thinking_is_never_a_signature() -> None:
    claude: JsonObject = {
        "type": "reasoning.text",
        "text": "x",
        "signature": SIGNATURE,
        "format": "anthropic-claude-v1",
    }
    message: JsonObject = {**calls(("a", "f", "{}")), "reasoning_details": [claude]}
    contents = contents_of(user("hi"), message, result("a", "1"))
    assert contents[1]["parts"][0]["thoughtSignature"] == SKIP_SIGNATURE  # type: ignore[index,call-overload]
    assert DIALECT.encode(chat_request(user("hi"), message, result("a", "1")), TARGET).dropped == ("thinking",)


@pytest.mark.parametrize(("target", "own", "other"), [(TARGET, "studio", "vertex"), (VERTEX, "vertex", "studio")])
def test_a_signature_goes_back_only_to_the_service_that_made_it(target: Target, own: Service, other: Service) -> None:
    def signature_of(service: Service | None) -> object:
        call_id = pack_call_id("a", SIGNATURE, None, service)
        contents = contents_of(user("hi"), calls((call_id, "f", "{}")), result(call_id, "1"), target=target)
        part = cast(Any, contents)[1]["parts"][0]
        assert part["functionCall"]["id"] == "a"
        return part["thoughtSignature"]

    assert [signature_of(service) for service in (own, None, other)] == [SIGNATURE, SIGNATURE, SKIP_SIGNATURE]


def test_the_signature_of_a_text_goes_back_only_to_the_service_that_made_it() -> None:
    def parts_of(target: Target, signature: str) -> object:
        said = {**says("Yes."), "extra_content": {"google": {"thought_signature": signature}}}
        return contents_of(user("hi"), said, user("go on"), target=target)[1]["parts"][0]  # type: ignore

    marked = mark_service(SIGNATURE, "vertex")
    assert parts_of(VERTEX, marked) == parts_of(TARGET, SIGNATURE) == text("Yes.", thoughtSignature=SIGNATURE)
    assert parts_of(TARGET, marked) == parts_of(VERTEX, SIGNATURE) == text("Yes.")


def test_a_signature_that_cannot_be_one_is_not_sent() -> None:
    extra: JsonObject = {"extra_content": {"google": {"thought_signature": "not base64!"}}}
    message = calls(("a", "f", "{}"))
    message["tool_calls"][0].update(extra)  # type: ignore[index,union-attr]
    contents = contents_of(user("hi"), {**message, **extra}, result("a", "1"))
    assert contents[1]["parts"][0]["thoughtSignature"] == SKIP_SIGNATURE  # type: ignore[index,call-overload]


def test_a_signature_without_its_text_is_not_sent() -> None:
    extra: JsonObject = {"extra_content": {"google": {"thought_signature": SIGNATURE}}}
    assert contents_of(user("hi"), {**says(""), **extra}, user("go on")) == [turn("user", text("hi"), text("go on"))]


def test_parts_of_googles_tools_go_back_with_the_calls_that_followed_them() -> None:
    search: JsonObject = {"toolCall": {"id": "t", "toolType": "GOOGLE_SEARCH_WEB"}, "thoughtSignature": SAID}
    found: JsonObject = {"toolResponse": {"id": "t", "response": {}}}
    listed: JsonObject = {"google_parts": [search, found, {"hologram": {}}, {"toolCall": 3}, 4]}
    ours = pack_call_id("a", SIGNATURE, None, "studio")
    contents = contents_of(user("hi"), {**calls((ours, "f", "{}")), **listed}, result(ours, "1"))
    assert cast(Any, contents)[1]["parts"][:2] == [search, found]
    foreign = pack_call_id("a", SIGNATURE, None, "vertex")
    for message in ({**calls((foreign, "f", "{}")), **listed}, {**says("Yes."), **listed}):
        answers = [result(foreign, "1")] if "tool_calls" in message else []
        request = chat_request(user("hi"), message, *answers)
        assert DIALECT.encode(request, TARGET).dropped == ("google_parts",)
        assert b"toolCall" not in DIALECT.encode(request, TARGET).body


def test_thinking_is_only_left_out_where_no_signature_goes_back() -> None:
    ours = pack_call_id("a", SIGNATURE, None, "studio")
    for call_id, dropped in ((ours, ()), ("call_1", ("thinking",))):
        message: JsonObject = {**calls((call_id, "f", "{}")), "reasoning_content": "Hm."}
        assert DIALECT.encode(chat_request(user("hi"), message, result(call_id, "1")), TARGET).dropped == dropped
