"""The Responses API's streams: the same events in any chunks, never a success that was not declared, and the vendor's
own events together with the gateway's events."""

from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from providers.completion import (
    Choice,
    Chunk,
    Completion,
    ContentLogprobs,
    Extras,
    StreamEvent,
    TokenLogprob,
    ToolCallDelta,
    Usage,
)
from providers.dialects.registry import DIALECTS
from providers.failure import FailureKind
from providers.framing.parse_sse import SSEParser
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import Guided, LogprobsWanted
from tests.providers.dialects.kit import (
    SIZES,
    chat_request,
    check_cuts,
    check_pieces,
    chunks,
    decoded,
    gathered,
    only,
    stream_failure,
    streamed,
    target_of,
    text_of,
    usage_in,
)
from tests.providers.dialects.responses.kit import FIXTURES, STREAMED, WHOLE, ended, events_of, message, response, sse
from tests.support.looped import looped

DIALECT = DIALECTS["openai"]
PATHS = [path for path in sorted(FIXTURES.glob("*/*.sse")) if path.stem not in ("error", "failed")]
COMPLETE = [path for path in PATHS if path.stem != "phases"]
"""All recorded streams except one that was published without most of its deltas."""

each_stream = looped("data", [pytest.param(path.read_bytes(), id=path.stem) for path in PATHS])
short_stream = looped(
    "data", [pytest.param(path.read_bytes(), id=path.stem) for path in PATHS if path.stat().st_size < 10_000]
)


def delta(kind: str, text: str, index: int = 0, **more: JsonValue) -> JsonObject:
    return {"type": f"response.{kind}.delta", "delta": text, "output_index": index, **more}


def item(kind: str, held: JsonObject, index: int = 0) -> JsonObject:
    return {"type": f"response.output_item.{kind}", "item": held, "output_index": index}


def said(*events: JsonObject) -> list[StreamEvent]:
    """Return the meaning of events, without the vendor's own events."""
    bare = [replace(one, native=None) if isinstance(one, Chunk) else one for one in streamed(STREAMED, sse(*events))]
    return [one for one in bare if one != Chunk()]


def call(arguments: str = "", **more: JsonValue) -> JsonObject:
    return {"type": "function_call", "call_id": "c1", "name": "f", "arguments": arguments, **more}


def unsealed(completion: Completion) -> Choice:
    """Return the choice of a response without its encrypted reasoning, which the vendor encrypts anew for each
    event."""
    choice = only(completion)
    if choice.extras is None:
        return choice
    details = tuple([{**detail, "data": ""} for detail in choice.extras.reasoning_details])
    return replace(choice, extras=replace(choice.extras, reasoning_details=details))


STOP = Chunk(finish_reason="stop")


# Recorded -----------------------------------------------------------------------------------------------------------


@each_stream
def test_every_event_is_shown_as_the_vendor_sent_it(data: bytes) -> None:
    natives = [chunk.native for chunk in chunks(streamed(STREAMED, data)) if chunk.native is not None]
    parser = SSEParser()
    assert [(native.name, native.data) for native in natives] == [*parser.feed(data)]


@each_stream
def test_the_events_are_the_same_whatever_the_pieces(data: bytes) -> None:
    whole = streamed(STREAMED, data)
    for size in SIZES:
        assert streamed(STREAMED, data, size) == whole


@short_stream
def test_the_events_are_the_same_at_every_cut(data: bytes) -> None:
    check_pieces(STREAMED, data)


@short_stream
def test_a_stream_cut_at_any_byte_is_never_a_success(data: bytes) -> None:
    check_cuts(STREAMED, data, len(data.rstrip(b"\n")))


@looped("path", COMPLETE, ids=lambda path: path.stem)
def test_a_recorded_stream_says_what_its_last_event_holds_whole(path: object) -> None:
    data = (Path(str(path))).read_bytes()
    events = streamed(STREAMED, data)
    *_, (name, payload) = SSEParser().feed(data)
    assert name in ("response.completed", "response.incomplete")
    whole, told = decoded(WHOLE, orjson.dumps(orjson.loads(payload)["response"])), gathered(events)
    assert unsealed(told) == unsealed(whole)
    assert told.usage == whole.usage
    assert told.service_tier == whole.service_tier


@looped("size", SIZES)
def test_a_failure_of_the_server_s_is_one_that_another_may_answer(size: int) -> None:
    data = (FIXTURES / "streams" / "failed.sse").read_bytes()
    assert stream_failure(STREAMED, data, size)[1].failure.kind is FailureKind.SERVER


