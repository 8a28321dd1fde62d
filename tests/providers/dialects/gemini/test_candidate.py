"""The parts of Gemini's responses besides text and calls, streaming and not."""

import base64
import tracemalloc
from typing import Any, cast

import orjson
import pytest

from providers.completion import Choice, Chunk, Completion, Extras, Usage
from providers.dialects.gemini.candidate import MAX_UNKNOWN_FIELDS, AudioJoiner, with_underscores
from providers.dialects.shared.thought_signatures import mark_service, unpack_call_id
from providers.emulation.collect_stream import Gatherer
from providers.failure import UpstreamError
from providers.json_types import JsonObject, JsonValue
from tests.providers.dialects.gemini.kit import DIALECT, FIXTURES, SIGNATURE, VERTEX, answer, sent
from tests.providers.dialects.kit import chat_request, check_pieces, chunks, streamed
from tests.support.looped import looped

SENT = sent(streamed=True)
RECORDED = sorted(path.name for path in (FIXTURES / "recorded").iterdir())
EVERYTHING: JsonObject = orjson.loads(answer("everything"))


def recorded(name: str) -> bytes:
    return (FIXTURES / "recorded" / name).read_bytes()


def events_of(*objects: JsonValue) -> bytes:
    return b"".join([b"data: %b\r\n\r\n" % orjson.dumps(one) for one in objects])


def said(*parts: JsonObject, **candidate: JsonValue) -> JsonObject:
    return {"candidates": [{"content": {"role": "model", "parts": [*parts]}, **candidate}]}


def whole(*parts: JsonObject, **candidate: JsonValue) -> Choice:
    body = said(*parts, finishReason="STOP", **candidate)
    return DIALECT.decode(sent(), orjson.dumps(body)).choices[0]


def gathered(data: bytes) -> Completion:
    gatherer = Gatherer(1)
    for event in streamed(SENT, data):
        gatherer.add(event)
    return gatherer.completion()


def extras_of(choice: Choice) -> Extras:
    assert choice.extras is not None
    return choice.extras


# Every field --------------------------------------------------------------------------------------------------------


def test_every_member_of_an_answer_is_mapped_or_passed_on() -> None:
    completion = DIALECT.decode(sent(), answer("everything"))
    (choice,) = completion.choices
    candidate = cast(Any, EVERYTHING)["candidates"][0]
    parts = candidate["content"]["parts"]
    assert (choice.text, choice.reasoning, choice.finish_reason) == ("Oslo: 3 °C. Cold.", "I look it up.", "stop")
    assert choice.signature == "c2FpZA=="
    extras = extras_of(choice)
    assert extras.reasoning_details == (
        {"type": "reasoning.text", "text": "I look it up.", "format": "unknown", "index": 0},
        {"type": "reasoning.encrypted", "data": "c2FpZA==", "format": "google-gemini-v1", "index": 1},
    )
    assert [one["url_citation"] for one in extras.annotations] == [
        {"url": "https://grounded.example", "title": "yr.no", "start_index": 6, "end_index": 11},
        {"url": "https://cited.example", "title": "", "start_index": 0, "end_index": 4},
    ]
    assert extras.images == (
        {
            "type": "image_url",
            "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="},
            "extra_content": {"google": {"thought_signature": "aW1hZ2U="}},
        },
    )
    assert extras.audio == {"data": "AAECAw==", "mime_type": "audio/L16;codec=pcm;rate=24000"}
    assert extras.message == {"google_parts": [*parts[1:5], parts[8], parts[9], {"partMetadata": {"k": "v"}}]}
    assert extras.choice == {
        "finish_message": "Model finished.",
        "token_count": 7,
        "avg_logprobs": -0.25,
        "continuation_token": "ct-1",
        "safety_ratings": candidate["safetyRatings"],
        "citation_metadata": candidate["citationMetadata"],
        "url_context_metadata": candidate["urlContextMetadata"],
        "grounding_metadata": candidate["groundingMetadata"],
    }
    assert completion.extra == {
        "prompt_feedback": EVERYTHING["promptFeedback"],
        "create_time": "2026-11-01T10:00:00Z",
        "model_status": {"modelStage": "STABLE"},
        "model_version": "gemini-3.8-flash",
        "response_id": "resp-1",
        "traffic_type": "ON_DEMAND",
    }
    # The details of cached tokens and of tools repeat the counts by modality.
    assert completion.usage == Usage(
        109,
        12,
        {"cached_tokens": 4, "tool_use_prompt_tokens": 100},
        {"reasoning_tokens": 5, "text_tokens": 6, "audio_tokens": 1, "web_search_requests": 1},
    )


