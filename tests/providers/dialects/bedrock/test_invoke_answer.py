"""Responses of the text models on InvokeModel: the same if streamed or not, and never a success that was not
declared."""

from base64 import b64encode
from itertools import pairwise

import orjson

from providers.completion import Choice, Chunk, Extras, StreamEvent, Usage
from providers.dialect import Dialect
from providers.dialects.bedrock.invoke_answer import InvokeStream, chunk_payload, decode_stream, decode_whole
from providers.dialects.bedrock.invoke_models import FAMILIES, InvokeFamily
from providers.dialects.registry import DIALECTS
from providers.failure import FailureKind
from providers.json_types import JsonObject
from tests.providers.dialects.bedrock.kit import FIXTURES, answer, chunk, event, frame, hold_cuts, invoked, target
from tests.providers.dialects.kit import chunks, sent_for, text_of, text_request, usage_in
from tests.providers.kit import failure_of
from tests.support.looped import looped

DIALECT: Dialect = DIALECTS["bedrock_invoke"]
TITAN, LLAMA, MISTRAL, R1, COHERE = FAMILIES
MAKERS: dict[str, InvokeFamily] = {
    "titan": TITAN,
    "llama": LLAMA,
    "mistral": MISTRAL,
    "deepseek": R1,
    "cohere": COHERE,
    "guardrail": LLAMA,
}
MODELS = {
    "titan": "amazon.titan-text-premier-v1:0",
    "llama": "meta.llama3-1-8b-instruct-v1:0",
    "mistral": "mistral.mistral-7b-instruct-v0:2",
    "deepseek": "deepseek.r1-v1:0",
    "cohere": "cohere.command-text-v14",
    "guardrail": "meta.llama3-1-8b-instruct-v1:0",
}


def pieces(family: InvokeFamily, *events: JsonObject) -> list[StreamEvent]:
    stream = InvokeStream(family)
    found = [each for one in events for each in stream.feed(chunk(orjson.dumps(one)))]
    return [*found, *stream.finish()]


def test_the_fixtures_are_all_here() -> None:
    assert {path.stem for path in (FIXTURES / "invoke").iterdir()} == set(MAKERS)


@looped(
    ("name", "choice", "usage"),
    [
        ("titan", Choice(0, "\nIt is 3 °C.", "stop"), Usage(6, 5)),
        ("llama", Choice(0, " It is 3 °C.", "length"), Usage(7, 5)),
        (
            "guardrail",
            Choice(0, "Sorry, this cannot be talked about.", "content_filter", "guardrail_intervened"),
            Usage(7, 0),
        ),
    ],
)
def test_a_whole_answer_is_read(name: str, choice: Choice, usage: Usage) -> None:
    completion = decode_whole(MAKERS[name], answer(name, "invoke"))
    assert (completion.choices, completion.usage) == ((choice,), usage)


@looped(
    ("name", "choice", "usage"),
    [
        ("mistral", Choice(0, " It is 3 °C.", "stop"), Usage(8, 5)),
        ("deepseek", Choice(0, "<think>\nOslo</think>3 °C.", "stop"), Usage(9, 6)),
        ("cohere", Choice(0, " It is 3 °C.", "stop"), Usage(4, 5)),
    ],
)
def test_a_whole_answer_is_read_out_of_a_stream_where_only_that_counts(name: str, choice: Choice, usage: Usage) -> None:
    completion = decode_stream(MAKERS[name], invoked(name))
    assert (completion.choices, completion.usage) == ((choice,), usage)
    failure = failure_of(lambda: decode_stream(MAKERS[name], invoked(name)[:-1]))
    assert failure.kind is FailureKind.TRUNCATED


@looped("name", MAKERS)
def test_a_stream_is_the_same_in_any_pieces_and_cut_at_any_byte_no_success(name: str) -> None:
    hold_cuts(DIALECT, invoked(name), sent_for(text_request(), target(MODELS[name], "bedrock_invoke")))


@looped("name", ["titan", "llama", "guardrail"])
def test_a_stream_says_what_the_whole_answer_says(name: str) -> None:
    whole = decode_whole(MAKERS[name], answer(name, "invoke"))
    stream = InvokeStream(MAKERS[name])
    events = list(stream.feed(invoked(name)))
    assert stream.complete
    assert list(stream.finish()) == []
    end = chunks(events)[-1]
    assert text_of(events) == whole.choices[0].text
    assert (end.finish_reason, end.native_finish_reason) == (
        whole.choices[0].finish_reason,
        whole.choices[0].native_finish_reason,
    )
    assert usage_in(events) == whole.usage


@looped(
    ("reason", "finish", "native"),
    [
        ("FINISH", "stop", None),
        ("LENGTH", "length", None),
        ("CONTENT_FILTERED", "content_filter", "CONTENT_FILTERED"),
        ("SUNSET", "SUNSET", "SUNSET"),
    ],
)
def test_every_word_for_the_end_has_its_meaning(reason: str, finish: str, native: str | None) -> None:
    body = {"results": [{"outputText": "a", "completionReason": reason}]}
    (choice,) = decode_whole(TITAN, orjson.dumps(body)).choices
    assert (choice.finish_reason, choice.native_finish_reason) == (finish, native)


