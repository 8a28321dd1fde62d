"""The upstream finds the order in each request, and bodies have the ordered size."""

from dataclasses import replace

import orjson
import pytest

from tests.bench.traffic import FLAVOURS, Ask, asked, chat_body, tokens
from tests.bench.vendors import WIRES, Wire, wire_of
from tests.support.looped import looped

ASKS = [Ask(), Ask(answer=100_000), Ask(chunks=65, pace=20), Ask(chunks=9, flavour="japanese"), Ask(prompt=500_000)]


@looped("wire", WIRES.values(), ids=list(WIRES))
@looped("ask", ASKS, ids=lambda ask: f"{ask.mark} prompt={ask.prompt}")
def test_every_dialects_request_says_what_is_asked_and_is_as_large(wire: Wire, ask: Ask) -> None:
    request = wire.request(ask)
    assert wire_of(request) is wire
    assert asked(request) == replace(ask, prompt=2048)
    _, _, body = request.partition(b"\r\n\r\n")
    assert isinstance(orjson.loads(body), dict)
    assert len(body) == pytest.approx(ask.prompt, rel=0.01)


def test_a_body_without_a_mark_asks_for_nothing() -> None:
    assert asked(b'{"messages": []}') is None


@looped("flavour", FLAVOURS)
def test_a_text_is_as_long_as_it_is_asked_to_be_and_the_same_each_time(flavour: str) -> None:
    assert [len(tokens(flavour, count)) for count in (0, 1, 200)] == [0, 1, 200]
    assert tokens(flavour, 200) == tokens(flavour, 200)


def test_english_has_line_ends_quotes_and_signs_outside_of_ascii_now_and_then() -> None:
    pieces = tokens("english", 200)
    plain = [piece for piece in pieces if piece.isascii() and not set(piece) & set('\n"\\')]
    assert 0.85 <= len(plain) / len(pieces) < 1


def test_the_user_has_the_last_word() -> None:
    for size in range(1000, 40_000, 1111):
        messages = orjson.loads(chat_body(Ask(prompt=size)))["messages"]
        assert [each["role"] for each in messages] == [
            ("user", "assistant")[place % 2] for place in range(len(messages))
        ]
        assert messages[-1]["role"] == "user"
