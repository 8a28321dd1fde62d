"""Pass one choice of a stream through the guards."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Protocol

from providers.completion import NO_EXTRAS, Chunk, Extras
from providers.failure import FailureKind
from proxy.errors import plugin_failed
from proxy.plugins.answer_texts import ROLE, choice_of, chunk_of, has_odd_end
from proxy.plugins.api import AnswerTextStream, GuardedText, RefusedStream
from proxy.plugins.run_guards import failed, refused
from proxy.plugins.running_guard import GuardFailed, RunningGuard
from proxy.plugins.team_guards import GuardChain
from proxy.request_record import RequestRecord
from proxy.upstream.transport import fail

MAX_WITHHELD: Final = 64 * 1024
"""The maximum number of characters of a text that one guard may hold back."""

MAX_ADDED: Final = 1024 * 1024
"""The maximum characters by which a guard's output may be longer than its input."""

EAGER_RUNS: Final = 8
"""The number of runs of reasoning in one choice that are each checked as soon as other content follows."""

GROWTH: Final = 8
"""After EAGER_RUNS, reasoning is checked again when it has grown by a fraction of 1/GROWTH of its checked length."""

_TOO_LONG: Final = "The response is longer than the text that may be held back until it has been checked."


@dataclass(slots=True, eq=False)
class HeldBack:
    """The number of characters of a stream that may still be held back."""

    room: int

    def take(self, chunk: Chunk) -> None:
        """Count a chunk. Raises UpstreamError if it exceeds the limit."""
        self.room -= 64 + len(chunk.text) + len(chunk.reasoning or "") + len(chunk.refusal or "")
        self.room -= sum([len(call.arguments) for call in chunk.tool_calls])
        if chunk.extras is not None:
            self.room -= len(repr(chunk.extras))
        if self.room < 0:
            raise fail(FailureKind.MALFORMED, _TOO_LONG)


class GuardedChoice(Protocol):
    """The processing of one choice of a stream."""

    async def add(self, chunk: Chunk) -> Iterable[Chunk]:
        """Return the chunks that may be shown after the next chunk. Raises GatewayError and UpstreamError."""


def plain(chunk: Chunk) -> Chunk:
    """Return a chunk without log probabilities and without the vendor's own event, which would otherwise be sent in
    its place."""
    return chunk if chunk.native is None and chunk.logprobs is None else replace(chunk, native=None, logprobs=None)


async def passed_on(
    chain: GuardChain, record: RequestRecord, chunks: Sequence[Chunk], index: int, before: Sequence[Chunk] = ()
) -> Sequence[Chunk]:
    """Return chunks of one choice with the changes that its guards make. They are the same chunks if no guard changed
    anything. The chunks are checked together with the reasoning `before` them, which clients have already received and
    join with the new reasoning. If a guard changes that earlier reasoning, no chunk is returned, because the rest might
    complete a text that the guard removed."""
    try:
        choice = choice_of([*before, *chunks], index)
    except ValueError as error:
        raise fail(FailureKind.MALFORMED, f"The upstream's answer makes no sense: {error}.") from None
    left = await chain.choice_passed(choice, record)
    if left is choice:
        return chunks
    if before:
        read, reasoning = _reasoning(before), left.reasoning or ""
        if not reasoning.startswith(read):
            if record.guarded is not None:
                record.guarded.note((), ("reasoning",))
            return ()
        left = replace(left, reasoning=reasoning[len(read) :] or None)
    return (chunk_of(left, chunks[-1]),)


def _reasoning(chunks: Iterable[Chunk]) -> str:
    return "".join([chunk.reasoning or "" for chunk in chunks])


class HeldChoice:
    """A choice that is held back until it has ended."""

    def __init__(self, chain: GuardChain, record: RequestRecord, index: int, held: HeldBack) -> None:
        self._chain = chain
        self._record = record
        self._index = index
        self._held = held
        self._chunks: list[Chunk] = []

    async def add(self, chunk: Chunk) -> Iterable[Chunk]:
        self._held.take(chunk)
        self._chunks.append(chunk)
        if chunk.finish_reason is None:
            return ()
        chunks, self._chunks = self._chunks, []
        return await passed_on(self._chain, self._record, chunks, self._index)


