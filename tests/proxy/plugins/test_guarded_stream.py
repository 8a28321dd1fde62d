"""A stream that guards check, as values."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from providers.completion import Chunk, StreamEvent, Usage
from providers.failure import FailureKind, UpstreamError
from proxy.errors import GatewayError
from proxy.plugins.guarded_stream import GuardedStream
from proxy.upstream.gateway_streams import LocalStream
from proxy.upstream.transport import fail
from tests.proxy.plugins.kit import HIDDEN, SECRET, plugin
from tests.proxy.plugins.test_guarded_choice import chain, record

pytestmark = pytest.mark.smoke


END, USAGE = Chunk(finish_reason="stop"), Usage(1, 2)


class OneByOne(LocalStream):
    """A stream of one event at a time; an exception breaks it."""

    def __init__(self, *events: StreamEvent | UpstreamError) -> None:
        super().__init__([])
        self.left = [*events]

    @property
    def over(self) -> bool:  # type: ignore[override]
        return not self.left

    def take(self) -> Any:  # noqa: ANN401 - events
        event = self.left.pop(0)
        if isinstance(event, UpstreamError):
            raise event
        return iter([event])


def guarded(stream: OneByOne, *plugins: str) -> GuardedStream:
    request = SimpleNamespace(choices=1, params={})
    planned = SimpleNamespace(record=record(), request=request)
    prepared = SimpleNamespace(target=SimpleNamespace(timeouts=SimpleNamespace(idle=1.0)))
    return GuardedStream(stream, chain(*plugins), cast(Any, planned), cast(Any, prepared))


async def shown(stream: GuardedStream) -> list[StreamEvent]:
    await stream.begin()
    events = [*stream.first()]
    while not stream.over:
        await stream.wait()
        events += stream.take()
    return events


async def test_live_events_come_as_they_are_checked() -> None:
    stream = guarded(OneByOne(Chunk(text="a"), Chunk(text=SECRET), END, USAGE), plugin("LiveHider"))
    await stream.begin()
    assert [*stream.first()] == [Chunk(text="a")]
    assert await shown(stream) == [Chunk(text=HIDDEN), END, USAGE]


async def test_a_held_stream_begins_when_the_answer_has_ended() -> None:
    pieces = OneByOne(Chunk(text="sword"), Chunk(text="fish"), END, USAGE)
    stream = guarded(pieces, plugin("Hider"))
    await stream.begin()
    assert len(pieces.left) == 1
    assert [cast(Chunk, each).text for each in stream.first()] == [HIDDEN]


async def test_a_stream_that_breaks_while_it_is_held_back_is_an_error() -> None:
    broken = fail(FailureKind.TRUNCATED, "broke off")
    with pytest.raises(UpstreamError):
        await guarded(OneByOne(Chunk(text="a"), broken), plugin("Hider")).begin()


async def test_what_was_let_through_comes_before_the_break() -> None:
    stream = guarded(OneByOne(Chunk(text="a"), Chunk(text=f"b {SECRET}"), END), plugin("LiveRefuser"))
    await stream.begin()
    assert [*stream.first()] == [Chunk(text="a")]
    await stream.wait()
    assert [*stream.take()] == []
    assert not stream.over
    with pytest.raises(GatewayError):
        await stream.wait()


@pytest.mark.parametrize("name", ["LiveHider", "Hider"])
async def test_what_names_a_system_or_a_tier_and_members_of_the_usage_are_judged(name: str) -> None:
    own, odd = Usage(1, 2, extra={"plan": "p"}), Usage(1, 2, extra={"plan": SECRET})
    chunks = [Chunk(text=each, system_fingerprint=f"is {each}") for each in ("a", SECRET)]
    end = Chunk(finish_reason="stop", service_tier=SECRET)
    stream = guarded(OneByOne(*chunks, end, own, odd), plugin(name))
    events = await shown(stream)
    assert SECRET not in repr(events)
    assert {each.system_fingerprint for each in events if isinstance(each, Chunk)} <= {None, "is a"}
    assert events[-2:] == [own, USAGE]
    assert stream.usage == odd


async def test_a_usage_that_no_guard_has_seen_is_shown_without_the_vendors_own_members() -> None:
    class Late(OneByOne):
        def conclude(self) -> Any:  # noqa: ANN401 - events
            return iter([Usage(1, 2, extra={"plan": SECRET})])

    stream = guarded(Late(Chunk(text="a"), END), plugin("LiveHider"))
    await shown(stream)
    assert [*stream.conclude()] == [USAGE]
