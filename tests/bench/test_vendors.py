"""The fake upstream's responses are valid: the dialects' own decoders read all of them."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from providers.completion import Chunk
from providers.dialect import UpstreamRequest
from tests.bench.steady import unframed
from tests.bench.traffic import FLAVOURS, Ask, tokens
from tests.bench.vendors import CLAUDE, WIRES, Wire, wire_of
from tests.providers.dialects.kit import chat_request, sent_for, target_of
from tests.support.looped import looped

PROFILES: Mapping[str, tuple[str, str]] = {
    "openai": ("openai_compatible", "model"),
    "anthropic": ("anthropic", "claude-haiku-4-5"),
    "bedrock": ("bedrock", CLAUDE),
}
NAMED = looped("wire", WIRES.values(), ids=list(WIRES))


def sent(wire: Wire, stream: bool) -> UpstreamRequest:
    asked = replace(chat_request(max_tokens=4096), stream=stream)
    return sent_for(asked, target_of(*PROFILES[wire.name], max_output_tokens=8192))


def split(answer: bytes) -> tuple[bytes, bytes]:
    head, _, body = answer.partition(b"\r\n\r\n")
    return head, body


@NAMED
@looped("size", [1200, 100_000])
def test_a_whole_answer_has_its_size_and_is_read_by_the_dialect(wire: Wire, size: int) -> None:
    head, body = split(wire.answer(Ask(answer=size)))
    assert len(body) == size
    assert f"content-length: {size}".encode() in head
    asked = sent(wire, stream=False)
    completion = asked.target.dialect.decode(asked, body)
    assert len(completion.choices[0].text) > size * 0.5


@NAMED
@looped("flavour", FLAVOURS)
def test_a_stream_is_read_by_the_dialect_a_token_a_chunk(wire: Wire, flavour: str) -> None:
    ask = Ask(chunks=150, flavour=flavour)
    answer = wire.answer(ask)
    body = unframed(answer)[:-2]
    assert answer.endswith(b"\r\n0\r\n\r\n")
    assert wire.done in body[-512:]
    asked = sent(wire, stream=True)
    decoder = asked.target.dialect.stream(asked)
    events = [*decoder.feed(body), *decoder.finish()]
    assert decoder.complete
    assert [event.text for event in events if isinstance(event, Chunk) and event.text] == tokens(flavour, 150)


@NAMED
def test_a_paced_stream_is_a_write_for_each_chunk_and_one_for_the_end(wire: Wire) -> None:
    ask = Ask(chunks=5, pace=20)
    pieces = wire.stream(ask)
    assert len(pieces) == 6
    assert wire.stream_head() + b"".join(pieces) == wire.answer(ask)


def test_another_call_than_the_vendors_is_told() -> None:
    with pytest.raises(ValueError, match="GET / HTTP"):
        wire_of(b"GET / HTTP/1.1\r\n\r\n")
