"""The objects in which some strings are not texts."""

from proxy.plugins.request_strings.places import FREE, PLACES, Place, is_fingerprint, is_id
from tests.support.looped import looped

SEAL = "A" * 64


def test_what_stands_below_a_place_is_a_place() -> None:
    assert {name for place in PLACES.values() for name in place.below.values()} <= PLACES.keys()


def test_a_free_object_hides_nothing() -> None:
    assert PLACES[FREE] == Place()


@looped(
    ("place", "key", "value", "holder", "unseen"),
    [
        ("message", "tool_call_id", "call_1", {}, True),
        ("message", "tool_call_id", "call 1", {}, False),
        ("message", "tool_call_id", "c" * 257, {}, False),
        ("call", "id", "toolu_01-x", {}, True),
        ("part", "signature", SEAL, {"type": "thinking"}, True),
        ("part", "signature", SEAL, {"type": "text"}, False),
        ("part", "signature", f"{SEAL} x", {"type": "thinking"}, False),
        ("part", "signature", "123-45-6789", {"type": "thinking"}, False),
        ("called", "thought_signature", SEAL, {}, True),
        ("identity", "user", "user_" + "0a" * 32 + "_account__session_12345678-1234-1234-1234-123456789012", {}, True),
        ("identity", "user", "a" * 100_000, {}, False),
        ("identity", "user", "me@example.com", {}, False),
        ("identity", "prompt_cache_key", "123-45-6789", {}, False),
        ("identity", "safety_identifier", "0" * 32 + " 123", {}, False),
        ("owner", "user_id", "12345678-1234-1234-1234-123456789012", {}, True),
        ("native body", "model", "any", {}, True),
        ("form", "known_speaker_references[]", f"data:audio/wav;base64,{SEAL}", {}, True),
        ("form", "known_speaker_references[]", "data: x", {}, False),
    ],
)
def test_a_string_is_unseen_by_its_place_and_its_form(
    place: str, key: str, value: str, holder: dict[str, object], *, unseen: bool
) -> None:
    assert PLACES[place].unseen[key](value, holder) is unseen


@looped(
    ("value", "found"),
    [
        ("fp_44709d6fcb", (True, True)),
        ("b6730-1f5f9f9a", (True, True)),
        ("fp_ollama", (True, True)),
        ("fp_swordfish", (True, False)),
        ("an id", (False, False)),
        ("c" * 257, (True, False)),
        ("c-" * 200 + "@", (False, False)),
    ],
)
def test_an_id_and_a_fingerprint_are_known_by_their_form(value: str, found: tuple[bool, bool]) -> None:
    assert (is_id(value), is_fingerprint(value)) == found


def test_a_source_holds_base64_if_it_says_so() -> None:
    type_of = PLACES["source"].encoded["data"]
    assert type_of({"type": "base64", "media_type": "Image/PNG"}) == "image/png"
    assert type_of({"type": "base64"}) == ""
    assert type_of({"type": "text", "media_type": "text/plain"}) is None
