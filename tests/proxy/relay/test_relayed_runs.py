"""A stream read with shortcuts, above all runs, reaches the client as it does event by event: the same writes, the
same record, the same failure, whatever the vendor sends and however it is cut."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.unified_request import UnifiedRequest
from proxy.request_outcomes import WaitMarks
from proxy.surfaces.registry import SURFACES
from proxy.surfaces.responses import build_output
from proxy.surfaces.responses.responses_surface import RESPONSES
from proxy.surfaces.surface import Surface
from tests.providers.dialects.kit import chat_request, text_request
from tests.proxy.kit.both_ways import Outcome, relayed_both_ways
from tests.proxy.kit.chat_events import (
    ALSO_OPENED,
    BEGIN,
    BEGUN,
    CALLED,
    CALLING,
    DONE,
    END,
    HEAD,
    LITERALS,
    LONG,
    ODD,
    OPENED,
    OTHERS,
    OWN,
    PADDED,
    ROLE,
    STOP,
    STOP_TEXT,
    THINKING,
    USAGE,
    argued,
    beside,
    chat,
    completion,
    cut,
    event,
    thought,
)
from tests.proxy.kit.mark_streams import CUT, Step
from tests.proxy.kit.virtual_time import VirtualLoop
from tests.support.dialects import fixture_path
from tests.support.examples import examples
from tests.support.looped import looped
from tests.support.nightly import run, some

LOOP = VirtualLoop()
CHAT, TEXT = chat_request(), text_request()
OPENAI, FIM = SURFACES[:2]
CHAT_SURFACES = [surface for surface in SURFACES if surface is not FIM]


@pytest.fixture(scope="module", autouse=True)
def loop_that_is_closed() -> Iterator[None]:
    yield
    LOOP.close()


def compared_outcome(
    steps: Sequence[Step], asked: UnifiedRequest = CHAT, surface: Surface = OPENAI, profile: str = "openai"
) -> tuple[Outcome, int]:
    """Return the outcome of the steps, equal with all shortcuts and without them, and how many texts were read in
    runs."""
    found = relayed_both_ways(LOOP, steps, asked, surface, profile)
    return found.outcome, found.led


_places = st.lists(st.integers(0, 10**6), max_size=12)
_chats = st.sampled_from(LITERALS).map(chat)
_texts = st.text(max_size=8).map(lambda text: chat(b'"%b"' % text.encode("utf-8", "replace")))
_padded = st.tuples(st.sampled_from(LITERALS), st.text('ab\\"é', max_size=5)).map(
    lambda found: chat(found[0], b',"obfuscation":"%b"' % found[1].encode())
)
_identified = st.tuples(st.sampled_from(LITERALS), st.integers(0, 10**20), st.sampled_from((b"1", b"22", b"\\u0041")))
_renamed = _identified.map(
    lambda found: chat(found[0], head=HEAD.replace(b"c-1", found[2]).replace(b"1795000000", b"%d" % found[1]))
)
_beside = st.sampled_from((b'"role":"assistant"', b'"role":null,"reasoning_content":null', b'"tool_calls":[]'))
_besides = st.builds(beside, _beside, st.sampled_from(LITERALS), st.sampled_from((b"", OWN, b',"x_groq":{"id":"s"}')))
_thoughts = st.builds(thought, st.sampled_from(LITERALS), st.sampled_from((b"reasoning", b"reasoning_content")))
_argued = st.builds(argued, st.sampled_from(LITERALS), st.integers(0, 2))
_others = st.one_of(
    _thoughts,
    _argued,
    st.sampled_from(OTHERS),
    st.sampled_from((thought(b'"x"'), argued(b'"y"'))).map(lambda found: found * 3),
)
_kinds = (_others, _chats, _texts, _padded, _renamed, _besides, st.sampled_from(ODD), st.just(chat(b'" sky"') * 3))
_streams = st.lists(st.one_of(*_kinds), max_size=14).map(b"".join)


@given(_streams, _places, st.sampled_from((b"", CUT)), st.sampled_from(BEGUN))
@examples(500)
def test_a_chat_is_relayed_the_same(stream: bytes, places: list[int], end: Step, begin: bytes) -> None:
    compared_outcome([*cut(begin + stream + END, places), end])


@given(_streams, st.sampled_from(BEGUN))
@examples(100)
def test_event_by_event_is_relayed_the_same(stream: bytes, begin: bytes) -> None:
    events = [each + b"\n\n" for each in (begin + stream + END).split(b"\n\n")]
    compared_outcome([*events, b""])


@given(_streams, st.sampled_from(BEGUN), _places, st.sampled_from(CHAT_SURFACES), st.booleans(), st.booleans())
@examples(400)
def test_every_surface_writes_the_same(
    stream: bytes, begin: bytes, places: list[int], surface: Surface, usage: bool, legacy: bool
) -> None:
    asked = replace(CHAT, stream_options=replace(CHAT.stream_options, include_usage=usage), legacy_calls=legacy)
    compared_outcome([*cut(begin + stream + END, places), b""], asked, surface)


@given(
    st.lists(st.sampled_from(LITERALS).map(completion), max_size=8).map(b"".join),
    _places,
    st.sampled_from(SURFACES[:6]),
)
@examples(100)
def test_a_completion_is_relayed_the_same(stream: bytes, places: list[int], surface: Surface) -> None:
    compared_outcome([*cut(completion(b'"He"') * 3 + stream + STOP_TEXT + DONE, places), b""], TEXT, surface)


def end(reason: bytes, after: bytes = b"", delta: bytes = b"{}", more: bytes = b"") -> bytes:
    return event(b'{"index":0,"delta":%b,"finish_reason":%b%b}' % (delta, reason, more), after)


CALL = event(b'{"index":0,"delta":{"tool_calls":[{"index":0,"id":"t","function":{"name":"f","arguments":"{}"}}]}}')
ENDS = (
    *(STOP, end(b'"stop"'), end(b'"length"'), end(b'"STOP"'), end(b'"eos"'), end(b'""'), end(b"null"), end(b"7")),
    *(end(b'"tool_calls"'), end(b'"error"'), end(b'"stop"') * 2, end(b'"stop"').replace(b'"index":0', b'"index":1')),
    *(end(b'"stop"', b',"service_tier":"flex"'), end(b'"stop"', b',"service_tier":7'), end(b'"stop"', b',"x":1')),
    *(end(b'"stop"', b',"system_fingerprint":"f9"'), end(b'"stop"', b',"provider":"P"'), end(b'"stop"', b',"id":7')),
    *(end(b'"stop"', more=b',"logprobs":%b' % held) for held in (b"null", b"{}", b'{"content":[]}')),
    *(end(b'"stop"', more=b',"%b":7' % name) for name in (b"stop_reason", b"matched_stop", b"text", b"message", b"x")),
    *(end(b'"stop"', more=b',"native_finish_reason":"%b"' % reason) for reason in (b"stop", b"STOP", b"other")),
    *(end(b'"stop"', delta=held) for held in (b"null", b'{"content":""}', b'{"content":"z"}', b'{"role":"assistant"}')),
    *(end(b'"stop"', delta=b'{"refusal":"no"}'), CALL + end(b'"stop"'), CALL + end(b'"length"'), USAGE + STOP),
    *(STOP + chat(b'"late"'), STOP.replace(b"}]", b'}],"usage":{"prompt_tokens":1,"completion_tokens":2}'), DONE, b""),
)
BEGINS = (
    *(b"", ROLE, ROLE * 2, ROLE.replace(b"}]", b"}]" + OWN), CALL, ROLE + CALL, BEGIN, USAGE, STOP),
    *(chat(b'"a"', OWN), ROLE + chat(b'"a"', OWN), ROLE + chat(b'"a"', b',"provider":"P"') + chat(b'"b"')),
    event(b'{"index":0,"delta":{"reasoning_content":"r"}}'),
    ROLE + chat(b'"a"', b',"citations":["https://x.example/"]') + chat(b'"b[1]"'),
    event(b'{"index":0,"delta":{"role":"assistant"}},{"index":1,"delta":{"role":"assistant"}}'),
)


@looped("last", ENDS)
def test_each_begin_with_each_end_is_relayed_the_same(last: bytes) -> None:
    for first in BEGINS:
        stream = first + chat(b'"x"') * 2 + last + USAGE + DONE
        compared_outcome([*[each + b"\n\n" for each in stream.split(b"\n\n")], b""])


FIXTURES = sorted(fixture_path("openai").rglob("*.sse"))


@given(st.data())
@examples(300)
def test_vendors_streams_with_events_repeated_and_bytes_changed_are_relayed_the_same(data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(FIXTURES))
    events = path.read_bytes().split(b"\n\n")
    place = data.draw(st.integers(0, len(events) - 1))
    stream = bytearray(b"\n\n".join([*events[:place], *events[place : place + 2] * 4, *events[place:]]))
    for _ in range(data.draw(st.integers(0, 2))):
        where = data.draw(st.integers(0, len(stream) - 1))
        stream[where : where + data.draw(st.integers(0, 2))] = data.draw(st.sampled_from(CHANGES))
    asked = TEXT if "completion" in path.name else CHAT
    profile = path.parent.name if path.parent.name in PROFILES else "openai"
    compared_outcome([*cut(bytes(stream), data.draw(_places)), b""], asked, profile=profile)


CHANGES = (b"", b'"', b"\\", b"\n", b"\r", b"\x00", b"\xff", b"1", b",", b"{", b"}", b"\\u", b" ", "é".encode())
PROFILES = ("azure", "deepseek", "fireworks", "groq", "mistral", "openrouter", "perplexity", "together", "vllm", "xai")


CONTENT = b'"content":'


@pytest.mark.thorough
@pytest.mark.parametrize("literal", LITERALS)
def test_a_stream_cut_at_every_byte_is_relayed_the_same(literal: bytes) -> None:
    before = chat(b'"b"')
    tail = before + chat(literal) + chat(b'"c"')
    start = tail.index(CONTENT, len(before)) + len(CONTENT)
    literally = range(start - 2, min(start + len(literal) + 2, start + 300))
    # The JSON around the literal is the same in each row.
    step = (1 + len(tail) // 600) * (1 if run.nightly else 4)
    for place in sorted({*range(0, len(tail), step), *literally}):
        compared_outcome([*BEGIN.splitlines(keepends=True), chat(b'"x"'), tail[:place], tail[place:] + END, b""])


@looped("odd", some(ODD, 3))
def test_what_is_no_event_of_the_run_is_relayed_the_same(odd: bytes) -> None:
    again = BEGIN + 3 * (odd + chat(b'"x"')) + END
    for stream in (
        LONG + odd + LONG + END,
        again,
        LONG + odd * 3 + chat(b'"x"') + odd + END,
        CALLING + odd + argued(b'"{}"') * 3 + odd + argued(b'"x"', 1) + argued(b'"y"') + END,
        THINKING + odd + thought(b'"a"') * 3 + odd + chat(b'"x"') + thought(b'"b"') + END,
        PADDED + odd + LONG + END,
    ):
        compared_outcome([stream, b""])
        compared_outcome([*[each + b"\n\n" for each in stream.split(b"\n\n")], b""])
        compared_outcome([*[stream[start : start + 700] for start in range(0, len(stream), 700)], b""])
    compared_outcome([*again.split(b"\n"), b""])
    compared_outcome([*[again[start : start + 7] for start in range(0, len(again), 7)], b""])


OWN_TOO = b',"x_groq":{"id":"s"}'
REPEATED = (b',"provider":"P"', b',"service_tier":"f"', b',"system_fingerprint":"g"')
MEMBERS = (b"", OWN, OWN_TOO, b',"x_other":1', *REPEATED)


def events_with(reasoning: bool, members: bytes, count: int) -> bytes:
    """Return events of one part with further fields."""
    return (thought(b'"a"', after=members) if reasoning else chat(b'"a"', members)) * count


@given(
    st.lists(st.builds(events_with, st.booleans(), st.sampled_from(MEMBERS), st.integers(1, 3)), max_size=12), _places
)
@examples(300)
def test_members_that_come_and_go_are_relayed_the_same(said: list[bytes], places: list[int]) -> None:
    stream = ROLE + b"".join(said) + END
    compared_outcome([*[each + b"\n\n" for each in stream.split(b"\n\n")], b""])
    compared_outcome([*cut(stream, places), b""])


_opened = st.builds(
    argued,
    st.sampled_from((b'""', b'"{"')),
    st.integers(0, 1),
    st.integers(0, 4).map(lambda number: CALLED % number),
    st.sampled_from((b',"name":"f"', b',"name":"g"', b"")),
)
_continued = st.builds(argued, st.sampled_from((b'"a"', b'"\\""')), st.integers(0, 1))
_legacy = st.sampled_from((b'{"name":"h","arguments":""}', b'{"arguments":"b"}')).map(
    lambda call: event(b'{"index":0,"delta":{"function_call":%b},"finish_reason":null}' % call)
)


@given(st.lists(st.one_of(_opened, _continued.map(lambda found: found * 3), _continued, _legacy), max_size=10), _places)
@examples(600)
def test_calls_that_take_each_others_places_are_relayed_the_same(calls: list[bytes], places: list[int]) -> None:
    stream = CALLING + b"".join(calls) + END
    compared_outcome([*[each + b"\n\n" for each in stream.split(b"\n\n")], b""])
    compared_outcome([*cut(stream, places), b""])


# Streams that are read in runs ----------------------------------------------------------------------------------------

WORDS = [b'" w%d"' % number for number in range(200)]


def padded(number: int, word: bytes) -> bytes:
    return chat(word, b',"obfuscation":"%b"' % (b"x" * (number % 9)))


def renamed(number: int, word: bytes) -> bytes:
    return chat(word, head=HEAD.replace(b"c-1", b"c-%d" % number).replace(b"1795", b"%d" % (1795 + number)))


SHAPES = {
    "plain": [chat(word) for word in WORDS],
    "padded": [padded(number, word) for number, word in enumerate(WORDS)],
    "renamed": [renamed(number, word) for number, word in enumerate(WORDS)],
    "spaced": [chat(word).replace(b":", b": ").replace(b",", b", ") for word in WORDS],
    "no space": [chat(word).replace(b"data: ", b"data:") for word in WORDS],
    "CRLF": [chat(word).replace(b"\n", b"\r\n") for word in WORDS],
    "escaped": [chat(b'"\\n%b' % word[1:]) for word in WORDS],
    "Chinese": [chat('"天空%d"'.encode() % number) for number in range(200)],
    "null usage": [chat(word, b',"usage":null') for word in WORDS],
    "role": [beside(b'"role":"assistant"', word) for word in WORDS],
    "nulls": [beside(b'"role":null,"reasoning_content":null,"tool_calls":null', word) for word in WORDS],
    "own": [chat(word, OWN + b',"provider":"P"') for word in WORDS],
    "reasoning": [thought(word) for word in WORDS],
    "reasoning beside null": [thought(word, more=b',"content":null') for word in WORDS],
    "arguments": [OPENED, *(argued(word) for word in WORDS[1:])],
    "arguments escaped": [OPENED, *(argued(b'"\\"%b' % word[1:]) for word in WORDS[1:])],
    "arguments of a second call": [OPENED, ALSO_OPENED, *(argued(word, 1) for word in WORDS[2:])],
    "fingerprint": [chat(word, b',"system_fingerprint":"fp"') for word in WORDS],
    "completion": [completion(word) for word in WORDS],
}


@looped("shape", SHAPES)
def test_all_but_the_first_events_are_read_in_runs(shape: str) -> None:
    events = SHAPES[shape]
    asked, stop = (TEXT, STOP_TEXT) if shape == "completion" else (CHAT, STOP)
    outcome, led = compared_outcome([*events, stop, DONE, b""], asked)
    assert (outcome.failure, outcome.record.chunks) == (None, 202)
    assert led >= 196
    assert compared_outcome(
        [b"".join([*events[:100], events[100][:50]]), events[100][50:] + b"".join([*events[101:], stop]), DONE, b""],
        asked,
    )[1] >= (90 if shape == "CRLF" else 190)


@looped("shape", sorted(SHAPES.keys() - {"CRLF", "completion", "renamed"}))
@looped("surface", [OPENAI, RESPONSES])
def test_events_that_differ_in_their_text_alone_are_relayed_without_the_decoder(shape: str, surface: Surface) -> None:
    found = relayed_both_ways(LOOP, [*SHAPES[shape], STOP, DONE, b""], CHAT, surface)
    if surface is RESPONSES and shape == "arguments of a second call":
        return  # is held back until the first call ends
    assert found.outcome.record.chunks == 202
    assert found.asked < 8


@looped("surface", CHAT_SURFACES)
def test_each_surface_writes_a_read_at_once(surface: Surface) -> None:
    events = SHAPES["plain"]
    outcome, _ = compared_outcome([*events[:3], b"".join(events[3:]), STOP, DONE, b""], CHAT, surface)
    assert outcome.writes[3].count(b"data: ") == 197


@looped("begin", [ROLE, THINKING, OPENED])
def test_the_chunk_for_which_a_response_has_no_room_is_refused_as_ever(begin: bytes) -> None:
    """Whether the chunk is plain or not: the part that was counted before is not counted twice."""
    made: dict[bytes, Callable[[bytes], bytes]] = {ROLE: chat, THINKING: thought, OPENED: argued}
    one = made[begin]
    for last in (b'"word"', b'"\\"w\\"xyz"', '"wört"'.encode()):
        for room in range(200, 212):
            with patch.object(build_output, "MAX_TEXT", room):
                events = [begin, *[one(b'"\\"b"')] * 90, *[one(last)] * 20]
                found = compared_outcome([*events, STOP, DONE, b""], CHAT, RESPONSES)[0]
            assert found.failure is not None


def test_a_form_that_changes_each_time_is_learned_a_few_times_only() -> None:
    events = [chat(word, b',"service_tier":"%d"' % number) for number, word in enumerate(WORDS)]
    assert compared_outcome([*events, STOP, DONE, b""])[1] == 0


def test_an_event_too_long_to_be_kept_gives_no_form() -> None:
    events = [chat(b'"x"', b',"model":"%b"' % (b"m" * 5000))] * 10
    assert compared_outcome([*events, STOP, DONE, b""])[1] == 0


def test_long_pieces_are_read_event_by_event() -> None:
    events = b"".join(SHAPES["plain"][:100]) * 60
    assert len(events) > 1024 * 1024 // 2
    compared_outcome([LONG, events, events, STOP, DONE, b""])


@looped("surface", CHAT_SURFACES)
@looped("piece", [b'"abcd"', b'"\\"b\\\\d"', '"é\\u00e9"'.encode()])
def test_reasoning_and_arguments_count_where_the_vendor_reports_no_usage(surface: Surface, piece: bytes) -> None:
    for events in ([ROLE, *[thought(piece)] * 50], [ROLE, OPENED, *[argued(piece)] * 50]):
        outcome, led = compared_outcome([*events, end(b'"length"'), DONE, b""], CHAT, surface)
        assert led >= 40
        usage = outcome.record.usage
        assert usage is not None
        assert (usage.completion_tokens, usage.estimated) == (50 + (OPENED in events), True)


@looped("surface", CHAT_SURFACES)
def test_a_call_without_arguments_is_shown_with_an_empty_object_beside_one_read_in_runs(surface: Surface) -> None:
    pieces = [argued(b'"{"'), argued(b'"\\"x\\":\\""'), *[argued(b'"y"')] * 50, argued(b'"\\"}"')]
    outcome, led = compared_outcome(
        [ROLE, OPENED, ALSO_OPENED, *pieces, end(b'"tool_calls"'), DONE, b""], CHAT, surface
    )
    assert led >= 45
    shown = b"".join(outcome.writes)
    assert shown.count(b'"{}"') >= 1
    if surface is OPENAI:
        assert shown.index(b'"tool_calls":[{"index":1,"function":{"arguments":"{}"}}]') < shown.index(b'"tool_calls"}')


def test_each_long_silence_is_a_stall() -> None:
    said: list[Step] = [chat(b'" a"'), chat(b'" b"'), 1.5, chat(b'" c"'), 0.5, chat(b'" d"'), 2.5]
    found = relayed_both_ways(LOOP, [BEGUN[0], *said, STOP, USAGE, DONE, b""]).outcome
    assert found.record.waits() == WaitMarks(stalls=2, stalled=4.0)