def test_a_stream_of_one_part_each_says_the_same() -> None:
    candidate = cast(Any, EVERYTHING)["candidates"][0]
    parts = candidate["content"]["parts"]
    last: JsonObject = {**EVERYTHING, "candidates": [{**candidate, "content": {"parts": []}}]}
    data = events_of(*[said(part) for part in parts], last)
    assert gathered(data) == DIALECT.decode(sent(), answer("everything"))
    check_pieces(SENT, data)


@looped(
    ("name", "expected"),
    [
        ("groundingMetadata", "grounding_metadata"),
        ("avgLogprobs", "avg_logprobs"),
        ("urlContextMetadata", "url_context_metadata"),
        ("plain", "plain"),
    ],
)
def test_members_are_named_as_protocol_buffers_spell_them(name: str, expected: str) -> None:
    assert with_underscores(name) == expected


# Reasoning ----------------------------------------------------------------------------------------------------------


def test_thoughts_that_follow_each_other_are_one_detail() -> None:
    data = events_of(
        said({"text": "First, ", "thought": True}),
        said({"text": "then.", "thought": True}),
        said({"text": "So: "}),
        said({"text": "Wait.", "thought": True}),
        said({"text": "3", "thoughtSignature": SIGNATURE}, finishReason="STOP"),
    )
    pieces = [
        detail for chunk in chunks(streamed(SENT, data)) if chunk.extras for detail in chunk.extras.reasoning_details
    ]
    assert [(piece["type"], piece["index"]) for piece in pieces] == [
        ("reasoning.text", 0),
        ("reasoning.text", 0),
        ("reasoning.text", 1),
        ("reasoning.encrypted", 2),
    ]
    (choice,) = gathered(data).choices
    assert (choice.text, choice.reasoning) == ("So: 3", "First, then.Wait.")
    assert [one.get("text") for one in extras_of(choice).reasoning_details] == ["First, then.", "Wait.", None]


def test_a_signature_in_a_part_of_its_own_is_the_texts() -> None:
    data = events_of(said({"text": "Oslo."}), said({"thoughtSignature": SIGNATURE}, finishReason="STOP"))
    (choice,) = gathered(data).choices
    assert (choice.text, choice.signature) == ("Oslo.", SIGNATURE)


def test_signatures_of_vertex_say_that_they_are() -> None:
    call: JsonObject = {"functionCall": {"id": "fc-1", "name": "f", "args": {}}, "thoughtSignature": SIGNATURE}
    at_vertex = DIALECT.encode(chat_request(), VERTEX)
    called = DIALECT.decode(at_vertex, orjson.dumps(said(call, finishReason="STOP"))).choices[0]
    assert unpack_call_id(called.tool_calls[0].id).service == "vertex"
    text = said({"text": "Hi.", "thoughtSignature": SIGNATURE}, finishReason="STOP")
    assert DIALECT.decode(at_vertex, orjson.dumps(text)).choices[0].signature == mark_service(SIGNATURE, "vertex")


# Media --------------------------------------------------------------------------------------------------------------


@looped("size", [1, 2, 3, 4, 5, 100])
def test_a_sound_in_pieces_is_one_text_of_base64(size: int) -> None:
    sound = bytes(range(256)) * 3
    parts: list[JsonValue] = [
        said({"inlineData": {"mimeType": "audio/L16", "data": base64.b64encode(sound[at : at + size]).decode()}})
        for at in range(0, len(sound), size)
    ]
    (choice,) = gathered(events_of(*parts, said(finishReason="STOP"))).choices
    audio = extras_of(choice).audio
    assert audio is not None
    assert base64.b64decode(str(audio["data"]), validate=True) == sound
    pieces = AudioJoiner()
    assert pieces.add("AA==") == ""
    assert pieces.end() == "AA=="


def test_data_that_is_no_image_and_no_sound_is_passed_on_as_it_is() -> None:
    odd: list[JsonObject] = [
        {"inlineData": {"mimeType": "video/mp4", "data": "AA=="}},
        {"inlineData": {"mimeType": "audio/wav", "data": "A"}},
        {"inlineData": {"mimeType": 3}},
        {"inlineData": 3},
    ]
    assert extras_of(whole(*odd)).message == {"google_parts": odd}


# Calls --------------------------------------------------------------------------------------------------------------


def test_the_end_of_a_call_that_ended_before_adds_nothing() -> None:
    call: JsonObject = {"functionCall": {"name": "f", "args": {}}}
    assert [one.name for one in whole(call, {"functionCall": {}}).tool_calls] == ["f"]
    with pytest.raises(UpstreamError, match="a call without a name"):
        whole(call, {"functionCall": {"args": {"a": 1}}})


# Bounds -------------------------------------------------------------------------------------------------------------


