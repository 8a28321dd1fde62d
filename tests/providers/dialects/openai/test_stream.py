"""Streams of the OpenAI family, from fixture bytes: the same events in any chunks, and no clean end that was not
declared."""

from dataclasses import replace

from providers.completion import Chunk, ContentLogprobs, LegacyLogprobs, StreamEvent, ToolCallDelta
from providers.dialect import UpstreamRequest
from providers.dialects.shared.read_json import call_id
from providers.failure import FailureKind
from providers.json_types import JsonObject, JsonValue
from tests.providers.dialects.kit import chunks, usage_in
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
from tests.support.dialects import fixture_name
from tests.support.looped import looped

DONE = b"data: [DONE]\n\n"
GOOD = sorted(fixture_name(path) for path in FIXTURES.glob("*.sse") if not path.stem.endswith("_error"))
every_stream = looped("name", GOOD)


def sent_for(name: str) -> UpstreamRequest:
    return sent("groq" if "groq" in name else "openai", choices=choices_in(fixture(name)))


def whole(name: str) -> list[StreamEvent]:
    events = unbroken(sent_for(name), fixture(name))
    return events


def delta(content: str | None, finish: str | None = None, index: int = 0, **more: JsonValue) -> bytes:
    choice: JsonObject = {"index": index, "delta": {"content": content, **more}, "finish_reason": finish}
    return frame({"choices": [choice]})


def finished(events: list[StreamEvent]) -> set[int]:
    return {chunk.index for chunk in chunks(events) if chunk.finish_reason}


@every_stream
def test_a_stream_that_nobody_asked_for_is_the_whole_answer(name: str) -> None:
    events = whole(name)
    for spelt in (fixture(name), b"\r\n: hello\n\n" + fixture(name)):
        answer = DIALECT.decode(sent_for(name), spelt)
        assert {choice.index for choice in answer.choices} == finished(events)
        assert [choice.text for choice in answer.choices] == [text(events, index) for index in sorted(finished(events))]
        assert answer.usage == usage_in(events)


def calls(events: list[StreamEvent]) -> list[tuple[str | None, str | None, str]]:
    found: dict[int, tuple[str | None, str | None, str]] = {}
    for chunk in chunks(events):
        for piece in chunk.tool_calls:
            known = found.get(piece.index, (piece.id, piece.name, ""))
            found[piece.index] = (known[0], known[1], known[2] + piece.arguments)
    assert list(found) == list(range(len(found)))
    return list(found.values())


MADE = (call_id(None, 0, 0), call_id(None, 0, 1))


def piece(index: int | None, identity: str | None, name: str | None, arguments: JsonValue) -> JsonObject:
    entry: JsonObject = {"function": {"name": name, "arguments": arguments}}
    if index is not None:
        entry["index"] = index
    return {**entry, "id": identity}


@looped(
    ("frames", "expected"),
    [
        ([[piece(0, "a", "f", "1")], [piece(0, "b", "g", "2")]], [("a", "f", "1"), ("b", "g", "2")]),
        (
            [[piece(3, "a", "f", "1"), piece(7, "b", "f", "2")], [piece(3, "", None, "3")]],
            [("a", "f", "13"), ("b", "f", "2")],
        ),
        ([[piece(0, "a", "f", "1")], [piece(0, "a", "f", "2")]], [("a", "f", "12")]),
        ([[piece(0, "a", "f", "1")], [piece(0, "another", None, "2")]], [("a", "f", "12")]),
        ([[piece(0, "", "f", "1")], [piece(0, "", None, "2")]], [(MADE[0], "f", "12")]),
        ([[piece(None, None, "f", "1"), piece(None, None, "g", "2")]], [(MADE[0], "f", "1"), (MADE[1], "g", "2")]),
        ([[piece(0, "a", "f", {"x": 1})]], [("a", "f", '{"x":1}')]),
        ([[piece(0, "a", "f", None)]], [("a", "f", "{}")]),
    ],
)
def test_a_call_begins_with_a_new_index_or_another_id_and_a_name(
    frames: list[list[JsonObject]], expected: list[tuple[str, str, str]]
) -> None:
    stream = [delta(None, tool_calls=[*entries]) for entries in frames]
    events = unbroken(sent(), *stream, delta(None, "stop"), DONE)
    assert calls(events) == expected
    assert chunks(events)[-1].finish_reason == "tool_calls"


