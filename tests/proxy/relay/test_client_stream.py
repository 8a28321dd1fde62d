"""The bytes that clients get during silence, in virtual time: every vendor's wire format interrupted by silence,
relayed to every surface."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from types import MappingProxyType
from typing import Final

import pytest
from aiohttp import HttpVersion11

from proxy.deadlines import Deadlines
from proxy.listener.buffered_response import MAX_WRITE_BYTES
from proxy.listener.streamed_response import StreamedResponse
from proxy.relay.client_stream import BLANK, ClientStream, comment
from proxy.relay.relay_to_client import Relay
from proxy.request_record import RequestRecord
from proxy.surfaces.registry import SURFACES
from proxy.surfaces.surface import KEEP_ALIVE, AnswerFacts, Surface
from proxy.timers import TimerWheel, loop_alarms
from proxy.upstream.read_answer import until_content
from proxy.upstream.vendor_stream import OpenStream
from tests.bench.dialects import STREAMS
from tests.bench.streams import words
from tests.proxy.kit.mark_streams import Body, Step
from tests.proxy.kit.virtual_time import run
from tests.proxy.relay.test_pings import surfaces_of
from tests.support.looped import looped

EVERY: Final = 2.0
SHORT: Final = 0.4
SILENCE: Final = 1.0
"""Seconds of silence with `SHORT` between keep-alives; shorter than the wait for data after a response."""


class Wire:
    """A client's connection: the bytes written to it, and whether it reads."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.at: list[float] = []
        self.closing = self._paused = False
        self.reads = asyncio.Event()
        self.transport: Wire | None = self

    def is_closing(self) -> bool:
        return self.closing

    def write(self, data: bytes) -> None:
        self.written.append(bytes(data))
        self.at.append(asyncio.get_running_loop().time())

    async def _drain_helper(self) -> None:
        await self.reads.wait()

    def note_progress(self) -> None:
        pass

    def stop_reading(self) -> None:
        self._paused = True
        self.reads.clear()

    def read_on(self) -> None:
        self._paused = False
        self.reads.set()

    def body(self) -> bytes:
        """Return the body, without the head and the chunked framing."""
        _, _, rest = b"".join(self.written).partition(b"\r\n\r\n")
        pieces = []
        while rest:
            size, _, rest = rest.partition(b"\r\n")
            pieces.append(rest[: int(size, 16)])
            rest = rest[int(size, 16) + 2 :]
        return b"".join(pieces)


class Http:
    """A client's request, with the attributes that a response uses."""

    version, keep_alive, takes_comments = HttpVersion11, True, False
    cors: Mapping[str, str] = MappingProxyType({})

    def __init__(self, wire: Wire) -> None:
        self._protocol = wire
        self.sent = 0

    def count_sent(self, size: int) -> None:
        self.sent += size


@dataclass(slots=True)
class Client:
    """A client that waits, and the bytes that it got."""

    every: float | None = EVERY
    filler: bytes = KEEP_ALIVE
    wire: Wire = field(default_factory=Wire)
    record: RequestRecord = field(default_factory=lambda: RequestRecord("id", 0.0, "openai", "/", stream=True))
    stream: ClientStream = field(init=False)

    def __post_init__(self) -> None:
        self.stream = ClientStream(self.opened, self.record, TimerWheel(loop_alarms()), self.filler, self.every)

    def opened(self, lines: str) -> StreamedResponse:
        response = StreamedResponse({}, f"x: 1\r\n{lines}", whole_events=True)
        response.begin(Http(self.wire))  # type: ignore[arg-type]  # the attributes that a response reads
        return response


@dataclass(slots=True)
class FakeSender:
    """A sender of which only the time is read."""

    sent_at: float


def at_times(client: Client) -> list[tuple[float, bytes]]:
    return list(zip(client.wire.at, client.wire.written, strict=True))


HEAD: Final = b"HTTP/1.1 200 OK\r\nx: 1\r\n"
COMMENT_CHUNK: Final = b"e\r\n: keep-alive\n\n\r\n"


