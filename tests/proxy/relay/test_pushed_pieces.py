"""A stream whose chunks are relayed within the callbacks that deliver them reaches the client like a stream that a
task reads chunk by chunk: the same writes, the same record, the same end, however it is cut, whenever the client does
not read, and however it ends."""

import asyncio
import gc
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from hypothesis import example, given
from hypothesis import strategies as st
from typing_extensions import override

from providers.emulation.post_processing import PostProcessing, PostProcessor
from providers.failure import UpstreamError
from proxy.deadlines import CLIENT_STALL, DeadlinePassed, Deadlines, Phase
from proxy.eager_task import EagerTask
from proxy.http_client.http_response import HttpResponse
from proxy.relay.relay_to_client import Relay
from proxy.request_record import RequestRecord
from proxy.surfaces.openai import OPENAI
from proxy.surfaces.surface import AnswerFacts
from proxy.upstream.read_answer import until_content
from proxy.upstream.transport import Take, read_each
from proxy.upstream.vendor_stream import OpenStream
from tests.providers.dialects.kit import chat_request, sent_for, target_of
from tests.proxy.kit.chat_events import BEGIN, DONE, LONG, ODD, STOP, USAGE, chat, cut
from tests.proxy.kit.eager_tasks import uncollected
from tests.proxy.kit.virtual_time import in_virtual_time, run
from tests.proxy.kit.wire import CHUNKED, END, Line
from tests.support.examples import examples

ASKED = replace(chat_request(), stream=True)
Act = bytes | float | str
"""The next step: bytes from the vendor, seconds to wait, or the action that the string names."""

CLIENT_ACTS = ("full", "room", "gone")
ENDINGS = ("eof", "lost", "cancel", "expire")


class Read(HttpResponse):
    """A response that is always read chunk by chunk."""

    __slots__ = ()

    @override
    async def each(self, take: Take) -> None:
        await read_each(self, take)


@dataclass
class Outcome:
    """The client's bytes, one entry per write; the record; the end of the relay and the state of the connection; and
    the duration in seconds."""

    writes: list[bytes] = field(default_factory=list)
    record: RequestRecord = field(default_factory=lambda: RequestRecord("id", 0.0, "openai", "/"))
    end: object = None
    connection: object = None
    time: float = 0.0


class Client:
    """A client that is written to; `act` makes it full, gives it room, or disconnects it."""

    def __init__(self, writes: list[bytes]) -> None:
        self._writes = writes
        self._room = asyncio.Event()
        self._room.set()
        self._gone = False

    def act(self, act: str) -> None:
        if act == "full":
            self._room.clear()
        else:
            self._room.set()
            self._gone = self._gone or act == "gone"

    def write(self, data: bytes) -> bool | Awaitable[object]:
        if self._gone:
            raise ConnectionResetError("gone")
        self._writes.append(data)
        return True if self._room.is_set() else self._until_room()

    async def _until_room(self) -> None:
        await self._room.wait()
        if self._gone:
            raise ConnectionResetError("gone")


async def relayed(
    line: Line, outcome: Outcome, client: Client, response: HttpResponse, clocks: list[Deadlines]
) -> None:
    """Relay the response on a connection, as a request's handler does."""
    sent = sent_for(ASKED, target_of("openai"))
    renderer = OPENAI.renderer(ASKED, AnswerFacts("1", 1_795_000_000, "v/m"))
    try:
        with Deadlines(600.0) as clock:
            clocks.append(clock)
            clock.enter(Phase.FIRST_EVENT, 60.0)
            decoder = sent.target.dialect.stream(sent)
            stream = OpenStream(response, decoder, *await until_content(response, decoder))
            if ASKED_ECHO in outcome.record.path:
                stream.finisher = PostProcessor(PostProcessing(echo=("Q: ",)))
            clock.commit(60.0, 600.0, 3600.0)
            relay = Relay(stream, renderer, client.write, clock, outcome.record, ASKED)
            await relay.run()
            clock.stop()
            outcome.writes.append(relay.held + renderer.end())
            await stream.finish()
        outcome.end = "well"
    except UpstreamError as error:
        outcome.end = error.failure
    except DeadlinePassed as error:
        outcome.end = error.phase
    except ConnectionError:
        outcome.end = "gone"
    except asyncio.CancelledError:
        outcome.end = "cancelled"
    finally:
        response.close()
        made = line.connection
        outcome.connection = (made.state, made.fault, line.wire.aborted, len(line.shelf.taken_back))
        outcome.time = asyncio.get_running_loop().time()


ASKED_ECHO = "/echo"
Start = Callable[[Line, Outcome, Client, list[Deadlines]], asyncio.Task[None] | EagerTask]


def eagerly(line: Line, outcome: Outcome, client: Client, clocks: list[Deadlines]) -> EagerTask:
    work = relayed(line, outcome, client, HttpResponse(line.connection), clocks)
    task = EagerTask(work, asyncio.get_running_loop(), lambda error: None)
    asyncio.get_running_loop().call_soon(task.begin)
    return task


def in_a_task(line: Line, outcome: Outcome, client: Client, clocks: list[Deadlines]) -> asyncio.Task[None]:
    return asyncio.create_task(relayed(line, outcome, client, HttpResponse(line.connection), clocks))


def pulled(line: Line, outcome: Outcome, client: Client, clocks: list[Deadlines]) -> asyncio.Task[None]:
    return asyncio.create_task(relayed(line, outcome, client, Read(line.connection), clocks))


async def _settle() -> None:
    for _ in range(8):
        await asyncio.sleep(0)