def test_a_word_that_means_failure_is_an_error() -> None:
    body: JsonObject = {"generation": "a", "stop_reason": "error"}
    assert failure_of(lambda: decode_whole(LLAMA, orjson.dumps(body))).kind is FailureKind.SERVER
    streamed: JsonObject = {"is_finished": True, "finish_reason": "ERROR"}
    assert failure_of(lambda: pieces(COHERE, streamed)).kind is FailureKind.SERVER


def test_an_end_without_the_service_s_counts_ends_with_the_body() -> None:
    assert pieces(
        MISTRAL, {"outputs": [{"text": "a", "stop_reason": None}]}, {"outputs": [{"stop_reason": "stop"}]}
    ) == [Chunk(text="a"), Chunk(finish_reason="stop")]


def test_counts_in_a_piece_of_their_own_end_the_stream() -> None:
    metrics: JsonObject = {"amazon-bedrock-invocationMetrics": {"inputTokenCount": 0, "outputTokenCount": 1}}
    assert pieces(MISTRAL, {"outputs": [{"text": "a", "stop_reason": "stop"}]}, {"outputs": [], **metrics}) == [
        Chunk(text="a"),
        Chunk(finish_reason="stop", extras=Extras(answer=metrics)),
        Usage(0, 1),
    ]


def test_what_the_service_adds_to_an_answer_is_passed_on() -> None:
    added: JsonObject = {"amazon-bedrock-trace": {"guardrail": {"a": 1}}}
    body: JsonObject = {"outputs": [{"text": "a", "stop_reason": "stop"}], **added}
    family = next(each for each in FAMILIES if each.choices == "outputs")
    assert decode_whole(family, orjson.dumps(body)).extra == added


def test_counts_before_the_end_do_not_end_it() -> None:
    metrics: JsonObject = {"amazon-bedrock-invocationMetrics": {"inputTokenCount": 3}}
    assert failure_of(lambda: pieces(MISTRAL, metrics)).kind is FailureKind.TRUNCATED


def test_what_a_guardrail_says_is_blocked_whatever_follows() -> None:
    blocked: JsonObject = {"generation": "Sorry.", "amazon-bedrock-guardrailAction": "INTERVENED"}
    events = pieces(LLAMA, blocked, {"generation": "", "stop_reason": "stop", "amazon-bedrock-guardrailAction": "NONE"})
    assert chunks(events)[-1].finish_reason == "content_filter"


def test_an_exception_ends_the_stream_where_it_stands() -> None:
    data = invoked("llama")[: len(chunk((FIXTURES / "invoke" / "llama.events").read_bytes().splitlines()[0]))]
    stream, found = InvokeStream(LLAMA), list[StreamEvent]()
    late = frame('exception modelTimeoutException {"message":"Too slow."}')
    failure = failure_of(lambda: found.extend(stream.feed(data + late)))
    assert failure.kind is FailureKind.TIMEOUT
    assert found == [Chunk(text=" It is")]
    assert not stream.complete


def test_nothing_is_read_after_the_end() -> None:
    stream = InvokeStream(LLAMA)
    list(stream.feed(invoked("llama") + b"nonsense that is no frame"))
    assert stream.complete
    assert list(stream.feed(b"nonsense")) == []


def test_events_of_other_kinds_and_empty_pieces_change_nothing() -> None:
    data = event("notice", b"no json") + event("chunk", b"{}") + invoked("llama")
    assert list(InvokeStream(LLAMA).feed(data)) == list(InvokeStream(LLAMA).feed(invoked("llama")))


@looped("payload", [b"", b"[]", b'{"bytes":"?"}', b'{"bytes":"e30"}'])
def test_pieces_that_make_no_sense_are_malformed(payload: bytes) -> None:
    assert failure_of(lambda: chunk_payload(payload)).kind is FailureKind.MALFORMED


@looped("inner", [b"{", b"[]", b"null"])
def test_model_bytes_that_are_no_object_are_malformed(inner: bytes) -> None:
    assert failure_of(lambda: list(InvokeStream(LLAMA).feed(chunk(inner)))).kind is FailureKind.MALFORMED
    assert chunk_payload(orjson.dumps({"bytes": b64encode(inner).decode()})) == inner


@looped(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b"{}",
        b'{"generation":"a"}',
        b'{"stop_reason":"stop"}',
        b'{"generation":3,"stop_reason":"stop"}',
    ],
)
def test_whole_answers_that_make_no_sense_are_malformed(body: bytes) -> None:
    assert failure_of(lambda: decode_whole(LLAMA, body)).kind is FailureKind.MALFORMED


def test_a_body_of_many_streams_ends_with_the_first() -> None:
    data = invoked("titan")
    events = list(InvokeStream(TITAN).feed(data + data))
    assert [isinstance(one, Chunk) and isinstance(two, Usage) for one, two in pairwise(events)][-1]
    assert text_of(events) == "\nIt is 3 °C."
