"""ConverseStream: the same events whatever the cuts, and never a success that was not declared."""

from dataclasses import replace
from functools import partial

import orjson

from providers.completion import Chunk, Completion, Extras, StreamEvent, ToolCall, ToolCallDelta, Usage
from providers.dialect import UpstreamRequest
from providers.dialects.bedrock.converse_answer import decode_converse
from providers.dialects.registry import DIALECTS
from providers.emulation.collect_stream import Gatherer
from providers.failure import FailureKind
from providers.json_types import JsonObject
from providers.unified_request import Guided
from tests.providers.dialects.bedrock.kit import FIXTURES, answer, event, frames, hold_cuts, stream, target
from tests.providers.dialects.kit import SIZES, chat_request, chunks, sent_for, streamed, text_of, usage_in
from tests.providers.kit import failure_of
from tests.support.cpu_growth import growth
from tests.support.looped import looped

DIALECT = DIALECTS["bedrock"]
SENT = sent_for(replace(chat_request(), stream=True), target())
CHOOSE = sent_for(replace(chat_request(guided=Guided("choice", ("yes", "no"))), stream=True), target())
KEEP = sent_for(replace(chat_request(stop=(", three",), include_stop_str_in_output=True), stream=True), target())
WHOLE: tuple[str, ...] = ("text", "tools", "reasoning", "length", "stop_sequence", "guardrail", "window", "cached")
WHOLE += ("empty", "choice", "noise", "cited", "redacted", "grounded")
LATENCY = Extras(answer={"metrics": {"latencyMs": 913}})
BROKEN = ("error_first", "error_after_text", "error_frame")


def read(name: str, size: int = 4096) -> list[StreamEvent]:
    return streamed(SENT, stream(name), size)


def gathered(sent: UpstreamRequest, data: bytes) -> Completion:
    """Return the complete response of a stream in chunks of one byte."""
    gatherer = Gatherer(1)
    for each in streamed(sent, data, 1):
        gatherer.add(each)
    return gatherer.completion()


def deltas(events: list[StreamEvent]) -> list[ToolCallDelta]:
    return [delta for chunk in chunks(events) for delta in chunk.tool_calls]


def test_the_fixtures_are_all_here() -> None:
    assert sorted(path.stem for path in (FIXTURES / "streams").glob("*.events")) == sorted(WHOLE + BROKEN)


def test_the_raw_bytes_of_a_fixture_are_its_frames() -> None:
    assert (FIXTURES / "streams" / "text.bin").read_bytes() == stream("text")


@looped("name", WHOLE)
def test_a_stream_is_the_same_in_any_pieces_and_cut_at_any_byte_no_success(name: str) -> None:
    hold_cuts(DIALECT, stream(name), SENT)


@looped("name", ["text", "length", "guardrail", "window", "cached", "stop_sequence", "empty", "choice"])
def test_a_stream_says_what_the_whole_answer_says(name: str) -> None:
    whole, events = decode_converse(SENT, answer(name)), read(name)
    choice, end = whole.choices[0], chunks(events)[-1]
    assert (end.finish_reason, end.native_finish_reason) == (choice.finish_reason, choice.native_finish_reason)
    assert end.matched_stop == choice.matched_stop
    if name != "text":
        assert text_of(events) == choice.text
    usage = usage_in(events)
    assert usage is not None
    assert whole.usage == replace(usage, tier="flex" if name == "empty" else None)  # its stream names no tier


def test_text_comes_as_it_came_with_one_finish_and_one_usage() -> None:
    assert read("text") == [
        Chunk(text="Checking "),
        Chunk(text="Oslo: 3 °C "),
        Chunk(text="👋."),
        Chunk(finish_reason="stop", extras=LATENCY),
        Usage(21, 9),
    ]


def test_calls_are_counted_densely_and_an_empty_one_has_arguments() -> None:
    assert deltas(read("tools")) == [
        ToolCallDelta(0, "tooluse_k1", "get_weather"),
        ToolCallDelta(0, arguments='{"city":'),
        ToolCallDelta(0, arguments=' "Oslo"}'),
        ToolCallDelta(1, "tooluse_k2", "now"),
        ToolCallDelta(1, arguments="{}"),
    ]


def test_a_call_whose_block_never_stops_is_whole_at_the_end() -> None:
    data = b"".join(
        each for each in frames("tools") if each != event("contentBlockStop", b'{"contentBlockIndex":2,"p":"ab"}')
    )
    assert deltas(streamed(SENT, data))[-1] == ToolCallDelta(1, arguments="{}")


def test_calls_get_back_the_names_the_client_gave() -> None:
    sent = replace(SENT, tool_names={"get_weather": "get weather"})
    found = deltas(streamed(sent, stream("tools")))
    assert [delta.name for delta in found if delta.name] == ["get weather", "now"]


