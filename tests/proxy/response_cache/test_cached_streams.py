"""Streams recorded while they are relayed, within their byte limit, and replayed in slices."""

from collections.abc import Iterable, Sequence

from providers.completion import Chunk, StreamEvent, Usage
from proxy.response_cache.cached_streams import SLICE, RecordedStream, ReplayedStream
from proxy.response_cache.packed_response import EventPacker
from proxy.upstream.gateway_streams import LocalStream
from tests.support.looped import looped

END = Chunk(finish_reason="stop")
USAGE = Usage(3, 2)


async def recorded(events: Sequence[StreamEvent], most: int = 1000, choices: int = 1) -> list[Sequence[bytes] | None]:
    """Return the recordings reported at the end of a stream that was read and finished."""
    told: list[Sequence[bytes] | None] = []
    stream = RecordedStream(LocalStream([*events]), most, choices, told.append)
    assert list(stream.first()) == list(events)
    assert told == []
    assert stream.over
    await stream.wait()
    assert [*stream.take(), *stream.conclude()] == []
    await stream.finish()
    stream.close()
    return told


def packed(events: Iterable[StreamEvent]) -> list[bytes]:
    packer = EventPacker()
    return [one for each in events for one in packer.pack(each)]


async def test_a_good_stream_is_told_when_it_is_finished() -> None:
    events: list[StreamEvent] = [Chunk(text="one"), END, USAGE]
    assert await recorded(events) == [packed(events)]


@looped(
    ("events", "choices"),
    [
        ([Chunk(text="one"), Chunk(finish_reason="content_filter")], 1),
        ([Chunk(text="one"), Chunk(finish_reason="pause_turn")], 1),
        ([Chunk(text="one"), END], 2),
    ],
)
async def test_no_good_answer_is_not_kept(events: Sequence[StreamEvent], choices: int) -> None:
    assert await recorded(events, choices=choices) == [None]


async def test_what_is_recorded_never_exceeds_its_bytes() -> None:
    events = [*(Chunk(text="x" * 10) for _ in range(100)), END]
    assert await recorded(events, most=1200 + len(packed([END])[0])) == [None]
    told: list[Sequence[bytes] | None] = []
    stream = RecordedStream(LocalStream(list(events)), 500, 1, told.append)
    held = 0
    for _ in stream.first():
        held = max(held, sum(map(len, stream._events)))
    assert held <= 500
    assert stream._events == []


async def test_a_replay_comes_in_slices() -> None:
    texts = [f"t{number}" for number in range(SLICE + 5)]
    stream = ReplayedStream(texts)
    first = list(stream.first())
    assert len(first) == SLICE
    await stream.wait()
    rest = list(stream.take())
    assert stream.over
    assert [each.text for each in (*first, *rest) if isinstance(each, Chunk)] == texts
    assert list(stream.conclude()) == []
    await stream.finish()
    stream.close()
