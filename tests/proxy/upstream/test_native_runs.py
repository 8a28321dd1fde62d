"""Streams of native dialects that are read in runs give the same as event by event: the same events, the same
failure, the same end, whatever the vendor sends and however it is cut."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from providers.completion import StreamEvent, StreamPart, TextRun
from providers.dialect import RunDecoder, StreamDecoder, UpstreamRequest
from providers.failure import Failure, UpstreamError
from providers.json_types import JsonObject
from proxy.upstream.read_answer import until_content
from proxy.upstream.vendor_stream import reader_of
from tests.providers.dialects.kit import chat_request, fixture, names_in, sent_for, target_of
from tests.proxy.kit.mark_streams import Body
from tests.support.examples import examples
from tests.support.looped import looped
from tests.support.nightly import by_day

Read = Callable[[bytes], Iterable[StreamPart]]

FOLDERS = {"anthropic": "anthropic", "vertex_anthropic": "anthropic", "cohere": "cohere"}
"""The folder of fixtures of each profile."""

SENT = {profile: sent_for(chat_request(), target_of(profile)) for profile in FOLDERS}
FIXTURES = [
    (profile, fixture(folder, "streams", name))
    for profile, folder in FOLDERS.items()
    for name in names_in(folder, "streams")
]
TEXTS = {
    "anthropic": b"event: content_block_delta\n"
    b'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%b}}\n\n',
    "cohere": b"event: content-delta\n"
    b'data: {"type":"content-delta","index":0,"delta":{"message":{"content":{"text":%b}}}}\n\n',
}
TEXTS["vertex_anthropic"] = TEXTS["anthropic"]
BEGIN = b'data: {"type":"content_block_start","index":%d,"content_block":{"type":"text","text":""}}\n\n'
BEGUN = {"anthropic": BEGIN % 0 + BEGIN % 1, "vertex_anthropic": BEGIN % 0 + BEGIN % 1, "cohere": b""}
"""The bytes that a vendor sends before the first text of the first two blocks."""
CUT = st.lists(st.integers(0, 5000), max_size=8)


def outcome(
    decoder: StreamDecoder, read: Read, pieces: Sequence[bytes]
) -> tuple[list[StreamEvent], Failure | None, int]:
    """Return the events of a stream, its failure, and how many texts were in runs."""
    events: list[StreamEvent] = []
    led = 0
    try:
        read_all = itertools.chain.from_iterable(read(piece) for piece in pieces if not decoder.complete)
        for part in itertools.chain(read_all, ended(decoder)):
            if isinstance(part, TextRun):
                led += len(part.literals)
                events += part.chunks()
            else:
                events.append(part)
    except UpstreamError as error:
        return events, error.failure, led
    return events, None, led


def ended(decoder: StreamDecoder) -> Iterator[StreamEvent]:
    yield from decoder.finish()


def compared_runs(sent: UpstreamRequest, data: bytes, places: Sequence[int] = ()) -> int:
    """Read a stream cut at these places with and without runs, which must give the same; return how many texts were
    in runs."""
    ends = sorted({place % len(data) for place in places} - {0}) if data else []
    pieces = [data[start:end] for start, end in itertools.pairwise([0, *ends, len(data)])]
    single, decoder = sent.target.dialect.stream(sent), sent.target.dialect.stream(sent)
    assert isinstance(decoder, RunDecoder)
    expected = outcome(single, single.feed, pieces)
    found = outcome(decoder, reader_of(decoder), pieces)
    assert found[:2] == expected[:2]
    assert decoder.complete == single.complete
    return found[2]


def text_event(profile: str, literal: bytes) -> bytes:
    return TEXTS[profile] % literal


def longer(profile: str, data: bytes, said: Sequence[bytes]) -> bytes:
    """Return a stream with further texts in it, half of them after its first event and half after its last text."""
    events = data.split(b"\n\n")
    place = max([place for place, each in enumerate(events) if b'text":"' in each], default=0) + 1
    texts = [text_event(profile, each).removesuffix(b"\n\n") for each in said]
    half = len(texts) // 2
    begun = BEGUN[profile].split(b"\n\n")[:-1] if half else []
    return b"\n\n".join([*events[:1], *begun, *texts[:half], *events[1:place], *texts[half:], *events[place:]])


@looped("profile", FOLDERS)
def test_texts_are_read_in_runs(profile: str) -> None:
    data = longer(
        profile, fixture(FOLDERS[profile], "streams", "text.sse"), [b'"a"', b'"\\u00e9"', '"天"'.encode()] * 20
    )
    assert compared_runs(SENT[profile], data) >= 55
    assert compared_runs(SENT[profile], data, range(0, len(data), 1000)) >= 40


@looped(("profile", "data"), FIXTURES)
@settings(max_examples=by_day(5, 15))
@given(CUT)
def test_every_recorded_stream_means_the_same(profile: str, data: bytes, places: list[int]) -> None:
    compared_runs(SENT[profile], data, places)
    said = [b'"a"', b'" b"', b'"\\n"', b'""', b'"c"']
    compared_runs(SENT[profile], longer(profile, data, said), places)
    compared_runs(SENT[profile], longer(profile, data, said).replace(b"\n", b"\r\n"), places)


LITERALS = st.sampled_from(
    [
        b'"a"',
        b'" b"',
        b'""',
        b'"\\""',
        b'"\\\\"',
        b'"\xc3\xa9"',
        b'"\xff"',
        b'"\\ud83d"',
        b"7",
        b"null",
        b'"x\n"',
        b'"\x01"',
    ]
)


@examples(150)
@given(
    st.sampled_from(FIXTURES),
    st.lists(LITERALS, max_size=8),
    st.lists(
        st.tuples(st.integers(0, 5000), st.sampled_from([b"", b"x", b'"', b"\n", b"\n\n", b"{", b"\r", b'"text":"'])),
        max_size=3,
    ),
    CUT,
)
def test_every_damaged_stream_means_the_same(
    stream: tuple[str, bytes], said: list[bytes], damages: list[tuple[int, bytes]], places: list[int]
) -> None:
    profile, data = stream
    data = longer(profile, data, said)
    for place, noise in damages:
        at = place % (len(data) + 1)
        data = data[:at] + noise + data[at + 1 :]
    compared_runs(SENT[profile], data, places)


CHANGES = {
    "anthropic": [
        (b'"index":0', b'"index":1'),
        (b"text_delta", b"thinking_delta"),
        (b"}}\n", b'},"error":{"message":"x"}}\n'),
    ],
    "cohere": [
        (b'"index":0', b'"index":1'),
        (b'"text":', b'"thinking":"t","text":'),
        (b"}}}}\n", b'}}},"logprobs":{"token_ids":[1],"logprobs":[-0.5]}}\n'),
    ],
}
CHANGES["vertex_anthropic"] = [*CHANGES["anthropic"], (b"event: content_block_delta\n", b"")]


@looped("profile", FOLDERS)
@examples(60)
@given(
    st.tuples(st.integers(0, 15), st.integers(0, 15)),
    st.lists(st.tuples(st.sampled_from([b'"a"', b'"\xc3\xa9"']), st.sampled_from([0, 0, 0, 1])), max_size=14),
    CUT,
)
def test_events_that_differ_in_more_than_their_text_mean_the_same(
    profile: str, kinds: tuple[int, int], said: list[tuple[bytes, int]], places: list[int]
) -> None:
    events = []
    for literal, kind in said:
        event = text_event(profile, literal)
        for number, (before, after) in enumerate(CHANGES[profile]):
            if kinds[kind] >> number & 1:
                event = event.replace(before, after)
        events.append(event)
    data = fixture(FOLDERS[profile], "streams", "citations.sse" if profile == "cohere" else "cited.sse")
    first, middle, rest = data.partition(b"\n\n")
    compared_runs(SENT[profile], first + middle + BEGUN[profile] + b"".join(events) + rest, places)


@looped("profile", FOLDERS)
def test_a_choice_that_is_unwrapped_makes_no_run(profile: str) -> None:
    sent = sent_for(chat_request(), target_of(profile))
    object.__setattr__(sent, "unwrap_choice", True)
    data = longer(profile, fixture(FOLDERS[profile], "streams", "text.sse"), [b'"a"'] * 9)
    assert compared_runs(sent, data) == 0


def test_an_error_of_googles_front_end_is_found_after_a_run() -> None:
    begun = BEGUN["vertex_anthropic"] + text_event("vertex_anthropic", b'"a"') * 3
    error = b'{"error":{"code":503,"status":"UNAVAILABLE","message":"gone"}}\n'
    cut = len(begun) * 2 // 3 + 10
    assert compared_runs(SENT["vertex_anthropic"], begun + error, [cut, len(begun)]) >= 2


def test_what_follows_half_an_error_of_googles_is_of_the_error() -> None:
    begun = BEGUN["vertex_anthropic"] + text_event("vertex_anthropic", b'"a"') * 3
    error = b'{"error":{"code":503,\n\n'
    places = [len(begun), len(begun) + len(error)]
    assert (
        compared_runs(SENT["vertex_anthropic"], begun + error + begun, places)
        == compared_runs(SENT["vertex_anthropic"], begun)
        > 0
    )


@looped("profile", FOLDERS)
@looped("together", [1, 3])
async def test_a_run_is_the_first_content(profile: str, together: int) -> None:
    decoder = SENT[profile].target.dialect.stream(SENT[profile])
    ping = b'event: ping\ndata: {"type":"ping"}\n\n'
    body = Body(BEGUN[profile] + ping, text_event(profile, b'"a"') * together, text_event(profile, b'"b"'))
    parts, ended = await until_content(body, decoder)
    assert [type(part) for part in parts] == [TextRun]
    assert (body.left, ended) == (1, False)


# Arguments of calls --------------------------------------------------------------------------------------------------


def block(kind: bytes, index: int, rest: bytes) -> bytes:
    return b'event: content_block_%b\ndata: {"type":"content_block_%b","index":%d%b}\n\n' % (kind, kind, index, rest)


def called(index: int, given: bytes = b"{}") -> bytes:
    made = b'{"type":"tool_use","id":"t%d","name":"f%d","input":%b}' % (index, index, given)
    return block(b"start", index, b',"content_block":' + made)


def argued(index: int, literal: bytes, more: bytes = b"") -> bytes:
    return block(b"delta", index, b',"delta":{"type":"input_json_delta","partial_json":%b}%b' % (literal, more))


def _call_event(found: tuple[int, int, bytes]) -> bytes:
    kind, index, literal = found
    kinds = (
        called(index, b"{}" if literal == b'""' else b'{"a":1}'),
        block(b"stop", index, b""),
        text_event("anthropic", literal).replace(b'"index":0', b'"index":%d' % index),
        argued(index, literal, b',"error":{"message":"x"}'),
        argued(index, literal).replace(b"input_json_delta", b"text_delta"),
        BEGIN % index,
    )
    return kinds[kind] if kind < len(kinds) else argued(index, literal) * (kind - 5)


_PARTS = st.tuples(st.integers(0, 9), st.integers(0, 2), LITERALS).map(_call_event)


@pytest.mark.parametrize("profile", ["anthropic", "vertex_anthropic"])
@examples(300)
@given(st.lists(_PARTS, max_size=12), CUT)
def test_calls_mean_the_same(profile: str, parts: list[bytes], places: list[int]) -> None:
    first, middle, rest = fixture("anthropic", "streams", "tools.sse").partition(b"\n\n")
    compared_runs(SENT[profile], first + middle + called(0) + argued(0, b'"{"') * 2 + b"".join(parts) + rest, places)


@pytest.mark.parametrize("profile", ["anthropic", "vertex_anthropic"])
def test_arguments_are_read_in_runs_of_each_call(profile: str) -> None:
    first, middle, _ = fixture("anthropic", "streams", "tools.sse").partition(b"\n\n")
    calls = [called(index) + argued(index, b'"\\"a"') * 20 + block(b"stop", index, b"") for index in range(5)]
    places = [len(first + middle), *itertools.accumulate(map(len, calls), initial=len(first + middle))]
    assert compared_runs(SENT[profile], first + middle + b"".join(calls), places) == 100


def test_arguments_of_a_custom_tool_make_no_run() -> None:
    tool: JsonObject = {"type": "custom", "custom": {"name": "f0"}}
    sent = sent_for(chat_request(tools=[tool]), target_of("anthropic"))
    assert sent.custom_tools
    first, middle, _ = fixture("anthropic", "streams", "tools.sse").partition(b"\n\n")
    data = first + middle + called(0) + argued(0, b'"{\\"input\\":\\"a"') + argued(0, b'"b"') * 9
    assert compared_runs(sent, data) == 0
