"""Finds stop strings in a response, for vendors to which the stop strings were not sent.

A text ends at the stop string that begins first. If several stop strings begin there, the text ends at the shortest
one, as in an engine that checks after each token. Text that may be the beginning of a stop string is held back until
further text decides. Tool calls, refusals and reasoning are not searched, and a stop string does not reach across them.
"""

import sys
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator
from dataclasses import replace

from providers.completion import Chunk, ContentLogprobs, Extras, LegacyLogprobs, Logprobs
from providers.emulation.logprob_slices import join_logprobs, slice_logprobs, text_of_tokens
from providers.emulation.logprobs import Offsets

_ALL_TOKENS = sys.maxsize

_SEARCH_AGAIN_FROM = 4
"""A text that is at least this many times as long as the stop string is searched again from its beginning with
`str.find`."""


class StopScanner:
    """Ends the text of one choice before the first of `stops` that occurs, or after that stop string if `keep` is set.

    On a match the finish reason is `stop` and `matched_stop` is the stop string. The log probabilities of all tokens
    that begin before the end of the text are returned, so the last token may reach beyond the end. A refusal or tool
    calls in the same chunk come after the text and are dropped. Log probabilities are held back with their text. They
    must arrive no later than their text. Raises ValueError for an empty stop string.
    """

    __slots__ = ("_end", "_fingerprint", "_firsts", "_held", "_keep", "_searches", "_tokens", "done")

    def __init__(self, stops: tuple[str, ...], keep: bool) -> None:
        self._searches = [_Search(stop) for stop in stops]
        self._firsts = frozenset([stop[0] for stop in stops])
        self._keep = keep
        self._tokens = _Tokens()
        self._held = _Held()
        self._end = 0
        self._fingerprint: str | None = None
        self.done = False
        """Whether a stop string was found. The rest of the choice is then ignored."""

    def feed(self, chunk: Chunk) -> Iterator[Chunk]:
        """Yield the chunk with the decided part of its text, or nothing while all of the text is held back. After a
        match, yield only fields that belong to the whole response."""
        if self.done:
            if chunk.extras is not None and chunk.extras.answer is not None:
                yield Chunk(chunk.index, extras=Extras(answer=chunk.extras.answer))
            return
        # Nearly every chunk takes this branch: nothing is held back, and no stop string begins in the chunk.
        clear = not self._held.size and not self._tokens.waiting
        if clear and chunk.logprobs is None and self._firsts.isdisjoint(chunk.text):
            self._end += len(chunk.text)
            yield chunk
            return
        refused = bool(chunk.text) and chunk.text == chunk.refusal
        foreign = refused or (not chunk.text and bool(chunk.reasoning or chunk.tool_calls))
        if not clear and (foreign or chunk.reasoning):
            for part in self._close(Chunk(chunk.index, system_fingerprint=chunk.system_fingerprint)):
                yield part
                if part.finish_reason is not None:
                    return
        if foreign:
            self._end += len(chunk.text)
            yield chunk
        else:
            yield from self._scan(chunk)

    def _scan(self, chunk: Chunk) -> Iterator[Chunk]:
        if chunk.logprobs is not None:
            self._tokens.add(chunk.logprobs, chunk.text, self._end)
        for search in self._searches:
            search.read(chunk.text, self._end)
        self._end += len(chunk.text)
        self._held.add(chunk.text)
        if chunk.finish_reason is not None or chunk.tool_calls:
            return self._close(chunk)
        safe = self._end - max([search.depth for search in self._searches], default=0)
        return self._settle(chunk, safe, safe)

    def _close(self, chunk: Chunk) -> Iterator[Chunk]:
        """End the searched run of text with this chunk. A stop string that has begun can then no longer be
        completed."""
        for search in self._searches:
            search.depth = 0
        return self._settle(chunk, self._end, _ALL_TOKENS)

    def _settle(self, chunk: Chunk, safe: int, tokens_end: int) -> Iterator[Chunk]:
        """Yield the chunk with the text before `safe` and the tokens before `tokens_end`. From `safe` on, the text may
        be the beginning of a stop string."""
        # If two stop strings match at one position, the shorter is a prefix of the longer, so `min` returns the
        # shorter.
        found = min([(search.found, search.stop) for search in self._searches if search.found >= 0], default=None)
        begin = self._end - self._held.size
        fingerprint, self._fingerprint = chunk.system_fingerprint or self._fingerprint, None
        if found is not None and found[0] <= safe:
            self.done = True
            cut = found[0] + (len(found[1]) if self._keep else 0)
            yield Chunk(
                chunk.index,
                self._held.take(cut - begin),
                "stop",
                logprobs=self._tokens.take(cut),
                reasoning=chunk.reasoning,
                matched_stop=found[1],
                system_fingerprint=fingerprint,
                signature=chunk.signature,
                service_tier=chunk.service_tier,
                extras=chunk.extras,
            )
            return
        text = self._held.take(safe - begin)
        logprobs = self._tokens.take(tokens_end)
        if text == chunk.text and logprobs is chunk.logprobs and fingerprint == chunk.system_fingerprint:
            yield chunk
        elif text or logprobs or chunk.finish_reason or chunk.reasoning or chunk.refusal or chunk.tool_calls:
            yield replace(chunk, text=text, logprobs=logprobs, system_fingerprint=fingerprint)
        elif chunk.signature is not None or chunk.extras is not None:
            yield Chunk(chunk.index, system_fingerprint=fingerprint, signature=chunk.signature, extras=chunk.extras)
        else:
            self._fingerprint = fingerprint