@pytest.mark.smoke
def test_silence_brings_the_head_and_comments_and_then_what_the_head_could_not_say() -> None:
    async def waits() -> None:
        client = Client()
        client.stream.start()
        await asyncio.sleep(1.9)
        assert (client.wire.written, client.stream.response, client.record.status) == ([], None, 0)
        await asyncio.sleep(3.1)
        assert client.wire.at == [2.0, 4.0]
        first, second = client.wire.written
        assert (first.startswith(HEAD), first.endswith(COMMENT_CHUNK), second) == (True, True, COMMENT_CHUNK)
        assert (client.record.status, client.record.keep_alives) == (200, 2)
        response = client.stream.begin("x-dragoman-deployment: a/m/eu\r\nx-dragoman-attempts: 2\r\n")
        response.send(b"data: 1\n\n")
        client.stream.stop()
        await response.write_eof(b"data: [DONE]\n\n")
        late = b": x-dragoman-deployment: a/m/eu\n: x-dragoman-attempts: 2\n\n"
        assert client.wire.body() == KEEP_ALIVE * 2 + late + b"data: 1\n\ndata: [DONE]\n\n"
        await asyncio.sleep(10)
        assert len(client.wire.written) == 4

    run(waits())


@pytest.mark.smoke
def test_a_response_that_is_not_late_has_everything_in_its_head() -> None:
    async def waits() -> None:
        client = Client()
        client.stream.start()
        await asyncio.sleep(1.9)
        response = client.stream.begin("y: 2\r\n")
        client.stream.follow(FakeSender(1.9), EVERY)
        response.send(b"data: 1\n\n")
        (written,) = client.wire.written
        assert written.startswith(HEAD + b"y: 2\r\n")
        assert written.endswith(b"9\r\ndata: 1\n\n\r\n")
        client.stream.stop()

    run(waits())


@pytest.mark.smoke
@looped("every", [None, 1.0, 5.0])
def test_the_deployment_that_answers_says_how_long_a_stream_may_be_silent(every: float | None) -> None:
    async def waits() -> None:
        client, sender = Client(), FakeSender(1.0)
        client.stream.start()
        await asyncio.sleep(1.0)
        client.stream.begin("").send(b"data: 1\n\n")
        client.stream.follow(sender, every)
        await asyncio.sleep(2.0)
        sender.sent_at = 3.0
        await asyncio.sleep(9.5)
        client.stream.stop()
        expected = {None: [], 1.0: [2.0, 3.0, *map(float, range(4, 13))], 5.0: [8.125]}[every]
        # The keep-alive due at 3.0 was sent before the sender's own bytes.
        assert client.wire.at[1:] == expected

    run(waits())


@pytest.mark.smoke
def test_a_client_that_does_not_read_gets_no_more_and_one_that_has_left_nothing() -> None:
    async def waits() -> None:
        client = Client()
        client.stream.start()
        await asyncio.sleep(2.5)
        client.wire.stop_reading()
        await asyncio.sleep(600)
        assert (len(client.wire.written), client.record.keep_alives) == (1, 1)
        client.wire.read_on()
        await asyncio.sleep(2)
        assert len(client.wire.written) == 2
        client.wire.transport = None
        await asyncio.sleep(600)
        assert len(client.wire.written) == 2
        assert len(loop_alarms()) == 0

    run(waits())


@pytest.mark.smoke
@looped("paused_after", [0, 1, 2])
def test_nothing_comes_within_a_long_event(paused_after: int) -> None:
    async def waits() -> None:
        client = Client()
        client.stream.start()
        response = client.stream.begin("")
        sender = FakeSender(0.0)
        client.stream.follow(sender, EVERY)
        event = b"data: " + b"x" * (2 * MAX_WRITE_BYTES + 100) + b"\n\n"
        for _ in range(paused_after):
            response.send(b"data: 1\n\n")
        client.wire.stop_reading()
        writing = asyncio.create_task(response.write(event))
        await asyncio.sleep(EVERY + 0.1)
        client.wire._paused = False  # as if it read in the moment of the alarm
        await asyncio.sleep(5 * EVERY)
        client.wire.read_on()
        await writing
        await asyncio.sleep(EVERY)
        client.stream.stop()
        body = client.wire.body()
        assert body == b"data: 1\n\n" * paused_after + event + KEEP_ALIVE
        assert client.wire.transport is not None

    run(waits())


