"""Anthropic's event streams: the same events whatever the cuts, and never a success that was not declared."""

import re
from dataclasses import replace

import anthropic
import httpx2
import orjson
from anthropic.types import MessageParam, RawMessageStreamEvent
from pydantic import TypeAdapter

from providers.completion import Chunk, Extras, ToolCallDelta, Usage
from providers.failure import FailureKind
from providers.framing.parse_sse import SSEParser
from providers.json_types import JsonObject
from providers.unified_request import Guided
from tests.providers.dialects.anthropic.kit import DIALECT, encode, stream
from tests.providers.dialects.kit import chat_request, chunks, streamed, text_of, usage_in
from tests.providers.kit import failure_of
from tests.support.looped import looped

SENT = encode(replace(chat_request(), stream=True))
CHOOSE = encode(replace(chat_request(guided=Guided("choice", ("yes", "no"))), stream=True))
WHOLE = (
    *("text", "tools", "thinking", "refusal", "refusal_after_text", "length", "stop_sequence", "cached", "empty"),
    *("choice", "noise", "signed", "server_tools", "deferred", "cited"),
)
BROKEN = ("error_first", "error_after_text")
NO_DETAILS = {"cached_tokens": 0, "cache_write_tokens": 0}
_EVENT: TypeAdapter[object] = TypeAdapter(RawMessageStreamEvent)


def failure_kind(data: bytes) -> FailureKind:
    return failure_of(streamed, SENT, data).kind


@looped("name", [name for name in WHOLE if name != "noise"])
def test_every_event_of_a_fixture_is_one_to_the_vendors_types(name: str) -> None:
    for event, data in SSEParser().feed(stream(name)):
        if event != "ping":
            assert _EVENT.validate_python(orjson.loads(data))


def assembled_by_the_sdk(data: bytes) -> bytes:
    """The whole message that the vendor's own client makes of a stream."""
    transport = httpx2.MockTransport(
        lambda _: httpx2.Response(200, content=data, headers={"content-type": "text/event-stream"})
    )
    question: list[MessageParam] = [{"role": "user", "content": "hi"}]
    with (
        httpx2.Client(transport=transport) as http,
        anthropic.Anthropic(api_key="k", http_client=http) as client,
        client.messages.stream(model="m", max_tokens=9, messages=question) as answered,
    ):
        return answered.get_final_message().to_json(use_api_names=True).encode()


@looped("name", [name for name in WHOLE if name != "noise"])
def test_a_stream_says_what_the_vendors_own_client_makes_of_it(name: str) -> None:
    whole = DIALECT.decode(SENT, assembled_by_the_sdk(stream(name)))
    events = streamed(SENT, stream(name))
    choice, end = whole.choices[0], chunks(events)[-1]
    arguments: dict[int, str] = {}
    for delta in [delta for chunk in chunks(events) for delta in chunk.tool_calls]:
        arguments[delta.index] = arguments.get(delta.index, "") + delta.arguments
    assert text_of(events) == choice.text
    assert "".join([chunk.reasoning or "" for chunk in chunks(events)]) == (choice.reasoning or "")
    assert (end.finish_reason, end.native_finish_reason) == (choice.finish_reason, choice.native_finish_reason)
    assert (end.refusal, end.matched_stop) == (choice.refusal, choice.matched_stop)
    assert [orjson.loads(text) for text in arguments.values()] == [
        orjson.loads(call.arguments) for call in choice.tool_calls
    ]
    assert usage_in(events) == whole.usage


def test_text_comes_as_it_came_with_one_finish_and_one_usage() -> None:
    assert streamed(SENT, stream("text")) == [
        Chunk(text="Checking "),
        Chunk(text="Oslo: 3 °C "),
        Chunk(text="👋."),
        Chunk(finish_reason="stop"),
        Usage(21, 9, NO_DETAILS),
    ]


def test_calls_are_counted_densely_and_an_empty_one_has_arguments() -> None:
    deltas = [delta for chunk in chunks(streamed(SENT, stream("tools"))) for delta in chunk.tool_calls]
    assert deltas == [
        ToolCallDelta(0, "toolu_01Qz", "get_weather"),
        ToolCallDelta(0, arguments='{"city": "Os'),
        ToolCallDelta(0, arguments='lo"}'),
        ToolCallDelta(1, "toolu_02Qz", "now"),
        ToolCallDelta(1, arguments="{}"),
    ]


def test_a_call_whose_block_never_stops_is_whole_at_the_end() -> None:
    data = stream("tools").replace(b'event: content_block_stop\ndata: {"type":"content_block_stop","index":2}\n\n', b"")
    deltas = [delta for chunk in chunks(streamed(SENT, data)) for delta in chunk.tool_calls]
    assert deltas[-1] == ToolCallDelta(1, arguments="{}")


