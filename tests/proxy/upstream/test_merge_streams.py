"""The stream of one call, and the streams of several merged, in virtual time: marks arrive, events with their times
are emitted."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from typing_extensions import override

from providers.completion import Chunk, StreamEvent, Usage
from providers.emulation.merge_choices import CallShare
from providers.emulation.post_processing import PostProcessing, PostProcessor
from providers.failure import FailureKind
from proxy.upstream.merge_streams import MAX_WAITING, MergedStream
from proxy.upstream.transport import fail
from proxy.upstream.vendor_stream import DRAIN_WAIT, TAIL_WAIT
from tests.proxy.kit.mark_streams import CUT, USAGE, Body, Marks, Step, often
from tests.proxy.kit.merged_calls import Merge
from tests.support.looped import looped

pytestmark = pytest.mark.smoke


def test_pieces_come_in_the_order_of_time_under_their_final_numbers() -> None:
    merge = Merge([Body(1.0, b"+a", 2.0, b"+b . $"), Body(1.5, b"+x", 0.5, b"+y", 2.0, b". $", b""), Body(b"+k . $")])
    merge.run()
    assert merge.got == [
        (0.0, "2:k"),
        (0.0, "2."),
        (1.0, "0:a"),
        (1.5, "1:x"),
        (2.0, "1:y"),
        (3.0, "0:b"),
        (3.0, "0."),
        (4.0, "1."),
        (4.0, "~1+3"),
    ]


def test_a_call_may_answer_several_choices_of_its_prompt() -> None:
    parts = [CallShare(0, 0, 2), CallShare(1, 0, 2)]
    merge = Merge([Body(b"+a .1", 1.0, b". $"), Body(2.0, b"+b . .1 $")], parts, n=2)
    assert merge.run() == ["0:a", "1.", "0.", "2:b", "2.", "3.", "~2+2"]


def test_connections_are_left_in_order() -> None:
    bodies = [Body(b"+a . $", b""), Body(b"+b . $", b"")]
    Merge(bodies).run()
    assert [body.released for body in bodies] == [1, 1]


def test_a_fingerprint_is_not_told_because_calls_may_differ() -> None:
    class Signed(Marks):
        """A decoder that signs its chunks."""

        @override
        def feed(self, data: bytes) -> Iterator[StreamEvent]:
            for event in super().feed(data):
                yield replace(event, system_fingerprint="fp") if isinstance(event, Chunk) else event

    merge = Merge([Body(b"+a . $"), Body(b"+b . $")], decoder=Signed)
    seen: list[StreamEvent] = []

    async def reader(merged: MergedStream) -> None:
        await merged.until_content()
        seen.extend(merged.first())

    merge.run(reader)
    assert seen == [Chunk(0, "a"), Chunk(0, "", "stop")]


def test_the_last_hand_is_put_on_choices_with_their_final_numbers() -> None:
    finisher = PostProcessor(PostProcessing(echo=("A:", "B:")))
    merge = Merge([Body(b"+a . $"), Body(b"+b . $")], [CallShare(0, 0, 1), CallShare(1, 0, 1)], n=1, finisher=finisher)
    assert merge.run() == ["0:A:a", "0.", "1:B:b", "1.", "~2+2"]


def test_no_more_calls_are_under_way_than_there_are_slots() -> None:
    merge = Merge([Body(2.0, b"+a . $", b"") for _ in range(5)], at_once=2)
    merge.run()
    assert sorted({when for when, word in merge.got}) == [2.0, 4.0, 6.0]
    assert merge.opened == [0, 1, 2, 3, 4]


def test_usage_is_told_once_when_every_call_has_told_its_own() -> None:
    merge = Merge([Body(b"+a . # $"), Body(1.0, b"+b .", 0.5, b"# $")])
    assert merge.run() == ["0:a", "0.", "1:b", "1.", "#6+4"]
    assert merge.got[-1][0] == 1.5
    assert merge.billed == Usage(12, 4)


def test_a_call_that_tells_none_gets_a_guess() -> None:
    merge = Merge([Body(b"+a . # $"), Body(b"+abcdefgh . $")])
    assert merge.run()[-1] == "~6+4"
    assert merge.billed == Usage(7, 4, estimated=True)


def test_a_guess_counts_reasoning_too() -> None:
    class Thinking(Marks):
        """A decoder that adds reasoning before each text."""

        @override
        def feed(self, data: bytes) -> Iterator[StreamEvent]:
            for event in super().feed(data):
                yield replace(event, reasoning="hm.." * 3) if isinstance(event, Chunk) and event.text else event

    merge = Merge([Body(b"+a . # $"), Body(b"+abcd . $")], decoder=Thinking)
    assert merge.run()[-1] == "~6+6"


def test_a_stream_that_breaks_is_billed_nothing() -> None:
    merge = Merge([Body(b"+a . # $"), Body(1.0, b"+b !")])
    assert merge.fails() is FailureKind.SERVER
    assert merge.billed is None


def test_a_later_usage_of_a_call_replaces_its_earlier_one() -> None:
    merge = Merge([Body(b"# +a # . # $"), Body(1.0, b"+b . # $")])
    assert [word for word in merge.run() if word[0] == "#"] == ["#6+4"]


def test_usage_is_no_content() -> None:
    merge = Merge([Body(b"#", 3.0, b"+a . $"), Body(b"#", 9.0, b"+b . $")])
    merge.run()
    assert merge.got[:2] == [(3.0, "#6+4"), (3.0, "0:a")]


def test_a_reader_that_was_held_up_longer_than_an_end_is_waited_for_gets_the_usage_too() -> None:
    bodies = [Body(*often(20, b"+a"), b".", b"#") for _ in range(4)]
    merge = Merge(bodies, pause=TAIL_WAIT)
    words = merge.run()
    assert words.count("#6+8") == 1
    assert [words.count(f"{index}:a") for index in range(4)] == [20] * 4
    assert [words.count(f"{index}.") for index in range(4)] == [1] * 4


def test_a_reader_that_waits_no_longer_for_the_end_is_told_what_is_known() -> None:
    merge = Merge([Body(b"+a . #"), Body(1.0, b"+b . #")])
    seen: list[StreamEvent] = []

    async def reader(merged: MergedStream) -> None:
        await merged.until_content()
        await asyncio.sleep(2)
        seen.extend(merged.conclude())
        seen.extend(merged.conclude())

    merge.run(reader)
    assert seen == [Usage(6, 4)]


def test_an_end_that_does_not_come_is_waited_for_shortly() -> None:
    bodies = [Body(b"+a ."), Body(b"+b .", 1.0, b"$", b"")]
    merge = Merge(bodies)
    assert merge.run() == ["0:a", "0.", "1:b", "1.", "~1+2"]
    assert merge.time == TAIL_WAIT + DRAIN_WAIT
    assert bodies[0].closed > 0


@looped("steps", [(b"",), (CUT,), (1.0, CUT)])
def test_a_connection_that_breaks_behind_the_end_takes_nothing_away(steps: Sequence[Step]) -> None:
    assert Merge([Body(b"+a .", *steps), Body(b"+b . $")]).run()[:2] == ["0:a", "0."]


def test_an_error_behind_the_end_is_still_an_error() -> None:
    assert Merge([Body(b"+a .", 1.0, b"!"), Body(b"+b . $")]).fails() is FailureKind.SERVER


class Strict(Marks):
    """A decoder for which only a terminator ends a stream."""

    @override
    def finish(self) -> Iterator[StreamEvent]:
        yield USAGE
        raise fail(FailureKind.TRUNCATED, "no terminator")


@looped("steps", [(b"",), (CUT,), ()])
def test_what_a_decoder_held_back_is_told_and_its_doubts_are_not(steps: Sequence[Step]) -> None:
    merge = Merge([Body(b"+a .", *steps), Body(b"+b .", *steps)], decoder=Strict)
    assert merge.run() == ["0:a", "0.", "1:b", "1.", "#6+4"]


@looped(
    ("steps", "kind"),
    [
        ((b"+x", CUT), FailureKind.TRUNCATED),
        ((b"+x !",), FailureKind.SERVER),
        ((b"+x", b""), FailureKind.TRUNCATED),
        ((b"+x $",), FailureKind.TRUNCATED),
        ((b"+x .1",), FailureKind.MALFORMED),
    ],
)
def test_what_came_before_a_break_is_read_first(steps: Sequence[Step], kind: FailureKind) -> None:
    bodies = [Body(b"+a", 1.0, b"+b", 9.0, b"+never"), Body(2.0, *steps), Body(b"+k . $", b"")]
    merge = Merge(bodies)
    assert merge.fails() is kind
    assert merge.words == ["0:a", "2:k", "2.", "0:b", "1:x"]
    assert merge.time == 2.0
    assert (bodies[0].closed, bodies[1].closed, bodies[2].released) == (1, 1, 1)


def test_a_call_that_fails_before_any_content_fails_all() -> None:
    bodies = [Body(5.0, b"+a . $"), Body()]
    merge = Merge(bodies, slow={1: fail(FailureKind.RATE_LIMITED, "slow down")})
    assert merge.fails() is FailureKind.RATE_LIMITED
    assert (merge.got, merge.time, bodies[0].closed) == ([], 0.0, 1)


def test_a_call_that_fails_to_open_after_content_breaks_the_stream() -> None:
    merge = Merge([Body(b"+a", 9.0), Body(1.0, b"!")])
    assert merge.fails() is FailureKind.SERVER
    assert merge.words == ["0:a"]


@pytest.mark.parametrize("before", [(), (b"+x",)])
def test_a_fault_of_ours_in_a_call_s_task_does_not_leave_the_reader_waiting(before: Sequence[Step]) -> None:
    class Faulty(Marks):
        """A decoder that fails at an unknown word."""

        @override
        def feed(self, data: bytes) -> Iterator[StreamEvent]:
            if data == b"fault":
                raise LookupError("ours")
            yield from super().feed(data)

    merge = Merge([Body(*before, 1.0, b"fault"), Body(*often(20, b"+a"))], decoder=Faulty, pause=0.1)
    with pytest.raises(RuntimeError) as caught:
        merge.run()
    assert isinstance(caught.value.__cause__, LookupError)


def test_a_reader_that_is_slow_holds_every_call_back() -> None:
    bodies = [Body(*often(100, b"+a"), b". $") for _ in range(3)]
    merge = Merge(bodies)

    async def reader(merged: MergedStream) -> None:
        await merged.until_content()
        await asyncio.sleep(60)
        read = sum(100 - body.left for body in bodies)
        # The waiting events, one in each task, and the one that was taken.
        assert read <= MAX_WAITING + len(bodies) + 1

    merge.run(reader)


def test_a_reader_that_leaves_ends_every_call() -> None:
    bodies = [Body(b"+a"), Body(5.0, b"+b"), Body(b"+c . $", b"")]
    merge = Merge(bodies)

    async def reader(merged: MergedStream) -> None:
        await merged.until_content()
        await asyncio.sleep(1)
        raise ConnectionResetError("gone")

    with pytest.raises(ConnectionResetError):
        merge.run(reader)
    assert (merge.time, [body.closed > 0 for body in bodies]) == (1.0, [True] * 3)


def test_a_call_that_is_still_being_opened_is_left_too() -> None:
    merge = Merge([Body(b"+a"), Body()], slow={1: 60.0})

    async def reader(merged: MergedStream) -> None:
        await merged.until_content()

    merge.run(reader)
    assert merge.time == 0.0