@looped("size", SIZES)
def test_a_recorded_failure_is_a_failure_by_its_code(size: int) -> None:
    data = (FIXTURES / "recorded" / "error.sse").read_bytes()
    events, error = stream_failure(STREAMED, data, size)
    assert error.failure.kind is FailureKind.QUOTA
    assert [chunk.native.name for chunk in chunks(events) if chunk.native] == [
        "response.created",
        "response.in_progress",
    ]
    last = data[data.index(b"event: response.failed") :]
    assert stream_failure(STREAMED, last)[1].failure.kind is FailureKind.QUOTA


# Meaning ------------------------------------------------------------------------------------------------------------


def test_text_thought_and_counts() -> None:
    events = said(
        {"type": "response.created", "response": {}},
        delta("reasoning_summary_text", "First", summary_index=0),
        delta("reasoning_summary_text", ".", summary_index=0),
        delta("reasoning_summary_text", "Then.", summary_index=1),
        item("done", {"type": "reasoning", "summary": [{"type": "summary_text", "text": "x"}]}),
        delta("output_text", "Ye", 1),
        delta("output_text", "s", 1),
        {"type": "response.output_text.done", "text": "Yes", "output_index": 1},
        item("done", message("Yes"), 1),
        ended(output=[{}, message("Yes")], usage={"input_tokens": 3, "output_tokens": 2}, service_tier="default"),
    )
    assert events == [
        Chunk(reasoning="First"),
        Chunk(reasoning="."),
        Chunk(reasoning="\n\nThen."),
        Chunk(text="Ye"),
        Chunk(text="s"),
        Chunk(finish_reason="stop", service_tier="default"),
        Usage(3, 2),
    ]


def test_calls_are_counted_densely_and_their_kind_is_told() -> None:
    custom: JsonObject = {"type": "custom_tool_call", "call_id": "c2", "name": "patch", "input": ""}
    events = said(
        item("added", {"type": "message", "content": []}),
        item("added", call(namespace="mcp"), 1),
        delta("function_call_arguments", '{"a"', 1),
        item("added", custom, 3),
        delta("custom_tool_call_input", "***", 3),
        delta("function_call_arguments", ":1}", 1),
        item("done", call('{"a":1}', namespace="mcp"), 1),
        item("done", {**custom, "input": "***"}, 3),
        ended(output=[{}, call('{"a":1}'), {}, {**custom, "input": "***"}]),
    )
    assert [one.tool_calls[0] for one in chunks(events)[:-1]] == [
        ToolCallDelta(0, "c1", "f", extra={"namespace": "mcp"}),
        ToolCallDelta(0, arguments='{"a"'),
        ToolCallDelta(1, "c2", "patch", kind="custom"),
        ToolCallDelta(1, arguments="***", kind="custom"),
        ToolCallDelta(0, arguments=":1}"),
    ]
    assert chunks(events)[-1].finish_reason == "tool_calls"


@looped(
    "events",
    [
        [item("added", call()), item("done", call('{"a":1}')), ended(output=[call('{"a":1}')])],
        [item("done", call('{"a":1}')), ended()],
        [item("added", call('{"a":1}')), item("done", call('{"a":1}')), ended()],
        [item("added", call()), ended(output=[call('{"a":1}')])],
        [ended(output=[call('{"a":1}')])],
    ],
)
def test_a_call_that_came_without_pieces_is_taken_whole_and_once(events: list[JsonObject]) -> None:
    made = only(gathered(streamed(STREAMED, sse(*events))))
    assert [(one.id, one.name, one.arguments) for one in made.tool_calls] == [("c1", "f", '{"a":1}')]
    assert made.finish_reason == "tool_calls"


def test_what_came_without_deltas_is_taken_from_the_events_that_hold_it_whole() -> None:
    thought: JsonObject = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]}
    for events in (
        [item("done", thought), item("done", message("Yes"), 1), ended(output=[thought, message("Yes")])],
        [ended(output=[thought, message("Yes")])],
    ):
        assert said(*events) == [Chunk(reasoning="Hm."), Chunk(text="Yes"), STOP]


def test_a_refusal_is_text_too() -> None:
    events = said(delta("refusal", "I cannot."), item("done", message("I cannot.", "refusal")), ended())
    assert events == [Chunk(text="I cannot.", refusal="I cannot."), STOP]


def test_an_incomplete_response_is_an_end_that_says_why() -> None:
    events = said(delta("output_text", "Ye"), ended("incomplete", incomplete_details={"reason": "max_output_tokens"}))
    assert chunks(events)[-1].finish_reason == "length"


