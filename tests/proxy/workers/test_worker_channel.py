"""Requests get their responses over a real socket pair, and either end notices the end of the other."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.workers.worker_channel import MAX_FRAME, ChannelClient, ChannelHandlers, PeerGone, receive, respond, send
from tests.support.looped import looped

pytestmark = pytest.mark.smoke


@dataclass(frozen=True, slots=True)
class ChannelPair:
    """The supervisor's client, and the worker's reader and writer."""

    channel: ChannelClient
    told: list[bytes]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


@asynccontextmanager
async def pair(answers: ChannelHandlers | None = None) -> AsyncIterator[ChannelPair]:
    here, there = socket.socketpair()
    told: list[bytes] = []
    channel = ChannelClient(*await asyncio.open_unix_connection(sock=here), lambda name, body: told.append(body))
    reader, writer = await asyncio.open_unix_connection(sock=there)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(channel.run())
        if answers is not None:
            group.create_task(respond(reader, writer, answers))
        yield ChannelPair(channel, told, reader, writer)
        writer.close()
        await running


async def echo(body: bytes) -> bytes:
    return body


@looped("body", [b"", b"one\ntwo\n", b"\0" * 3_000_000])
async def test_an_answer_comes_back_whole(body: bytes) -> None:
    async with pair({"echo": echo}) as ends:
        assert await ends.channel.request("echo", 5.0, body) == body


async def test_questions_are_answered_beside_each_other() -> None:
    gate = asyncio.Event()

    async def wait(body: bytes) -> bytes:
        await gate.wait()
        return body

    async with pair({"wait": wait, "echo": echo}) as ends:
        slow = asyncio.create_task(ends.channel.request("wait", 5.0, b"slow"))
        assert await ends.channel.request("echo", 5.0, b"quick") == b"quick"
        assert not slow.done()
        gate.set()
        assert await slow == b"slow"


async def test_who_does_not_answer_in_time_is_as_good_as_gone_and_a_late_answer_nobodys() -> None:
    async with pair() as ends:
        with pytest.raises(PeerGone, match=r"no response to 'status' within 0.01 s"):
            await ends.channel.request("status", 0.01)
        number, word, _ = await receive(ends.reader)
        send(ends.writer, number, word, b"late")
        asking = asyncio.create_task(ends.channel.request("status", 5.0))
        number, word, _ = await receive(ends.reader)
        send(ends.writer, number, word, b"in time")
        assert await asking == b"in time"


async def test_who_waits_when_the_worker_ends_is_told_so() -> None:
    async with pair() as ends:
        asking = asyncio.create_task(ends.channel.request("status", 5.0))
        await receive(ends.reader)
        ends.writer.close()
        with pytest.raises(PeerGone):
            await asking
    with pytest.raises(PeerGone, match="the worker is gone"):
        await ends.channel.request("status", 5.0)
    ends.channel.notify("stop")


async def test_what_comes_unasked_is_passed_on_in_order() -> None:
    async with pair() as ends:
        send(ends.writer, 0, "counted", b"first")
        send(ends.writer, 0, "counted", b"last")
    assert ends.told == [b"first", b"last"]


async def test_an_answer_to_what_was_only_told_is_nobodys() -> None:
    told: list[bytes] = []

    async def note(body: bytes) -> bytes:
        told.append(body)
        return b""

    async with pair({"note": note, "echo": echo}) as ends:
        ends.channel.notify("note")
        assert await ends.channel.request("echo", 5.0, b"after") == b"after"
    assert told == [b""]


async def test_answering_ends_with_the_supervisor() -> None:
    here, there = socket.socketpair()
    reader, writer = await asyncio.open_unix_connection(sock=there)
    here.close()
    await respond(reader, writer, {})
    writer.close()


async def received_frame(data: bytes) -> tuple[int, str, bytes]:
    """Return the frame of these bytes, at the end of the input."""
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    reader.feed_eof()
    return await receive(reader)


async def test_a_frame_too_large_to_be_one_ends_the_talk() -> None:
    with pytest.raises(PeerGone, match=f"a frame of {MAX_FRAME + 1} bytes"):
        await received_frame(struct.pack("!II", MAX_FRAME + 1, 1) + b"x")


class Sink:
    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes) -> None:
        self.data += data


@given(number=st.integers(0, 2**32 - 1), word=st.text("abcdefghij", max_size=10), body=st.binary(max_size=200))
def test_a_frame_is_read_as_it_was_sent_and_no_part_of_it_is_one(number: int, word: str, body: bytes) -> None:
    sink = Sink()
    send(sink, number, word, body)  # type: ignore[arg-type]  # all that it uses of a writer
    assert asyncio.run(received_frame(sink.data)) == (number, word, body)
    for cut in range(len(sink.data)):
        with pytest.raises(PeerGone):
            asyncio.run(received_frame(sink.data[:cut]))


FRAMES: Mapping[str, bytes] = {"nothing": b"", "half a head": b"\0\0\0", "no content": struct.pack("!II", 4, 1)}


@looped("data", FRAMES.values(), ids=FRAMES)
async def test_what_breaks_off_is_no_frame(data: bytes) -> None:
    with pytest.raises(PeerGone, match="the connection has ended"):
        await received_frame(data)
