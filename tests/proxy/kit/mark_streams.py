"""Upstream streams made of single marks: a scripted response and the decoder that reads it.

The words of a body are marks: `+text` is text, `.` ends choice 0 and `.1` choice 1, `#` is usage, `$` the terminator,
`!` an error in-band; anything else, such as `:`, is a comment.
"""

import asyncio
from collections.abc import Iterator, Mapping

from providers.completion import Chunk, StreamEvent, Usage
from providers.failure import Failure, FailureKind, UpstreamError
from proxy.upstream.transport import Take, fail, read_each

USAGE = Usage(6, 2)
CUT = UpstreamError(Failure(FailureKind.TRUNCATED, "The upstream's response broke off."))

Step = bytes | float | UpstreamError
"""A chunk of the body, a delay in seconds, or a failure. After the last step the connection stays open and silent,
unless the last chunk is empty, which is the end of the body.
"""


def often(count: int, *steps: Step) -> list[Step]:
    """Return the steps repeated `count` times."""
    return [*steps] * count


class Body:
    """A scripted upstream response, which counts its releases and closes."""

    def __init__(self, *steps: Step, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        self._steps = list(steps)
        self.status = status
        self.headers: Mapping[str, str] = headers or {}
        self.head = b""
        self.closed = 0
        self.released = 0

    @property
    def left(self) -> int:
        """The number of unread steps."""
        return len(self._steps)

    def take_all(self) -> bytes | None:
        return None

    async def read(self) -> bytes:
        while self._steps:
            if self._steps[0] == b"":
                return b""
            step = self._steps.pop(0)
            if isinstance(step, UpstreamError):
                raise step
            if isinstance(step, bytes):
                return step
            await asyncio.sleep(step)
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    async def each(self, take: Take) -> None:
        await read_each(self, take)

    def release(self) -> None:
        self.released += 1

    def close(self) -> None:
        self.closed += 1


class Marks:
    """A decoder of marks. The stream is complete at `$`, or at its end after any finish."""

    def __init__(self) -> None:
        self.complete = False
        self._ended = False

    def feed(self, data: bytes) -> Iterator[StreamEvent]:
        for mark in data.decode().split():
            match mark[0], mark[1:]:
                case "+", text:
                    yield Chunk(text=text)
                case ".", index:
                    self._ended = True
                    yield Chunk(index=int(index or 0), finish_reason="stop")
                case "#", _:
                    yield USAGE
                case "$", _:
                    self.complete = True
                case "!", _:
                    raise fail(FailureKind.SERVER, "in-band")
                case _:
                    pass

    def finish(self) -> Iterator[StreamEvent]:
        if not self._ended:
            raise fail(FailureKind.TRUNCATED, "no end")
        self.complete = True
        yield from ()
