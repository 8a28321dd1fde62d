"""Which bodies are parsed off the event loop."""

import orjson
import pytest

from proxy.surfaces.request import heavy_body
from proxy.surfaces.request.heavy_body import (
    INLINE_PARSE_BYTES,
    MANY_COMMAS,
    MANY_OBJECTS,
    MANY_TEXTS,
    is_heavy,
)
from tests.bench.agents.bodies import SMALL, SURFACES, body
from tests.support.looped import looped

PROSE = b"prose, with a comma and a 'quote' for each of its words: " * 5000


@looped(
    ("few", "many"),
    [
        (b"[]," * MANY_OBJECTS, b"[]," * (MANY_OBJECTS + 1)),
        (b"[" + b"{}," * MANY_OBJECTS + b"1]", b"[" + b"{}," * (MANY_OBJECTS + 1) + b"1]"),
        (b'{"":' * 100, b'{"":' * MANY_OBJECTS + b"{" + b"}" * (MANY_OBJECTS + 1)),
        (b'"":1,' * MANY_TEXTS, b'"":1,' * (MANY_TEXTS + 1)),
        (b'"",' * MANY_TEXTS, b'"",' * (MANY_TEXTS + 1)),
        (b"1," * MANY_COMMAS, b"1," * (MANY_COMMAS + 1)),
        (b'"%b"' % PROSE, b'"%b"' % (b"x" * INLINE_PARSE_BYTES)),
    ],
)
def test_a_dense_body_is_heavy(few: bytes, many: bytes) -> None:
    assert not is_heavy(few)
    assert is_heavy(many)


@looped("dense", [b"[]," * 6000, b"{}," * 6000, b'"k":1,' * 6000, b"1," * 20_000])
@pytest.mark.parametrize("at", [0.0, 0.37, 1.0])
def test_a_dense_part_of_a_long_body_is_seen_wherever_it_is(dense: bytes, at: float) -> None:
    room = INLINE_PARSE_BYTES - len(dense) - 2
    before = int(room * at)
    hidden = b'"%b%b%b"' % (b"x" * before, dense, b"x" * (room - before))
    assert all([is_heavy(hidden) for _ in range(50)])


def test_marks_between_fixed_places_of_a_sample_are_seen() -> None:
    step = INLINE_PARSE_BYTES // 64
    part = b"x" * 256 + b"[]," * ((step - 256) // 3)
    spread = b"".join([part.ljust(step, b"x") for _ in range(64)])[:INLINE_PARSE_BYTES]
    assert all([is_heavy(spread) for _ in range(50)])


def test_requests_of_coding_agents_are_not_heavy() -> None:
    for surface in SURFACES:
        for spaced in (False, True):
            long = body(surface, SMALL, "openai/gpt-4o", spaced=spaced)
            assert sum([is_heavy(long) for _ in range(100)]) <= 5, (surface, spaced)


def test_a_sample_holds_windows_of_each_part_of_a_body(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = orjson.dumps([*range(60_000)])
    for place in (0, 255):
        monkeypatch.setattr(
            "proxy.surfaces.request.heavy_body.os.urandom", lambda count, place=place: bytes([place]) * count
        )
        sample = heavy_body._sample(numbers)
        assert len(sample) == heavy_body.SAMPLE_BYTES
        assert sample[:256] in numbers[: len(numbers) // 64]
        assert sample[-256:] in numbers[-(len(numbers) // 64) - 64 :]
