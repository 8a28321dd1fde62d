"""A committed stream on its way to the client, in virtual time: marks arrive, and `<text>`, `<.>` and `<#>` are
written."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pytest
from typing_extensions import override

from providers.completion import Chunk, Completion, RunPart, StreamEvent, StreamPart, TextRun, ToolCallDelta, Usage
from providers.dialect import StreamDecoder
from providers.failure import FailureKind, UpstreamError
from providers.unified_request import Operation, TextPrompt, UnifiedRequest
from proxy.deadlines import DeadlinePassed, Deadlines, Phase
from proxy.errors import ErrorFacts
from proxy.relay.relay_to_client import Relay
from proxy.request_record import RequestRecord
from proxy.upstream.transport import fail
from proxy.upstream.vendor_stream import DRAIN_WAIT, MAX_DRAIN, TAIL_WAIT, OpenStream, drain
from tests.proxy.kit.mark_streams import CUT, USAGE, Body, Marks, Step, often
from tests.proxy.kit.virtual_time import run
from tests.support.looped import looped

IDLE = 120.0


class Brackets:
    """A renderer of marks."""

    def completion(self, completion: Completion) -> bytes:
        """Fail: a stream never calls it."""
        raise NotImplementedError

    def chunk(self, chunk: Chunk) -> bytes:
        if chunk.text == "held":
            return b""
        return b"<%s%s>" % (chunk.text.encode(), b"." if chunk.finish_reason else b"")

    def run(self, run: TextRun) -> bytes | None:
        return None if run.index else b"<%b>" % b"><".join(run.literals)

    def usage(self, usage: Usage) -> bytes:
        return b"" if usage.estimated else b"<#>"

    def end(self) -> bytes:
        raise NotImplementedError

    def error(self, facts: ErrorFacts) -> bytes:
        raise NotImplementedError


@dataclass
class Client:
    """A client that is written to: takes `stall` seconds for each write, and disconnects after `leaves` writes."""

    stall: float = 0.0
    leaves: int | None = None
    got: list[bytes] = field(default_factory=list)

    async def write(self, data: bytes) -> None:
        if self.leaves == len(self.got):
            raise ConnectionResetError("gone")
        self.got.append(data)
        await asyncio.sleep(self.stall)


class Taking(Client):
    """A client that accepts every write without a wait."""

    def take(self, data: bytes) -> bool:
        self.got.append(data)
        return True


@dataclass
class Rig:
    """One relay with its parts."""

    body: Body
    client: Client = field(default_factory=Client)
    first: list[StreamPart] = field(default_factory=list)
    ended: bool = False
    decoder: StreamDecoder = field(default_factory=Marks)
    expected: int = 1
    idle: float = IDLE
    first_event: float = 60.0
    record: RequestRecord = field(default_factory=lambda: RequestRecord("id", 0.0, "openai", "/"))
    time: float = 0.0
    relay: Relay = field(init=False)

    def run(self) -> list[bytes]:
        """Relay to the end, and return the client's bytes, one entry per write."""
        run(self._main())
        return self.client.got

    def fails(self) -> FailureKind:
        """Relay a stream that breaks, and return the kind of the failure."""
        with pytest.raises(UpstreamError) as caught:
            self.run()
        return caught.value.failure.kind

    async def _main(self) -> None:
        loop = asyncio.get_running_loop()
        stream = OpenStream(self.body, self.decoder, self.first, self.ended)
        with Deadlines(600.0) as clock:
            clock.enter(Phase.FIRST_EVENT, self.first_event)
            clock.commit(self.idle, 600.0, 3600.0)
            request = UnifiedRequest(Operation.COMPLETIONS, "v/m", TextPrompt(("hi",)), {"n": self.expected}, True)
            write = self.client.take if isinstance(self.client, Taking) else self.client.write
            relay = self.relay = Relay(stream, Brackets(), write, clock, self.record, request)
            try:
                await relay.run()
                if relay.held:
                    self.client.got.append(relay.held)
            finally:
                self.time = loop.time()


def test_each_piece_is_one_write_and_what_was_read_before_comes_first() -> None:
    rig = Rig(Body(b"+a +b", b"+c", b". # $", b"+never"), first=[Chunk(text="0")])
    assert rig.run() == [b"<0>", b"<a><b>", b"<c>", b"<.><#>"]
    assert rig.record.usage == USAGE


def test_the_piece_that_completes_an_answer_is_left_for_the_write_that_has_its_end() -> None:
    whole = Rig(Body(b"+a", b". # $"), client=Taking())
    assert whole.run() == [b"<a>", b"<.><#>"]
    assert whole.relay.held == b"<.><#>"
    in_parts = Rig(Body(b"+a", b".", b"# $"), client=Taking())
    assert in_parts.run() == [b"<a>", b"<.>", b"<#>"]
    assert in_parts.relay.held == b"<#>"
    broken = Rig(Body(b"+a", b"# ! ."), client=Taking())
    assert broken.fails() is FailureKind.SERVER
    assert broken.relay.held == b""


