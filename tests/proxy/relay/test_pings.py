"""`timeouts.progress`, `idle` and `stream` apply to a stream whose vendor sends pings, in virtual time: every
vendor's wire format, relayed to every surface."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from providers.unified_request import NativeApi
from proxy.deadlines import DeadlinePassed, Deadlines, Phase
from proxy.relay.relay_to_client import Relay
from proxy.request_record import RequestRecord
from proxy.surfaces.anthropic.surface import ANTHROPIC
from proxy.surfaces.mistral_fim import FIM
from proxy.surfaces.registry import SURFACES
from proxy.surfaces.responses.responses_surface import RESPONSES
from proxy.surfaces.surface import AnswerFacts, Surface
from proxy.upstream.read_answer import until_content
from proxy.upstream.vendor_stream import OpenStream
from tests.bench.dialects import STREAMS
from tests.bench.streams import words
from tests.providers.dialects.bedrock.kit import chunk, event
from tests.proxy.kit.mark_streams import Body, often
from tests.proxy.kit.virtual_time import run
from tests.support.looped import looped

IDLE: Final = 5.0
PROGRESS: Final = 2.0
LONGEST: Final = 60.0
EVERY: Final = 0.5
"""Seconds between two pings."""

COMMENT: Final = b": ping\n\n"
EMPTY_LINE: Final = b"\n"
CLAUDE_PING: Final = b'event: ping\ndata: {"type": "ping"}\n\n'
_CHAT: Final = b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":%b}\n\n'
EMPTY_DELTA: Final = _CHAT % b'[{"index":0,"delta":{"content":""},"finish_reason":null}]'
NO_CHOICES: Final = _CHAT % b"[]"
COUNTED: Final = _CHAT % b'[],"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10}'
RESPONSE_PING: Final = b'event: keepalive\ndata: {"type":"keepalive","sequence_number":9}\n\n'
IN_PROGRESS: Final = (
    b'event: response.in_progress\ndata: {"type":"response.in_progress","sequence_number":9,'
    b'"response":{"id":"r","object":"response","status":"in_progress","output":[]}}\n\n'
)
GEMINI_COUNT: Final = (
    b'data: {"candidates": [], "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 1}}\n\n'
)

PINGS: Final[Mapping[str, Sequence[bytes]]] = {
    "openai": (COMMENT, EMPTY_DELTA, NO_CHOICES, COUNTED),
    "openai, responses": (COMMENT, RESPONSE_PING, IN_PROGRESS),
    "anthropic": (COMMENT, CLAUDE_PING),
    "anthropic, own": (COMMENT, CLAUDE_PING),
    "anthropic_vertex": (COMMENT, CLAUDE_PING),
    "gemini": (COMMENT, GEMINI_COUNT),
    "ollama": (EMPTY_LINE,),
    "ollama, prompt": (EMPTY_LINE,),
    "bedrock": (event("ping", b"{}"),),
    "bedrock_anthropic": (chunk(b'{"type": "ping"}'),),
    "bedrock_invoke": (event("ping", b"{}"),),
    "bedrock_invoke, list": (event("ping", b"{}"),),
    "sagemaker": (event("PayloadPart", COMMENT), event("PayloadPart", EMPTY_DELTA)),
    "sagemaker_tgi": (event("PayloadPart", COMMENT),),
}
"""The bytes that a vendor may send while it generates nothing, by the name of a stream; for the other streams a
comment."""

NATIVE: Final[Mapping[NativeApi, Surface]] = {NativeApi.MESSAGES: ANTHROPIC, NativeApi.RESPONSES: RESPONSES}

WITHOUT_STREAMS: Final = frozenset({"replicate"})
"""Streams that have their content at the end."""


def begun_events(name: str) -> list[bytes]:
    """Return the events of a stream up to its third word."""
    longer, shorter = STREAMS[name].write(words(4)), STREAMS[name].write(words(3))
    return [event for event, other in zip(longer, shorter, strict=False) if event == other]


def surfaces_of(name: str) -> list[Surface]:
    """Return the surfaces that clients of a stream may use; for a body in the vendor's own API, that API's surface."""
    asked = STREAMS[name].asked
    if asked.native is not None:
        return [NATIVE[asked.native.api]]
    serving = [each for each in SURFACES if any(asked.operation == end.action for end in each.endpoints)]
    return [each for each in serving if each is not FIM]


@dataclass(frozen=True, slots=True)
class Row:
    """A stream, the bytes that its vendor sends after its third word, and the surface."""

    stream: str
    ping: bytes
    surface: Surface


ROWS: Final = {
    f"{name}, ping {number}, {surface.name}": Row(name, ping, surface)
    for name in STREAMS
    if name not in WITHOUT_STREAMS
    for number, ping in enumerate(PINGS.get(name, (COMMENT,)))
    for surface in surfaces_of(name)
}


def pings(row: Row) -> Body:
    """Return a stream that has begun, and then pings."""
    return Body(*begun_events(row.stream), *often(1000, EVERY, row.ping))


def slow(row: Row) -> Body:
    """Return a stream that has begun and continues slowly: each event after a ping, and nothing after the
    last event."""
    longer, begin = STREAMS[row.stream].write(words(20)), begun_events(row.stream)
    return Body(*begin, *(step for event in longer[len(begin) : 17] for step in (1.0, row.ping, 0.5, event)))


async def _expired_limit(row: Row, body: Body, idle: float, progress: float) -> tuple[Phase, float]:
    stream = STREAMS[row.stream]
    sent = stream.sent()
    record = RequestRecord("id", 0.0, row.surface.name, "/")
    asked = replace(stream.asked, stream=True)
    renderer = row.surface.renderer(asked, AnswerFacts("1", 1_795_000_000, "v/m"))
    try:
        with Deadlines(600.0) as clock:
            decoder = sent.target.dialect.stream(sent)
            opened = OpenStream(body, decoder, *await until_content(body, decoder))
            clock.commit(idle, progress, LONGEST)
            await Relay(opened, renderer, lambda data: True, clock, record, asked).run()
    except DeadlinePassed as passed:
        return passed.phase, asyncio.get_running_loop().time()
    raise AssertionError("the stream ended")


def expired_limit(row: Row, body: Body, idle: float = IDLE, progress: float = PROGRESS) -> tuple[Phase, float]:
    """Return which limit expires, and when."""
    return run(_expired_limit(row, body, idle, progress))


@looped("name", ROWS)
def test_pings_are_no_content_on_any_surface(name: str) -> None:
    assert expired_limit(ROWS[name], pings(ROWS[name])) == (Phase.PROGRESS, PROGRESS)


@looped("name", ROWS)
def test_pings_are_a_sign_of_life_on_every_surface(name: str) -> None:
    row = ROWS[name]
    assert expired_limit(row, pings(row), 4 * EVERY, 2 * LONGEST) == (Phase.STREAM, LONGEST)


@looped("name", ROWS)
def test_each_event_of_content_renews_the_limit_between_pings(name: str) -> None:
    row = ROWS[name]
    steps = 17 - len(begun_events(row.stream))
    assert expired_limit(row, slow(row)) == (Phase.PROGRESS, steps * 1.5 + PROGRESS)
