"""Decoded responses of vendors of the OpenAI family: the same events in any chunks, and no success that was not
declared.

The bytes are in openai/fixtures, a folder for each row; README.md there names the sources of their shapes.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import orjson
from hypothesis import given
from hypothesis import strategies as st

from providers.completion import Chunk, ContentLogprobs, LegacyLogprobs, TokenLogprob, Usage
from providers.dialect import UpstreamRequest
from providers.dialects.shared.errors import classify
from providers.failure import FailureKind, UpstreamError
from providers.json_types import JsonValue
from providers.profiles.load_profiles import load_profiles
from tests.providers.dialects.kit import chunks, cut_places, usage_in
from tests.providers.dialects.openai.kit import (
    DIALECT,
    FIXTURES,
    choices_in,
    failing,
    fixture,
    frame,
    pieces,
    played,
    sent,
    text,
    unbroken,
)
from tests.support.looped import looped


@dataclass(frozen=True, slots=True)
class Answer:
    """The content of a stream: texts and finish reasons by choice, and the totals of its usage."""

    texts: tuple[str, ...]
    finishes: tuple[str, ...]
    totals: tuple[int, int] | None = None


STREAMS: dict[str, Answer] = {
    "openai/chat": Answer(("Grüße 👋🏽 aus\u2028Köln", "Hi there"), ("stop", "length"), (9, 11)),
    "openai/refusal": Answer(("I can't help.",), ("stop",)),
    "openai/tools": Answer(("",), ("tool_calls",)),
    "openai/completion": Answer((" Paris",), ("length",)),
    "openai/complete": Answer(("Four.",), ("tool_calls",), (30, 12)),
    "azure/complete": Answer(("Four.",), ("stop",), (30, 12)),
    "fireworks/complete": Answer(("Four.",), ("tool_calls",), (30, 12)),
    "together/complete": Answer(("Four.",), ("tool_calls",), (30, 12)),
    "groq/complete": Answer(("Four.",), ("tool_calls",), (30, 12)),
    "mistral/complete": Answer(("Four.",), ("tool_calls",), (30, 12)),
    "openrouter/complete": Answer(("Four.",), ("tool_calls",), (30, 12)),
    "cerebras/complete": Answer(("Four.",), ("tool_calls",), (30, 12)),
    "perplexity/complete": Answer(("Four [1][2].",), ("stop",), (30, 12)),
    "xai/complete": Answer(("Four.",), ("stop",), (30, 12)),
    "azure/chat": Answer(("Kopi susu",), ("stop",)),
    "fireworks/completion": Answer(("one two",), ("length",), (3, 2)),
    "together/completion": Answer(("A b",), ("stop",), (4, 3)),
    "groq/chat": Answer(("Quick reply",), ("stop",), (12, 3)),
    "mistral/thinking": Answer(("Four.",), ("stop",), (7, 10)),
    "mistral/tools": Answer(("",), ("tool_calls",), (7, 20)),
    "deepseek/chat": Answer(("Yes.",), ("stop",), (20, 5)),
    "openrouter/chat": Answer(("Sure",), ("stop",), (6, 4)),
    "vllm/chat": Answer(("ab",), ("stop",), (3, 2)),
    "vllm/batch": Answer(("a0a1", "b0b1", "c0", "d0d1"), ("stop", "length", "stop", "length"), (10, 7)),
    "sglang/completion": Answer(("x", "y"), ("stop", "length"), (5, 4)),
    "llamacpp/completion": Answer(("hola",), ("length",), (4, 2)),
    "ollama/completion": Answer(("Blue sky",), ("stop",), (26, 3)),
    "ollama/tools": Answer(("",), ("tool_calls",)),
    "lm_studio/chat": Answer(("One two",), ("stop",)),
    "tgi/completion": Answer(("deep learning",), ("stop",)),
    "scale_genai/completion": Answer(("mittens",), ("stop",), (2, 2)),
    "openai_compatible/crlf": Answer(("CR",), ("stop",)),
    "openai_compatible/extras": Answer(("Extra",), ("stop",)),
    "openai_compatible/multiline": Answer(("Many lines",), ("stop",)),
    "openai_compatible/empty_head": Answer(("No head",), ("stop",)),
    "vllm/keepalive": Answer(("up",), ("stop",)),
    "xai/chat": Answer(("Paris.",), ("stop",), (32, 103)),
    "xai/tools": Answer(("",), ("tool_calls",)),
    "perplexity/chat": Answer(("Oslo it is",), ("stop",), (5, 4)),
    "cerebras/chat": Answer(("Yes",), ("stop",), (70, 12)),
    "sambanova/chat": Answer(("Zwei Äpfel",), ("stop",), (11, 4)),
    "nim/chat": Answer(("Fine",), ("stop",), (8, 2)),
    "hyperbolic/chat": Answer(("Up",), ("stop",), (5, 2)),
    "deepinfra/chat": Answer(("Deep in",), ("stop",), (7, 3)),
    "nebius/chat": Answer(("Two",), ("stop",), (9, 6)),
    "novita/completion": Answer((" sea",), ("length",), (3, 1)),
    "huggingface/chat": Answer(("<think>\nEasy</think>\nFour",), ("stop",), (6, 8)),
    "databricks/chat": Answer(("The first",), ("stop",), (20, 6)),
    "github_models/chat": Answer(("GitHub",), ("stop",), (6, 2)),
    "moonshot/chat": Answer(("Luna",), ("stop",), (19, 13)),
    "zai/chat": Answer(("Guten",), ("stop",), (10, 5)),
    "zai/sensitive": Answer(("It",), ("content_filter",)),
    "dashscope/qwq": Answer(("Darum",), ("stop",), (14, 21)),
    "gemini_compat/chat": Answer(("Hallo",), ("stop",), (4, 2)),
    "gemini_compat/tools": Answer(("",), ("tool_calls",), (30, 12)),
    "cohere_compat/chat": Answer(("Recur",), ("stop",), (9, 3)),
    "localai/chat": Answer(("Local",), ("stop",), (3, 3)),
}

BROKEN_STREAMS: dict[str, tuple[str, FailureKind, int | None]] = {
    "groq/error": ("Qu", FailureKind.SERVER, None),
    "deepseek/overloaded": ("Ye", FailureKind.OVERLOADED, None),
    "openrouter/error": ("Su", FailureKind.SERVER, 502),
    "openrouter/error_overloaded": ("Su", FailureKind.OVERLOADED, 502),
    "openrouter/error_policy": ("Su", FailureKind.CONTENT_FILTER, 502),
    "openrouter/error_tokens": ("Su", FailureKind.CONTEXT_LENGTH, 502),
    "vllm/error": ("a", FailureKind.SERVER, 500),
    "sglang/abort": ("x", FailureKind.SERVER, None),
    "llamacpp/error": ("ho", FailureKind.SERVER, 500),
    "lm_studio/overflow": ("One two", FailureKind.TRUNCATED, None),
    "tgi/error": ("deep", FailureKind.SERVER, None),
    "scale_genai/error": ("mit", FailureKind.OVERLOADED, 503),
    "cerebras/error": ("Ye", FailureKind.OVERLOADED, 503),
    "databricks/error": ("Th", FailureKind.SERVER, None),
    "zai/network": ("It", FailureKind.SERVER, None),
    "localai/error": ("Lo", FailureKind.SERVER, 500),
    "localai/text_error": ("Once", FailureKind.NONCONFORMING, None),
}

every_stream = looped("name", STREAMS)


def test_every_stream_of_a_row_is_in_a_table() -> None:
    files = {f"{path.parent.name}/{path.stem}" for path in FIXTURES.glob("*/*.sse")}
    assert files == STREAMS.keys() | BROKEN_STREAMS.keys()


def row(name: str) -> str:
    return name.partition("/")[0]


@cache
def asked(name: str) -> UpstreamRequest:
    """Return the call that a stream responds to."""
    return sent(row(name), choices=choices_in(stream(name)))


def stream(name: str) -> bytes:
    return fixture(f"openai/{name}.sse")


def own_fields_only(chunk: Chunk) -> Chunk:
    return Chunk(chunk.index, system_fingerprint=chunk.system_fingerprint, extras=chunk.extras)


def answer(events: list[Chunk], totals: Usage | None) -> Answer:
    indices = sorted({chunk.index for chunk in events})
    finishes: list[str] = []
    for index in indices:
        # Chunks with only the vendor's own fields may follow the end.
        own = [chunk.finish_reason for chunk in events if chunk.index == index and chunk != own_fields_only(chunk)]
        assert [reason is not None for reason in own] == [False] * (len(own) - 1) + [True]
        finishes.append(str(own[-1]))
    texts = tuple("".join(chunk.text for chunk in events if chunk.index == index) for index in indices)
    counted = None if totals is None else (totals.prompt_tokens, totals.completion_tokens)
    return Answer(texts, tuple(finishes), counted)


@every_stream
def test_a_vendor_s_stream_comes_to_its_answer(name: str) -> None:
    events = unbroken(asked(name), stream(name))
    assert answer(chunks(events), usage_in(events)) == STREAMS[name]


@every_stream
@looped("size", [1, 7, 4096])
def test_a_stream_gives_the_same_events_in_pieces_of_any_size(name: str, size: int) -> None:
    whole, _ = played(asked(name), stream(name))
    assert played(asked(name), *pieces(stream(name), size)) == (whole, None)


@every_stream
def test_a_stream_cut_at_any_byte_is_never_taken_for_a_whole_one(name: str) -> None:
    data, expected = stream(name), STREAMS[name]
    for cut in cut_places(data):
        events, failure = played(asked(name), data[:cut])
        finished = [chunk for chunk in chunks(events) if chunk.finish_reason is not None]
        if failure is None and len(finished) == len(expected.finishes):
            # Only usage and the terminator may be missing.
            found = answer(chunks(events), None)
            assert (found.texts, found.finishes) == (expected.texts, expected.finishes), cut
        else:
            assert failure is None or failure.kind is FailureKind.TRUNCATED, (cut, failure)


@looped("name", BROKEN_STREAMS)
@looped("size", [1, 4096])
def test_a_stream_that_breaks_keeps_its_beginning_and_says_why(name: str, size: int) -> None:
    said, kind, status = BROKEN_STREAMS[name]
    events, failure = played(asked(name), *pieces(stream(name), size))
    assert failure is not None
    assert (text(events), failure.kind, failure.status) == (said, kind, status)
    assert not any(chunk.finish_reason for chunk in chunks(events))
    assert "10.0.0.7" not in failure.message


def test_details_of_usage_come_from_where_each_vendor_puts_them() -> None:
    cached = {"openai/chat": 4, "fireworks/completion": 1, "mistral/thinking": 3, "deepseek/chat": 16}
    for name, tokens in cached.items():
        found = usage_in(played(asked(name), stream(name))[0])
        assert found is not None
        assert found.prompt_details is not None
        assert found.prompt_details["cached_tokens"] == tokens, name
    for name, tokens in {"deepseek/chat": 2, "sglang/completion": 1, "openrouter/chat": 3}.items():
        found = usage_in(played(asked(name), stream(name))[0])
        assert found is not None
        assert found.completion_details is not None
        assert found.completion_details["reasoning_tokens"] == tokens, name


def test_tool_calls_are_numbered_densely_and_begin_with_id_and_name() -> None:
    expected = {
        "openai/tools": [("call_a", "weather", '{"city":"Köln"}'), ("call_b", "time", "{}")],
        "mistral/tools": [("D681PevKs", "weather", '{"city": "Paris"}'), ("E792QfwLt", "weather", '{"city": "Nice"}')],
        "ollama/tools": [("call_1", "add", '{"a":1}')],
    }
    for name, calls in expected.items():
        deltas = [call for chunk in chunks(played(asked(name), stream(name))[0]) for call in chunk.tool_calls]
        assert sorted({delta.index for delta in deltas}) == list(range(len(calls)))
        found = []
        for index in range(len(calls)):
            own = [delta for delta in deltas if delta.index == index]
            assert all(delta.id is None and delta.name is None for delta in own[1:])
            found.append((own[0].id, own[0].name, "".join(delta.arguments for delta in own)))
        assert found == calls, name


def test_log_probabilities_are_read_in_each_vendor_s_shape() -> None:
    def first(name: str) -> object:
        return chunks(played(sent(row(name), chats=False), stream(name))[0])[0].logprobs

    assert first("openai/completion") == LegacyLogprobs((" Par",), (-0.25,), ({" Par": -0.25, " Lon": -2.5},), (36,))
    assert first("sglang/completion") == LegacyLogprobs(("x",), (-0.5,), ({"x": -0.5},), None)
    token = TokenLogprob("ho", -1.5, (104, 111))
    assert first("llamacpp/completion") == ContentLogprobs((TokenLogprob("ho", -1.5, (104, 111), (token,)),))
    assert first("together/completion") is not None


def test_the_stop_that_ended_a_text_is_kept() -> None:
    ends = {"vllm/chat": ["END"], "vllm/batch": [128009, None, None, None], "sglang/completion": ["\n", None]}
    for name, stops in ends.items():
        finished = [chunk for chunk in chunks(played(asked(name), stream(name))[0]) if chunk.finish_reason]
        assert [chunk.matched_stop for chunk in sorted(finished, key=lambda chunk: chunk.index)] == stops


def test_a_vendor_s_own_word_for_the_end_is_kept_beside_ours() -> None:
    for name, word in {"together/completion": "eos", "tgi/completion": "stop_sequence", "openai/chat": None}.items():
        finished = [chunk for chunk in chunks(played(asked(name), stream(name))[0]) if chunk.finish_reason]
        assert finished[0].native_finish_reason == word


def test_whole_answers_are_read_in_each_vendor_s_shape() -> None:
    found = {
        name: DIALECT.decode(sent(row(name)), fixture(f"openai/{name}.json"))
        for name in ("azure/filtered", "together/completion", "mistral/length", "deepseek/slow", "vllm/echo")
    }
    first = {name: completion.choices[0] for name, completion in found.items()}
    assert (first["azure/filtered"].text, first["azure/filtered"].finish_reason) == ("", "content_filter")
    assert first["together/completion"].logprobs == LegacyLogprobs(("A", " b"), (-0.5, -1.25), None, None)
    assert (first["mistral/length"].finish_reason, first["mistral/length"].native_finish_reason) == (
        "length",
        "model_length",
    )
    assert (first["deepseek/slow"].text, first["deepseek/slow"].reasoning) == ("late", "because")
    echoed = first["vllm/echo"].logprobs
    assert isinstance(echoed, LegacyLogprobs)
    assert (echoed.token_logprobs, echoed.text_offset) == ((None, -1.0, -2.0, -0.5, -9999.0), (0, 1, 2, 3, 4))
    assert found["together/completion"].usage == Usage(4, 2)


def test_fireworks_answers_a_flag_with_a_content_list() -> None:
    found = DIALECT.decode(sent("fireworks", chats=False), fixture("openai/fireworks/bool_logprobs.json"))
    top = (TokenLogprob("Hi", -0.5, (72, 105)), TokenLogprob("Yo", -1.5))
    assert found.choices[0].logprobs == ContentLogprobs((TokenLogprob("Hi", -0.5, (72, 105), top),))
    assert found.usage == Usage(1, 1)


def test_a_whole_answer_to_a_streamed_request_is_one_chunk_a_choice() -> None:
    body = fixture("openai/openai_compatible/whole_instead_of_stream.json")
    events = unbroken(sent("openai_compatible"), *pieces(body, 7))
    (only,) = chunks(events)
    assert (only.text, only.finish_reason, usage_in(events)) == ("all at once", "tool_calls", Usage(1, 3))
    assert [(call.name, call.arguments) for call in only.tool_calls] == [("f", '{"a":1}')]
    for cut in range(1, len(body)):
        assert failing(sent("openai_compatible"), body[:cut])[1] is FailureKind.TRUNCATED


def test_two_calls_without_ids_in_two_answers_get_four_ids() -> None:
    body = fixture("openai/openai_compatible/whole_instead_of_stream.json")
    answers = [body, body.replace(b"chatcmpl-W1", b"chatcmpl-W2")]
    ids = {DIALECT.decode(sent(), each).choices[0].tool_calls[0].id for each in answers}
    assert len(ids) == 2
    assert DIALECT.decode(sent(), body) == DIALECT.decode(sent(), body)


def places(value: JsonValue, *path: str | int) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of every value within a value."""
    yield path
    if isinstance(value, dict):
        for name, member in value.items():
            yield from places(member, *path, name)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from places(item, *path, index)


