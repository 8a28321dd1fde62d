"""A long event of a stream is read and written in a thread: the client gets the same, and other requests do not wait
for it. Chunks of many short events, however large, are relayed on the event loop."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from providers.completion import Chunk, StreamEvent
from providers.emulation.post_processing import PostProcessing, PostProcessor
from providers.failure import UpstreamError
from proxy.deadlines import Deadlines
from proxy.off_loop.request_threads import RequestThreads
from proxy.relay.relay_to_client import Relay
from proxy.request_record import RequestRecord
from proxy.response_cache.cached_streams import RecordedStream
from proxy.surfaces.openai import OPENAI
from proxy.surfaces.surface import AnswerFacts
from proxy.upstream.read_answer import until_content
from proxy.upstream.vendor_stream import LONG_EVENT, MOST_AT_ONCE, OpenStream, read_through
from tests.providers.dialects.kit import chat_request, sent_for, target_of
from tests.proxy.kit.chat_events import BEGIN, DONE, STOP, USAGE, chat, cut, event
from tests.proxy.kit.mark_streams import CUT, Body, Marks, Step
from tests.proxy.kit.merged_calls import said
from tests.proxy.kit.virtual_time import in_virtual_time, run
from tests.support.examples import examples

T = TypeVar("T")
ASKED = replace(chat_request(), stream=True)


@dataclass
class Counted:
    """A function that runs work as if off the event loop, after an event loop iteration, and counts it."""

    count: int = 0

    async def __call__(self, work: Callable[[], T], /) -> T:
        self.count += 1
        await asyncio.sleep(0.01)
        return work()


@dataclass
class Outcome:
    """The client's bytes, the record, the failure, and how many chunks were read off the event loop."""

    sent: bytes = b""
    record: RequestRecord = field(default_factory=lambda: RequestRecord("id", 0.0, "openai", "/"))
    failure: object = None
    aside: int = 0


async def relayed(steps: Sequence[Step], *, aside: bool, echo: bool, kept: bool = False) -> Outcome:
    outcome, counted = Outcome(), Counted()
    sent = sent_for(ASKED, target_of("openai"))
    renderer = OPENAI.renderer(ASKED, AnswerFacts("1", 1_795_000_000, "v/m"))
    writes: list[bytes] = []

    def write(data: bytes) -> bool:
        writes.append(data)
        return True

    try:
        with Deadlines(600.0) as clock:
            body, decoder = Body(*steps), sent.target.dialect.stream(sent)
            began = await until_content(body, decoder, counted if aside else None)
            stream = OpenStream(body, decoder, *began, counted if aside else None)
            if echo:
                stream.finisher = PostProcessor(PostProcessing(echo=("Q: ",)))
            clock.commit(60.0, 600.0, 3600.0)
            shown = RecordedStream(stream, 10**9, 1, lambda events: None) if kept else stream
            relay = Relay(shown, renderer, write, clock, outcome.record, ASKED)
            await relay.run()
        writes += (relay.held, renderer.end())
    except UpstreamError as error:
        outcome.failure = error.failure
    outcome.sent, outcome.aside = b"".join(writes), counted.count
    return outcome


def compared_outcome(steps: Sequence[Step], *, echo: bool = False, kept: bool = False) -> Outcome:
    """Return the outcome of the steps off the event loop, which must equal the outcome on the event loop, also if the
    cache stores the stream."""
    expected = run(relayed(steps, aside=False, echo=echo))
    found = run(relayed(steps, aside=True, echo=echo, kept=kept))
    assert expected.aside == 0
    assert (found.sent, found.failure) == (expected.sent, expected.failure)
    assert replace(found.record, waited=0.0) == replace(expected.record, waited=0.0)
    return found


