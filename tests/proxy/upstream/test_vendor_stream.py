"""One call's stream, in virtual time."""

from collections.abc import Iterator

import pytest
from typing_extensions import override

from providers.completion import Chunk, StreamEvent, StreamPart, TextRun
from providers.dialect import RunDecoder, StreamDecoder
from providers.emulation.post_processing import PostProcessing, PostProcessor, StopScanningDecoder
from proxy.upstream.vendor_stream import (
    MOST_SINGLE,
    OpenStream,
    Parts,
    hand_each,
    read_through,
    reader_of,
    without_runs,
)
from tests.proxy.kit.mark_streams import USAGE, Body, Marks
from tests.proxy.kit.merged_calls import said
from tests.proxy.kit.virtual_time import run
from tests.support.looped import looped

pytestmark = pytest.mark.smoke


def opened(
    body: Body, decoder: Marks | StopScanningDecoder | None = None, finisher: PostProcessor | None = None
) -> OpenStream:
    return OpenStream(body, decoder or Marks(), [Chunk(text="0")], False, finisher=finisher)


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


def test_a_body_that_has_all_come_is_not_waited_for_at_its_end() -> None:
    class Come(Body):
        """A body that has arrived up to its end."""

        @override
        def take_all(self) -> bytes | None:
            self.release()
            return b"$"

    body = Come(b". # $")
    run(opened(body).finish())
    assert (body.closed, body.released, body.left) == (0, 1, 1)


@pytest.mark.parametrize(("mark", "closed", "released"), [(b"+aEND", 1, 0), (b"+aEND .", 0, 1)])
def test_a_server_that_generates_is_cut_off_and_one_that_is_done_kept(mark: bytes, closed: int, released: int) -> None:
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


async def test_what_was_read_before_the_commit_is_given_away_and_not_kept() -> None:
    stream = OpenStream(Body(b"+b"), Marks(), [Chunk(text="a")], False)
    assert [event for event in stream.first() if isinstance(event, Chunk)] == [Chunk(text="a")]
    assert [*stream.events] == []


# Runs ----------------------------------------------------------------------------------------------------------------


class Runs(RunDecoder):
    """A decoder of marks for which `=text` is a run of one text; it notes the bytes that it is fed."""

    def __init__(self) -> None:
        self._marks = Marks()
        self.fed: list[bytes] = []

    @property
    @override
    def complete(self) -> bool:
        return self._marks.complete

    @override
    def feed(self, data: bytes) -> Iterator[StreamEvent]:
        self.fed.append(data)
        return self._marks.feed(data)

    @override
    def finish(self) -> Iterator[StreamEvent]:
        return self._marks.finish()

    @override
    def read_run(self, data: bytes) -> tuple[TextRun, bytes] | None:
        if not data.startswith(b"="):
            return None
        text, _, rest = data[1:].partition(b"\n\n")
        return TextRun(0, [text], {}, len(text), len(text)), rest


def parts(decoder: StreamDecoder, piece: bytes) -> list[StreamPart]:
    return list(reader_of(decoder)(piece))


def texts(found: list[StreamPart]) -> list[object]:
    return [it.literals if isinstance(it, TextRun) else it.text if isinstance(it, Chunk) else it for it in found]


def test_a_piece_that_is_a_run_is_one_part_and_feeds_nothing() -> None:
    decoder = Runs()
    assert texts(parts(decoder, b"=a")) == [[b"a"]]
    assert decoder.fed == []


def test_runs_are_looked_for_between_events() -> None:
    decoder = Runs()
    assert texts(parts(decoder, b"=a\n\n+b\n\n+c\n\n=d\n\n+e")) == [[b"a"], "b", "c", [b"d"], "e"]
    assert decoder.fed == [b"+b\n\n", b"+c\n\n", b"+e"]


def test_a_piece_of_many_events_and_no_run_is_fed_in_few_parts() -> None:
    decoder = Runs()
    piece = b"+a\n\n" * 100
    assert texts(parts(decoder, piece)) == ["a"] * 100
    assert decoder.fed == [b"+a\n\n"] * MOST_SINGLE + [b"+a\n\n" * (100 - MOST_SINGLE)]


def test_a_run_after_the_last_event_that_is_looked_at_singly_is_not_lost() -> None:
    piece = b"+a\n\n" * MOST_SINGLE + b"=b\n\n+c\n\n=d"
    assert texts(parts(Runs(), piece))[-3:] == ["a", [b"b"], "c"]


@looped("piece", [b"+a", b"+a\n\n", b"+a\n"])
def test_a_single_event_is_fed_at_once(piece: bytes) -> None:
    decoder = Runs()
    assert texts(parts(decoder, piece)) == ["a"]
    assert decoder.fed == [piece]


def test_a_decoder_without_runs_is_fed_the_piece() -> None:
    assert texts(parts(Marks(), b"+a +b")) == ["a", "b"]


def test_who_knows_nothing_of_runs_sees_events() -> None:
    async def main() -> list[StreamEvent]:
        stream = OpenStream(Body(b"=never"), Runs(), [Chunk(text="0"), TextRun(0, [b"a", b"b"], {}, 2, 2)], False)
        return list(stream.first())

    assert run(main()) == [Chunk(text="0"), Chunk(text="a"), Chunk(text="b")]
    assert list(without_runs([TextRun(1, [b"x"], {0: "y"}, 1, 1, "f"), USAGE])) == [
        Chunk(1, "y", system_fingerprint="f"),
        USAGE,
    ]


def test_each_piece_is_handed_on_in_parts() -> None:
    async def main() -> list[object]:
        stream = OpenStream(Body(b"=a\n\n+b .", b""), Runs(), [TextRun(0, [b"0"], {}, 1, 1)], False)
        found: list[StreamPart] = [*stream.first_parts(), *stream.first_parts()]

        def hand(parts: Parts) -> bool:
            found.extend(parts)
            return True

        await hand_each(stream, hand, lambda run: hand((run,)))
        assert stream.over
        return texts(found)

    assert run(main()) == [[b"0"], [b"a"], "b", ""]