def replaced_at(value: JsonValue, path: tuple[str | int, ...], by: JsonValue) -> JsonValue:
    """Return a copy in which the value at a path is replaced."""
    if not path:
        return by
    first, *rest = path
    if isinstance(value, dict):
        return {
            name: replaced_at(member, tuple(rest), by) if name == first else member for name, member in value.items()
        }
    assert isinstance(value, list)
    return [replaced_at(item, tuple(rest), by) if index == first else item for index, item in enumerate(value)]


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2**63) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)


@given(st.data())
def test_whatever_stands_in_an_answer_s_place_the_answer_is_read_or_a_failure(data: st.DataObject) -> None:
    files = [path for path in sorted(FIXTURES.glob("*/*.json")) if path.read_bytes().strip()]
    file = data.draw(st.sampled_from(files))
    body: JsonValue = orjson.loads(file.read_bytes())
    path = data.draw(st.sampled_from(list(places(body))))
    raw = orjson.dumps(replaced_at(body, path, data.draw(ANYTHING)))
    with contextlib.suppress(UpstreamError):
        DIALECT.decode(sent(file.parent.name), raw)
    classify(load_profiles()[file.parent.name], 400, {}, raw)


@given(st.data())
def test_whatever_stands_in_a_frame_s_place_the_stream_is_read_or_a_failure(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from([name for name in (*STREAMS, *BROKEN_STREAMS) if "multiline" not in name]))
    frames = [orjson.loads(line.partition(b":")[2]) for line in stream(name).splitlines() if b'{"' in line]
    at = data.draw(st.integers(0, len(frames) - 1))
    path = data.draw(st.sampled_from(list(places(frames[at]))))
    frames[at] = replaced_at(frames[at], path, data.draw(ANYTHING))
    played(sent(row(name), unwrap=data.draw(st.booleans())), *[frame(each) for each in frames])
