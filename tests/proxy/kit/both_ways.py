"""Relays a stream with all fast paths and with none, and compares the results."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from unittest.mock import patch

from typing_extensions import override

from providers.completion import StreamEvent, TextRun
from providers.dialect import RunDecoder, StreamDecoder, UpstreamRequest
from providers.dialects.openai import stream
from providers.dialects.openai.stream import OpenAIStream
from providers.failure import UpstreamError
from providers.framing.text_frames import Around
from providers.json_types import JsonObject
from providers.unified_request import UnifiedRequest
from proxy.deadlines import Deadlines
from proxy.relay.relay_to_client import Relay
from proxy.request_record import RequestRecord
from proxy.surfaces.registry import SURFACES
from proxy.surfaces.surface import AnswerFacts, Surface
from proxy.upstream.read_answer import until_content
from proxy.upstream.vendor_stream import OpenStream
from tests.providers.dialects.kit import chat_request, sent_for, target_of
from tests.providers.dialects.openai.kit import CHAT_MODELS
from tests.proxy.kit.mark_streams import Body, Step
from tests.proxy.kit.virtual_time import VirtualLoop

CHAT = chat_request()
OPENAI = SURFACES[0]


class EventByEvent:
    """A decoder without runs."""

    def __init__(self, inner: StreamDecoder) -> None:
        self._inner = inner

    @property
    def complete(self) -> bool:
        return self._inner.complete

    def feed(self, data: bytes) -> Iterator[StreamEvent]:
        return self._inner.feed(data)

    def finish(self) -> Iterator[StreamEvent]:
        return self._inner.finish()


class Counting(EventByEvent, RunDecoder):
    """A decoder with runs. `fed` counts the events outside of runs, `asked` the calls of `read_run`."""

    def __init__(self, inner: RunDecoder) -> None:
        super().__init__(inner)
        self._runs = inner
        self.fed = self.asked = 0

    @override
    def feed(self, data: bytes) -> Iterator[StreamEvent]:
        for event in self._inner.feed(data):
            self.fed += 1
            yield event

    @override
    def read_run(self, data: bytes) -> tuple[TextRun, bytes] | None:
        self.asked += 1
        return self._runs.read_run(data)

    @override
    def run_frame(self) -> Around | None:
        return self._runs.run_frame()

    @override
    def note_run(self, characters: int) -> None:
        self._runs.note_run(characters)


@dataclass
class Outcome:
    """The client's writes with the end included, the record, and the failure."""

    writes: list[bytes] = field(default_factory=list)
    record: RequestRecord = field(default_factory=lambda: RequestRecord("id", 0.0, "openai", "/"))
    failure: object = None


async def _relay(decoder: StreamDecoder, steps: Sequence[Step], asked: UnifiedRequest, surface: Surface) -> Outcome:
    outcome = Outcome()
    renderer = surface.renderer(asked, AnswerFacts("1", 1_795_000_000, "v/m"))

    def write(data: bytes) -> bool:
        outcome.writes.append(data)
        return True

    try:
        with Deadlines(600.0) as clock:
            body = Body(*steps)
            opened = OpenStream(body, decoder, *await until_content(body, decoder))
            clock.commit(60.0, 600.0, 3600.0)
            outcome.record.first_content = 0.0
            relay = Relay(opened, renderer, write, clock, outcome.record, asked)
            await relay.run()
        outcome.writes.append(relay.held + renderer.end())
    except UpstreamError as error:
        outcome.failure = error.failure
    return outcome


def no_text(_choice: object, /) -> str:
    """Stand in for `only_text_of`: no choice counts as text alone. A mock would cost more than the function that it
    replaces.
    """
    return ""


class InFull(OpenAIStream):
    """Decodes every event in full, without the fast path for plain chunks. Its choices may still take the fast path of
    `only_text_of`.
    """

    @override
    def _plain_chunk(self, body: JsonObject, size: int) -> None:
        return None


@dataclass(frozen=True, slots=True)
class Both:
    """The common outcome. `led` texts were read in runs, with `asked` calls of `read_run`."""

    outcome: Outcome
    led: int
    asked: int


def relayed_both_ways(
    loop: VirtualLoop,
    steps: Sequence[Step],
    asked: UnifiedRequest = CHAT,
    surface: Surface = OPENAI,
    profile: str = "openai",
) -> Both:
    """Relay the steps with all fast paths and with none, and assert equal outcomes."""
    asked = replace(asked, stream=True)
    sent = sent_for(asked, target_of(profile, CHAT_MODELS.get(profile, "tiny")))
    with patch.object(stream, "only_text_of", no_text):
        expected = loop.run_until_complete(_relay(EventByEvent(InFull(sent)), steps, asked, surface))
    return _compared(loop, expected, sent, steps, asked, surface)


def relayed_with_runs_and_without(
    loop: VirtualLoop, steps: Sequence[Step], asked: UnifiedRequest, surface: Surface, sent: UpstreamRequest
) -> Both:
    """Relay the steps of any vendor with runs and event by event, and assert equal outcomes."""
    decoder = EventByEvent(sent.target.dialect.stream(sent))
    expected = loop.run_until_complete(_relay(decoder, steps, asked, surface))
    return _compared(loop, expected, sent, steps, asked, surface)


def _compared(
    loop: VirtualLoop,
    expected: Outcome,
    sent: UpstreamRequest,
    steps: Sequence[Step],
    asked: UnifiedRequest,
    surface: Surface,
) -> Both:
    """Relay the steps with runs, and assert that the outcome is `expected`."""
    decoder = sent.target.dialect.stream(sent)
    assert isinstance(decoder, RunDecoder)
    counting = Counting(decoder)
    outcome = loop.run_until_complete(_relay(counting, steps, asked, surface))
    assert outcome == expected
    guessed = bool(outcome.record.usage and outcome.record.usage.estimated)
    return Both(outcome, outcome.record.chunks - counting.fed - guessed, counting.asked)
