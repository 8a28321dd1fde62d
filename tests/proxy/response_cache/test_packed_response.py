"""Responses packed as bytes and unpacked again, byte for byte."""

from typing import get_args

from hypothesis import given, settings
from hypothesis import strategies as st

from providers.completion import (
    Choice,
    Chunk,
    Completion,
    ContentLogprobs,
    Extras,
    LegacyLogprobs,
    NativeEvent,
    RunPart,
    StreamEvent,
    TokenLogprob,
    ToolCall,
    ToolCallDelta,
    Usage,
)
from proxy.response_cache.packed_response import (
    FORM,
    EventPacker,
    EventReader,
    join,
    pack_completion,
    pack_head,
    run_of,
    unpack,
)
from proxy.upstream.vendor_stream import without_runs

HEAD = pack_head("v/m/default", ("stop",), ("seed",), 12)
TEXTS = st.sampled_from(["", "a", "é", '"', "\n", "\ud800", "one two"])
MAYBE = st.none() | TEXTS
COUNTS = st.none() | st.dictionaries(TEXTS, st.integers(), max_size=2)
JSON = st.sampled_from([None, True, 1, 1.0, 2**70, "\ud800", "é", [], [1, {"a": None}], {"": "Choice"}])
MEMBERS = st.none() | st.dictionaries(TEXTS, JSON, max_size=2)
OBJECTS = st.lists(st.dictionaries(TEXTS, JSON, max_size=2), max_size=2).map(tuple)
USAGES = st.builds(Usage, st.integers(), st.integers(), COUNTS, COUNTS, st.booleans(), MEMBERS)
LEAVES = st.builds(
    TokenLogprob, TEXTS, st.floats(-9999.0, 0.0), st.none() | st.lists(st.integers(0, 255), max_size=3).map(tuple)
)
TOKENS = st.builds(
    lambda leaf, top: TokenLogprob(leaf.token, leaf.logprob, leaf.bytes, top),
    LEAVES,
    st.lists(LEAVES, max_size=2).map(tuple),
)
LOGPROBS = (
    st.none()
    | st.builds(ContentLogprobs, st.lists(TOKENS, max_size=2).map(tuple))
    | st.just(LegacyLogprobs(("a",), (None,), ({"a": -1.5}, None), (0,)))
    | st.just(LegacyLogprobs(("a",), (-0.5,), None, None))
)
EXTRAS = st.none() | st.builds(Extras, OBJECTS, OBJECTS, OBJECTS, MEMBERS, MEMBERS, MEMBERS, MEMBERS)
CALLS = st.lists(st.builds(ToolCall, TEXTS, TEXTS, TEXTS, extra=MEMBERS), max_size=2).map(tuple)
DELTAS = st.lists(st.builds(ToolCallDelta, st.integers(0, 3), MAYBE, MAYBE, TEXTS), max_size=2).map(tuple)
CHOICES = st.builds(
    *(Choice, st.integers(0, 3), TEXTS, st.sampled_from(["stop", "length"]), MAYBE, LOGPROBS, MAYBE, MAYBE, CALLS),
    *(st.none() | TEXTS | st.integers(), MAYBE, EXTRAS),
)
NATIVE = st.none() | st.binary(max_size=8)
COMPLETIONS = st.builds(
    Completion, st.lists(CHOICES, max_size=2).map(tuple), st.none() | USAGES, MAYBE, MAYBE, MEMBERS, NATIVE
)
CHUNKS = st.builds(
    *(Chunk, st.integers(0, 2), TEXTS, MAYBE, MAYBE, LOGPROBS, MAYBE, MAYBE, DELTAS, st.none() | st.integers()),
    *(MAYBE, MAYBE, MAYBE, EXTRAS, st.none() | st.builds(NativeEvent, TEXTS, st.binary(max_size=8))),
)
EVENTS: st.SearchStrategy[StreamEvent] = CHUNKS | USAGES | st.builds(lambda text: Chunk(text=text), TEXTS)


@settings(max_examples=30)
@given(COMPLETIONS)
def test_a_whole_answer_is_read_as_it_was(completion: Completion) -> None:
    kept = unpack(join(HEAD, pack_completion(completion), ()))
    assert kept is not None
    assert kept.completion == completion
    assert repr(kept.completion) == repr(completion)
    assert kept.events is None
    assert (kept.deployment, kept.emulated, kept.dropped, kept.max_tokens) == ("v/m/default", ("stop",), ("seed",), 12)


def read(packed: list[bytes]) -> list[StreamEvent]:
    kept = unpack(join(HEAD, None, packed))
    assert kept is not None
    assert kept.events is not None
    assert kept.completion is None
    return list(without_runs(EventReader().read(kept.events)))


@settings(max_examples=30)
@given(st.lists(EVENTS, max_size=4))
def test_the_events_of_a_stream_are_read_as_they_came(events: list[StreamEvent]) -> None:
    packer = EventPacker()
    found = read([packed for each in events for packed in packer.pack(each)])
    assert found == events
    assert repr(found) == repr(events)


@settings(max_examples=30)
@given(
    st.lists(st.lists(TEXTS.filter(bool), min_size=1, max_size=4), max_size=3),
    st.sampled_from(get_args(RunPart)),
    st.integers(0, 1),
    MAYBE,
)
def test_the_runs_of_a_stream_are_read_as_they_came(
    runs: list[list[str]], part: RunPart, index: int, fingerprint: str | None
) -> None:
    packer = EventPacker()
    chunks: list[StreamEvent] = []
    packed: list[bytes] = []
    for texts in runs:
        run = run_of(texts, fingerprint)
        run.index, run.part, run.call = index, part, index
        chunks += run.chunks()
        packed += packer.pack_run(run)
    if part == "text":
        assert [each.text for each in chunks if isinstance(each, Chunk)] == [text for texts in runs for text in texts]
    assert read(packed) == chunks


@given(st.binary(max_size=40) | st.sampled_from([b"[]", b"[[1,2,3,4],{}]", b'[["d",[],[],null],5]', b"[" * 5000]))
def test_bytes_that_are_no_answer_are_none(data: bytes) -> None:
    assert unpack(data) is None


def test_a_text_alone_takes_its_own_bytes_and_the_quotes() -> None:
    packer = EventPacker()
    assert packer.pack(Chunk(text="one")) == [b'"one"']
    assert packer.pack(Chunk(text="two", system_fingerprint="fp")) == [b'[2,"fp"]', b'"two"']
    assert packer.pack(Chunk(text="two", system_fingerprint="fp")) == [b'"two"']


def test_the_form_names_a_version_and_the_shape_of_the_records() -> None:
    version, _, shape = FORM.partition(":")
    assert version == "1"
    assert len(bytes.fromhex(shape)) == 8