@pytest.mark.smoke
@pytest.mark.parametrize("lines", ["", "\r\n"])
def test_nothing_to_say_is_no_comment(lines: str) -> None:
    assert comment(lines) == b""


@pytest.mark.smoke
def test_white_space_before_json_is_skipped_by_its_parser() -> None:
    async def waits() -> None:
        client = Client(filler=BLANK)
        client.stream.start()
        await asyncio.sleep(5)
        client.stream.stop()
        assert client.stream.response is not None
        await client.stream.response.write_eof(b'{"a":1}')
        assert client.wire.body() == b'\n\n{"a":1}'

    run(waits())


# Cut anywhere ---------------------------------------------------------------------------------------------------------


async def _relayed(name: str, surface: Surface, steps: list[Step], every: float | None) -> tuple[bytes, list[bytes]]:
    """Return the body that a client gets of a stream, and each write of it."""
    stream = STREAMS[name]
    sent = stream.sent()
    client = Client(every, surface.keep_alive)
    asked = replace(stream.asked, stream=True)
    body = Body(*steps, b"")
    with Deadlines(6000.0) as clock:
        client.stream.start()
        decoder = sent.target.dialect.stream(sent)
        opened = OpenStream(body, decoder, *await until_content(body, decoder))
        clock.commit(6000.0, 6000.0, 6000.0)
        renderer = surface.renderer(asked, AnswerFacts("1", 1_795_000_000, "v/m"))
        response = client.stream.begin("x-dragoman-attempts: 1\r\n")
        relay = Relay(opened, renderer, response.send, clock, client.record, asked)
        client.stream.follow(relay, every)
        await relay.run()
        client.stream.stop()
        await response.write_eof(relay.held + renderer.end())
    return client.wire.body(), client.wire.written


def silent_at(data: bytes, places: list[int]) -> Iterator[list[Step]]:
    """Yield a stream with silence at each of these places, and one with silence at the first half of them: the wait
    for data after a response is not repeated so often."""
    for place in places:
        yield [SILENCE, data[:place], SILENCE, data[place:]] if place else [SILENCE, data]
    early = places[: len(places) // 2]
    yield [step for begin, end in pairwise([0, *early, len(data)]) for step in (SILENCE, data[begin:end]) if step]


ROWS: Final = {f"{name}, {surface.name}": (name, surface) for name in STREAMS for surface in surfaces_of(name)}


def places_of(data: bytes) -> list[int]:
    """Return the places to cut a stream: some places everywhere, and each place around the line ends of an event in
    the middle."""
    middle = data.find(b"\n", len(data) // 2)
    around = range(max(0, middle - 2), min(len(data), middle + 4))
    return sorted({*range(0, len(data), max(1, len(data) // 16)), *around})


@pytest.mark.thorough
@looped("row", ROWS)
def test_keep_alives_stand_between_events_wherever_the_vendor_falls_silent(row: str) -> None:
    name, surface = ROWS[row]
    data = b"".join(STREAMS[name].write(words(3)))
    whole, _ = run(_relayed(name, surface, [data], None))
    filler, late = surface.keep_alive, comment("x-dragoman-attempts: 1")
    for steps in silent_at(data, places_of(data)):
        body, writes = run(_relayed(name, surface, steps, SHORT))
        assert body.startswith(filler)
        assert body.replace(filler, b"").replace(late, b"") == whole.replace(filler, b"")
        assert body.count(late) == 1
        # The events between two keep-alives are complete.
        assert all(part == b"" or part.endswith(b"\n\n") for part in body.split(filler))
        assert len(writes) >= 2


@pytest.mark.smoke
def test_every_surface_has_its_sign_of_life() -> None:
    ping = b'event: ping\ndata: {"type":"ping"}\n\n'
    found = {surface.name: surface.keep_alive for surface in SURFACES}
    assert found == {surface.name: ping if surface.name == "anthropic" else KEEP_ALIVE for surface in SURFACES}
