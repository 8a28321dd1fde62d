"""Responses of the Messages API: the vendor's SDK parses a stream and a non-streaming response into the same object."""

import sys
from collections.abc import Callable

import orjson
import pytest
from anthropic.types import Message

from providers.completion import (
    Choice,
    Chunk,
    Completion,
    Extras,
    NativeEvent,
    ToolCall,
    ToolCallDelta,
    Usage,
)
from providers.failure import UpstreamError
from providers.json_types import JsonObject
from proxy.errors import ErrorFacts, internal_error
from proxy.surfaces.openai import OPENAI
from proxy.surfaces.surface import Renderer
from proxy.surfaces.thinking_envelope import open_sealed
from tests.proxy.surfaces.anthropic.kit import accumulate, objects, play, renderer
from tests.proxy.surfaces.kit import FACTS, converse
from tests.support.looped import looped

USAGE = Usage(20, 5, {"cached_tokens": 4, "cache_write_tokens": 2}, {"reasoning_tokens": 3})
LINK: JsonObject = {"type": "url_citation", "url_citation": {"url": "https://x.example", "title": "X"}}
SIGNED: JsonObject = {"type": "reasoning.text", "text": "hm", "format": "anthropic-claude-v1", "index": 0}
SIGNATURE: JsonObject = {**SIGNED, "text": "", "signature": "sig"}
REDACTED: JsonObject = {"type": "reasoning.encrypted", "data": "red", "format": "anthropic-claude-v1", "index": 1}
FOREIGN: JsonObject = {"type": "reasoning.encrypted", "data": "x", "format": "google-gemini-v1", "index": 0}
SEARCH: JsonObject = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}}
SAYS = Chunk(text="Hi")
ENDS = Chunk(finish_reason="stop")


def thought(*details: JsonObject, text: str | None = None) -> Chunk:
    return Chunk(reasoning=text, extras=Extras(reasoning_details=details))


def call(index: int, arguments: str, name: str | None = None) -> Chunk:
    identity = None if name is None else f"call_{index}"
    return Chunk(tool_calls=(ToolCallDelta(index, identity, name, arguments),))


PAIRS: dict[str, tuple[list[Chunk | Usage], Completion]] = {
    "text": ([SAYS, Chunk(text=" you"), ENDS, USAGE], Completion((Choice(0, "Hi you", "stop"),), USAGE)),
    "nothing": ([ENDS, USAGE], Completion((Choice(0, "", "stop"),), USAGE)),
    "stop string": (
        [SAYS, Chunk(finish_reason="stop", matched_stop="END"), USAGE],
        Completion((Choice(0, "Hi", "stop", matched_stop="END"),), USAGE),
    ),
    "thinking, text, calls": (
        [
            Chunk(reasoning="h"),
            Chunk(reasoning="m"),
            SAYS,
            call(0, '{"a":', "f"),
            call(0, "1}"),
            call(1, "", "g"),
            Chunk(finish_reason="tool_calls"),
            USAGE,
        ],
        Completion(
            (
                Choice(
                    0,
                    "Hi",
                    "tool_calls",
                    reasoning="hm",
                    tool_calls=(ToolCall("call_0", "f", '{"a":1}'), ToolCall("call_1", "g", "")),
                ),
            ),
            USAGE,
        ),
    ),
    "calls side by side": (
        [call(0, "{", "f"), call(1, "{", "g"), call(0, "}"), call(1, "}"), Chunk(finish_reason="tool_calls"), USAGE],
        Completion(
            (Choice(0, "", "tool_calls", tool_calls=(ToolCall("call_0", "f", "{}"), ToolCall("call_1", "g", "{}"))),),
            USAGE,
        ),
    ),
    "Claude's thinking": (
        [thought(SIGNED, text="hm"), thought(SIGNATURE), thought(REDACTED), SAYS, ENDS, USAGE],
        Completion(
            (
                Choice(
                    0,
                    "Hi",
                    "stop",
                    reasoning="hm",
                    extras=Extras(reasoning_details=({**SIGNED, "signature": "sig"}, REDACTED)),
                ),
            ),
            USAGE,
        ),
    ),
    "another vendor's thinking": (
        [thought(FOREIGN, text="hm"), SAYS, ENDS, USAGE],
        Completion((Choice(0, "Hi", "stop", reasoning="hm", extras=Extras(reasoning_details=(FOREIGN,))),), USAGE),
    ),
    "citations": (
        [SAYS, Chunk(extras=Extras(annotations=(LINK,))), ENDS, USAGE],
        Completion((Choice(0, "Hi", "stop", extras=Extras(annotations=(LINK,))),), USAGE),
    ),
    "server results": (
        [Chunk(extras=Extras(message={"content_blocks": [SEARCH]})), SAYS, ENDS, USAGE],
        Completion((Choice(0, "Hi", "stop", extras=Extras(message={"content_blocks": [SEARCH]})),), USAGE),
    ),
    "refusal": (
        [Chunk(text="I can", refusal="I can"), Chunk(text="'t.", refusal="'t."), ENDS, USAGE],
        Completion((Choice(0, "I can't.", "stop", refusal="I can't."),), USAGE),
    ),
    "explained refusal": (
        [SAYS, Chunk(finish_reason="content_filter", native_finish_reason="refusal", refusal="because"), USAGE],
        Completion((Choice(0, "Hi", "content_filter", "refusal", refusal="because"),), USAGE),
    ),
    "refusal with details": (
        [
            Chunk(extras=Extras(answer={"stop_details": {"type": "refusal", "category": "cyber"}})),
            Chunk(finish_reason="content_filter", native_finish_reason="refusal"),
            USAGE,
        ],
        Completion(
            (Choice(0, "", "content_filter", "refusal"),),
            USAGE,
            extra={"stop_details": {"type": "refusal", "category": "cyber"}},
        ),
    ),
    "cut off": ([SAYS, Chunk(finish_reason="length"), USAGE], Completion((Choice(0, "Hi", "length"),), USAGE)),
}