def test_no_more_members_are_kept_than_some() -> None:
    many: JsonObject = {f"m{number}": number for number in range(1_000)}
    body = {**said({"text": "a"}, finishReason="STOP", **many), **{f"n{number}": 1 for number in range(1_000)}}
    completion = DIALECT.decode(sent(), orjson.dumps(body))
    assert len(extras_of(completion.choices[0]).choice or ()) == MAX_UNKNOWN_FIELDS
    assert len(completion.extra or ()) == MAX_UNKNOWN_FIELDS


def test_metadata_that_come_again_complete_or_replace_what_came() -> None:
    data = events_of(
        said({"text": "a"}, groundingMetadata={"webSearchQueries": ["x"]}, avgLogprobs=-1),
        said(groundingMetadata={"searchEntryPoint": {}}, avgLogprobs=-2, finishReason="STOP"),
    )
    assert extras_of(gathered(data).choices[0]).choice == {
        "grounding_metadata": {"webSearchQueries": ["x"], "searchEntryPoint": {}},
        "avg_logprobs": -2,
    }


def test_a_long_text_is_not_kept_for_its_annotations() -> None:
    event = events_of(said({"text": "x" * 50_000}))
    decoder = DIALECT.stream(SENT)
    tracemalloc.start()
    for _ in range(400):
        list(decoder.feed(event))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 4 * 2**20
    support: JsonObject = {"segment": {"endIndex": 4}, "groundingChunkIndices": [0]}
    grounding: JsonObject = {"groundingChunks": [{"web": {"uri": "https://a.example"}}], "groundingSupports": [support]}
    list(decoder.feed(events_of(said(finishReason="STOP", groundingMetadata=grounding))))
    (end,) = [event for event in decoder.finish() if isinstance(event, Chunk)]
    assert end.extras is not None
    assert end.extras.annotations == ()
    assert end.extras.choice == {"grounding_metadata": grounding}


def test_an_answer_of_a_hundred_thousand_parts_is_read() -> None:
    parts: list[JsonObject] = [{"text": "a"}, {"text": "b", "thought": True}] * 50_000
    choice = whole(*parts)
    assert (len(choice.text), len(choice.reasoning or "")) == (50_000, 50_000)


# Recorded responses -------------------------------------------------------------------------------------------------
# vercel/ai ed857f5 `packages/google/src/__fixtures__`, recorded from the Gemini API and Vertex AI.


@looped("name", [name for name in RECORDED if name.endswith(".sse")])
def test_recorded_streams_say_the_same_whatever_the_pieces(name: str) -> None:
    data = recorded(name)
    expected = streamed(SENT, data, len(data))
    assert all(streamed(SENT, data, size) == expected for size in (1, 7, 1000, 4096))
    assert gathered(data).choices[0].finish_reason in ("stop", "tool_calls")


@looped("name", [name for name in RECORDED if name.endswith(".sse")])
def test_a_recorded_stream_that_was_cut_anywhere_is_never_a_success(name: str) -> None:
    data = recorded(name)
    declared = data.index(b'"finishReason"')
    for cut in range(0, declared, 1 + declared // 60):
        decoder = DIALECT.stream(SENT)
        with pytest.raises(UpstreamError):
            [*decoder.feed(data[:cut]), *decoder.finish()]


def test_recorded_calls_have_their_arguments_and_signatures() -> None:
    def calls_of(name: str) -> list[tuple[str, object, bool]]:
        calls = gathered(recorded(name)).choices[0].tool_calls
        return [(one.name, orjson.loads(one.arguments), unpack_call_id(one.id).signature is not None) for one in calls]

    assert calls_of("tool_call.sse") == [("weather", {"location": "San Francisco"}, True)]
    assert calls_of("no_arguments.sse") == [
        ("read_theme", {}, True),
        *[("read_screen", {"id": screen}, False) for screen in "ABC"],
    ]
    ((name, arguments, signed),) = calls_of("array_arguments.sse")
    assert (name, signed) == ("writeItems", True)
    assert [one["itemid"] for one in arguments["operations"]] == ["apple_001", "banana_001"]  # type: ignore
    ((name, recipe, _),) = calls_of("nested_arguments.sse")
    assert (name, recipe["recipe"]["name"]) == ("cookRecipe", "Lasagna")  # type: ignore[index]


def test_recorded_whole_answers_have_their_texts_calls_and_signatures() -> None:
    reasoned = DIALECT.decode(sent(), recorded("reasoning.json")).choices[0]
    assert reasoned.text.startswith("There are **3**")
    assert reasoned.signature
    called = DIALECT.decode(sent(), recorded("tool_call.json")).choices[0]
    assert called.finish_reason == "tool_calls"
    assert called.tool_calls[0].extra is not None
    assert extras_of(called).choice == {"finish_message": "Model generated function call(s)."}