class _Held:
    """The held-back end of a text. The end is stored in parts, since a stop string may be as long as a request and the
    text may arrive character by character. `size` is its length."""

    __slots__ = ("_parts", "_start", "size")

    def __init__(self) -> None:
        self._parts: deque[str] = deque()
        self._start = 0
        self.size = 0

    def add(self, text: str) -> None:
        """Append a part of the text."""
        if text:
            self._parts.append(text)
            self.size += len(text)

    def take(self, count: int) -> str:
        """Remove and return the first `count` characters."""
        taken: list[str] = []
        left = min(count, self.size)
        self.size -= left
        while left:
            part, start = self._parts[0], self._start
            end = start + left
            taken.append(part[start:end])
            left -= len(taken[-1])
            if end < len(part):
                self._start = end
            else:
                self._parts.popleft()
                self._start = 0
        return "".join(taken)


class _Search:
    """The search for one stop string. The text so far ends with the first `depth` characters of the stop string.
    `found` is the position of the stop string, -1 if it was not found.

    The search uses the Knuth-Morris-Pratt algorithm, whose time is linear for any text and stop string. The table of
    the algorithm is built only as far as the text has matched, since a client may send a stop string of any length. In
    a text that is much longer than the stop string, `str.find` is a hundred times faster.
    """

    __slots__ = ("_borders", "depth", "found", "stop")

    def __init__(self, stop: str) -> None:
        if not stop:
            raise ValueError("a stop must not be empty")
        self.stop = stop
        self.depth = 0
        self.found = -1
        self._borders = [0]

    def read(self, text: str, begin: int) -> None:
        """Search the next text, which begins at the position `begin`, unless the stop string was found before."""
        if self.found >= 0:
            return
        if self.depth and len(text) >= _SEARCH_AGAIN_FROM * len(self.stop):
            # The matched characters are the end of the previous text.
            text, begin = self.stop[: self.depth] + text, begin - self.depth
            self.depth = 0
        position = self._follow(text, 0) if self.depth else 0
        if self.depth == len(self.stop):
            self._note_found(begin + position - self.depth)
        elif not self.depth and (at := text.find(self.stop, position)) >= 0:
            self._note_found(begin + at)
        elif not self.depth:
            # The stop string can have begun only in the last characters, fewer than its length.
            position = text.find(self.stop[0], max(position, len(text) - len(self.stop) + 1))
            while position >= 0 and not self.depth:
                position = text.find(self.stop[0], self._follow(text, position))

    def _note_found(self, position: int) -> None:
        self.found = position
        self.depth = 0

    def _follow(self, text: str, position: int) -> int:
        """Compare from `position` until the stop string has matched as a whole, no part of it matches, or the text
        ends. Return the position after the compared characters."""
        stop, depth = self.stop, self.depth
        while position < len(text):
            char = text[position]
            position += 1
            while depth and stop[depth] != char:
                depth = self._border(depth)
            depth += stop[depth] == char
            if not depth or depth == len(stop):
                break
        self.depth = depth
        return position

    def _border(self, depth: int) -> int:
        """Return the length of the longest proper prefix of the stop string that is also a suffix of its first `depth`
        characters."""
        borders, stop = self._borders, self.stop
        while len(borders) < depth:
            char, length = stop[len(borders)], borders[-1]
            while length and stop[length] != char:
                length = borders[length - 1]
            borders.append(length + (stop[length] == char))
        return borders[depth - 1]


class _Tokens:
    """The tokens of one choice that are held back with their text.

    A token begins at the end of the previous token; in the form of arrays, the vendor's own offsets give the distances.
    The first token begins before the text if the vendor lists tokens that the text lacks: reasoning, or a leading
    space. The first `_taken` tokens of the first entry of `waiting` have been returned already.
    """

    __slots__ = ("_offsets", "_shift", "_taken", "waiting")

    def __init__(self) -> None:
        self._offsets: Offsets | None = None
        self._shift: int | None = None
        self.waiting: deque[tuple[tuple[int, ...], Logprobs]] = deque()
        self._taken = 0

    def add(self, logprobs: Logprobs, text: str, position: int) -> None:
        """Add tokens that came with a text beginning at `position`."""
        if self._offsets is None:
            self._offsets = Offsets(position - max(text_of_tokens(logprobs).find(text), 0))
        if isinstance(logprobs, ContentLogprobs):
            begins = self._offsets.of_tokens(logprobs.content)
        else:
            begins = self._as_given(logprobs, self._offsets.of_texts(logprobs.tokens))
        self.waiting.append((begins, logprobs))

    def _as_given(self, logprobs: LegacyLogprobs, begins: tuple[int, ...]) -> tuple[int, ...]:
        if not logprobs.text_offset:
            return begins
        if self._shift is None:
            self._shift = begins[0] - logprobs.text_offset[0]
        shift = self._shift
        return tuple([offset + shift for offset in logprobs.text_offset])

    def take(self, end: int) -> Logprobs | None:
        """Remove and return the tokens that begin before `end`."""
        taken: list[Logprobs] = []
        while self.waiting:
            begins, logprobs = self.waiting[0]
            first = self._taken
            count = bisect_left(begins, end, first)
            if count < len(begins):
                if count > first:
                    taken.append(slice_logprobs(logprobs, first, count))
                    self._taken = count
                break
            taken.append(slice_logprobs(logprobs, first) if first else logprobs)
            self._taken = 0
            self.waiting.popleft()
        return join_logprobs(taken)