async def _played(start: Start, acts: Sequence[Act], path: str) -> Outcome:
    loop = asyncio.get_running_loop()
    line, outcome, clocks = Line().feed(CHUNKED), Outcome(), list[Deadlines]()
    outcome.record.path = path
    client = Client(outcome.writes)
    task = start(line, outcome, client, clocks)
    await _settle()
    for act in acts:
        if isinstance(act, float):
            await asyncio.sleep(act)
        elif isinstance(act, bytes):
            loop.call_soon(line.feed, act)
        elif act in CLIENT_ACTS:
            loop.call_soon(client.act, act)
        elif act == "cancel":
            loop.call_soon(task.cancel)
        elif act == "expire":
            loop.call_soon(clocks[0].expire, Phase.DRAIN)
        elif not line.wire.aborted:
            line.wire.abort()
            loop.call_soon(line.connection.connection_lost, None if act == "eof" else ConnectionResetError())
        await _settle()
    await asyncio.sleep(10_000.0)
    assert task.done()
    return outcome


def compared_outcome(acts: Sequence[Act], path: str = "/") -> Outcome:
    """Return the outcome, which must not depend on how the chunks reach the relay."""
    expected = run(_played(pulled, acts, path))
    assert run(_played(in_a_task, acts, path)) == expected
    pushed = run(_played(eagerly, acts, path))
    assert pushed == expected
    return pushed


def chunked_body(*pieces: bytes) -> bytes:
    """Return a body of these chunks, without its end."""
    return b"".join([b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces])


_places = st.lists(st.integers(0, 10**6), max_size=10)
_between = st.one_of(st.sampled_from(CLIENT_ACTS[:2]), st.sampled_from((0.5, 30.0, CLIENT_STALL, 61.0)))
_rarely = st.sampled_from(("gone", *ENDINGS))
_events = st.lists(st.sampled_from((chat(b'"a"'), chat('"天"'.encode()), chat(b'" sky"') * 3, *ODD)), max_size=8)


@given(
    events=_events,
    places=_places,
    between=st.lists(st.tuples(st.integers(0, 14), st.one_of(_between, _between, _between, _rarely)), max_size=5),
    rest=st.sampled_from(
        (b"", END, chunked_body(STOP, USAGE, DONE) + END, chunked_body(STOP + USAGE + DONE), chunked_body(STOP) + END)
    ),
    echo=st.booleans(),
)
@example(events=[], places=[], between=[], rest=chunked_body(STOP, USAGE, DONE) + END, echo=False)
@example(events=[LONG], places=[900, 1800], between=[(2, "full"), (3, 30.0), (4, "room")], rest=END, echo=False)
@examples(400)
def test_pushed_and_pulled_pieces_are_relayed_the_same(
    events: list[bytes], places: list[int], between: list[tuple[int, Act]], rest: bytes, echo: bool
) -> None:
    acts: list[Act] = [chunked_body(BEGIN), *cut(chunked_body(chat(b'"x"'), *events) + rest, places)]
    for place, act in sorted(between, key=lambda found: -found[0]):
        acts.insert(min(place, len(acts)), act)
    compared_outcome(acts, ASKED_ECHO if echo else "/")


@in_virtual_time
async def test_each_read_of_the_vendor_is_written_before_its_callback_returns() -> None:
    line, outcome, clocks = Line().feed(CHUNKED), Outcome(), list[Deadlines]()
    task = eagerly(line, outcome, Client(outcome.writes), clocks)
    await _settle()
    seen: list[int] = []

    def push(piece: bytes) -> None:
        line.feed(piece)
        seen.append(len(outcome.writes))

    for piece in (
        chunked_body(BEGIN),
        chunked_body(chat(b'"x"')),
        chunked_body(chat(b'"y"'), STOP),
        chunked_body(DONE) + END,
    ):
        asyncio.get_running_loop().call_soon(push, piece)
    await _settle()
    assert task.done()
    assert outcome.end == "well"
    assert seen == [1, 2, 3, 4]


@in_virtual_time
async def test_while_the_client_is_full_the_vendor_is_not_read_without_end() -> None:
    piece = chunked_body(chat(b'"%b"' % (b"x" * 8000)))
    line, outcome, clocks = Line().feed(CHUNKED), Outcome(), list[Deadlines]()
    client = Client(outcome.writes)
    task = eagerly(line, outcome, client, clocks)
    await _settle()
    loop = asyncio.get_running_loop()
    loop.call_soon(line.feed, chunked_body(BEGIN))
    await _settle()
    client.act("full")
    for _ in range(9):
        loop.call_soon(line.feed, piece)
    await _settle()
    assert (len(outcome.writes), line.reading) == (2, "resumed")
    loop.call_soon(line.feed, piece)
    await _settle()
    assert line.reading == "paused"
    client.act("room")
    await _settle()
    assert (len(outcome.writes), line.reading) == (3, "resumed")
    task.cancel()
    await _settle()


def kept() -> int:
    return sum([isinstance(found, Relay | OpenStream | HttpResponse) for found in gc.get_objects()])


@in_virtual_time
async def test_a_relay_that_ended_leaves_nothing_for_the_collector() -> None:
    acts: list[Act] = [
        chunked_body(BEGIN),
        chunked_body(chat(b'"x"')),
        chunked_body(chat(b'"x"'), b"data: {broken\n\n"),
        "cancel",
    ]
    starts: list[Start] = [eagerly, in_a_task]
    for start in starts:
        with uncollected():
            before = kept()
            await _played(start, acts, "/")
            assert kept() == before