@looped(("events", "whole"), PAIRS.values(), ids=PAIRS.keys())
def test_the_sdk_reads_a_stream_to_the_whole_answer_s_object(events: list[Chunk | Usage], whole: Completion) -> None:
    streamed = accumulate(play(*events)).to_dict()
    read = Message.model_validate_json(renderer().completion(whole)).to_dict()
    assert streamed == read


@looped(("events", "whole"), PAIRS.values(), ids=PAIRS.keys())
def test_blocks_never_overlap_and_their_indexes_are_dense(events: list[Chunk | Usage], whole: Completion) -> None:
    kinds = [str(each["type"]) for each in objects(play(*events))]
    assert kinds[0] == "message_start"
    assert kinds[-2:] == ["message_delta", "message_stop"]
    open_at, begun = None, 0
    for each in objects(play(*events)):
        match each["type"]:
            case "content_block_start":
                assert (open_at, each["index"]) == (None, begun)
                open_at, begun = begun, begun + 1
            case "content_block_delta":
                assert each["index"] == open_at
            case "content_block_stop":
                assert each["index"] == open_at
                open_at = None
            case _:
                pass
    assert open_at is None


def test_the_start_has_zeros_and_the_end_every_count() -> None:
    start, *_, delta, _ = objects(play(SAYS, ENDS, USAGE))
    assert start["message"] == {
        "id": "msg_01",
        "type": "message",
        "role": "assistant",
        "model": "groq/llama",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }
    assert delta == {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn", "stop_sequence": None, "stop_details": None},
        "usage": {
            "input_tokens": 14,
            "cache_creation_input_tokens": 2,
            "cache_read_input_tokens": 4,
            "output_tokens": 5,
            "output_tokens_details": {"thinking_tokens": 3},
        },
    }


def test_an_empty_text_opens_no_block() -> None:
    kinds = [each["type"] for each in objects(play(Chunk(text=""), SAYS, Chunk(text=""), ENDS))]
    assert kinds.count("content_block_start") == 1
    assert kinds.count("content_block_delta") == 1


def test_what_another_vendor_needs_back_is_in_the_signature_or_comes_last_in_a_block_of_its_own() -> None:
    message = accumulate(play(thought(text="hm"), thought(FOREIGN), SAYS, ENDS))
    assert message.content[0].type == "thinking"
    assert message.content[0].thinking == "hm"
    assert open_sealed(message.content[0].signature) == [FOREIGN]