@looped("entry", [1, {"index": 0}, {"index": 0, "id": "a", "function": {"arguments": "1"}}])
def test_a_tool_call_that_makes_no_sense_is_malformed(entry: JsonValue) -> None:
    assert failing(sent(), delta(None, tool_calls=[entry]))[1] is FailureKind.MALFORMED


def test_a_refusal_is_text_and_refusal() -> None:
    found = chunks(whole("openai/openai_refusal.sse"))
    assert [(chunk.text, chunk.refusal) for chunk in found] == [("I ", "I "), ("cannot.", "cannot."), ("", None)]


def test_log_probabilities_come_in_the_shape_the_vendor_has() -> None:
    first = chunks(whole("openai/openai_logprobs.sse"))[0].logprobs
    assert isinstance(first, ContentLogprobs)
    assert [(entry.token, entry.logprob, entry.bytes, len(entry.top)) for entry in first.content] == [
        ("é", -0.5, (0xC3, 0xA9), 2)
    ]
    assert isinstance(chunks(whole("openai/llamacpp_completion.sse"))[0].logprobs, ContentLogprobs)
    echoed = chunks(whole("openai/vllm_echo.sse"))
    assert echoed[0].logprobs == LegacyLogprobs(("The", " end"), (None, -1.5), (None, {" end": -1.5}), (0, 3))
    assert echoed[1].matched_stop == 128001
    unplaced = chunks(whole("openai/sglang_completion.sse"))
    assert unplaced[0].logprobs == LegacyLogprobs((" Pa",), (-0.5,), (None,), None)
    assert unplaced[1].matched_stop == "END"
    bare = chunks(whole("openai/together_completion.sse"))
    assert [chunk.logprobs for chunk in bare] == [
        LegacyLogprobs((" Pa",), (-0.25,), None, None),
        LegacyLogprobs(("ris",), (0.0,), None, None),
    ]


@looped(
    ("error", "kind"),
    [
        ({"error": {"message": "Upstream hung up", "code": 502}}, FailureKind.SERVER),
        ({"error": {"message": "slow down", "code": 429}}, FailureKind.RATE_LIMITED),
        ({"error": "text", "error_type": "generation"}, FailureKind.SERVER),
        ({"error": {"message": "This model's maximum context length is 8 tokens"}}, FailureKind.CONTEXT_LENGTH),
        ({"object": "error", "message": "bad", "type": "BadRequestError", "code": 400}, FailureKind.INVALID_REQUEST),
        ({"error": "x", "status_code": 503}, FailureKind.OVERLOADED),
    ],
)
def test_an_error_in_the_stream_is_raised_after_what_came_before_it(error: JsonObject, kind: FailureKind) -> None:
    for start in ([], [delta("a"), delta("b")]):
        for size in (1, 4096):
            stream = b"".join([*start, frame(error), DONE])
            assert failing(sent(), *pieces(stream, size)) == ("ab"[: len(start)], kind)


def test_an_error_in_groqs_own_member_is_raised() -> None:
    broken = frame({"x_groq": {"error": "over capacity"}, "choices": []})
    for row in ("groq", "openai_compatible"):
        assert failing(sent(row), delta("a"), broken, DONE) == ("a", FailureKind.SERVER)


def test_openrouters_error_inside_a_chunk_is_raised() -> None:
    events, failure = played(sent("openrouter"), fixture("openai/openrouter_error.sse"))
    assert text(events) == " Pa"
    assert failure is not None
    assert (failure.kind, failure.message, failure.status) == (FailureKind.SERVER, "Upstream hung up", 502)


@looped(
    ("word", "kind"),
    [
        ("error", FailureKind.SERVER),
        ("abort", FailureKind.SERVER),
        ("network_error", FailureKind.SERVER),
        ("cancelled", FailureKind.SERVER),
        ("timeout", FailureKind.TIMEOUT),
        ("insufficient_system_resource", FailureKind.OVERLOADED),
    ],
)
def test_a_finish_reason_that_means_failure_is_one(word: str, kind: FailureKind) -> None:
    assert failing(sent(), delta("a"), delta("", word), DONE) == ("a", kind)


def test_an_unknown_finish_reason_is_the_vendors_own_word() -> None:
    events = unbroken(sent(), delta("a", "tired"), DONE)
    assert events == [Chunk(text="a", finish_reason="tired", native_finish_reason="tired")]


