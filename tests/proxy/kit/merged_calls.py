"""Several scripted calls merged into one stream, and its reader, in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pytest

from providers.completion import StreamEvent, Usage
from providers.emulation.merge_choices import CallShare, UsageTally
from providers.emulation.plan_calls import PlannedCall
from providers.emulation.post_processing import PostProcessor
from providers.failure import FailureKind, UpstreamError
from providers.unified_request import Operation, TextPrompt, UnifiedRequest
from proxy.background_tasks import Tasks
from proxy.upstream.merge_streams import MergedStream
from proxy.upstream.vendor_stream import OpenStream
from tests.proxy.kit.mark_streams import Body, Marks
from tests.proxy.kit.transport_calls import call as sent_to
from tests.proxy.kit.virtual_time import run

ASKED = UnifiedRequest(Operation.COMPLETIONS, "v/m", TextPrompt(("hi",)), {}, True)
SENT = sent_to("http://v.example.com")


def said(events: Sequence[StreamEvent]) -> list[str]:
    """Return events as words: `0:text`, `0.` for a finish, `#6+2` for usage, `~6+2` for estimated usage."""
    words: list[str] = []
    for event in events:
        if isinstance(event, Usage):
            words.append(f"{'~' if event.estimated else '#'}{event.prompt_tokens}+{event.completion_tokens}")
        else:
            words.append(f"{event.index}:{event.text}" if event.finish_reason is None else f"{event.index}.")
    return words


@dataclass
class Merge:
    """Calls for one choice each, or for their `parts`, and their reader. It pauses for `pause` seconds after each
    chunk. A call in `slow` takes that many seconds to open, or fails.
    """

    bodies: Sequence[Body]
    parts: Sequence[CallShare] = ()
    n: int = 0
    at_once: int = 16
    pause: float = 0.0
    slow: dict[int, float | Exception] = field(default_factory=dict)
    finisher: PostProcessor | None = None
    decoder: Callable[[], Marks] = Marks
    got: list[tuple[float, str]] = field(default_factory=list)
    opened: list[int] = field(default_factory=list)
    time: float = 0.0
    billed: Usage | None = None

    def __post_init__(self) -> None:
        self.parts = self.parts or [CallShare(0, number, 1) for number in range(len(self.bodies))]
        self.n = self.n or sum(part.count for part in self.parts if part.prompt == 0)

    @property
    def words(self) -> list[str]:
        """The words that were read, without their times."""
        return [word for _, word in self.got]

    async def _open(self, call: PlannedCall) -> OpenStream:
        number = list(self.parts).index(call.part)
        self.opened.append(number)
        delay = self.slow.get(number, 0.0)
        if isinstance(delay, Exception):
            raise delay
        await asyncio.sleep(delay)
        return OpenStream(self.bodies[number], self.decoder(), [], False)

    async def _within(self, reader: Callable[[MergedStream], Awaitable[None]]) -> None:
        merged = MergedStream(
            len(self.bodies), self.n, self._open, asyncio.Semaphore(self.at_once), UsageTally(self.parts)
        )
        merged.finisher = self.finisher
        try:
            async with Tasks() as tasks:
                for number, part in enumerate(self.parts):
                    tasks.start(merged.pump(number, PlannedCall(ASKED, SENT, part)))
                await reader(merged)
        finally:
            self.time = asyncio.get_running_loop().time()
            self.billed = merged.billed
            assert len(asyncio.all_tasks()) == 1

    async def _note(self, events: Iterator[StreamEvent]) -> None:
        now = asyncio.get_running_loop().time()
        for event in events:
            self.got.append((now, said([event])[0]))
        await asyncio.sleep(self.pause)

    async def _read(self, merged: MergedStream) -> None:
        await merged.until_content()
        await self._note(merged.first())
        while not merged.over:
            await merged.wait()
            await self._note(merged.take())
        await merged.finish()

    def run(self, reader: Callable[[MergedStream], Awaitable[None]] | None = None) -> list[str]:
        """Read to the end, or as `reader` does, and return the words."""
        run(self._within(reader or self._read))
        return self.words

    def fails(self) -> FailureKind:
        """Read a stream that breaks, and return the kind of its failure."""
        with pytest.raises(UpstreamError) as caught:
            self.run()
        return caught.value.failure.kind