def test_a_block_of_claude_s_that_shows_nothing_keeps_its_signature() -> None:
    (block,) = accumulate(play(thought(SIGNATURE), ENDS)).content
    assert block.type == "thinking"
    assert (block.thinking, block.signature) == ("", "sig")


def test_text_beside_a_call_that_is_not_complete_waits_for_it() -> None:
    message = accumulate(play(call(0, "{", "f"), SAYS, call(0, "}"), Chunk(finish_reason="tool_calls")))
    assert [block.type for block in message.content] == ["tool_use", "text"]
    message = accumulate(play(call(0, "{}", "f"), SAYS, call(1, "{}", "g"), Chunk(finish_reason="tool_calls")))
    assert [block.type for block in message.content] == ["tool_use", "text", "tool_use"]


def test_members_that_no_block_shows_come_at_the_end() -> None:
    events = objects(
        play(
            Chunk(text="Hi", system_fingerprint="fp"),
            Chunk(text="!", system_fingerprint="fp"),
            Chunk(extras=Extras(images=({"type": "image_url"},), choice={"x": 1})),
            Chunk(finish_reason="stop", service_tier="default"),
            Chunk(extras=Extras(answer={"x_groq": {"id": "r"}, "container": {"id": "c"}})),
        )
    )
    delta = events[-2]
    assert delta["system_fingerprint"] == "fp"
    assert delta["images"] == [{"type": "image_url"}]
    assert (delta["x"], delta["x_groq"]) == (1, {"id": "r"})
    assert isinstance(delta["delta"], dict)
    assert delta["delta"]["container"] == {"id": "c"}
    assert "container" not in delta
    assert isinstance(delta["usage"], dict)
    assert delta["usage"]["service_tier"] == "standard"
    assert [each["type"] for each in events].count("content_block_delta") == 2


def test_citations_without_an_open_text_come_at_the_end() -> None:
    delta = objects(play(SAYS, call(0, "{}", "f"), Chunk(extras=Extras(annotations=(LINK,))), ENDS))[-2]
    assert isinstance(delta["citations"], list)
    assert len(delta["citations"]) == 1


def test_a_broken_stream_ends_with_an_error_and_nothing_that_means_success() -> None:
    made = renderer()
    stream = made.chunk(SAYS) + made.error(internal_error().facts)
    last = objects(stream)[-1]
    assert last["type"] == "error"
    assert isinstance(last["error"], dict)
    assert last["error"]["type"] == "api_error"
    assert b"message_delta" not in stream
    assert b"message_stop" not in stream


def test_a_text_beside_a_call_that_makes_no_sense_is_not_lost_whole_or_streamed() -> None:
    calls = (ToolCall("call_0", "f", "{'a': 1}"),)
    answer = Completion((Choice(0, "Hi", "tool_calls", tool_calls=calls),), None)
    whole = Message.model_validate_json(renderer().completion(answer))
    message = accumulate(play(SAYS, call(0, "{'a'", "f"), call(0, ": 1}"), Chunk(finish_reason="tool_calls")))
    for each in (whole, message):
        said, called = each.content
        assert (said.type, called.type, each.stop_reason) == ("text", "tool_use", "tool_use")
        assert (said.type == "text" and said.text) == "Hi"
        assert (called.type == "tool_use" and called.input) == {"arguments": "{'a': 1}"}


def test_a_call_that_goes_on_after_its_end_breaks_a_stream() -> None:
    with pytest.raises(UpstreamError):
        play(call(0, "{}", "f"), call(1, "{}", "g"), call(0, "{}"))


# The vendor's own events ----------------------------------------------------------------------------------------------

OWN = {
    "message_start": b'{"type":"message_start","of_tomorrow":1,"message":{"id":"msg_v","model":"claude-x","usage":{}}}',
    "ping": b'{"type": "ping"}',
    "content_block_start": b'{"type":"content_block_start","index":0,"content_block":{"type":"of_tomorrow"}}',
    "message_stop": b'{"type":"message_stop"}',
}


