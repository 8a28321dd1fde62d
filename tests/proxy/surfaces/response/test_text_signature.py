"""Signatures of a text among the details of a response's reasoning."""

from providers.json_types import JsonObject
from proxy.surfaces.response.text_signature import extra_content, is_of_text, needed_back, without_signature
from tests.support.looped import looped

HIDDEN: JsonObject = {"type": "reasoning.encrypted", "data": "s", "format": "google-gemini-v1"}
TEXT: JsonObject = {"type": "reasoning.text", "text": "hm"}


def test_a_text_s_signature_stands_once() -> None:
    assert without_signature((TEXT, HIDDEN), "s") == (TEXT,)
    assert without_signature((TEXT, HIDDEN), None) == (TEXT, HIDDEN)
    assert without_signature((TEXT, HIDDEN), "t") == (TEXT, HIDDEN)
    assert extra_content("s") == {"google": {"thought_signature": "s"}}


@looped(
    ("detail", "of_text"),
    [
        (HIDDEN, True),
        ({**HIDDEN, "id": "call_1"}, False),
        ({**HIDDEN, "format": "openai-responses-v1"}, False),
        (TEXT, False),
    ],
)
def test_a_signature_of_gemini_without_a_call_is_of_the_text(detail: JsonObject, of_text: bool) -> None:
    assert is_of_text(detail) is of_text


def test_only_what_is_signed_or_hidden_is_needed_back() -> None:
    signed: JsonObject = {**TEXT, "signature": "x"}
    assert needed_back([TEXT, HIDDEN, signed]) == [HIDDEN, signed]