def test_events_of_hosted_tools_and_unknown_ones_are_shown_and_mean_nothing() -> None:
    noise: list[JsonObject] = [
        {"type": "response.web_search_call.searching", "output_index": 0},
        {"type": "keepalive"},
        {"type": "response.later", "a": [1]},
    ]
    data = sse(*noise, delta("output_text", "x"), ended()) + b"data: [DONE]\n\n"
    events = streamed(STREAMED, data)
    assert text_of(events) == "x"
    assert [chunk.native.name for chunk in chunks(events)[:3] if chunk.native] == [one["type"] for one in noise]


def test_names_that_stand_only_in_the_frame_are_read() -> None:
    data = b'event: response.output_text.delta\ndata: {"delta":"x"}\n\n' + sse(ended())
    assert text_of(streamed(STREAMED, data)) == "x"


def test_an_end_that_holds_nothing_but_its_response_s_id_is_an_end() -> None:
    events = said(delta("output_text", "x"), {"type": "response.completed", "response": {"id": "resp_1"}})
    assert (events, usage_in(events)) == ([Chunk(text="x"), STOP], None)


# Failures -----------------------------------------------------------------------------------------------------------


@looped(
    ("event", "kind"),
    [
        ({"type": "error", "code": "rate_limit_exceeded", "message": "Try again in 2s."}, FailureKind.RATE_LIMITED),
        ({"type": "error", "error": {"code": "server_error", "message": "x"}}, FailureKind.SERVER),
        ({"type": "error"}, FailureKind.SERVER),
        ({"type": "response.failed"}, FailureKind.SERVER),
        ({"type": "response.failed", "response": {"error": {"code": "invalid_prompt"}}}, FailureKind.INVALID_REQUEST),
        ({"type": "response.cancelled", "response": {}}, FailureKind.SERVER),
        ({"type": "response.completed", "response": {"error": {"code": "slow_down"}}}, FailureKind.OVERLOADED),
        ({"type": "response.completed"}, FailureKind.MALFORMED),
        ({"type": "response.incomplete", "response": {}}, FailureKind.MALFORMED),
        ({"type": "response.completed", "response": {"status": "queued"}}, FailureKind.MALFORMED),
        (item("added", {"type": "function_call"}), FailureKind.MALFORMED),
    ],
)
def test_what_is_no_success_is_a_failure(event: JsonObject, kind: FailureKind) -> None:
    events, error = stream_failure(STREAMED, sse(delta("output_text", "x"), event))
    assert error.failure.kind is kind
    assert text_of(events) == "x"


def test_the_wait_of_a_limit_is_read_from_its_message() -> None:
    error: JsonObject = {"type": "error", "code": "rate_limit_exceeded", "message": "Please try again in 2s."}
    assert stream_failure(STREAMED, sse(error))[1].failure.retry_after == 2


def test_a_call_that_begins_twice_is_malformed() -> None:
    _, error = stream_failure(STREAMED, sse(item("added", call()), item("added", call())))
    assert error.failure.kind is FailureKind.MALFORMED


@looped("data", [b"data: 5\n\n", b"data: {\n\n", b"event: x\ndata: []\n\n"])
def test_events_that_are_no_objects_are_malformed(data: bytes) -> None:
    assert stream_failure(STREAMED, data)[1].failure.kind is FailureKind.MALFORMED


@looped(
    "event",
    [
        {"type": "response.output_text.delta"},
        {"type": "response.output_text.delta", "delta": 5},
        {"type": "response.refusal.delta", "delta": ""},
        {"type": "response.reasoning_text.delta", "delta": None},
        {"type": "response.function_call_arguments.delta", "delta": "x", "output_index": 7},
        {"type": "response.output_item.added", "item": 5},
        {"type": "response.output_item.done", "item": None},
        {"type": "response.output_item.done", "item": {"type": "web_search_call"}, "output_index": "x"},
        {"type": 5},
        {},
    ],
)
def test_events_without_what_is_needed_are_passed_over(event: JsonObject) -> None:
    data = b"data: " + orjson.dumps(event) + b"\n\n" + sse(ended())
    bare = [replace(one, native=None) if isinstance(one, Chunk) else one for one in streamed(STREAMED, data)]
    assert [one for one in bare if one != Chunk()] == [STOP]


# For clients of other APIs ------------------------------------------------------------------------------------------

