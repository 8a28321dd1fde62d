"""Reasoning details joined and sealed."""

from providers.json_types import JsonObject
from proxy.surfaces.responses.gather_details import GatheredDetails
from proxy.surfaces.thinking_envelope import open_sealed
from tests.support.not_none import not_none


def sealed(*pieces: JsonObject) -> list[JsonObject] | None:
    gathered = GatheredDetails()
    for piece in pieces:
        gathered.add((piece,))
    envelope = gathered.sealed()
    return None if envelope is None else open_sealed(envelope)


def text(said: str | None, index: int = 0, signature: str | None = None) -> JsonObject:
    return {"type": "reasoning.text", "text": said, "index": index, "format": "f", "signature": signature}


def test_pieces_of_a_block_are_joined_up_to_its_signature_and_what_follows_is_another() -> None:
    assert sealed(text("a"), text("b"), text(None, signature="s"), text("c", 1), text("d", 1, "t")) == [
        {"type": "reasoning.text", "text": "ab", "index": 0, "format": "f", "signature": "s"},
        {"type": "reasoning.text", "text": "cd", "index": 1, "format": "f", "signature": "t"},
    ]
    assert [block["text"] for block in not_none(sealed(text("a", signature="s"), text("b", signature="t")))] == [
        "a",
        "b",
    ]


def test_encrypted_blocks_stay_whole_and_text_that_nobody_signed_is_not_sealed() -> None:
    hidden: JsonObject = {"type": "reasoning.encrypted", "data": "x", "index": 0}
    assert sealed(hidden, hidden) == [hidden, hidden]
    assert sealed(text("a"), text("b")) is None
    assert sealed() is None


def test_many_tiny_pieces_are_joined_in_one_pass() -> None:
    gathered = GatheredDetails()
    gathered.add([text("x") for _ in range(50_000)])
    gathered.add([text(None, signature="s")])
    envelope = not_none(gathered.sealed())
    (block,) = open_sealed(envelope) or [{}]
    assert block["text"] == "x" * 50_000
