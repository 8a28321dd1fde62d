"""Claude's streams on Anthropic's API and on Vertex AI: the vendor's own events, and the gateway's events that are read
from them.

`recorded` holds streams and responses of Anthropic's API from vercel/ai ed857f5 `packages/anthropic/src/__fixtures__`,
and from anthropics/anthropic-sdk-python 009b0353 `tests/lib/streaming/fixtures`.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import anthropic
import httpx2
import orjson
import pytest
from anthropic.types.beta import BetaMessageParam

from providers.completion import Chunk, StreamEvent
from providers.dialect import UpstreamRequest
from providers.failure import FailureKind
from providers.framing.parse_sse import SSEParser
from tests.providers.dialects.anthropic.kit import FIXTURES, TARGET
from tests.providers.dialects.anthropic.native_kit import own_call, own_request
from tests.providers.dialects.kit import (
    check_cuts,
    check_pieces,
    chunks,
    decoded,
    gathered,
    only,
    stream_failure,
    streamed,
    target_of,
)
from tests.support.looped import looped

VERTEX = target_of("vertex_anthropic", max_output_tokens=100, base_url="https://us-aiplatform.googleapis.com/v1")
SENT = own_call(own_request(stream=True), TARGET)[0]
ON_VERTEX = own_call(own_request(stream=True), VERTEX)[0]
BROKEN = {"error_after_text.sse", "error_first.sse"}
WHOLE = [
    path
    for folder in ("streams", "recorded")
    for path in sorted((FIXTURES / folder).glob("*.sse"))
    if path.name not in BROKEN
]
PAIRS = sorted((FIXTURES / "recorded").glob("*.json"))
SANE = [path for path in WHOLE if path.stem != "noise"]
each_stream = looped("data", [pytest.param(path.read_bytes(), id=path.name) for path in WHOLE])


def plain(events: list[StreamEvent]) -> list[StreamEvent]:
    """Return the events without the vendor's own events, and without events that held nothing else."""
    bare = [replace(event, native=None) if isinstance(event, Chunk) else event for event in events]
    return [event for event in bare if event != Chunk()]


def client_stream(events: list[StreamEvent]) -> bytes:
    """The stream that a client would be shown."""
    natives = [chunk.native for chunk in chunks(events) if chunk.native is not None]
    return b"".join([b"event: %b\ndata: %b\n\n" % (native.name.encode(), native.data) for native in natives])


def vendor_events(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Return the vendor's events that have a name, up to the end of the response."""
    parser = SSEParser()
    for name, payload in [*parser.feed(data), *parser.finish()]:
        try:
            kind = orjson.loads(payload)["type"]
        except (orjson.JSONDecodeError, TypeError, KeyError):
            continue
        yield kind or name, payload
        if kind == "message_stop":
            return


@each_stream
@looped("sent", [SENT, ON_VERTEX], ids=["anthropic", "vertex"])
def test_every_event_is_shown_as_the_vendor_sent_it(sent: UpstreamRequest, data: bytes) -> None:
    parser = SSEParser()
    read = [*parser.feed(client_stream(streamed(sent, data)))]
    assert [(name, payload) for name, payload in read] == [
        (name, payload.replace(b"\n", b" ")) for name, payload in vendor_events(data)
    ]


@each_stream
def test_the_meaning_is_that_of_a_translated_call(data: bytes) -> None:
    assert plain(streamed(SENT, data)) == streamed(replace(SENT, native=False), data)


@each_stream
def test_the_events_are_the_same_whatever_the_pieces(data: bytes) -> None:
    check_pieces(SENT, data)


@each_stream
def test_a_stream_cut_at_any_byte_is_never_a_success(data: bytes) -> None:
    end = data.rindex(b"}", 0, data.rindex(b"message_stop") + 200) + 1
    check_cuts(SENT, data, end if data[end:].strip() == b"" else end + 1)


@looped("path", PAIRS, ids=lambda path: path.stem)
def test_a_recorded_answer_is_kept_whole_and_ends_as_its_stream_does(path: Path) -> None:
    body = path.read_bytes()
    whole, told = decoded(SENT, body), gathered(streamed(SENT, path.with_suffix(".sse").read_bytes()))
    assert (whole.native, told.native) == (body, None)
    assert only(whole).finish_reason == only(told).finish_reason


@pytest.mark.parametrize("name", ["error_after_text.sse", "error_first.sse"])
def test_an_error_event_is_a_failure_and_no_event_of_the_answer(name: str) -> None:
    data = (FIXTURES / "streams" / name).read_bytes()
    events, error = stream_failure(SENT, data)
    translated, same = stream_failure(replace(SENT, native=False), data)
    assert error.failure == same.failure
    assert plain(events) == translated
    assert b"error" not in client_stream(events)


def test_unknown_events_and_pings_are_shown() -> None:
    noise = b'event: ping\ndata: {"type":"ping"}\n\nevent: later\ndata: {"type":"later",\ndata: "a":1}\n\n: comment\n\n'
    data = noise + (FIXTURES / "streams" / "text.sse").read_bytes()
    events = streamed(SENT, data)
    assert client_stream(events).startswith(
        b'event: ping\ndata: {"type":"ping"}\n\nevent: later\ndata: {"type":"later", "a":1}\n\nevent: message_start\n'
    )
    assert plain(events) == plain(streamed(SENT, data.removeprefix(noise)))


@looped("data", [b"event: later\ndata: no json\n\n", b"data: 5\n\n", b'data: {"type":"a\\nb"}\n\n'])
def test_what_is_no_object_with_a_name_is_not_shown(data: bytes) -> None:
    events, error = stream_failure(SENT, data)
    assert (events, error.failure.kind) == ([], FailureKind.TRUNCATED)


@looped("data", [pytest.param(path.read_bytes(), id=path.name) for path in SANE])
def test_what_is_shown_is_the_same_message_to_the_vendor_s_client(data: bytes) -> None:
    assert assembled_by_the_sdk(client_stream(streamed(SENT, data))) == assembled_by_the_sdk(data)


def assembled_by_the_sdk(data: bytes) -> dict[str, object]:
    """The whole message that the vendor's own client makes of a stream."""
    transport = httpx2.MockTransport(
        lambda _: httpx2.Response(200, content=data, headers={"content-type": "text/event-stream"})
    )
    question: list[BetaMessageParam] = [{"role": "user", "content": "hi"}]
    with (
        httpx2.Client(transport=transport) as http,
        anthropic.Anthropic(api_key="k", http_client=http) as client,
        client.beta.messages.stream(model="m", max_tokens=9, messages=question) as answered,
    ):
        return answered.get_final_message().to_dict()