LISTED = orjson.dumps([{"token": "a", "logprob": -1.0, "bytes": [97], "top_logprobs": []}] * 3000)
LONG_TEXT = chat(b'"%b"' % (b"a" * 3 * LONG_EVENT))
LONG_LIST = event(b'{"index":0,"delta":{"content":"a"},"logprobs":{"content":%b},"finish_reason":null}' % LISTED)
MANY = b'{"index":0,"delta":{"content":"a"}},' * 9000
LONG_EVENTS = (LONG_TEXT, LONG_LIST, event(MANY[:-1]), b"data: {broken" + b"x" * 3 * LONG_EVENT + b"\n\n")
END = (STOP + USAGE + DONE, STOP + DONE, STOP, b"")


@given(
    events=st.lists(st.sampled_from((*LONG_EVENTS, chat(b'"a"'), chat(b'"b"') * 5)), min_size=1, max_size=5),
    begun=st.booleans(),
    places=st.lists(st.integers(0, 10**6), max_size=40),
    rest=st.sampled_from(END),
    breaks=st.booleans(),
    echo=st.booleans(),
    kept=st.booleans(),
)
@examples(40, least=15)
def test_a_long_event_reaches_the_client_as_it_does_in_place(  # noqa: PLR0913 - one for each thing that varies
    *, events: list[bytes], begun: bool, places: list[int], rest: bytes, breaks: bool, echo: bool, kept: bool
) -> None:
    data = b"".join((BEGIN, chat(b'"x"') if begun else b"", *events, rest))
    compared_outcome([*cut(data, places), CUT if breaks else b""], echo=echo, kept=kept)


def test_each_kind_of_long_event_is_read_aside_wherever_it_comes() -> None:
    for long in LONG_EVENTS:
        for before in (b"", chat(b'"x"')):
            pieces = cut(BEGIN + before + long + STOP + USAGE + DONE, range(0, 10**6, 16_384))
            assert compared_outcome([*pieces, b""]).aside > 0, (long[:60], before)
            assert compared_outcome([*pieces, b""], kept=True).aside > 0, (long[:60], before)


def test_many_short_events_are_relayed_where_they_come_however_large_the_pieces() -> None:
    pieces = cut(BEGIN + chat(b'"x"') * 8000 + STOP + USAGE + DONE, range(0, 10**7, 200_000))
    assert len(pieces) > 5
    assert compared_outcome([*pieces, b""]).aside == 0


def unique_event(number: int, text: bytes = b'"a"') -> bytes:
    """Return an event with a field of the vendor's own that no other event has."""
    return chat(text, b',"odd%d":{"n":1}' % number)


def test_of_many_events_that_are_no_run_the_first_are_relayed_where_they_come() -> None:
    few = b"".join(map(unique_event, range(MOST_AT_ONCE - 2)))
    many = b"".join(map(unique_event, range(3 * MOST_AT_ONCE)))
    for kept in (False, True):
        assert compared_outcome([BEGIN + chat(b'"x"'), few, STOP + USAGE + DONE, b""], kept=kept).aside == 0
        assert compared_outcome([BEGIN + chat(b'"x"'), many, STOP + USAGE + DONE, b""], kept=kept).aside == 1
        assert compared_outcome([BEGIN + chat(b'"x"'), many + STOP + USAGE + DONE], kept=kept).aside == 1
    assert compared_outcome([BEGIN + many + STOP + USAGE + DONE, b""]).aside == 1, "the piece with the first content"
    assert compared_outcome([BEGIN + chat(b'"x"'), many + STOP + USAGE + DONE, b""], echo=True).aside == 1


@pytest.mark.parametrize("kept", [False, True])
def test_what_follows_the_end_of_the_answer_in_a_piece_with_many_events_is_not_lost(*, kept: bool) -> None:
    for count in range(MOST_AT_ONCE - 5, MOST_AT_ONCE + 3):
        found = compared_outcome(
            [BEGIN + chat(b'"x"'), b"".join(map(unique_event, range(count))) + STOP + USAGE + DONE, b""], kept=kept
        )
        assert found.record.usage is not None
        assert not found.record.usage.estimated