def test_after_the_terminator_nothing_is_read() -> None:
    rig = Rig(Body(b"+a . $"))
    assert rig.run() == [b"<a><.>"]
    assert rig.time == 0


def test_a_stream_that_was_over_before_the_commit_is_only_written() -> None:
    rig = Rig(Body(), first=[Chunk(text="a"), Chunk(finish_reason="stop"), Usage(1, 1)], ended=True)
    assert rig.run() == [b"<a><.><#>"]


def test_an_answer_without_usage_gets_a_guess() -> None:
    rig = Rig(Body(b"+abcd", b"+efgh .", b"$"))
    rig.run()
    assert rig.record.usage == Usage(1, 2, estimated=True)


def test_what_was_generated_before_a_break_counts_too() -> None:
    rig = Rig(Body(b"+abcd", b""))
    with pytest.raises(UpstreamError):
        rig.run()
    assert rig.record.usage == Usage(1, 1, estimated=True)


def test_frames_that_are_held_back_are_no_write() -> None:
    assert Rig(Body(b"+held", b": :", b"+a", b".", b"$")).run() == [b"<a>", b"<.>"]


def test_the_end_of_the_body_is_enough_after_a_finish() -> None:
    assert Rig(Body(b"+a .", b"")).run() == [b"<a><.>"]


def test_the_end_of_the_body_without_a_finish_is_a_break() -> None:
    rig = Rig(Body(b"+a", b"+b", b""))
    assert rig.fails() is FailureKind.TRUNCATED
    assert rig.client.got == [b"<a>", b"<b>"]


def test_a_terminator_without_a_finish_is_a_break() -> None:
    assert Rig(Body(b"+a $")).fails() is FailureKind.TRUNCATED


def test_a_choice_that_never_finished_is_a_break() -> None:
    assert Rig(Body(b"+a . $"), expected=2).fails() is FailureKind.TRUNCATED
    assert Rig(Body(b"+a .", b".1 $"), expected=2).run() == [b"<a><.>", b"<.>"]


def test_what_came_before_an_error_in_the_same_piece_reaches_the_client() -> None:
    rig = Rig(Body(b"+a +b ! +never"))
    assert rig.fails() is FailureKind.SERVER
    assert rig.client.got == [b"<a><b>"]


def test_a_broken_connection_is_a_break() -> None:
    rig = Rig(Body(b"+a", CUT))
    assert rig.fails() is FailureKind.TRUNCATED
    assert rig.client.got == [b"<a>"]


@pytest.mark.parametrize("idle", [IDLE, 0.05])
def test_a_finished_answer_waits_shortly_for_its_terminator_and_completes_without(idle: float) -> None:
    rig = Rig(Body(b"+a", b"."), idle=idle)
    assert rig.run() == [b"<a>", b"<.>"]
    assert rig.time == TAIL_WAIT


def test_usage_that_follows_the_finish_is_waited_for() -> None:
    rig = Rig(Body(b"+a .", 1.0, b"#"))
    assert rig.run() == [b"<a><.>", b"<#>"]
    assert rig.record.usage == USAGE


def test_endless_comments_do_not_hold_a_finished_answer() -> None:
    rig = Rig(Body(b"+a .", *often(10, 1.5, b":")))
    assert rig.run() == [b"<a><.>"]
    assert rig.time == TAIL_WAIT


def test_a_connection_that_breaks_after_the_finish_takes_nothing_away() -> None:
    assert Rig(Body(b"+a .", CUT)).run() == [b"<a><.>"]


class Strict(Marks):
    """A decoder for which only a terminator ends a stream."""

    @override
    def finish(self) -> Iterator[StreamEvent]:
        yield Chunk(text="held back")
        raise fail(FailureKind.TRUNCATED, "no terminator")


@looped("steps", [(b"",), (CUT,), ()])
def test_a_decoder_s_doubts_about_the_end_of_a_finished_answer_are_settled(steps: tuple[Step, ...]) -> None:
    rig = Rig(Body(b"+a .", *steps), decoder=Strict())
    assert rig.run() == [b"<a><.>", b"<held back>"]


def test_an_error_after_the_finish_is_still_an_error() -> None:
    rig = Rig(Body(b"+a .", b"!"))
    assert rig.fails() is FailureKind.SERVER