def test_reasoning_is_no_text_and_its_signature_is_neither() -> None:
    events = read("reasoning")
    assert "".join([chunk.reasoning or "" for chunk in chunks(events)]) == "The user wants Oslo."
    assert text_of(events) == "Oslo."


def test_prompt_tokens_include_the_cached_ones() -> None:
    assert usage_in(read("cached")) == Usage(3210, 2, {"cached_tokens": 3000, "cache_write_tokens": 200})


def test_a_signature_comes_in_a_piece_of_its_own_behind_the_thinking_it_signs() -> None:
    form: JsonObject = {"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0}
    assert [
        detail for chunk in chunks(read("reasoning")) if chunk.extras for detail in chunk.extras.reasoning_details
    ] == [
        {**form, "text": "The user "},
        {**form, "text": "wants Oslo."},
        {**form, "signature": "EqQB"},
        {"type": "reasoning.encrypted", "format": "anthropic-claude-v1", "index": 0, "data": "AAEC"},
    ]


def test_thinking_of_other_makers_is_not_said_to_be_claude_s() -> None:
    sent = sent_for(replace(chat_request(), stream=True), target("openai.gpt-oss-120b-1:0"))
    found = gathered(sent, stream("redacted")).choices[0]
    assert found.extras is not None
    (detail,) = found.extras.reasoning_details
    assert (detail["type"], detail["format"]) == ("reasoning.encrypted", "unknown")
    assert found.tool_calls == (ToolCall("call_61f8fcbe423a58699163c53e076f1a06", "propose", '{"groups":[]}'),)


def test_citations_of_documents_are_passed_on_behind_the_text_they_stand_before() -> None:
    found = gathered(SENT, stream("cited"))
    choice = found.choices[0]
    assert choice.text.startswith("Based on the supplied document, generative artificial")
    assert choice.extras is not None
    assert choice.extras.message is not None
    citations = choice.extras.message["citations"]
    assert isinstance(citations, list)
    assert len(citations) == 2
    assert found.extra == {"metrics": {"latencyMs": 8007}}


def test_a_stream_holds_what_the_service_s_own_tools_did_and_what_was_cited_from_the_web() -> None:
    found = gathered(SENT, stream("grounded"))
    (choice,) = found.choices
    assert choice.text == "See 👋: fjords are deep"
    assert choice.tool_calls == ()
    assert choice.extras == Extras(
        annotations=(
            {
                "type": "url_citation",
                "url_citation": {
                    "url": "https://example.com/fjords",
                    "title": "Fjords",
                    "start_index": 7,
                    "end_index": 22,
                },
            },
        ),
        images=({"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},),
        message={
            "content_blocks": [
                {
                    "toolUse": {
                        "toolUseId": "srv_1",
                        "name": "nova_grounding",
                        "type": "server_tool_use",
                        "input": {"q": "fjords"},
                    }
                },
                {
                    "toolResult": {
                        "toolUseId": "srv_1",
                        "status": "success",
                        "type": "nova_grounding_result",
                        "content": [{"text": "two hits"}, {"json": {"hits": 2}}],
                    }
                },
            ]
        },
    )
    assert found.extra == {
        "metrics": {"latencyMs": 9},
        "trace": {"guardrail": {"modelOutput": ["x"]}},
        "performanceConfig": {"latency": "optimized"},
        "additionalModelResponseFields": {"seed": 7},
    }
    assert found.service_tier == "priority"


def test_the_arguments_of_a_custom_tool_come_as_its_text_in_one_piece() -> None:
    sent = replace(SENT, custom_tools=frozenset({"get_weather"}))
    assert deltas(streamed(sent, stream("tools")))[:2] == [
        ToolCallDelta(0, "tooluse_k1", "get_weather", kind="custom"),
        ToolCallDelta(0, arguments='{"city": "Oslo"}', kind="custom"),
    ]


def test_events_and_blocks_nobody_knows_are_passed_on_beside_the_text() -> None:
    events = read("noise")
    assert text_of(events) == "Still here."
    assert chunks(events)[-1].finish_reason == "sunset"
    whole = gathered(SENT, stream("noise")).choices[0].extras
    assert whole is not None
    assert whole.message is not None
    assert orjson.loads(orjson.dumps(whole.message["content_blocks"]))[-1] == {"hologram": {"depth": 3}}
    assert whole.message["citations"] == [{"title": "A page"}]


@looped("kind", ["citation", "toolResult", "image"])
def test_many_pieces_of_a_block_are_read_in_linear_time(kind: str) -> None:
    piece: JsonObject = {"citation": {"title": "a"}} if kind == "citation" else {"toolResult": [{"text": "ab"}]}
    if kind == "image":
        piece = {"image": {"source": {"bytes": "AAEC"}}}
    delta = event("contentBlockDelta", orjson.dumps({"contentBlockIndex": 0, "delta": piece}))
    begin = event("contentBlockStart", orjson.dumps({"contentBlockIndex": 0, "start": {kind: {"format": "png"}}}))
    small, large = (begin + delta * count + stream("text") for count in (5000, 20_000))
    assert growth(partial(streamed, SENT, small, 1 << 16), partial(streamed, SENT, large, 1 << 16)) == ""


def test_the_matched_stop_string_is_told_and_put_back_when_asked_for() -> None:
    end = Chunk(finish_reason="stop", matched_stop=", three", extras=LATENCY)
    assert chunks(read("stop_sequence"))[-1] == end
    assert text_of(streamed(KEEP, stream("stop_sequence"))) == "one, two, three"


def test_a_choice_comes_unwrapped_in_one_piece() -> None:
    events = streamed(CHOOSE, stream("choice"), 1)
    assert [chunk.text for chunk in chunks(events)] == ["yes"]
    assert text_of(streamed(CHOOSE, stream("length"))) == "It never"
    failed = failure_of(lambda: streamed(CHOOSE, stream("text")))
    assert failed.kind is FailureKind.MALFORMED


@looped("size", SIZES)
@looped(
    ("name", "text", "kind"),
    [
        ("error_first", "", FailureKind.RATE_LIMITED),
        ("error_after_text", "Checking Oslo", FailureKind.OVERLOADED),
        ("error_frame", "Checking ", FailureKind.SERVER),
    ],
)
def test_an_error_frame_ends_the_stream_where_it_stands(name: str, text: str, kind: FailureKind, size: int) -> None:
    decoder, data = DIALECT.stream(SENT), stream(name)
    events: list[StreamEvent] = []
    pieces = (data[start : start + size] for start in range(0, len(data), size))
    failure = failure_of(lambda: events.extend(each for piece in pieces for each in decoder.feed(piece)))
    assert (failure.kind, failure.status) == (kind, None)
    assert text_of(events) == text
    assert not decoder.complete


def test_nothing_is_read_after_the_end() -> None:
    data = stream("text") + stream("error_first")
    for size in (1, len(data)):
        assert streamed(SENT, data, size) == read("text")


@looped(
    ("kind", "payload"),
    [
        ("contentBlockDelta", b"{"),
        ("contentBlockDelta", b"[]"),
        ("contentBlockStart", b'{"contentBlockIndex":0,"start":{"toolUse":{"name":"a"}}}'),
        ("contentBlockStart", b'{"start":{"toolUse":{"toolUseId":"a","name":"a"}}}'),
        ("metadata", b"{}"),
    ],
)
def test_events_that_make_no_sense_are_malformed(kind: str, payload: bytes) -> None:
    failure = failure_of(lambda: list(DIALECT.stream(SENT).feed(event(kind, payload))))
    assert failure.kind is FailureKind.MALFORMED


def test_a_stream_that_was_malformed_by_its_model_is_an_error() -> None:
    data = frames("text")[1] + event("messageStop", b'{"stopReason":"malformed_tool_use"}')
    decoder = DIALECT.stream(SENT)
    assert len(list(decoder.feed(data))) == 1
    usage = orjson.dumps({"usage": {"inputTokens": 1, "outputTokens": 1}})
    assert failure_of(lambda: list(decoder.feed(event("metadata", usage)))).kind is FailureKind.NONCONFORMING


@looped(
    ("kind", "payload"),
    [
        ("contentBlockDelta", b"{}"),
        ("contentBlockDelta", b'{"delta":{"text":""}}'),
        ("contentBlockDelta", b'{"delta":{"text":null}}'),
        ("contentBlockStart", b'{"start":null}'),
        ("contentBlockStop", b'{"contentBlockIndex":[]}'),
        ("chunk", b"no json"),
    ],
)
def test_events_without_what_is_needed_are_passed_over(kind: str, payload: bytes) -> None:
    assert streamed(SENT, event(kind, payload) + stream("text")) == read("text")


def test_a_stream_without_counts_has_no_usage() -> None:
    data = b"".join([*frames("text")[:-1], event("metadata", b'{"metrics":{"latencyMs":1}}')])
    events = streamed(SENT, data)
    assert chunks(events)[-1].finish_reason == "stop"
    assert usage_in(events) is None


def test_a_body_that_is_no_stream_is_malformed_and_none_at_all_truncated() -> None:
    page = failure_of(lambda: streamed(SENT, b"<html>Bad Gateway</html>"))
    assert page.kind is FailureKind.MALFORMED
    assert failure_of(lambda: streamed(SENT, b"")).kind is FailureKind.TRUNCATED
