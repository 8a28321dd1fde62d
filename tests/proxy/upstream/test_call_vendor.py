"""One target called, in virtual time: the meaning of its response, or of a missing one."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace

import pytest
from typing_extensions import override

from providers.completion import Chunk, Extras, StreamEvent
from providers.dialect import StreamDecoder, UpstreamRequest
from providers.emulation.plan_calls import plan_calls
from providers.failure import Failure, FailureKind, UpstreamError
from providers.unified_request import Operation, TextPrompt, UnifiedRequest
from proxy.deadlines import DeadlinePassed, Phase
from proxy.upstream.transport import ERROR_BODY_WAIT, MAX_ERROR_BODY, SHOWN
from tests.proxy.kit.mark_streams import CUT, USAGE, Marks, Step, often
from tests.proxy.kit.mark_vendor import Door, Scripted
from tests.proxy.kit.vendor_caller import ASKED, GOOD, TABLE, Rig, answers, body_of
from tests.support.looped import looped

MOCKED = UnifiedRequest(Operation.COMPLETIONS, "mock/echo", TextPrompt(("hi",)), {}, stream=True)


# Non-streaming responses ----------------------------------------------------------------------------------------------


def test_a_whole_answer_is_read_decoded_and_its_connection_given_back() -> None:
    rig = answers(b"+a ", b"+b", b"")
    assert [choice.text for choice in rig.whole(2).choices] == ["a", "b"]
    assert (body_of(rig).released, body_of(rig).closed) == (1, 0)
    assert rig.door.seen == [(rig.prepared.calls[0].sent, "req-1")]


def test_a_whole_answer_that_stalls_once_it_has_begun_passes_the_idle_limit() -> None:
    rig = answers(300.0, b"+a", 119.0, b" ", 200.0, b"")
    with pytest.raises(DeadlinePassed) as caught:
        rig.whole()
    assert (caught.value.phase, rig.time) == (Phase.IDLE, 300.0 + 119.0 + 120.0)


@pytest.mark.parametrize("expected", [1, 3])
def test_an_answer_with_another_number_of_choices_is_malformed(expected: int) -> None:
    rig = answers(b"+a +b", b"")
    failure = rig.fails(lambda: rig.whole(expected))
    assert (failure.kind, failure.message) == (
        FailureKind.MALFORMED,
        f"The upstream's response has 2 of {expected} choices.",
    )


@pytest.mark.parametrize("stream", [False, True])
def test_an_error_in_an_answer_s_place_has_that_answer_s_status(stream: bool) -> None:
    rig = answers(b"!", b"", status=202)
    failure = rig.fails(rig.streamed if stream else rig.whole)
    assert (failure.kind, failure.message, failure.status) == (FailureKind.SERVER, "in-band", 202)


def test_an_answer_that_breaks_off_gives_its_connection_back() -> None:
    rig = answers(b"+a", CUT)
    assert rig.fails(rig.whole).kind is FailureKind.TRUNCATED
    assert body_of(rig).released == 1


@looped("status", [199, 301, 400, 429, 500, 503])
def test_another_status_means_what_the_dialect_says(status: int) -> None:
    rig = answers(b"some", b" words", b"", status=status)
    assert rig.fails(rig.whole) == Failure(FailureKind.SERVER, f"{status} b 10", status)
    assert body_of(rig).released == 1


@pytest.mark.parametrize("stream", [False, True])
def test_an_endless_error_body_is_read_to_its_limit(stream: bool) -> None:
    rig = answers(*often(1000, b"x" * 1000), status=500)
    assert rig.fails(rig.streamed if stream else rig.whole).message == f"500 b {MAX_ERROR_BODY}"


def test_an_error_body_that_stalls_is_waited_for_shortly() -> None:
    rig = answers(b"some", status=500)
    assert rig.fails(rig.whole).message == "500 b 4"
    assert rig.time == ERROR_BODY_WAIT


@looped("stream", [False, True])
@looped("start", [b"<html>", b"\r\n <!doctype html>", b"<" + b"x" * 70_000])
def test_a_page_in_place_of_an_answer_is_shown_to_the_operator_alone(start: bytes, stream: bool) -> None:
    rig = answers(start + b" blocked by 10.0.0.1, Bearer abc", b"")
    failure = rig.fails(rig.streamed if stream else rig.whole)
    assert (failure.kind, failure.message) == (FailureKind.MALFORMED, "The upstream answered with a web page.")
    shown = failure.evidence
    assert (shown.lstrip()[0], shown[-1], len(shown) <= SHOWN + 1) == ("<", "…", True)
    assert "10.0.0.1" not in shown
    assert "abc" not in shown


def test_a_call_that_never_got_through_is_its_failure() -> None:
    rig = Rig(Door(UpstreamError(Failure(FailureKind.CONNECT, "The upstream could not be reached."))))
    assert rig.fails(rig.whole).kind is FailureKind.CONNECT


def test_the_total_passes_while_the_upstream_thinks() -> None:
    rig = answers(601.0, b"+a", b"")
    with pytest.raises(DeadlinePassed) as caught:
        rig.whole()
    assert (caught.value.phase, rig.time) == (Phase.TOTAL, 600.0)
    assert body_of(rig).released == 1


SLOW: dict[str, Callable[[], Rig]] = {
    "good": lambda: answers(3.0, b"+a", b"", delay=4.0),
    "status": lambda: answers(3.0, b"no", b"", delay=4.0, status=500),
    "cut": lambda: answers(3.0, CUT, delay=4.0),
    "not opened": lambda: Rig(Door(CUT, 7.0)),
    "deadline": lambda: answers(7.0, b"+a", delay=599.0),
}


@looped("way", [Rig.whole, Rig.streamed])
@looped("make", SLOW.values(), ids=SLOW.keys())
def test_all_the_time_the_upstream_took_is_waiting(make: Callable[[], Rig], way: Callable[[Rig], object]) -> None:
    rig = make()
    with suppress(UpstreamError, DeadlinePassed):
        way(rig)
    assert rig.record.waited == rig.time
    assert rig.time > 0


# Streams -------------------------------------------------------------------------------------------------------------


def test_a_stream_is_handed_over_at_its_first_content() -> None:
    rig = answers(b": :", b"#", b"+a +b", b"+c")
    stream = rig.streamed()
    assert (list(stream.first()), stream.over) == ([USAGE, Chunk(text="a"), Chunk(text="b")], False)


def test_a_stream_is_closed_by_leaving_its_block() -> None:
    rig = answers(b"+a")
    rig.streamed()
    assert (body_of(rig).closed, body_of(rig).released) == (1, 0)


def test_a_stream_that_ends_with_its_first_content_says_so() -> None:
    class Late(Marks):
        """A decoder that holds its text back until the end."""

        @override
        def feed(self, data: bytes) -> Iterator[StreamEvent]:
            yield from ()

        @override
        def finish(self) -> Iterator[StreamEvent]:
            yield Chunk(text="late", finish_reason="stop")

    class Holding(Scripted):
        """A vendor whose streams use this decoder."""

        @override
        def stream(self, sent: UpstreamRequest) -> StreamDecoder:
            return Late()

    rig = answers(b"+a", b"")
    rig.prepared = plan_calls(ASKED, replace(GOOD.target, dialect=Holding()))
    stream = rig.streamed()
    assert (stream.events, stream.ended) == ([Chunk(text="late", finish_reason="stop")], True)


OF_ANSWER = Chunk(extras=Extras(answer={"prompt_filter_results": []}))


class Announcing(Scripted):
    """A vendor that reports facts of the response before it begins to generate."""

    @override
    def stream(self, sent: UpstreamRequest) -> StreamDecoder:
        class Announced(Marks):
            """A decoder that reads `*` as facts of the response."""

            @override
            def feed(self, data: bytes) -> Iterator[StreamEvent]:
                yield from (OF_ANSWER,) if data == b"*" else super().feed(data)

        return Announced()


def test_what_is_said_of_an_answer_is_handed_over_with_its_first_content_and_is_none() -> None:
    rig = answers(b"*", b"*", b"+a", b"+b")
    rig.prepared = plan_calls(ASKED, replace(GOOD.target, dialect=Announcing()))
    assert list(rig.streamed().first()) == [OF_ANSWER, OF_ANSWER, Chunk(text="a")]


def test_a_stream_that_has_nothing_but_what_is_said_of_the_answer_is_empty() -> None:
    rig = answers(b"*", b"*", b"")
    rig.prepared = plan_calls(ASKED, replace(GOOD.target, dialect=Announcing()))
    assert rig.fails(rig.streamed).kind is FailureKind.TRUNCATED


@looped(
    ("steps", "kind"),
    [
        ((b"!",), FailureKind.SERVER),
        ((b":", b"#", b"!"), FailureKind.SERVER),
        ((b"+a !",), FailureKind.SERVER),
        ((b":", b""), FailureKind.TRUNCATED),
        ((b"",), FailureKind.TRUNCATED),
        ((b"$",), FailureKind.MALFORMED),
        ((b":", CUT), FailureKind.TRUNCATED),
    ],
)
def test_what_goes_wrong_before_content_is_a_failure_not_a_stream(steps: tuple[Step, ...], kind: FailureKind) -> None:
    rig = answers(*steps)
    assert rig.fails(rig.streamed).kind is kind
    assert body_of(rig).closed == 1


def test_a_stream_s_status_is_looked_at_before_its_body() -> None:
    rig = answers(b"+a", b"", status=429)
    assert rig.fails(rig.streamed).message == "429 b 2"


def test_comments_do_not_renew_the_limit_of_the_first_content() -> None:
    rig = answers(*often(100, 7.0, b": #"))
    with pytest.raises(DeadlinePassed) as caught:
        rig.streamed()
    assert (caught.value.phase, caught.value.limit, rig.time) == (Phase.FIRST_EVENT, 60.0, 60.0)
    assert body_of(rig).closed == 1


def test_the_limit_of_the_first_content_includes_the_head_of_the_answer() -> None:
    rig = answers(31.0, b"+a", delay=30.0)
    with pytest.raises(DeadlinePassed):
        rig.streamed()
    assert rig.time == 60.0


def test_the_mock_vendor_needs_no_network() -> None:
    (target,) = TABLE.models["mock/echo"].targets
    rig = Rig(Door(CUT), prepared=plan_calls(MOCKED, target))
    (event, *_) = rig.streamed().events
    assert isinstance(event, Chunk)
    assert event.text == "hi"
    assert rig.door.seen == []
