"""A stream whose tool calls have unique ids. Runs contain no ids, so they pass unchanged."""

from collections.abc import Awaitable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar, cast

from providers.adaptation.unique_calls import UniqueCalls, unique_calls
from providers.completion import Chunk, StreamPart
from providers.emulation.plan_calls import CallPlan
from providers.unified_request import UnifiedRequest
from proxy.upstream.gateway_streams import WrappedStream
from proxy.upstream.vendor_stream import (
    Aside,
    HandOn,
    HandRunOn,
    Parts,
    PartsStream,
    Shorten,
    Stream,
    aside_of,
    first_parts,
    hand_each,
)

P = TypeVar("P", bound=StreamPart)


@dataclass(slots=True, eq=False)
class UniqueStream(WrappedStream, PartsStream):
    """A stream whose calls have unique ids."""

    _calls: UniqueCalls

    @property
    def aside_if_heavy(self) -> Aside | None:
        return aside_of(self._stream)

    def first_parts(self) -> Parts:
        return self._seen(first_parts(self._stream))

    def each(self, hand: HandOn, hand_run: HandRunOn, shorten: Shorten | None = None) -> Awaitable[None]:
        return hand_each(self._stream, lambda parts: hand(self._seen(parts)), hand_run, shorten)

    def _seen(self, events: Iterable[P]) -> Iterator[P]:
        for event in events:
            yield cast(P, self._calls.chunk(event)) if isinstance(event, Chunk) else event


def with_unique_ids(stream: Stream, prepared: CallPlan, request: UnifiedRequest) -> Stream:
    """Return the stream with unique ids of its tool calls. Vendors that got the client's own body make unique ids:
    their streams are returned unchanged, and the conversation is not read for that."""
    if any([call.sent.native for call in prepared.calls]) or (unique := unique_calls(request)) is None:
        return stream
    return UniqueStream(stream, unique)