def test_arguments_given_with_the_call_are_passed_on() -> None:
    data = stream("tools").replace(b'"name":"now","input":{}', b'"name":"now","input":{"zone":"CET"}')
    deltas = [delta for chunk in chunks(streamed(SENT, data)) for delta in chunk.tool_calls]
    assert deltas[-1] == ToolCallDelta(1, arguments='{"zone":"CET"}')


def test_calls_get_back_the_names_the_client_gave() -> None:
    sent = replace(SENT, tool_names={"get_weather": "get weather"})
    events = chunks(streamed(sent, stream("tools")))
    assert [delta.name for chunk in events for delta in chunk.tool_calls if delta.name] == ["get weather", "now"]


def test_thinking_is_reasoning_and_no_text() -> None:
    events = streamed(SENT, stream("thinking"))
    assert "".join([chunk.reasoning or "" for chunk in chunks(events)]) == "The user wants Oslo."
    assert text_of(events) == "Oslo."
    assert usage_in(events) == Usage(21, 30, NO_DETAILS, {"reasoning_tokens": 24})


def test_a_refusal_is_the_text_where_there_is_no_other() -> None:
    words = "The request was declined."
    told, end = chunks(streamed(SENT, stream("refusal")))[-2:]
    details: JsonObject = {"type": "refusal", "category": "cyber", "explanation": words}
    assert told == Chunk(extras=Extras(answer={"stop_details": details}))
    assert end == Chunk(0, words, "content_filter", "refusal", refusal=words)
    later = streamed(SENT, stream("refusal_after_text"))
    assert text_of(later) == "First, "
    assert chunks(later)[-1].refusal == words


def test_usage_is_the_last_of_the_cumulative_counts() -> None:
    details = {"cached_tokens": 3000, "cache_write_tokens": 200}
    assert usage_in(streamed(SENT, stream("cached"))) == Usage(3210, 2, details)


def test_what_is_no_count_replaces_none() -> None:
    last = rb'("type":\s*"message_delta".*"output_tokens":\s*)\d+'
    later = re.sub(last, rb'\g<1>2,"input_tokens":-1', stream("cached"))
    assert later != stream("cached")
    details = {"cached_tokens": 3000, "cache_write_tokens": 200}
    assert usage_in(streamed(SENT, later)) == Usage(3210, 2, details)


def test_noise_and_unknown_events_change_nothing() -> None:
    events = streamed(SENT, stream("noise"))
    assert text_of(events) == "Still here."
    assert (chunks(events)[-1].finish_reason, chunks(events)[-1].native_finish_reason) == ("sunset", "sunset")


def test_the_matched_stop_string_is_told_and_put_back_when_asked_for() -> None:
    assert chunks(streamed(SENT, stream("stop_sequence")))[-1] == Chunk(finish_reason="stop", matched_stop=", three")
    keep = encode(replace(chat_request(stop=(", three",), include_stop_str_in_output=True), stream=True))
    assert text_of(streamed(keep, stream("stop_sequence"))) == "one, two, three"


def test_a_choice_comes_unwrapped_in_one_piece() -> None:
    assert [chunk.text for chunk in chunks(streamed(CHOOSE, stream("choice"), 1))] == ["yes"]


def test_a_choice_that_was_cut_comes_as_it_is() -> None:
    assert text_of(streamed(CHOOSE, stream("length"))) == "It never"


def test_an_answer_without_the_choice_is_malformed() -> None:
    assert failure_of(streamed, CHOOSE, stream("text")).kind is FailureKind.MALFORMED


def test_an_endless_event_is_malformed() -> None:
    decoder = DIALECT.stream(SENT)
    assert (
        failure_of(all, (not list(decoder.feed(b"data: " + b"x" * 2**20)) for _ in range(40))).kind
        is FailureKind.MALFORMED
    )


@looped(
    "event",
    [
        b"data: 3",
        b'data: {"type":["x"]}',
        b'data: {"type":"content_block_delta","delta":3}',
        b'data: {"type":"content_block_delta","delta":{"type":"text_delta"}}',
        b'data: {"type":"content_block_start","content_block":null}',
        b'data: {"type":"content_block_stop","index":[]}',
        b'data: {"type":"message_delta","delta":null,"usage":3}',
    ],
)
def test_events_without_what_is_needed_are_passed_over(event: bytes) -> None:
    data = event + b"\n\n" + stream("text")
    assert streamed(SENT, data) == streamed(SENT, stream("text"))


def test_a_body_that_is_no_stream_is_truncated() -> None:
    assert failure_kind(b'{"type":"message","content":[]}') is FailureKind.TRUNCATED
    assert failure_kind(b"") is FailureKind.TRUNCATED