class LiveText:
    """The text of a choice as it passes through one guard. `altered` is set once the output differs from the input."""

    def __init__(self, guard: RunningGuard, stream: AnswerTextStream) -> None:
        self.guard = guard
        self.altered = False
        self._stream: AnswerTextStream | None = stream
        self._unreturned = ""
        self._balance = 0

    async def feed(self, text: str) -> str:
        """Return the text that the guard lets pass after `text`. Raises GatewayError."""
        if self._stream is None:
            return text
        self._unreturned += "" if self.altered else text
        self._balance += len(text)
        return await self._called(partial(self._stream.feed, text)) if text else ""

    async def end(self) -> str:
        """Return the remaining text. Raises GatewayError."""
        if self._stream is None:
            return ""
        rest = await self._called(self._stream.end)
        if self._unreturned:
            self.altered = True
        self._stream = None
        return rest

    async def _called(self, work: Callable[[], str]) -> str:
        guard = self.guard
        try:
            output = await guard.call(work, self._fault, heavy=False)
        except RefusedStream as refusal:
            raise refused(guard, refusal.reason, refusal.code) from None
        except GuardFailed as failure:
            failed(guard, failure)
            if self.altered:
                raise plugin_failed(guard.name, failure.why) from None  # the removed text is unknown
            self._stream, back, self._unreturned = None, self._unreturned, ""
            return back
        self._balance -= len(output)
        if self._unreturned.startswith(output):
            self._unreturned = self._unreturned[len(output) :]
        else:
            self.altered, self._unreturned = True, ""
        return output

    def _fault(self, output: object) -> str | None:
        if not isinstance(output, str):
            return f"returned {type(output).__name__} for a text"
        if len(output) > max(0, self._balance) + MAX_ADDED:
            return f"rewrote a text into one that is longer by more than {MAX_ADDED} characters"
        if self._balance - len(output) > MAX_WITHHELD and not self.altered:
            return f"holds back more than {MAX_WITHHELD} characters"
        try:
            output.isascii() or output.encode()
        except UnicodeEncodeError:
            return "rewrote a text into one that is not valid Unicode"
        return None


class LiveReasoning:
    """The reasoning of a choice. It is held back until other content follows, and is checked together with all earlier
    reasoning, because clients join it across other content. Reasoning that alternates with other content is checked
    again only when it has grown enough, so that the work is proportional to its length."""

    def __init__(self, chain: GuardChain, record: RequestRecord, index: int, held: HeldBack) -> None:
        self._chain = chain
        self._record = record
        self._index = index
        self._held = held
        self._shown: list[Chunk] = []
        self._waiting: list[Chunk] = []
        self._shown_size = self._waiting_size = self._runs = 0

    @property
    def waits(self) -> bool:
        """Whether some reasoning is held back."""
        return bool(self._waiting)

    def add(self, chunk: Chunk) -> None:
        """Hold a chunk back. Raises UpstreamError if the limit is exceeded."""
        room = self._held.room
        self._held.take(chunk)
        self._waiting.append(chunk)
        self._waiting_size += room - self._held.room

    async def interrupted(self) -> Iterable[Chunk]:
        """Return the chunks that may be shown before other content. Raises GatewayError."""
        if self._runs >= EAGER_RUNS and self._waiting_size * GROWTH < self._shown_size:
            return ()
        return await self.end()

    async def end(self) -> Iterable[Chunk]:
        """Return the chunks that may be shown, of all reasoning that was held back. Raises GatewayError."""
        if not self._waiting:
            return ()
        chunks, self._waiting = self._waiting, []
        shown = await passed_on(self._chain, self._record, chunks, self._index, self._shown)
        self._shown += shown
        self._shown_size, self._waiting_size = self._shown_size + self._waiting_size, 0
        self._runs += 1
        return shown