def test_a_frame_of_null_is_passed_over() -> None:
    events = unbroken(sent(), b"data: null\n\n" + delta("Hi", "stop") + DONE)
    assert text(events) == "Hi"


def test_nothing_follows_a_choices_finish_nor_the_terminator() -> None:
    events = unbroken(sent(), delta("a", "stop"), delta(None), DONE, delta("c"), frame({"error": "late"}))
    assert text(events) == "a"


def test_a_choice_that_has_not_ended_when_another_has_cuts_the_stream() -> None:
    assert failing(sent(choices=2), delta("a", "stop"), delta("b", index=1), DONE)[1] is FailureKind.TRUNCATED


@looped(
    ("stream", "kind"),
    [
        (b"", FailureKind.TRUNCATED),
        (DONE, FailureKind.TRUNCATED),
        (delta("a") + DONE, FailureKind.TRUNCATED),
        (delta("a", "stop") + delta("b", index=1) + DONE, FailureKind.MALFORMED),
        (delta("a", ""), FailureKind.TRUNCATED),
        (b"<html>oops</html>", FailureKind.TRUNCATED),
        (b"data: nonsense\n\n", FailureKind.MALFORMED),
        (b"data: [1]\n\n", FailureKind.MALFORMED),
        (frame({"choices": {"index": 0}}), FailureKind.MALFORMED),
        (frame({"choices": [1]}), FailureKind.MALFORMED),
        (frame({"choices": [{"finish_reason": {"type": "stop"}}]}), FailureKind.MALFORMED),
        (b'{"choices": [', FailureKind.TRUNCATED),
        (b"[]", FailureKind.MALFORMED),
        (b'{"error": {"message": "no", "code": 401}}', FailureKind.AUTH),
        (b'[{"error": {"message": "no", "code": 400}}]', FailureKind.INVALID_REQUEST),
    ],
)
def test_a_stream_that_is_none_is_a_failure(stream: bytes, kind: FailureKind) -> None:
    assert failing(sent(), stream)[1] is kind


@looped("name", ["openai_chat", "openai_completion", "openai_tools", "openai_refusal", "deepseek_chat"])
@looped("size", [1, 4096])
def test_a_whole_body_on_a_streamed_request_is_one_chunk_a_choice(name: str, size: int) -> None:
    body = fixture(f"openai/{name}.json")
    completion = DIALECT.decode(sent(), body)
    events = unbroken(sent(choices=len(completion.choices)), *pieces(body, size))
    assert [(chunk.index, chunk.text, chunk.finish_reason) for chunk in chunks(events)] == [
        (choice.index, choice.text, choice.finish_reason) for choice in completion.choices
    ]
    assert usage_in(events) == completion.usage
    assert [piece.arguments for chunk in chunks(events) for piece in chunk.tool_calls] == [
        call.arguments for choice in completion.choices for call in choice.tool_calls
    ]


def test_a_stream_is_complete_only_at_its_terminator_or_end() -> None:
    decoder = DIALECT.stream(sent())
    assert list(decoder.feed(delta("a", "stop"))) == [Chunk(text="a", finish_reason="stop")]
    assert not decoder.complete
    assert list(decoder.feed(DONE)) == []
    assert decoder.complete


@looped(
    ("frames", "expected"),
    [
        ([delta('{"choi'), delta('ce":"b'), delta('lue"}', "stop")], ["blue"]),
        ([delta('{"choice":"bl', "length")], ['{"choice":"bl']),
        ([delta(None, refusal="no"), delta(None, "stop")], ["no", ""]),
        ([delta(None, reasoning_content="hm"), delta('{"choice":"x"}', "stop")], ["", "x"]),
    ],
)
def test_a_choice_inside_an_object_comes_out_at_the_end(frames: list[bytes], expected: list[str]) -> None:
    events = unbroken(sent(unwrap=True), *frames, DONE)
    assert [chunk.text for chunk in chunks(events)] == expected


def test_an_object_without_the_choice_is_malformed() -> None:
    assert failing(sent(unwrap=True), delta("blue", "stop"), DONE)[1] is FailureKind.MALFORMED


def test_a_tools_name_on_the_wire_becomes_the_clients() -> None:
    call = replace(sent(), tool_names={"f_1": "f.1"})
    events, _ = played(call, delta(None, tool_calls=[piece(0, "a", "f_1", "{}")]), delta(None, "tool_calls"), DONE)
    assert chunks(events)[0].tool_calls == (ToolCallDelta(0, "a", "f.1", "{}"),)