MANY_EVENTS = st.lists(
    st.builds(
        lambda kind, count: b"".join([kind(number) for number in range(count)]),
        st.sampled_from((unique_event, lambda number: unique_event(number, b'""'), lambda number: chat(b'"x"'))),
        st.sampled_from((1, 3, MOST_AT_ONCE - 1, MOST_AT_ONCE, MOST_AT_ONCE + 1, 2 * MOST_AT_ONCE + 5)),
    ),
    min_size=1,
    max_size=4,
)


@given(
    parts=MANY_EVENTS,
    begun=st.booleans(),
    places=st.lists(st.integers(0, 10**6), max_size=6),
    rest=st.sampled_from((*END, b"data: {broken\n\n" + STOP + DONE)),
    breaks=st.booleans(),
    echo=st.booleans(),
    kept=st.booleans(),
)
@examples(40, least=15)
def test_many_events_reach_the_client_as_they_do_in_place(  # noqa: PLR0913 - one for each thing that varies
    *, parts: list[bytes], begun: bool, places: list[int], rest: bytes, breaks: bool, echo: bool, kept: bool
) -> None:
    data = b"".join((BEGIN, chat(b'"x"') if begun else b"", *parts, rest))
    compared_outcome([*cut(data, places), CUT if breaks else b""], echo=echo, kept=kept)


def test_a_long_stream_of_little_pieces_is_relayed_where_they_come() -> None:
    told = chat(b'"x"', b',"odd":1')
    assert compared_outcome([BEGIN, *[told] * (2 * LONG_EVENT // len(told)), STOP + USAGE + DONE, b""]).aside == 0


def test_a_client_that_leaves_meanwhile_ends_the_relay() -> None:
    async def main() -> str:
        pieces = cut(BEGIN + LONG_TEXT, range(0, 10**6, 16_384))
        task = asyncio.create_task(relayed([*pieces, b""], aside=True, echo=False))
        await asyncio.sleep(0.005)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            return "cancelled"
        return "went on"

    assert run(main()) == "cancelled"


@in_virtual_time
async def test_who_pulls_a_stream_has_its_long_events_read_aside_too() -> None:
    counted, words = Counted(), list[str]()
    long = [b"+a"] + [b" :" + b"x" * 1000] * 80 + [b" +b .", b"$", b""]
    stream = OpenStream(Body(*long), Marks(), [Chunk(text="0")], False, counted)

    async def hand(events: object) -> int:
        found = said(list(events))  # type: ignore[call-overload]  # the events of a piece
        words.extend(found)
        return sum(word.endswith(".") for word in found)

    await read_through(stream, 1, hand)
    assert words == ["0:0", "0:a", "0:b", "0."]
    assert counted.count > 0


@in_virtual_time
async def test_what_is_read_aside_is_post_processed_once() -> None:
    class Marking(PostProcessor):
        @override
        def feed(self, chunk: Chunk) -> Iterator[Chunk]:
            yield replace(chunk, text=f"<{chunk.text}>")

    long = [b"+a"] + [b" :" + b"x" * 1000] * 80 + [b" +b .", b"$", b""]
    stream = OpenStream(Body(*long), Marks(), [], False, Counted(), Marking(PostProcessing()))
    events: list[StreamEvent] = []
    while not stream.over:
        await stream.wait()
        events += stream.take()
    assert said(events)[:2] == ["0:<a>", "0:<b>"]


async def test_the_threads_of_requests_do_it() -> None:
    threads, seen = RequestThreads(), set[int]()

    class Noting(Marks):
        def feed(self, data: bytes):  # type: ignore[no-untyped-def]  # as its parent
            seen.add(threading.get_ident())
            return super().feed(data)

    stream = OpenStream(Body(b":" * LONG_EVENT, b" +b . $", b""), Noting(), [], False)
    stream.aside = lambda work: threads.run("team", work)
    await stream.wait()
    assert [*stream.take()] == []
    await stream.wait()
    assert said(list(stream.take())) == ["0:b", "0."]
    assert len(seen) == 2
    threads.close()
