"""Questions and answers between a supervisor and one of its workers, over a socket pair. Never what they are about.

A frame is its length and the question's number, four bytes each in network order, then a word and a line feed, then a
body. An answer has its question's number; what nobody asked for has 0. Either end knows that the other is gone when the
stream ends.
"""

import asyncio
import struct
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

MAX_FRAME: Final = 64 * 2**20
"""Bytes. A table with all that it includes may have some MiB, as may the metrics of 5,000 label sets."""

_HEAD: Final = struct.Struct("!II")

Answers = Mapping[str, Callable[[bytes], Awaitable[bytes]]]
"""What answers a question, by its word."""


class Gone(Exception):
    """The other end does not answer, or not in time."""


async def receive(reader: asyncio.StreamReader) -> tuple[int, str, bytes]:
    """The next frame: number, word and body. Raises Gone when there is none any more."""
    try:
        length, number = _HEAD.unpack(await reader.readexactly(_HEAD.size))
        if length > MAX_FRAME:
            raise Gone(f"a frame of {length} bytes")
        word, _, body = (await reader.readexactly(length)).partition(b"\n")
    except (asyncio.IncompleteReadError, OSError):
        raise Gone("the connection has ended") from None
    return number, word.decode(), body


def send(writer: asyncio.StreamWriter, number: int, word: str, body: bytes = b"") -> None:
    """Send a frame; how fast it is read is the reader's concern, since questions are few."""
    content = word.encode() + b"\n" + body
    writer.write(_HEAD.pack(len(content), number) + content)


class Asker:
    """The supervisor's end. `run` has to run for answers to come; `told` receives what comes unasked."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, told: Callable[[bytes], None]
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._asked = 0
        self._told = told

    async def run(self) -> None:
        """Take answers in until the worker is gone; who still waits then gets Gone."""
        try:
            while True:
                self._take(*await receive(self._reader))
        except Gone as gone:
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_exception(gone)
        finally:
            self._writer.close()

    def _take(self, number: int, word: str, body: bytes) -> None:
        waiting = self._waiting.get(number)
        if number == 0:
            self._told(body)
        elif waiting is not None and not waiting.done():  # nobody waits for an answer that was only told
            waiting.set_result(body)

    def tell(self, word: str) -> None:
        """Ask, and wait for no answer."""
        if not self._writer.is_closing():
            send(self._writer, self._number(), word)

    async def ask(self, word: str, seconds: float, body: bytes = b"") -> bytes:
        """The answer to a question. Raises Gone without one in time."""
        if self._writer.is_closing():
            raise Gone("the worker is gone")
        number = self._number()
        waiting: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting[number] = waiting
        send(self._writer, number, word, body)
        try:
            async with asyncio.timeout(seconds):
                return await waiting
        except TimeoutError:
            raise Gone(f"no answer to '{word}' within {seconds:g} s") from None
        finally:
            del self._waiting[number]

    def _number(self) -> int:
        self._asked = self._asked % (2**32 - 1) + 1
        return self._asked


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answers: Answers) -> None:
    """The worker's end: answer each question, several at a time, until the supervisor is gone."""

    async def reply(number: int, word: str, body: bytes) -> None:
        send(writer, number, word, await answers[word](body))

    async with asyncio.TaskGroup() as group:
        while True:
            try:
                frame = await receive(reader)
            except Gone:
                return
            group.create_task(reply(*frame))
