"""Relays a committed stream to the client: reads the upstream's events, renders them as frames of the surface, and
writes the frames of each chunk of the transport at once.

While the client reads, a chunk is relayed by a plain call within the callback that received it, and the coroutine
waits. It resumes if the relay has to wait for the client or the vendor, at the end of the stream, and after a failure.
The clock is read twice for a chunk: when it has arrived and when it has been written.

Nearly every chunk is one event that differs from the previous one only in a delta of text, of reasoning or of a call's
arguments. `Relay._take` relays these chunks: it compares the constants around the delta in the vendor's event, and puts
the delta between the constants of the client's events. If hundreds of streams take turns, the processor's caches are
cold. Each called function and each touched object then costs a chunk 0.3 to 0.5 us, more than the work itself. So
`_take` is one function, which counts in the relay's own attributes. All other chunks take the ordinary path, which
produces the same bytes and the same record.
"""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain

from providers.completion import Chunk, StreamEvent, TextRun, Usage, has_content
from providers.dialect import RunDecoder
from providers.emulation.estimate_missing_usage import BYTES_PER_TOKEN, estimate_usage, size_of, size_written
from providers.failure import FailureKind, UpstreamError
from providers.framing.text_frames import PLAIN, Around, text_of_literal, without_first
from providers.unified_request import UnifiedRequest
from proxy.deadlines import Deadlines
from proxy.loop_clock import loop_clock
from proxy.relay.long_parts import is_long
from proxy.request_outcomes import STALL
from proxy.request_record import RequestRecord
from proxy.surfaces.surface import FramingRenderer, LiteralWriter, Renderer
from proxy.upstream.transport import Take, fail
from proxy.upstream.vendor_stream import Aside, Parts, Stream, aside_of, first_parts, hand_each, read_now, read_tail

OWN_WORK = 0.005
"""The most seconds of a write that count as the gateway's own work. A longer write waits for the client to read."""

Write = Callable[[bytes], bool | Awaitable[object]]
"""Sends bytes to the client. Returns whether they were sent, or an awaitable if the client does not read now. The call
and the awaitable raise ConnectionError if the client is gone."""


