"""One choice of a stream on its way through guards."""

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

MOST_WITHHELD: Final = 64 * 1024
"""Characters that one guard may hold back of a text."""

MOST_AT_ONCE: Final = 1024 * 1024
"""Characters by which what a guard returns may be longer than what it got."""

MOST_RUNS: Final = 8
"""Runs of reasoning of one choice that are each judged as soon as other content follows."""

GROWTH: Final = 8
"""The part of the reasoning that was judged before, by which further runs grow before it is judged again."""

_TOO_LONG: Final = "The answer is longer than what may be held back of it until it has been checked."


@dataclass(slots=True, eq=False)
class HeldBack:
    """How many characters of a stream may still be held back."""

    room: int

    def take(self, chunk: Chunk) -> None:
        """Count a chunk. Raises UpstreamError where there is no room for it."""
        self.room -= 64 + len(chunk.text) + len(chunk.reasoning or "") + len(chunk.refusal or "")
        self.room -= sum([len(call.arguments) for call in chunk.tool_calls])
        if chunk.extras is not None:
            self.room -= len(repr(chunk.extras))
        if self.room < 0:
            raise fail(FailureKind.MALFORMED, _TOO_LONG)


class GuardedChoice(Protocol):
    """One choice of a stream."""

    async def add(self, chunk: Chunk) -> Iterable[Chunk]:
        """Return what may be shown after the next chunk. Raises GatewayError and UpstreamError."""


def plain(chunk: Chunk) -> Chunk:
    """Return a chunk without the vendor's own event, which would be shown instead, and without log probabilities."""
    return chunk if chunk.native is None and chunk.logprobs is None else replace(chunk, native=None, logprobs=None)


async def passed_on(
    chain: GuardChain, record: RequestRecord, chunks: Sequence[Chunk], index: int, before: Sequence[Chunk] = ()
) -> Sequence[Chunk]:
    """Return chunks of one choice as its guards leave them: the same if none changed anything. They are checked with
    the reasoning `before` them, which clients have already received and join with theirs; if a guard changes that
    reasoning, none of the chunks is returned, since the rest might complete a text that the guard took out."""
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
    """Held back until it has ended. See GuardedChoice."""

    def __init__(self, chain: GuardChain, record: RequestRecord, index: int, held: HeldBack) -> None:
        self._chain = chain
        self._record = record
        self._index = index
        self._held = held
        self._chunks: list[Chunk] = []

    async def add(self, chunk: Chunk) -> Iterable[Chunk]:
        """See GuardedChoice."""
        self._held.take(chunk)
        self._chunks.append(chunk)
        if chunk.finish_reason is None:
            return ()
        chunks, self._chunks = self._chunks, []
        return await passed_on(self._chain, self._record, chunks, self._index)


class LiveText:
    """A text on its way through one guard. `altered` says that it is not the text that came."""

    def __init__(self, guard: RunningGuard, stream: AnswerTextStream) -> None:
        self.guard = guard
        self.altered = False
        self._stream: AnswerTextStream | None = stream
        self._back = ""
        self._balance = 0

    async def feed(self, text: str) -> str:
        """Return what the guard lets through after `text`. Raises GatewayError."""
        if self._stream is None:
            return text
        self._back += "" if self.altered else text
        self._balance += len(text)
        return await self._called(partial(self._stream.feed, text)) if text else ""

    async def end(self) -> str:
        """Return the rest. Raises GatewayError."""
        if self._stream is None:
            return ""
        rest = await self._called(self._stream.end)
        if self._back:
            self.altered = True
        self._stream = None
        return rest

    async def _called(self, work: Callable[[], str]) -> str:
        guard = self.guard
        try:
            told = await guard.call(work, self._fault, heavy=False)
        except RefusedStream as refusal:
            raise refused(guard, refusal.reason, refusal.code) from None
        except GuardFailed as failure:
            failed(guard, failure)
            if self.altered:
                raise plugin_failed(guard.name, failure.why) from None  # what is missing nobody knows
            self._stream, back, self._back = None, self._back, ""
            return back
        self._balance -= len(told)
        if self._back.startswith(told):
            self._back = self._back[len(told) :]
        else:
            self.altered, self._back = True, ""
        return told

    def _fault(self, told: object) -> str | None:
        if not isinstance(told, str):
            return f"returned {type(told).__name__} for a text"
        if len(told) > max(0, self._balance) + MOST_AT_ONCE:
            return f"rewrote a text into one that is longer by more than {MOST_AT_ONCE} characters"
        if self._balance - len(told) > MOST_WITHHELD and not self.altered:
            return f"holds back more than {MOST_WITHHELD} characters"
        try:
            told.isascii() or told.encode()
        except UnicodeEncodeError:
            return "rewrote a text into one that is no Unicode"
        return None


class LiveReasoning:
    """The reasoning of a choice, held back until other content follows it, and judged with all that came before it:
    clients join it over everything between. Reasoning that alternates with other content is checked when it has grown
    enough, so that the work grows with its length."""

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
        """Whether some of it is held back."""
        return bool(self._waiting)

    def add(self, chunk: Chunk) -> None:
        """Hold a chunk back. Raises UpstreamError if there is no room for it."""
        room = self._held.room
        self._held.take(chunk)
        self._waiting.append(chunk)
        self._waiting_size += room - self._held.room

    async def interrupted(self) -> Iterable[Chunk]:
        """Return the chunks that may be shown before other content. Raises GatewayError."""
        if self._runs >= MOST_RUNS and self._waiting_size * GROWTH < self._shown_size:
            return ()
        return await self.end()

    async def end(self) -> Iterable[Chunk]:
        """Return the chunks that may be shown of all reasoning that was held back. Raises GatewayError."""
        if not self._waiting:
            return ()
        chunks, self._waiting = self._waiting, []
        shown = await passed_on(self._chain, self._record, chunks, self._index, self._shown)
        self._shown += shown
        self._shown_size, self._waiting_size = self._shown_size + self._waiting_size, 0
        self._runs += 1
        return shown


