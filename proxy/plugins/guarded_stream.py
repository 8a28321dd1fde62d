"""A stream that passes through guards. If every guard supports streams, content passes while it arrives. Otherwise the
stream is held back until it has ended.

The client gets no log probabilities in either case, because they contain tokens that a guard may have rewritten. No
event is sent in the vendor's own form: every event is built from its meaning.
"""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from providers.completion import Chunk, StreamEvent, Usage
from providers.emulation.estimate_missing_usage import size_written
from providers.emulation.plan_calls import CallPlan
from providers.failure import FailureKind, UpstreamError
from providers.json_types import JsonValue
from providers.unified_request import UnifiedRequest
from proxy.dispatch.exchange import Exchange
from proxy.errors import GatewayError, PluginError
from proxy.loop_clock import loop_clock
from proxy.plugins.answer_texts import labels_of_chunk, texts_of_usage
from proxy.plugins.guarded_choice import GuardedChoice, HeldBack, HeldChoice, LiveChoice, plain
from proxy.plugins.run_guards import stopped
from proxy.plugins.team_guards import GuardChain
from proxy.upstream.transport import fail
from proxy.upstream.vendor_stream import Stream

MAX_HELD: Final = 8 * 1024 * 1024
"""The maximum characters of a stream that are held back, over all its choices."""

_SILENT: Final = "The upstream sent nothing for too long while its stream was checked."


class GuardedStream:
    """A Stream behind guards. `usage` is the latest usage that the vendor reported; `size` is the size of the
    generated content. Both include refused content."""

    def __init__(
        self, stream: Stream, chain: GuardChain, exchange: Exchange[UnifiedRequest], prepared: CallPlan
    ) -> None:
        self.usage: Usage | None = None
        self.size = 0
        self._stream = stream
        self._chain = chain
        self._record = exchange.record
        self._idle = prepared.target.timeouts.idle
        self._expected = exchange.request.choices
        self._ended = 0
        self._held = HeldBack(MAX_HELD)
        self._choices: dict[int, GuardedChoice] = {}
        self._ready: list[StreamEvent] = []
        self._failed: UpstreamError | GatewayError | None = None
        self._labels: tuple[str | None, str | None] = (None, None)
        self._labels_pass = True
        self._passed_extra: Mapping[str, JsonValue] | None = None
        dropped = ("logprobs",) if "logprobs" in exchange.request.params else ()
        if self._record.guarded is not None:
            names = [guard.name for guard in chain.answer] if chain.streams else []
            self._record.guarded.note(names, dropped)

    async def begin(self) -> None:
        """Read until there is content that may be shown. Read the complete response if a guard needs all of it. Raises
        UpstreamError and GatewayError."""
        await self._pass(self._stream.first())
        while not self._showable() and not self._failed and not self._stream.over and self._ended < self._expected:
            await self._next()
        if self._failed is not None:
            raise self._failed  # nothing has been sent yet, so the client gets an error status

    def _showable(self) -> bool:
        if not self._chain.streams:
            return self._ended >= self._expected
        return any(isinstance(each, Chunk) for each in self._ready)

    async def _next(self) -> None:
        now = loop_clock()
        began = now()
        try:
            async with asyncio.timeout(self._idle):
                await self._stream.wait()
        except TimeoutError:
            raise fail(FailureKind.TIMEOUT, _SILENT) from None
        finally:
            if self._record.receipt is not None and self._record.first_content is None:
                self._record.waits().held += now() - began
        await self._pass(self._stream.take())

    async def _pass(self, events: Iterator[StreamEvent]) -> None:
        """Pass events through the guards, up to an event that fails."""
        try:
            for event in events:
                if isinstance(event, Usage):
                    self.usage = event
                    self._ready.append(await self._plain_usage(event))
                    continue
                self.size += size_written(event)
                self._ended += event.finish_reason is not None
                chunk = plain(event)
                if (chunk.system_fingerprint, chunk.service_tier) != self._labels:
                    await self._judge_labels(chunk)
                if not self._labels_pass:
                    chunk = replace(chunk, system_fingerprint=None, service_tier=None)
                self._ready += await self._choice(event.index).add(chunk)
        except (UpstreamError, GatewayError) as error:
            self._failed = stopped(self._record, error) if isinstance(error, PluginError) else error

    async def _judge_labels(self, chunk: Chunk) -> None:
        """Record whether guards leave `system_fingerprint` and `service_tier` of a chunk unchanged."""
        texts = labels_of_chunk(chunk)
        self._labels_pass = not texts or await self._chain.unchanged(texts, self._record, heavy=False)
        self._labels = chunk.system_fingerprint, chunk.service_tier

    async def _plain_usage(self, usage: Usage) -> Usage:
        """Return a usage, without the vendor's own fields if a guard changes them."""
        if usage.extra is None or usage.extra == self._passed_extra:
            return usage
        texts = texts_of_usage(usage)
        if texts and not await self._chain.unchanged(texts, self._record, heavy=False):
            return replace(usage, extra=None)
        self._passed_extra = usage.extra
        return usage

    def _settled_usage(self, usage: Usage) -> Usage:
        """Return a usage that is shown without a check by guards. It omits the fields that guards have not seen."""
        return usage if usage.extra in (None, self._passed_extra) else replace(usage, extra=None)

    def _choice(self, index: int) -> GuardedChoice:
        found = self._choices.get(index)
        if found is None:
            made = LiveChoice if self._chain.streams else HeldChoice
            found = self._choices[index] = made(self._chain, self._record, index, self._held)
        return found

    # The methods of Stream
    # ------------------------------------------------------------------------------------------------

    @property
    def over(self) -> bool:
        """Whether the stream is over and no error is pending."""
        return self._stream.over and self._failed is None

    def first(self) -> Iterator[StreamEvent]:
        return self._take_ready()

    async def wait(self) -> None:
        """Wait for events and pass them through the guards. Also raises GatewayError."""
        if self._failed is not None:
            raise self._failed
        await self._stream.wait()
        await self._pass(self._stream.take())

    def take(self) -> Iterator[StreamEvent]:
        return self._take_ready()

    def conclude(self) -> Iterator[StreamEvent]:
        """Yield the usage only. Other events after the end of a choice have not passed the guards."""
        return (self._settled_usage(event) for event in self._stream.conclude() if isinstance(event, Usage))

    async def finish(self) -> None:
        await self._stream.finish()

    def close(self) -> None:
        self._stream.close()

    def _take_ready(self) -> Iterator[StreamEvent]:
        ready, self._ready = self._ready, []
        return iter(ready)