NAMED: JsonObject = {"type": "function", "function": {"name": "a.b", "parameters": {"type": "object"}}}
TRANSLATED = DIALECT.encode(chat_request(tools=[NAMED]), target_of("openai", "gpt-5.6", base_url="https://v.example"))
CHOOSING = DIALECT.encode(
    chat_request(guided=Guided("choice", ("yes", "no"))),
    target_of("openai", "gpt-5.1-codex", base_url="https://v.example"),
)
(WIRE_NAME,) = TRANSLATED.tool_names
SOURCE: JsonObject = {"type": "url_citation", "url": "u", "title": "t", "start_index": 1, "end_index": 2}
TOKEN: JsonObject = {"token": "Hé", "logprob": -0.5, "bytes": [72], "top_logprobs": []}


def written(words: str, **more: JsonValue) -> JsonObject:
    part: JsonObject = {"type": "output_text", "text": words, **more}
    return {"type": "message", "id": "m", "role": "assistant", "content": [part]}


def thought(data: str, *summary: str) -> JsonObject:
    texts: list[JsonValue] = [{"type": "summary_text", "text": each} for each in summary]
    return {"type": "reasoning", "id": f"rs_{data}", "summary": texts, "encrypted_content": data}


FULL = response(
    "completed",
    [
        thought("A", "First", "Then"),
        written("Hé 🙂 "),
        thought("B"),
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {**written("you", annotations=[SOURCE]), "phase": "commentary"},
        call('{"a": 1}', name=WIRE_NAME),
        {"type": "custom_tool_call", "call_id": "c2", "name": "g", "input": "x = 1"},
        call("", call_id="c3"),
    ],
    usage={"input_tokens": 3, "output_tokens": 2, "output_tokens_details": {"reasoning_tokens": 1}},
    service_tier="default",
)


def test_a_stream_says_to_other_clients_what_the_whole_answer_says() -> None:
    completion = decoded(TRANSLATED, orjson.dumps(FULL))
    choice = only(completion)
    assert (choice.text, choice.reasoning, choice.finish_reason) == ("Hé 🙂 you", "First\n\nThen", "tool_calls")
    assert [(each.name, each.arguments, each.kind) for each in choice.tool_calls] == [
        ("a.b", '{"a": 1}', "function"),
        ("g", "x = 1", "custom"),
        ("f", "{}", "function"),
    ]
    sealed: JsonObject = {"type": "reasoning.encrypted", "format": "openai-responses-v1"}
    cited: JsonObject = {"url": "u", "title": "t", "start_index": 6, "end_index": 7}
    assert choice.extras == Extras(
        (
            {**sealed, "data": "A", "index": 0, "id": "rs_A"},
            {**sealed, "data": "B", "index": 1, "id": "rs_B", "after": [5, 0]},
        ),
        ({"type": "url_citation", "url_citation": cited},),
        message={"phase": "commentary"},
    )
    data = sse(*events_of(FULL))
    assert gathered(streamed(TRANSLATED, data)) == completion
    check_pieces(TRANSLATED, data)
    check_cuts(TRANSLATED, data, len(data.rstrip()))
    # A server that sends no deltas, and one that sends only the end.
    for left in ({"response.output_item.done", "response.completed"}, {"response.completed"}):
        few = [event for event in events_of(FULL) if event["type"] in left]
        assert gathered(streamed(TRANSLATED, sse(*few))) == completion


def test_log_probabilities_come_whole_and_with_their_texts() -> None:
    asked = replace(chat_request(logprobs=LogprobsWanted(0, "content")), stream=True)
    sent = DIALECT.encode(asked, target_of("openai", "gpt-6-codex", base_url="https://v.example"))
    whole = only(decoded(sent, orjson.dumps(response("completed", [written("Hé", logprobs=[TOKEN])]))))
    assert whole.logprobs == ContentLogprobs((TokenLogprob("Hé", -0.5, (72,)),))
    events = (delta("output_text", "Hé", logprobs=[TOKEN]), ended(output=[written("Hé", logprobs=[TOKEN])]))
    assert only(gathered(streamed(sent, sse(*events)))) == whole


def test_a_choice_is_taken_out_of_its_object() -> None:
    body = response("completed", [written('{"choice": "no"}')])
    assert only(decoded(CHOOSING, orjson.dumps(body))).text == "no"
    assert only(gathered(streamed(CHOOSING, sse(*events_of(body))))).text == "no"
    cut = response("incomplete", [written('{"cho')], incomplete_details={"reason": "max_output_tokens"})
    assert only(decoded(CHOOSING, orjson.dumps(cut))).text == '{"cho'
    assert only(gathered(streamed(CHOOSING, sse(*events_of(cut))))).text == '{"cho'