class LiveChoice:
    """Text passes as it comes. Reasoning is held back until other content follows, all else until the choice ends: it
    is checked as a whole. See GuardedChoice."""

    def __init__(self, chain: GuardChain, record: RequestRecord, index: int, held: HeldBack) -> None:
        self._chain = chain
        self._record = record
        self._index = index
        self._held = held
        self._thought = LiveReasoning(chain, record, index, held)
        self._rest: list[Chunk] = []
        self._texts: list[LiveText] | None = None
        self._said = ShownText()
        self._ended = False

    async def add(self, chunk: Chunk) -> Iterable[Chunk]:
        """See GuardedChoice."""
        if self._ended:
            return ()
        shown: list[Chunk] = []
        text, self._ended = chunk.text, chunk.finish_reason is not None
        if text == chunk.refusal:
            text = ""
        beside = replace(chunk, text="" if text else chunk.text, finish_reason=None)
        for held in _apart(beside):
            if _is_thought(held) or (self._thought.waits and held.signature and not text and not _says_more(held)):
                self._thought.add(held)
            elif _holds_something(held):
                self._held.take(held)
                self._rest.append(held)
        if self._ended:
            shown += await self._thought.end()
        elif self._thought.waits and (text or beside.tool_calls):
            shown += await self._thought.interrupted()
        if text and (out := await self._fed(text)):
            self._said.add(out)
            shown.append(Chunk(self._index, out, system_fingerprint=chunk.system_fingerprint))
        if self._ended:
            shown += await self._end(chunk)
        return shown

    async def _fed(self, text: str) -> str:
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
        """Return the rest of the text, what was held back, and the chunk that ends the choice."""
        shown: list[Chunk] = []
        texts = self._texts or []
        tail = ""
        for each in texts:
            tail = await each.feed(tail) + await each.end()
        if tail:
            self._said.add(tail)
            shown.append(Chunk(self._index, tail))
        rest, self._rest = await self._with_fit_refusal(), []
        if rest and any(each.altered for each in texts):
            # Offsets into the text, and what the vendor says of it, tell its first form.
            rest = [replace(each, extras=None, signature=None) for each in rest]
        if rest:
            shown += await passed_on(self._chain, self._record, rest, self._index)
        end = replace(last, text="", reasoning=None, refusal=None, tool_calls=(), signature=None, extras=None)
        ends = await passed_on(self._chain, self._record, [end], self._index) if has_odd_end(end) else [end]
        return [*shown, *ends]

    async def _with_fit_refusal(self) -> list[Chunk]:
        """Return the chunks that were held back, without a refusal that a guard changes if it follows the text: on some
        surfaces a refusal is text as well. Raises GatewayError."""
        refusal = "".join([each.refusal or "" for each in self._rest])
        if not refusal or not self._said.pieces:
            return self._rest
        spoken = "".join([*self._said.pieces, refusal])
        texts, heavy = (GuardedText(spoken, "content", ROLE, "content"),), len(spoken) > MOST_WITHHELD
        if await self._chain.unchanged(texts, self._record, heavy=heavy):
            return self._rest
        if self._record.guarded is not None:
            self._record.guarded.note((), ("refusal",))
        return [replace(each, text="", refusal=None) for each in self._rest]


class ShownText:
    """The last pieces of a text that was shown, MOST_WITHHELD characters and the piece that they begin in."""

    def __init__(self) -> None:
        self.pieces: deque[str] = deque()
        self._size = 0

    def add(self, piece: str) -> None:
        """Add a piece."""
        self.pieces.append(piece)
        self._size += len(piece)
        while self._size - len(self.pieces[0]) > MOST_WITHHELD:
            self._size -= len(self.pieces.popleft())


class Unguarded:
    """Lets a text pass, in place of a guard that fails open."""

    def feed(self, text: str) -> str:
        """See AnswerTextStream."""
        return text

    def end(self) -> str:
        """See AnswerTextStream."""
        return ""


def _is_thought(chunk: Chunk) -> bool:
    return bool(chunk.reasoning or (chunk.extras and chunk.extras.reasoning_details))


def _says_more(chunk: Chunk) -> bool:
    return bool(chunk.text or chunk.refusal is not None or chunk.tool_calls or chunk.extras)


def _apart(chunk: Chunk) -> tuple[Chunk, ...]:
    """Return a chunk as one of reasoning alone and one of all else, if it has both."""
    if chunk.extras is None and not (_says_more(chunk) and chunk.reasoning):
        return (chunk,)
    extras = chunk.extras or NO_EXTRAS
    others = replace(extras, reasoning_details=())
    left = replace(chunk, reasoning=None, signature=None, extras=None if others == NO_EXTRAS else others)
    if not _says_more(left):
        return (chunk,)
    details = Extras(reasoning_details=extras.reasoning_details) if extras.reasoning_details else None
    return replace(chunk, text="", refusal=None, tool_calls=(), extras=details), left


def _holds_something(chunk: Chunk) -> bool:
    return bool(chunk.signature or _says_more(chunk))


def _fault_of_stream(made: object) -> str | None:
    if callable(getattr(made, "feed", None)) and callable(getattr(made, "end", None)):
        return None
    return f"opened a stream of {type(made).__name__}, which has no feed and end"
