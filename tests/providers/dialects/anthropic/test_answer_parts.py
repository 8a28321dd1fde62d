"""Parts of responses besides text and tool calls: reasoning, citations, blocks and fields of the vendor's own."""

from typing import get_args

import orjson
import pytest
from anthropic.types import ContentBlock, Message, Usage

from providers.completion import Chunk, Extras
from providers.dialects.anthropic.answer_parts import (
    citation_extras,
    other_call_fields,
    other_message_fields,
    other_usage_fields,
    reasoning_detail,
)
from providers.emulation.join_extras import GrowingExtras, overlay
from providers.failure import FailureKind
from providers.json_types import JsonObject, JsonValue
from tests.providers.dialects.anthropic.kit import DIALECT, encode, stream
from tests.providers.dialects.kit import chat_request, chunks, only, streamed, text_of
from tests.providers.kit import failure_of
from tests.support.looped import looped

SENT = encode(chat_request())
MAPPED = frozenset({"text", "thinking", "redacted_thinking", "tool_use"})


def joined(name: str) -> tuple[Extras | None, JsonObject, list[Chunk]]:
    """Return the joined extras of a stream's chunks, and the fields of its response."""
    pieces = chunks(streamed(SENT, stream(name)))
    growing, answer = GrowingExtras(), JsonObject()
    for piece in pieces:
        growing.add(piece.extras or Extras())
        overlay(answer, piece.extras.answer if piece.extras is not None else None)
    return growing.whole(), answer, pieces


def whole(*blocks: JsonValue, **members: JsonValue) -> bytes:
    return orjson.dumps({"type": "message", "content": [*blocks], "stop_reason": "end_turn", **members})


def test_a_citation_of_the_web_spans_the_text_of_its_block() -> None:
    extras, _, pieces = joined("cited")
    text = "".join([piece.text for piece in pieces])
    assert extras is not None
    spans: list[str] = []
    for annotation in extras.annotations:
        match annotation:
            case {"type": "url_citation", "url_citation": {"start_index": int(start), "end_index": int(end), **source}}:
                spans.append(text[start:end])
                assert source.keys() == {"url", "title", "content", "encrypted_index"}
            case other:
                pytest.fail(f"unexpected annotation {other}")
    assert [span[:25] for span in spans] == ["Apple today announced the"] * 2 + ["Opened in 2003 as Apple's"] * 2
    assert all(span.endswith(("JST.", "space.")) for span in spans)


def test_citations_come_behind_the_text_that_they_are_of() -> None:
    said = ""
    for piece in chunks(streamed(SENT, stream("cited"))):
        said += piece.text
        for annotation in piece.extras.annotations if piece.extras is not None else ():
            span = annotation["url_citation"]
            assert isinstance(span, dict)
            assert span["end_index"] == len(said)


def test_spans_are_in_code_points_and_other_citations_are_listed() -> None:
    page: JsonObject = {"type": "page_location", "document_index": 0, "start_page_number": 1, "cited_text": "x"}
    found: JsonObject = {"type": "search_result_location", "source": "https://a.example/b", "title": None}
    local: JsonObject = {"type": "search_result_location", "source": "wiki/b", "title": "B"}
    blocks: list[JsonValue] = [
        {"type": "text", "text": "👋 ü"},
        {"type": "text", "text": "claim", "citations": [page, found, local, "odd"]},
    ]
    choice = only(DIALECT.decode(SENT, whole(*blocks)))
    span: JsonObject = {"start_index": 3, "end_index": 8}
    assert choice.extras == Extras(
        annotations=({"type": "url_citation", "url_citation": {"url": "https://a.example/b", "title": "", **span}},),
        message={"citations": [{**page, **span}, {**local, **span}]},
    )


def test_a_text_without_citations_has_none() -> None:
    assert citation_extras([], 0, 5) is None
    assert citation_extras([None, 3], 0, 5) is None


@looped("name", ["server_tools", "cited", "deferred"])
def test_blocks_of_server_tools_arrive_whole_and_in_order(name: str) -> None:
    extras, _, _ = joined(name)
    assert extras is not None
    assert extras.message is not None
    blocks = extras.message["content_blocks"]
    assert isinstance(blocks, list)
    kinds = [block["type"] for block in blocks if isinstance(block, dict)]
    expected = {
        "server_tools": ["server_tool_use", "bash_code_execution_tool_result"] * 2,
        "cited": ["server_tool_use", "web_search_tool_result"],
        "deferred": ["code_execution_tool_result"] * 2,
    }
    assert kinds == expected[name]
    inputs = [block.get("input") for block in blocks if isinstance(block, dict) and "input" in block]
    assert all(isinstance(given, dict) and given for given in inputs)


def test_an_answer_that_is_whole_in_its_first_event_arrives() -> None:
    _, answer, pieces = joined("deferred")
    calls = [delta for piece in pieces for delta in piece.tool_calls]
    assert calls[0].extra == {"caller": {"type": "code_execution_20250825", "tool_id": "srvtoolu_unrelated_caller"}}
    assert "".join([call.arguments for call in calls]) == '{"id":"customer_123"}'
    assert pieces[-1].finish_reason == "tool_calls"
    assert answer.keys() == {"container"}


