"""Claude's streams reach the client by runs as they do event by event: text, reasoning and arguments, translated for
each surface and as the vendor's own events."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.dialect import UpstreamRequest
from providers.json_types import JsonObject
from providers.unified_request import UnifiedRequest
from proxy.surfaces.anthropic.surface import ANTHROPIC
from proxy.surfaces.openai import OPENAI
from proxy.surfaces.responses.responses_surface import RESPONSES
from proxy.surfaces.surface import Surface
from tests.providers.dialects.anthropic.native_kit import own_call, own_request
from tests.providers.dialects.kit import chat_request, sent_for, target_of
from tests.proxy.kit.both_ways import Both, relayed_with_runs_and_without
from tests.proxy.kit.chat_events import LITERALS, cut
from tests.proxy.kit.mark_streams import CUT, Step
from tests.proxy.kit.virtual_time import VirtualLoop
from tests.support.dialects import fixture_path
from tests.support.examples import examples
from tests.support.looped import looped
from tests.support.nightly import some

LOOP = VirtualLoop()
CLAUDE = target_of("anthropic", max_output_tokens=100)
VERTEX = target_of("vertex_anthropic", max_output_tokens=100, base_url="https://us-aiplatform.googleapis.com/v1")
CHAT = replace(chat_request(), stream=True)
OWN = own_request(stream=True)


@dataclass(frozen=True, slots=True)
class TranslatedCall:
    """A request of a client, its surface, and the vendor's call."""

    surface: Surface
    asked: UnifiedRequest
    sent: UpstreamRequest


WAYS = {
    "chat": TranslatedCall(OPENAI, CHAT, sent_for(CHAT, CLAUDE)),
    "messages": TranslatedCall(ANTHROPIC, CHAT, sent_for(CHAT, CLAUDE)),
    "responses": TranslatedCall(RESPONSES, CHAT, sent_for(CHAT, CLAUDE)),
    "own": TranslatedCall(ANTHROPIC, OWN, own_call(OWN, CLAUDE)[0]),
    "own on Vertex AI": TranslatedCall(ANTHROPIC, OWN, own_call(OWN, VERTEX)[0]),
}


@pytest.fixture(scope="module", autouse=True)
def loop_that_is_closed() -> Iterator[None]:
    yield
    LOOP.close()


def compared_outcome(steps: Sequence[Step], way: str) -> Both:
    """Return the outcome of the steps read by runs, which equals the outcome event by event."""
    taken = WAYS[way]
    return relayed_with_runs_and_without(LOOP, steps, taken.asked, taken.surface, taken.sent)


def event(body: JsonObject) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (str(body["type"]).encode(), orjson.dumps(body))


def begun(index: int, block: JsonObject) -> bytes:
    return event({"type": "content_block_start", "index": index, "content_block": block})


def ended(index: int) -> bytes:
    return event({"type": "content_block_stop", "index": index})


_USAGE: JsonObject = {"input_tokens": 5, "output_tokens": 1}
BEGIN = event({"type": "message_start", "message": {"id": "m", "type": "message", "model": "c", "usage": _USAGE}})
END = event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}})
STOP = event({"type": "message_stop"})
TEXT = begun(0, {"type": "text", "text": ""})
THINKING = begun(0, {"type": "thinking", "thinking": "", "signature": ""})
CALL = begun(0, {"type": "tool_use", "id": "t1", "name": "look", "input": {}})
_DELTA = (
    b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":{"type":"%b","%b":%b}}\n\n'
)
FIELDS = {
    "text": (TEXT, b"text_delta", b"text"),
    "thinking": (THINKING, b"thinking_delta", b"thinking"),
    "call": (CALL, b"input_json_delta", b"partial_json"),
}


def delta(block: str, literal: bytes, index: int = 0) -> bytes:
    """Return an event of a block with this literal."""
    _, kind, name = FIELDS[block]
    return _DELTA % (index, kind, name, literal)


