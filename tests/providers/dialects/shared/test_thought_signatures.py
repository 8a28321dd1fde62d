"""The ids of Gemini's calls, with signatures in them."""

import base64
import re

from hypothesis import given
from hypothesis import strategies as st

from providers.dialects.shared.thought_signatures import (
    SKIP_SIGNATURE,
    Service,
    SignedId,
    fit_signature,
    make_call_id,
    mark_service,
    pack_call_id,
    text_signature_for,
    unpack_call_id,
)
from tests.support.looped import looped


@given(st.text("abc_-0", min_size=1, max_size=12), st.binary(min_size=1, max_size=80), st.booleans())
def test_a_signature_comes_back_as_the_same_bytes(call_id: str, signature: bytes, own: bool) -> None:
    text = base64.b64encode(signature).decode()
    carried = pack_call_id(call_id, text) if own else pack_call_id(call_id, None, text)
    assert unpack_call_id(carried) == SignedId(call_id, *((text, None) if own else (None, text)))
    services: tuple[Service, ...] = ("studio", "vertex")
    for service in services:
        assert unpack_call_id(pack_call_id(call_id, text, None, service)) == SignedId(call_id, text, None, service)


@given(st.binary(min_size=1, max_size=80))
def test_an_id_has_only_characters_that_other_vendors_allow(signature: bytes) -> None:
    assert re.fullmatch(r"[a-zA-Z0-9_-]+", pack_call_id("call_1", base64.b64encode(signature).decode()))


def test_a_calls_own_signature_goes_before_that_of_the_text() -> None:
    assert unpack_call_id(pack_call_id("a", "c2ln", "b3RoZXI=")) == SignedId("a", "c2ln")


def test_the_form_that_another_gateway_writes_is_read() -> None:
    assert unpack_call_id("call_7__thought__c2ln/+==") == SignedId("call_7", "c2ln/+==")


@looped("given_id", ["call_1", "", "fc-1", "a__thought__", "a__thought__not base64", "__said__"])
def test_a_foreign_id_is_itself(given_id: str) -> None:
    assert unpack_call_id(given_id) == SignedId(given_id)


@looped("given", [None, "", "not base64!", "AAAAA", "=="])
def test_text_that_cannot_be_a_signature_is_none(given: str | None) -> None:
    assert fit_signature(given) is None


def test_a_signature_is_read_in_either_alphabet_of_base64() -> None:
    assert fit_signature("c2ln-_8") == fit_signature("c2ln+/8=") == "c2ln+/8="


def test_the_signature_of_a_text_is_for_the_service_that_made_it() -> None:
    by_vertex = mark_service("c2ln", "vertex")
    assert mark_service("c2ln", "studio") == mark_service("c2ln", None) == "c2ln"
    assert [text_signature_for("vertex", given) for given in (by_vertex, "c2ln", None)] == ["c2ln", None, None]
    assert [text_signature_for("studio", given) for given in (by_vertex, "c2ln", None)] == [None, "c2ln", None]


def test_an_id_without_a_signature_stays_as_it_is() -> None:
    assert pack_call_id("fc-1", None) == pack_call_id("fc-1", "", "") == "fc-1"


def test_a_made_id_is_the_same_for_the_same_call_and_no_other() -> None:
    call = ("r-1", 0, 0, "f", b"{}")
    assert make_call_id(*call) == make_call_id(*call)
    others = [
        ("r-2", 0, 0, "f", b"{}"),
        ("r-1", 1, 0, "f", b"{}"),
        ("r-1", 0, 1, "f", b"{}"),
        ("r-1", 0, 0, "g", b"{}"),
    ]
    assert len({make_call_id(*call), *(make_call_id(*other) for other in others)}) == 5
    assert re.fullmatch(r"call_[0-9a-f]{24}", make_call_id(*call))


def test_the_signature_for_foreign_calls_is_the_documented_one() -> None:
    assert base64.b64decode(SKIP_SIGNATURE) == b"skip_thought_signature_validator"