def test_members_of_the_message_keep_their_names() -> None:
    assert joined("server_tools")[1].keys() == {"container"}
    assert joined("signed")[1].keys() >= {"context_management"}
    members: JsonObject = {"container": {"id": "c"}, "diagnostics": {"cache_miss_reason": "x"}, "stop_details": None}
    usage: JsonObject = {"input_tokens": 1, "output_tokens": 2, "speed": "fast", "iterations": []}
    answer = DIALECT.decode(SENT, whole(**members, usage=usage))
    assert answer.extra == {"container": {"id": "c"}, "diagnostics": {"cache_miss_reason": "x"}}
    assert answer.usage is not None
    assert answer.usage.extra == {"speed": "fast", "iterations": []}


def test_streamed_thinking_is_the_whole_ones() -> None:
    extras, _, pieces = joined("signed")
    text = "".join([piece.reasoning or "" for piece in pieces])
    assert extras is not None
    match extras.reasoning_details:
        case ({"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0, **detail},):
            assert detail["text"] == text
            assert str(detail["signature"]).startswith("EvQB")
        case other:
            pytest.fail(f"unexpected details {other}")


@looped(
    ("block", "detail"),
    [
        ({"type": "thinking", "thinking": "a"}, {"text": "a", "format": "unknown"}),
        ({"type": "thinking", "thinking": "a", "signature": ""}, {"text": "a", "format": "unknown"}),
        (
            {"type": "thinking", "thinking": "", "signature": "s"},
            {"text": "", "signature": "s", "format": "anthropic-claude-v1"},
        ),
    ],
)
def test_only_signed_thinking_is_claudes(block: JsonObject, detail: JsonObject) -> None:
    expected: JsonObject = {"type": "reasoning.text", "index": 3, **detail}
    assert reasoning_detail(block, 3) == expected
    begun: JsonObject = {"type": "content_block_start", "index": 0, "content_block": block}
    events: list[JsonObject] = [
        {"type": "message_start", "message": {}},
        begun,
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ]
    growing = GrowingExtras()
    for piece in chunks(streamed(SENT, b"".join(b"data: %b\n\n" % orjson.dumps(event) for event in events))):
        growing.add(piece.extras or Extras())
    joined_up = growing.whole()
    assert joined_up is not None
    assert joined_up.reasoning_details == ({"text": "", **expected, "index": 0},)


def test_a_caller_other_than_the_model_is_told() -> None:
    call: JsonObject = {"type": "tool_use", "id": "a", "name": "b", "input": {}}
    assert other_call_fields(call) is None
    assert other_call_fields({**call, "caller": {"type": "direct"}}) is None
    assert other_call_fields({**call, "toolset_name": "t", "caller": None}) == {"toolset_name": "t"}


def test_every_block_that_the_sdk_knows_is_mapped_or_passed_on() -> None:
    kinds = {get_args(member.model_fields["type"].annotation)[0] for member in get_args(get_args(ContentBlock)[0])}
    assert kinds > MAPPED
    for kind in kinds - MAPPED:
        block: JsonObject = {"type": kind, "id": "x"}
        extras = only(DIALECT.decode(SENT, whole(block))).extras
        assert extras == Extras(message={"content_blocks": [block]})


def test_every_member_that_the_sdk_knows_is_mapped_or_passed_on() -> None:
    mapped = {"id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage"}
    told = other_message_fields(dict.fromkeys(Message.model_fields, "x"))
    assert told.keys() == Message.model_fields.keys() - mapped
    counted = {"input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"}
    counted |= {"cache_creation", "output_tokens_details", "server_tool_use", "service_tier"}
    rest = other_usage_fields(dict.fromkeys(Usage.model_fields, "x"))
    assert rest is not None
    assert rest.keys() == Usage.model_fields.keys() - counted


def test_what_is_kept_until_a_block_ends_is_bounded() -> None:
    decoder = DIALECT.stream(SENT)
    begun: JsonObject = {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "server_tool_use", "input": {}},
    }
    list(decoder.feed(b"data: %b\n\n" % orjson.dumps(begun)))
    delta: JsonObject = {"type": "input_json_delta", "partial_json": "x" * 2**20}
    piece = b"data: %b\n\n" % orjson.dumps({"type": "content_block_delta", "index": 0, "delta": delta})
    assert failure_of(all, (not list(decoder.feed(piece)) for _ in range(40))).kind is FailureKind.MALFORMED


def test_a_message_that_begins_again_inside_a_block_is_malformed() -> None:
    data = stream("tools").partition(b"event: content_block_stop")[0] + stream("text")
    assert failure_of(streamed, SENT, data).kind is FailureKind.MALFORMED
    twice = stream("text").partition(b"\n\n")[0] + b"\n\n" + stream("text")
    assert text_of(streamed(SENT, twice)) == text_of(streamed(SENT, stream("text")))