SIGNED = _DELTA % (0, b"signature_delta", b"signature", b'"c2ln"')
CITED = _DELTA % (0, b"citations_delta", b"citation", b'{"type":"char_location","cited_text":"a"}')
OTHERS = (
    *(SIGNED, CITED, ended(0), ended(1), END, STOP, BEGIN, TEXT, THINKING, CALL, event({"type": "ping"})),
    *(begun(1, {"type": "thinking", "thinking": "a", "signature": ""}), begun(1, {"type": "text", "text": "b"})),
    *(begun(1, {"type": "tool_use", "id": "t2", "name": "f", "input": {}}), delta("thinking", b'"a"', 1)),
    *(begun(1, {"type": "redacted_thinking", "data": "x"}), begun(1, {"type": "server_tool_use", "id": "s"})),
    *(delta("call", b'"{}"', 1), delta("text", b'"a"', 1), delta("thinking", b'"a"').replace(b"}}", b'},"x":1}')),
    *(delta("thinking", b'"a"').replace(b"}}", b',"x":1}}'), delta("thinking", b'"a"').replace(b":0", b": 0")),
    *(delta("text", b'"a"').replace(b"\n", b"\r\n"), delta("text", b'"a"').replace(b"event: ", b"event:")),
    *(delta("text", b'"a"').replace(b"event: content_block_delta\n", b""), b": comment\n\n", b"\n", b"\xef\xbb\xbf"),
    *(event({"type": "error", "error": {"type": "overloaded_error", "message": "no"}}), delta("text", b'"a"')[:-9]),
)
_literals = st.one_of(
    st.sampled_from(LITERALS),
    st.text(max_size=6).map(lambda text: orjson.dumps(text.encode("utf-8", "replace").decode())),
)
_runs = st.builds(
    lambda block, said, opens: (FIELDS[block][0] if opens else b"") + b"".join([delta(block, each) for each in said]),
    st.sampled_from(sorted(FIELDS)),
    st.lists(_literals, min_size=1, max_size=5),
    st.booleans(),
)
_streams = st.lists(st.one_of(_runs, _runs, st.sampled_from(OTHERS)), max_size=8).map(b"".join)
_places = st.lists(st.integers(0, 10**6), max_size=12)


@given(_streams, _places, st.sampled_from((b"", CUT)), st.sampled_from(sorted(FIELDS)), st.sampled_from(sorted(WAYS)))
@examples(500)
def test_a_stream_is_relayed_the_same(stream: bytes, places: list[int], end: Step, block: str, way: str) -> None:
    opened = BEGIN + FIELDS[block][0] + delta(block, b'"{\\"a\\":"') * 2
    compared_outcome([*cut(opened + stream + ended(0) + END + STOP, places), end], way)


@given(_streams, st.sampled_from(sorted(FIELDS)), st.sampled_from(sorted(WAYS)))
@examples(300)
def test_event_by_event_is_relayed_the_same(stream: bytes, block: str, way: str) -> None:
    whole = BEGIN + FIELDS[block][0] + delta(block, b'"{\\"a\\":"') * 3 + stream + ended(0) + END + STOP
    compared_outcome([*[each + b"\n\n" for each in whole.split(b"\n\n")], b""], way)


FIXTURES = [
    path for folder in ("streams", "recorded") for path in sorted((fixture_path("anthropic") / folder).glob("*.sse"))
]


@looped("way", WAYS)
@looped("path", FIXTURES)
def test_recorded_streams_are_relayed_the_same_wherever_they_are_cut(path: object, way: str) -> None:
    assert hasattr(path, "read_bytes")
    data: bytes = path.read_bytes()
    compared_outcome([*[each + b"\n\n" for each in data.split(b"\n\n")], b""], way)
    for place in some(range(1, len(data)), 97):
        compared_outcome([data[:place], data[place:], b""], way)


@given(st.data())
@examples(200)
def test_recorded_streams_with_events_repeated_and_bytes_changed_are_relayed_the_same(data: st.DataObject) -> None:
    events = data.draw(st.sampled_from(FIXTURES)).read_bytes().split(b"\n\n")
    place = data.draw(st.integers(0, len(events) - 1))
    stream = bytearray(b"\n\n".join([*events[:place], *events[place : place + 2] * 4, *events[place:]]))
    for _ in range(data.draw(st.integers(0, 2))):
        where = data.draw(st.integers(0, len(stream) - 1))
        stream[where : where + data.draw(st.integers(0, 2))] = data.draw(
            st.sampled_from((b"", b'"', b"\\", b"\n", b"1"))
        )
    compared_outcome([*cut(bytes(stream), data.draw(_places)), b""], data.draw(st.sampled_from(sorted(WAYS))))


WORDS = [b'" word"', '" wörd"'.encode(), b'" \\"w\\n"', b'" \\ud83d\\ude00"'] * 50


@looped("way", WAYS)
@looped("block", FIELDS)
def test_events_that_differ_in_their_text_alone_are_relayed_without_the_decoder(block: str, way: str) -> None:
    said = [b'"{\\"a"', *WORDS, b'"\\":1}"'] if block == "call" else WORDS
    events = [delta(block, each) for each in said]
    found = compared_outcome([BEGIN, FIELDS[block][0], *events, ended(0), END, STOP, b""], way)
    assert found.outcome.failure is None
    assert found.led >= 195
    assert found.asked < 12


@looped("way", WAYS)
@looped("block", FIELDS)
def test_a_block_that_follows_another_is_one_of_its_own(block: str, way: str) -> None:
    opened, said = FIELDS[block][0], [delta(block, b'"{}"')] * 3
    second = opened.replace(b'"t1"', b'"t2"')
    compared_outcome([BEGIN, opened, *said, ended(0), second, *said, ended(0), END, STOP, b""], way)
    compared_outcome(
        [b"".join([BEGIN, opened, *said]), b"".join([*said, ended(0), second, *said, ended(0), END, STOP]), b""], way
    )