def test_the_vendor_s_own_events_are_shown_with_our_name_of_the_model() -> None:
    made = renderer()
    chunks = [Chunk(native=NativeEvent(name, data)) for name, data in OWN.items()]
    stream = b"".join(made.chunk(chunk) for chunk in chunks)
    start, *rest = objects(stream)
    assert start == {
        "type": "message_start",
        "of_tomorrow": 1,
        "message": {"id": "msg_v", "model": "groq/llama", "usage": {}},
    }
    assert [each["type"] for each in rest] == ["ping", "content_block_start", "message_stop"]
    assert b'data: {"type": "ping"}\n\n' in stream
    assert made.usage(USAGE) == b""
    assert made.end() == b""


def test_what_an_event_means_is_not_shown_beside_it() -> None:
    made = renderer()
    assert made.chunk(Chunk(text="Hi", native=NativeEvent("ping", b"{}"))) == b"event: ping\ndata: {}\n\n"
    assert made.chunk(Chunk(text="more of it")) == b""
    assert made.chunk(Chunk(finish_reason="stop")) == b""


@pytest.mark.parametrize("data", [b"[1]", b'{"type":"message_start","message":1}'])
def test_a_start_of_another_form_is_shown_as_it_is(data: bytes) -> None:
    assert renderer().chunk(Chunk(native=NativeEvent("message_start", data))).endswith(b"data: " + data + b"\n\n")


def test_the_vendor_s_own_body_is_shown_with_our_name_of_the_model() -> None:
    body = b'{"id":"msg_v","model":"claude-x","content":[{"type":"of_tomorrow"}],"of_tomorrow":1}'
    shown = renderer().completion(Completion((), None, native=body))
    assert orjson.loads(shown) == {**orjson.loads(body), "model": "groq/llama"}
    assert renderer().completion(Completion((), None, native=b"[1]")) == b"[1]"


def test_claudes_own_answer_may_hold_what_is_no_character() -> None:
    begun = b'{"type":"message_start","message":{"id":"msg_\xff","model":"\\ud83d"}}'
    shown = renderer().chunk(Chunk(native=NativeEvent("message_start", begun)))
    assert orjson.loads(shown.split(b"data: ")[1])["message"]["id"] == "msg_\ufffd"
    whole = renderer().completion(Completion((), None, native=b'{"id":"msg_\xff"}'))
    assert orjson.loads(whole)["id"] == "msg_\ufffd"


# Cost -----------------------------------------------------------------------------------------------------------------


def calls_for(work: Callable[[], object]) -> int:
    """Return the number of calls of Python functions that `work` makes."""
    made = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal made
        made += event == "call"

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return made


def begun(made: Renderer, first: Chunk) -> Renderer:
    made.chunk(first)
    return made


PIECES = {
    "text": (SAYS, SAYS),
    "thinking": (Chunk(reasoning="a"), Chunk(reasoning="a")),
    "Claude's thinking": (thought(SIGNED, text="a"), thought(SIGNED, text="a")),
    "arguments": (call(0, '{"', "f"), call(0, "piece")),
}


@looped(("first", "piece"), PIECES.values(), ids=PIECES.keys())
def test_a_piece_costs_at_most_two_fifths_more_calls_than_that_of_a_chat(first: Chunk, piece: Chunk) -> None:
    chat = begun(OPENAI.renderer(converse(stream=True), FACTS), first)
    ours = begun(renderer(), first)
    # CPython up to 3.11 counts a comprehension as a call. The chat renderer has one for each chunk of arguments.
    assert calls_for(lambda: ours.chunk(piece)) <= 1.4 * calls_for(lambda: chat.chunk(piece))


def test_a_vendor_s_own_event_costs_no_more_calls_than_a_token_of_a_chat() -> None:
    chat = begun(OPENAI.renderer(converse(stream=True), FACTS), SAYS)
    native = Chunk(text="token", native=NativeEvent("content_block_delta", b"{}"))
    ours = renderer()
    assert calls_for(lambda: ours.chunk(native)) <= calls_for(lambda: chat.chunk(SAYS))


def test_errors_have_the_same_words_in_a_stream_as_in_an_answer() -> None:
    facts = ErrorFacts(400, "x", "context_length_exceeded", "prompt is too long: 9 tokens > 8 maximum")
    assert b"prompt is too long: 9 tokens > 8 maximum" in renderer().error(facts)