class LiveChoice:
    """A choice whose text passes while it arrives. Reasoning is held back until other content follows. Everything else
    is held back until the choice ends, and checked as a whole."""

    def __init__(self, chain: GuardChain, record: RequestRecord, index: int, held: HeldBack) -> None:
        self._chain = chain
        self._record = record
        self._index = index
        self._held = held
        self._live_reasoning = LiveReasoning(chain, record, index, held)
        self._rest: list[Chunk] = []
        self._texts: list[LiveText] | None = None
        self._shown_text = ShownText()
        self._ended = False

    async def add(self, chunk: Chunk) -> Iterable[Chunk]:
        if self._ended:
            return ()
        shown: list[Chunk] = []
        text, self._ended = chunk.text, chunk.finish_reason is not None
        if text == chunk.refusal:
            text = ""
        beside = replace(chunk, text="" if text else chunk.text, finish_reason=None)
        for held in _split_reasoning(beside):
            if _is_reasoning(held) or (
                self._live_reasoning.waits and held.signature and not text and not _has_more(held)
            ):
                self._live_reasoning.add(held)
            elif _holds_something(held):
                self._held.take(held)
                self._rest.append(held)
        if self._ended:
            shown += await self._live_reasoning.end()
        elif self._live_reasoning.waits and (text or beside.tool_calls):
            shown += await self._live_reasoning.interrupted()
        if text and (out := await self._feed_all(text)):
            self._shown_text.add(out)
            shown.append(Chunk(self._index, out, system_fingerprint=chunk.system_fingerprint))
        if self._ended:
            shown += await self._end(chunk)
        return shown

    async def _feed_all(self, text: str) -> str:
        if self._texts is None:
            self._texts = [await self._opened(guard) for guard in self._chain.answer]
        for each in self._texts:
            text = await each.feed(text)
        return text

    async def _opened(self, guard: RunningGuard) -> LiveText:
        about = self._chain.about(self._record, self._record.asked)
        work = partial(guard.plugin.made.open_stream, about, self._index)
        try:
            return LiveText(guard, await guard.call(work, _fault_of_stream, heavy=False))
        except RefusedStream as refusal:
            raise refused(guard, refusal.reason, refusal.code) from None
        except GuardFailed as failure:
            failed(guard, failure)
            return LiveText(guard, Unguarded())

    async def _end(self, last: Chunk) -> list[Chunk]:
        """Return the remaining text, the content that was held back, and the chunk that ends the choice."""
        shown: list[Chunk] = []
        texts = self._texts or []
        tail = ""
        for each in texts:
            tail = await each.feed(tail) + await each.end()
        if tail:
            self._shown_text.add(tail)
            shown.append(Chunk(self._index, tail))
        rest, self._rest = await self._with_checked_refusal(), []
        if rest and any(each.altered for each in texts):
            # Offsets into the text, and the vendor's annotations of it, would reveal its original form.
            rest = [replace(each, extras=None, signature=None) for each in rest]
        if rest:
            shown += await passed_on(self._chain, self._record, rest, self._index)
        end = replace(last, text="", reasoning=None, refusal=None, tool_calls=(), signature=None, extras=None)
        ends = await passed_on(self._chain, self._record, [end], self._index) if has_odd_end(end) else [end]
        return [*shown, *ends]

    async def _with_checked_refusal(self) -> list[Chunk]:
        """Return the chunks that were held back. If a refusal follows the text and a guard would change the two
        together, the refusal is removed: on some surfaces a refusal is text as well. Raises GatewayError."""
        refusal = "".join([each.refusal or "" for each in self._rest])
        if not refusal or not self._shown_text.parts:
            return self._rest
        spoken = "".join([*self._shown_text.parts, refusal])
        texts, heavy = (GuardedText(spoken, "content", ROLE, "content"),), len(spoken) > MAX_WITHHELD
        if await self._chain.unchanged(texts, self._record, heavy=heavy):
            return self._rest
        if self._record.guarded is not None:
            self._record.guarded.note((), ("refusal",))
        return [replace(each, text="", refusal=None) for each in self._rest]


class ShownText:
    """The end of the text that was shown: the last MAX_WITHHELD characters, rounded up to whole strings as they were
    added."""

    def __init__(self) -> None:
        self.parts: deque[str] = deque()
        self._size = 0

    def add(self, part: str) -> None:
        """Add a part of the text."""
        self.parts.append(part)
        self._size += len(part)
        while self._size - len(self.parts[0]) > MAX_WITHHELD:
            self._size -= len(self.parts.popleft())


class Unguarded:
    """Passes a text unchanged. It replaces a guard that has failed open."""

    def feed(self, text: str) -> str:
        return text

    def end(self) -> str:
        return ""


def _is_reasoning(chunk: Chunk) -> bool:
    return bool(chunk.reasoning or (chunk.extras and chunk.extras.reasoning_details))


def _has_more(chunk: Chunk) -> bool:
    return bool(chunk.text or chunk.refusal is not None or chunk.tool_calls or chunk.extras)


def _split_reasoning(chunk: Chunk) -> tuple[Chunk, ...]:
    """Split a chunk into one that has only its reasoning and one that has the rest. Return the chunk alone if it does
    not have both."""
    if chunk.extras is None and not (_has_more(chunk) and chunk.reasoning):
        return (chunk,)
    extras = chunk.extras or NO_EXTRAS
    others = replace(extras, reasoning_details=())
    left = replace(chunk, reasoning=None, signature=None, extras=None if others == NO_EXTRAS else others)
    if not _has_more(left):
        return (chunk,)
    details = Extras(reasoning_details=extras.reasoning_details) if extras.reasoning_details else None
    return replace(chunk, text="", refusal=None, tool_calls=(), extras=details), left


def _holds_something(chunk: Chunk) -> bool:
    return bool(chunk.signature or _has_more(chunk))


def _fault_of_stream(made: object) -> str | None:
    if callable(getattr(made, "feed", None)) and callable(getattr(made, "end", None)):
        return None
    return f"opened a stream of {type(made).__name__}, which has no feed and end"