@dataclass(slots=True, eq=False)
class Relay:
    """Relays one stream to the client that sent `request`.

    `held` has the frames of the chunk that completed the response, including its usage. They are sent with the
    renderer's end in one write, since a write takes as much CPU time in the kernel as the rest of a stream's end takes
    in user mode. `size` is the bytes of text, reasoning and calls so far, `_reported_at` is `size` at the last usage.
    `prompt_tokens` is the estimate of a heavy request, `None` for other requests. `aside` renders in a thread the
    frames of long events, and the frames at the end of a long response, which repeat its text in some APIs; `_rest` has
    the long part and the parts after it. `note_end` gets each choice's finish reason. `_content` is set if content has
    arrived since the deadlines were last renewed. `sent_at` is when bytes were last sent.

    `_short` has the constants that `_take` compares and writes while the last chunk was a run: the bytes before and
    after a text in the vendor's events, and around it in the client's events. `_form` is the vendor's part of them, as
    the decoder returned it. `_texts`, `_length`, `_escapes`, `_beyond` and `_waited` are counts of `_take` that
    `_settle` has not yet added elsewhere. `_counts` is set if the run is text, whose length the decoder counts.
    """

    stream: Stream
    renderer: Renderer
    write: Write
    deadlines: Deadlines
    record: RequestRecord
    request: UnifiedRequest
    prompt_tokens: int | None = None
    aside: Aside | None = None
    note_end: Callable[[str], None] | None = None
    held: bytes = b""
    _expected: int = field(init=False)
    _finished: int = 0
    size: int = 0
    sent_at: float = field(init=False)
    _reported_at: int = 0
    _idle_since: float = 0.0
    _unread: Awaitable[object] | None = None
    _broken: UpstreamError | None = None
    _rest: Parts | None = None
    _content: bool = False
    _short: tuple[int, bytes, bytes | None, bytes, tuple[bytes, ...], LiteralWriter | None, slice] | None = None
    _form: Around | None = None
    _counts: bool = True
    _texts: int = 0
    _length: int = 0
    _escapes: int = 0
    _beyond: int = 0
    _waited: float = 0.0
    _decoder: RunDecoder | None = None
    _framing: FramingRenderer | None = None
    _ordinary: Take | None = None
    _now: Callable[[], float] = field(default_factory=loop_clock)

    def __post_init__(self) -> None:
        self._expected = self.request.choices
        self.sent_at = self._now()

    async def run(self) -> None:
        """Write every frame except `held` and the renderer's end, which the caller writes.

        Returns when the stream has ended normally. Raises UpstreamError if it broke, after everything before the break
        has been written. Raises ConnectionError if the client is gone. In each case the record has a usage, which is
        estimated from the generated text if the vendor sent no usage for it.
        """
        stream, record, deadlines = self.stream, self.record, self.deadlines
        try:
            self._idle_since = self._now()
            await self._emit(first_parts(stream))
            self._idle_since = self._renew()
            while not stream.over and self._finished < self._expected:
                try:
                    await hand_each(stream, self._piece_came, self._run_came, self._shorten)
                except BaseException:
                    record.note_waited(self._now() - self._idle_since)
                    raise
                finally:
                    self._settle()
                    self._ordinary = None  # holds this object
                if self._unread is not None:
                    await self._until_read()
                    self._idle_since = self._renew()
                self._raise_broken()
                await self._emit_rest()
                if (aside := aside_of(stream)) is not None:
                    await self._emit_aside(aside, stream.take)
            if not stream.over:
                deadlines.pause()
                await read_tail(stream, self._wait, self._emit)
            if self._finished < self._expected:
                message = f"The upstream finished {self._finished} of {self._expected} choices."
                raise fail(FailureKind.TRUNCATED, message)
            if record.usage is None:
                await self._emit((self._estimate(),))
        except BaseException:
            record.usage = self._early_usage()
            raise

    def _early_usage(self) -> Usage:
        """Return the usage of a stream that broke: the last usage that was reported, and an estimate of the text after
        it."""
        usage, more = self.record.usage, self.size - self._reported_at
        if usage is None or more <= 0:
            return usage or self._estimate()
        completion = usage.completion_tokens + -(-more // BYTES_PER_TOKEN)
        return replace(usage, completion_tokens=completion, estimated=True)

    def _estimate(self) -> Usage:
        if self.prompt_tokens is None:
            return estimate_usage(self.request, self.size)
        return Usage(self.prompt_tokens, -(-self.size // BYTES_PER_TOKEN), estimated=True)

    async def _wait(self) -> None:
        before = self._now()
        try:
            await self.stream.wait()
        finally:
            self.record.waited += self._now() - before

    async def _emit(self, parts: Parts) -> None:
        """Write the frames of parts of the stream, and wait until the client reads."""
        self._pass_on(parts)
        await self._until_read()
        self._raise_broken()
        await self._emit_rest()

    async def _emit_rest(self) -> None:
        """Write the frames of the parts that `_until_long` left to `_rest`."""
        rest, self._rest = self._rest, None
        if rest is not None and self.aside is not None:
            await self._emit_aside(self.aside, lambda: rest)

    async def _emit_aside(self, aside: Aside, take: Callable[[], Parts]) -> None:
        """Write frames as `_emit` does, but read and render the events in a thread. Nothing else uses this object
        meanwhile."""
        self.record.note_waited(self._now() - self._idle_since)
        self.deadlines.pause()
        self._send(await aside(lambda: self._frames(take())))
        await self._until_read()
        self._idle_since = self._renew()
        self._raise_broken()

    def _shorten(self, decoder: RunDecoder, ordinary: Take) -> Take:
        """Return the function that takes the chunks of a stream: `_take`, if the renderer allows it."""
        if not isinstance(self.renderer, FramingRenderer):
            return ordinary
        self._decoder, self._framing, self._ordinary = decoder, self.renderer, ordinary
        return self._take

    def _take(self, piece: bytes) -> bool:
        """Relay a chunk, and return whether the next one may come. The module's docstring explains how."""
        if self._short is not None:
            most, opening, middle, closing, around, write, hole = self._short
            if len(piece) < most and piece.startswith(opening) and piece.endswith(closing):
                # If the constants overlap, the text is empty.
                text = plain = piece[hole]
                if middle is not None:
                    text, found, padding = text.partition(middle)
                    plain = text + padding if found else b""
                if text and plain and (not plain.translate(None, PLAIN) or (text := self._odd(text, plain))):
                    event = text.join(around) if write is None else write(text)
                    if not event:
                        return self._taken_back(text, piece)
                    now = self._now
                    waited = now() - self._idle_since
                    self._waited += waited
                    if waited > STALL:
                        self.record.note_stall(waited)
                    self._texts += 1
                    self._length += len(text)
                    sent = self.write(event)
                    self._idle_since = self.sent_at = self.deadlines.content_at = now()
                    if isinstance(sent, bool):
                        return True
                    self._unread = sent
                    return False
        self._settle()
        return self._ordinary is not None and self._ordinary(piece)

    def _odd(self, text: bytes, followed: bytes) -> bytes:
        """Return the literal in the client's events for a text that is not plain; empty if it is not one text, or if
        the bytes that follow it are not plain. Add to `_escapes` the literal's length less the text's length in UTF-8,
        and to `_beyond` the length in UTF-8 less the number of characters."""
        if self._framing is None or followed[len(text) :].translate(None, PLAIN):
            return b""
        said = text_of_literal(text)
        if said is None:
            return b""
        literal, size = self._framing.literal(said, text), size_of(said)
        self._escapes += len(literal) - size
        self._beyond += size - len(said)
        return literal

    def _taken_back(self, literal: bytes, piece: bytes) -> bool:
        """Subtract a literal from `_escapes` and `_beyond`, and relay its chunk on the ordinary path."""
        said = text_of_literal(literal) or ""
        size = size_of(said)
        self._escapes -= len(literal) - size
        self._beyond -= size - len(said)
        self._settle()
        return self._ordinary is not None and self._ordinary(piece)

    def _settle(self) -> None:
        """Add the counts of `_take` to the counts of the ordinary path, in the decoder and the record."""
        self.record.waited += self._waited
        self._waited = 0.0
        if self._texts and self._decoder is not None:
            size = self._length - self._escapes
            self.size += size
            if self._counts:
                self._decoder.note_run(size - self._beyond)
            self.record.chunks += self._texts
            self._texts = self._length = self._escapes = self._beyond = 0

    def _piece_came(self, parts: Parts) -> bool:
        """Relay a chunk, and return whether the next one may come. It may not if the client does not read, the stream
        has broken, or every choice has ended."""
        self._short = self._form = None
        self.record.note_waited(self._now() - self._idle_since)
        self._pass_on(parts)
        self._idle_since = self._renew()
        going = self._unread is None and self._broken is None and self._rest is None
        return going and self._finished < self._expected

    def _renew(self) -> float:
        """Renew the deadlines after data from the upstream, the deadline of content only if there was content: vendors
        send pings, empty deltas and usage while they generate nothing. Return the time."""
        came, self._content = self._content, False
        return self.deadlines.advance() if came else self.deadlines.touch()

    def _run_came(self, run: TextRun) -> bool:
        """Do as `_piece_came` for a run. Nearly all chunks are runs. Within a run, no choice ends and no stream
        breaks."""
        came = self._now()
        frames = self.renderer.run(run)
        if frames is None:
            return self._piece_came((run,))
        record = self.record
        waited = came - self._idle_since
        record.waited += waited
        if waited > STALL:
            record.note_stall(waited)
        record.chunks += len(run.literals)
        self.size += run.size
        sent = self.write(frames)
        self._idle_since = self.sent_at = self.deadlines.advance()
        form = None if self._decoder is None else self._decoder.run_frame()
        if form is not self._form:
            self._learn(form, run)
        if isinstance(sent, bool):
            return True
        self._unread = sent
        return False

    def _learn(self, form: Around | None, run: TextRun) -> None:
        """Let `_take` relay the next chunks that are like this run, if that is possible."""
        self._form, self._counts = form, run.part == "text"
        self._short, framing = None, self._framing
        if form is None or framing is None:
            return
        around = framing.around(run)
        write = framing.literal_writer(run) if around is None else None
        if around is not None or write is not None:
            # Two events are longer than this, so a large chunk is not compared in vain.
            most, hole = 2 * len(form[0] + form[2]), slice(len(form[0]), -len(form[2]))
            self._short = most, *form, around or (), write, hole

    async def _until_read(self) -> None:
        """Wait until the client reads again. The upstream's silence does not count meanwhile."""
        sent, self._unread = self._unread, None
        if sent is None:
            return
        self.deadlines.pause()
        before = self._now()
        await sent
        self.sent_at = self._now()
        took = self.sent_at - before
        if took > OWN_WORK:
            self.record.client_waited += took

    def _raise_broken(self) -> None:
        broken, self._broken = self._broken, None
        if broken is not None:
            try:
                raise broken
            finally:
                del broken  # its traceback holds this frame, and frames that hold the upstream's data

    def _pass_on(self, parts: Parts) -> None:
        """Write the frames of parts of the stream at once, up to the point at which it broke."""
        self._send(self._frames(parts if self.aside is None else self._until_long(parts)))

    def _until_long(self, parts: Parts) -> Parts:
        """Yield the parts before the first one whose frames are long, and store the others in `_rest`."""
        every = iter(parts)
        for part in every:
            if isinstance(part, Usage) or not is_long(part, self.size):
                yield part
            else:
                self._rest = read_now(chain((part,), every))
                return

    def _frames(self, parts: Parts) -> bytes:
        """Return the frames of parts. If the stream breaks, return the frames up to that point, and set `_broken`."""
        record = self.record
        frames: list[bytes] = []
        try:
            for part in parts:
                if isinstance(part, TextRun):
                    frames += self._frames_of_run(part)
                else:
                    frames.append(self._frame(part))
                    record.chunks += 1
        except UpstreamError as error:
            self._broken = error
        return b"".join(frames)

    def _frames_of_run(self, run: TextRun) -> Iterator[bytes]:
        """Yield the frames of a run. If it begins a choice, its first text is a separate chunk."""
        frames = self.renderer.run(run)
        if frames is None:
            yield self._frame(next(run.chunks()))
            self.record.chunks += 1
            if len(run.literals) == 1:
                return
            run = without_first(run)
            frames = self.renderer.run(run)
        if frames is None:
            for chunk in run.chunks():
                yield self._frame(chunk)
                self.record.chunks += 1
            return
        self.record.chunks += len(run.literals)
        self.size += run.size
        self._content = True
        yield frames

    def _send(self, data: bytes) -> None:
        """Write frames, but hold the ones that complete the response."""
        record = self.record
        if self._finished >= self._expected and self._broken is None and record.usage is not None and self.stream.over:
            self.held += data
        elif data:
            sent = self.write(data)
            self.sent_at = self._now()
            if not isinstance(sent, bool):
                self._unread = sent

    def _frame(self, event: StreamEvent) -> bytes:
        if isinstance(event, Chunk):
            self._content = self._content or has_content(event)
            if event.finish_reason is not None:
                self._finished += 1
                if self.note_end is not None:
                    self.note_end(event.finish_reason)
            self.size += size_written(event)
            return self.renderer.chunk(event)
        self.record.usage, self._reported_at = event, self.size
        return self.renderer.usage(event)
