"""The envelope in which clients carry other vendors' reasoning back."""

from base64 import urlsafe_b64encode

from providers.json_types import JsonObject
from proxy.surfaces.request.parse_json import MAX_ELEMENTS
from proxy.surfaces.thinking_envelope import MAX_ENVELOPE_CHARS, PREFIX, EnvelopeOpener, is_sealed, open_sealed, seal
from tests.support.looped import looped

DETAILS: list[JsonObject] = [
    {"type": "reasoning.text", "text": "Sum, then check: é", "format": "unknown", "index": 0},
    {"type": "reasoning.encrypted", "data": "abc+/=", "format": "google-gemini-v1", "id": "call_1", "index": 0},
]


def envelope(held: bytes) -> str:
    return PREFIX + urlsafe_b64encode(held).decode()


def test_what_was_sealed_is_opened_unchanged_and_has_no_character_that_json_escapes() -> None:
    assert open_sealed(seal(DETAILS)) == DETAILS
    sealed = seal(DETAILS)
    assert sealed.isascii()
    assert not set(sealed) & set('"\\\n ')


@looped(
    "text",
    [
        "",
        "EqQBCgIYAhIM",
        PREFIX,
        PREFIX + "%%%",
        PREFIX + "é",
        "dragoman.thinking.2:" + seal(DETAILS).removeprefix(PREFIX),
        seal(DETAILS)[:-7],
        envelope(b"null"),
        envelope(b"[]"),
        envelope(b"{}"),
        envelope(b'{"details":[]}'),
        envelope(b'{"details":[{"a":1},2]}'),
        envelope(b'{"details":' + b"[" * 5000 + b"]" * 5000 + b"}"),
        envelope(b'{"details":[{"text":"\xff"}]}'),
        PREFIX + "A" * (MAX_ENVELOPE_CHARS + 1),
    ],
)
def test_anything_else_is_not_opened(text: str) -> None:
    assert open_sealed(text) is None


def test_an_envelope_of_another_version_is_still_known_as_ours() -> None:
    assert is_sealed("dragoman.thinking.2:abc")
    assert is_sealed(seal(DETAILS))
    assert not is_sealed("EqQBCgIYAhIM")


def test_the_envelopes_of_one_request_are_bounded_together() -> None:
    large = envelope(b'{"details":[{"a":[' + b"[]," * (MAX_ELEMENTS // 5) + b"[]]}]}")
    opener = EnvelopeOpener()
    opened = [opener.open(large) is not None for _ in range(4)]
    assert opened == [True, True, False, False]
