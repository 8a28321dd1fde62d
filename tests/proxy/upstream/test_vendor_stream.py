"""One call's stream, in virtual time."""

from collections.abc import Iterator

import pytest

from providers.completion import Chunk, StreamEvent
from providers.emulation.post_processing import PostProcessing, PostProcessor, StopScanningDecoder
from proxy.upstream.vendor_stream import LocalStream, OpenStream, read_through
from tests.proxy.kit.mark_streams import USAGE, Body, Marks
from tests.proxy.kit.merged_calls import said
from tests.proxy.kit.virtual_time import in_virtual_time, run


def opened(
    body: Body, decoder: Marks | StopScanningDecoder | None = None, finisher: PostProcessor | None = None
) -> OpenStream:
    return OpenStream(body, decoder or Marks(), [Chunk(text="0")], False, finisher)


def test_one_stream_is_read_piece_by_piece() -> None:
    async def main() -> list[list[str]]:
        stream = opened(Body(b"+a +b", b". # $"))
        pieces = [said(list(stream.first()))]
        while not stream.over:
            await stream.wait()
            pieces.append(said(list(stream.take())))
        return pieces

    assert run(main()) == [["0:0"], ["0:a", "0:b"], ["0.", "#6+2"]]


def test_the_last_hand_is_put_on_all_that_one_stream_says() -> None:
    async def main() -> list[StreamEvent]:
        stream = opened(Body(b"+a . #"), finisher=PostProcessor(PostProcessing(echo=("Q:",))))
        events = list(stream.first())
        await stream.wait()
        return [*events, *stream.take(), *stream.conclude()]

    assert run(main()) == [Chunk(text="Q:0"), Chunk(text="a"), Chunk(finish_reason="stop"), USAGE]


@pytest.mark.parametrize(("mark", "closed", "released"), [(b"+aEND", 1, 0), (b"+aEND .", 0, 1)])
def test_a_server_that_still_generates_is_cut_off_and_one_that_is_done_is_kept(
    mark: bytes, closed: int, released: int
) -> None:
    body = Body(mark, b"$", b"")

    async def main() -> None:
        stream = opened(body, StopScanningDecoder(Marks(), PostProcessing(stops=("END",)), 1))
        while not stream.over:
            await stream.wait()
            list(stream.take())
        await stream.finish()

    run(main())
    assert (body.closed, body.released) == (closed, released)


def test_reading_through_hands_over_every_piece_and_counts_the_ends() -> None:
    async def main() -> list[str]:
        words: list[str] = []

        async def hand(events: Iterator[StreamEvent]) -> int:
            found = said(list(events))
            words.extend([*found, "|"])
            return sum(word.endswith(".") for word in found)

        await read_through(opened(Body(b"+a .", b".1", b"# $", b"")), 2, hand)
        return words

    assert run(main()) == ["0:0", "|", "0:a", "0.", "|", "1.", "|", "#6+2", "|"]


@in_virtual_time
async def test_an_answer_that_is_known_needs_no_waiting() -> None:
    stream = LocalStream([Chunk(finish_reason="length"), USAGE])
    assert said(list(stream.first())) == ["0.", "#6+2"]
    assert stream.over
    await stream.wait()
    assert [*stream.take(), *stream.conclude()] == []
    await stream.finish()
    stream.close()


async def test_what_was_read_before_the_commit_is_given_away_and_not_kept() -> None:
    stream = OpenStream(Body(b"+b"), Marks(), [Chunk(text="a")], False)
    assert [event for event in stream.first() if isinstance(event, Chunk)] == [Chunk(text="a")]
    assert [*stream.events] == []
