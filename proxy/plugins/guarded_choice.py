"""One choice of a stream on its way through guards."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Protocol

from providers.completion import Chunk
from providers.failure import FailureKind
from proxy.errors import plugin_failed
from proxy.plugins.answer_texts import choice_of, chunk_of
from proxy.plugins.api import AnswerTextStream, RefusedStream
from proxy.plugins.guard_desk import GuardChain
from proxy.plugins.running_guard import GuardFailed, RunningGuard
from proxy.plugins.verdicts import failed, refused
from proxy.request_record import RequestRecord
from proxy.upstream.transport import fail

MOST_WITHHELD: Final = 64 * 1024
"""Characters that one guard may hold back of a text."""

MOST_AT_ONCE: Final = 1024 * 1024
"""Characters by which what a guard returns may be longer than what it got."""

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


async def passed_on(chain: GuardChain, record: RequestRecord, chunks: list[Chunk], index: int) -> Iterable[Chunk]:
    """Return chunks of one choice as its guards leave them: the same where none changed anything."""
    try:
        choice = choice_of(chunks, index)
    except ValueError as error:
        raise fail(FailureKind.MALFORMED, f"The upstream's answer makes no sense: {error}.") from None
    left = await chain.choice_passed(choice, record)
    return chunks if left is choice else (chunk_of(left, chunks[-1]),)


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


class LiveChoice:
    """Text passes as it comes. What the model thinks is held back until the thinking ends, all else until the choice
    does: it is checked as a whole. See GuardedChoice."""

    def __init__(self, chain: GuardChain, record: RequestRecord, index: int, held: HeldBack) -> None:
        self._chain = chain
        self._record = record
        self._index = index
        self._held = held
        self._thought: list[Chunk] = []
        self._rest: list[Chunk] = []
        self._texts: list[LiveText] | None = None

    async def add(self, chunk: Chunk) -> Iterable[Chunk]:
        """See GuardedChoice."""
        shown: list[Chunk] = []
        text, ended = chunk.text, chunk.finish_reason is not None
        if text == chunk.refusal:
            text = ""
        beside = replace(chunk, text="" if text else chunk.text, finish_reason=None)
        thought = bool(beside.reasoning or (beside.extras and beside.extras.reasoning_details))
        if thought or (self._thought and beside.signature and not text):
            self._hold(self._thought, beside)
        elif _holds_something(beside):
            self._hold(self._rest, beside)
        if self._thought and (text or ended or beside.tool_calls):
            thoughts, self._thought = self._thought, []
            shown += await passed_on(self._chain, self._record, thoughts, self._index)
        if text and (out := await self._fed(text)):
            shown.append(Chunk(self._index, out, system_fingerprint=chunk.system_fingerprint))
        if ended:
            shown += await self._end(chunk)
        return shown

    def _hold(self, chunks: list[Chunk], chunk: Chunk) -> None:
        self._held.take(chunk)
        chunks.append(chunk)

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
            shown.append(Chunk(self._index, tail))
        rest, self._rest = self._rest, []
        if rest and any(each.altered for each in texts):
            # Offsets into the text, and what the vendor says of it, tell its first form.
            rest = [replace(each, extras=None, signature=None) for each in rest]
        if rest:
            shown += await passed_on(self._chain, self._record, rest, self._index)
        end = replace(last, text="", reasoning=None, refusal=None, tool_calls=(), signature=None, extras=None)
        return [*shown, end]


class Unguarded:
    """Lets a text pass, in place of a guard that fails open."""

    def feed(self, text: str) -> str:
        """See AnswerTextStream."""
        return text

    def end(self) -> str:
        """See AnswerTextStream."""
        return ""


def _holds_something(chunk: Chunk) -> bool:
    return bool(chunk.text or chunk.refusal is not None or chunk.tool_calls or chunk.signature or chunk.extras)


def _fault_of_stream(made: object) -> str | None:
    if callable(getattr(made, "feed", None)) and callable(getattr(made, "end", None)):
        return None
    return f"opened a stream of {type(made).__name__}, which has no feed and end"