def test_silence_passes_the_idle_limit() -> None:
    rig = Rig(Body(b"+a", 100.0, b"+b", 121.0, b"."))
    with pytest.raises(DeadlinePassed) as caught:
        rig.run()
    assert (caught.value.phase, rig.time) == (Phase.IDLE, 220.0)
    assert rig.client.got == [b"<a>", b"<b>"]


def test_comments_are_signs_of_life() -> None:
    rig = Rig(Body(b"+a", *often(5, 119.0, b":"), b". $"))
    assert rig.run() == [b"<a>", b"<.>"]


def test_comments_do_not_keep_a_stream_without_content_alive() -> None:
    rig = Rig(Body(b"+a", *often(50, 119.0, b":"), b". $"))
    with pytest.raises(DeadlinePassed) as caught:
        rig.run()
    assert (caught.value.phase, rig.time) == (Phase.PROGRESS, 600.0)


def test_a_client_that_reads_slowly_is_no_silence_of_the_upstream() -> None:
    rig = Rig(Body(b"+a", b"+b", 100.0, b". $"), Client(stall=59), first=[Chunk(text="0")])
    assert rig.run() == [b"<0>", b"<a>", b"<b>", b"<.>"]


def test_a_client_that_left_ends_the_relay() -> None:
    with pytest.raises(ConnectionResetError):
        Rig(Body(b"+a", b"+b . $"), Client(leaves=1)).run()


def test_only_the_upstream_s_time_is_waiting() -> None:
    rig = Rig(Body(b"+a", 3.0, b"+b", 4.0, b". $"), Client(stall=50))
    rig.run()
    assert rig.record.waited == 7.0


@looped(("stall", "waited"), [(50.0, 150.0), (0.006, 0.018), (0.004, 0.0)])
def test_writes_that_take_long_are_waiting_for_the_client(stall: float, waited: float) -> None:
    rig = Rig(Body(b"+a", 3.0, b"+b", 4.0, b". $"), Client(stall=stall))
    rig.run()
    assert rig.record.client_waited == pytest.approx(waited)


@pytest.mark.parametrize("last", [121.0, CUT])
def test_waiting_in_vain_is_waiting(last: Step) -> None:
    rig = Rig(Body(b"+a", 5.0, last))
    with pytest.raises((DeadlinePassed, UpstreamError)):
        rig.run()
    assert rig.record.waited == rig.time


def drained(*steps: Step) -> tuple[Body, float]:
    """Return a response after its drain, and how long that took."""
    body = Body(*steps)

    async def main() -> float:
        await drain(body)
        return asyncio.get_running_loop().time()

    return body, run(main())


def test_the_rest_of_a_good_answer_is_read_so_that_its_connection_serves_on() -> None:
    body, time = drained(b"rest", b"of it", b"")
    assert (body.closed, body.released, time) == (0, 1, 0)


@looped("steps", [(b"rest",), (CUT,), (b"x", 1.0, b"")])
def test_a_rest_that_does_not_come_at_once_is_given_up(steps: tuple[Step, ...]) -> None:
    body, time = drained(*steps)
    assert body.closed == 1
    assert time <= DRAIN_WAIT


def test_an_endless_rest_is_read_to_its_limit() -> None:
    body, _ = drained(*often(100, b"x" * (MAX_DRAIN // 2)), b"")
    assert (body.closed, body.released) == (0, 1)


# Runs ----------------------------------------------------------------------------------------------------------------


def words(*literals: bytes, index: int = 0) -> TextRun:
    size = sum(map(len, literals))
    return TextRun(index, [*literals], {}, size, size)


@pytest.mark.parametrize("index", [0, 1])
def test_a_run_counts_as_its_chunks_do(index: int) -> None:
    rig = Rig(Body(b". $"), first=[words(b"abcd", b"efgh", index=index)])
    assert rig.run() == [b"<abcd><efgh>", b"<.>"]
    assert rig.record.chunks == 4
    assert rig.record.usage == Usage(1, 2, estimated=True)


@looped("part", ["reasoning", "arguments"])
@looped("index", [0, 1])
def test_what_was_written_besides_text_counts_too(part: RunPart, index: int) -> None:
    run = replace(words(b"abcd", b"efgh", index=index), part=part, characters=0)
    call = Chunk(tool_calls=(ToolCallDelta(0, "t", "name", "argument"),))
    rig = Rig(Body(b". $"), first=[call, run])
    rig.run()
    assert rig.record.usage == Usage(1, 5, estimated=True)


def test_nothing_is_waited_for_while_the_client_takes_what_is_sent() -> None:
    rig = Rig(Body(b"+a", 3.0, b"+b", 4.0, b". $"), Taking())
    assert rig.run() == [b"<a>", b"<b>", b"<.>"]
    assert (rig.record.waited, rig.record.client_waited) == (7.0, 0.0)
