"""Chat completions as clients get them."""

from dataclasses import replace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.completion import (
    Choice,
    Chunk,
    Completion,
    ContentLogprobs,
    Extras,
    TokenLogprob,
    ToolCall,
    ToolCallDelta,
    Usage,
)
from providers.json_types import JsonObject
from proxy.surfaces.completion_surface import CompletionSurface
from proxy.surfaces.surface import REASONING_FIELDS
from tests.proxy.surfaces.kit import FACTS, ROWS, USAGE, choices, converse, every_row, objects, play
from tests.support.looped import looped

OPENAI = ROWS["openai"]
CALL: JsonObject = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def message(choice: Choice) -> JsonObject:
    body: JsonObject = orjson.loads(OPENAI.renderer(converse(), FACTS).completion(Completion((choice,), USAGE)))
    (rendered,) = choices(body)
    inner = rendered["message"]
    assert isinstance(inner, dict)
    return inner


def deltas(*chunks: Chunk) -> list[object]:
    renderer = OPENAI.renderer(converse(stream=True), FACTS)
    return [choice["delta"] for choice in choices(*objects(b"".join(map(renderer.chunk, chunks))))]


@every_row
def test_a_whole_answer_has_the_common_shape(row: CompletionSurface) -> None:
    completion = Completion((Choice(0, "Hi", "stop"),), Usage(6, 1), "fp", "default")
    assert row.renderer(converse(row), FACTS).completion(completion) == (
        b'{"id":"chatcmpl-1","object":"chat.completion","created":1795246123,"model":"openai/gpt-x",'
        b'"system_fingerprint":"fp",'
        b'"choices":[{"index":0,"message":{"role":"assistant","content":"Hi","refusal":null},'
        b'"logprobs":null,"finish_reason":"stop"}],'
        b'"usage":{"prompt_tokens":6,"completion_tokens":1,"total_tokens":7},"service_tier":"default"}'
    )


def test_a_text_s_signature_goes_where_gemini_s_own_endpoint_has_it() -> None:
    extra = {"google": {"thought_signature": "c2ln"}}
    assert message(Choice(0, "Hi", "stop", signature="c2ln"))["extra_content"] == extra
    assert "extra_content" not in message(Choice(0, "Hi", "stop"))
    assert deltas(Chunk(0, "Hi"), Chunk(0, signature="c2ln"), Chunk(0, finish_reason="stop")) == [
        {"role": "assistant", "content": "Hi"},
        {"extra_content": extra},
        {},
    ]
    assert deltas(Chunk(0, "Hi"), Chunk(0, "!", "stop", signature="c2ln"))[1:] == [
        {"content": "!", "extra_content": extra},
        {},
    ]


@looped(
    ("choice", "members"),
    [
        (Choice(0, "", "length"), {"content": "", "refusal": None}),
        (Choice(0, "No", "stop", refusal="No"), {"content": None, "refusal": "No"}),
        (Choice(0, "", "stop", refusal="No"), {"content": None, "refusal": "No"}),
        (
            Choice(0, "", "tool_calls", tool_calls=(ToolCall("c1", "f", "{}"),)),
            {"content": None, "refusal": None, "tool_calls": [CALL]},
        ),
        (
            Choice(0, "so", "tool_calls", tool_calls=(ToolCall("c1", "f", "{}"),)),
            {"content": "so", "refusal": None, "tool_calls": [CALL]},
        ),
        (
            Choice(0, "42", "stop", reasoning="hm"),
            {"content": "42", "refusal": None, "reasoning_content": "hm"},
        ),
    ],
)
def test_a_message_holds_what_the_model_said(choice: Choice, members: JsonObject) -> None:
    assert message(choice) == {"role": "assistant", **members}


@every_row
def test_tool_calls_are_a_finish_of_their_own(row: CompletionSurface) -> None:
    called = Choice(0, "", "tool_calls", "tool_use", tool_calls=(ToolCall("c1", "f", "{}"),))
    (choice,) = choices(orjson.loads(row.renderer(converse(row), FACTS).completion(Completion((called,), USAGE))))
    assert (choice["finish_reason"], choice["native_finish_reason"]) == ("tool_calls", "tool_use")
    renderer = row.renderer(converse(row, stream=True), FACTS)
    stream = renderer.chunk(Chunk(finish_reason="tool_calls")) + renderer.end()
    assert choices(*objects(stream))[-1]["finish_reason"] == "tool_calls"


@looped("fields", REASONING_FIELDS.values())
def test_reasoning_has_the_fields_that_the_operator_chose(fields: tuple[str, ...]) -> None:
    facts = replace(FACTS, reasoning=fields)
    whole = OPENAI.renderer(converse(), facts)
    (choice,) = choices(orjson.loads(whole.completion(Completion((Choice(0, "", "stop", reasoning="hm"),), USAGE))))
    stream = OPENAI.renderer(converse(OPENAI, stream=True), facts)
    delta = choices(*objects(stream.chunk(Chunk(reasoning="hm"))))[0]["delta"]
    for held in (choice["message"], delta):
        assert isinstance(held, dict)
        assert {name: held[name] for name in held if name.startswith("reasoning")} == dict.fromkeys(fields, "hm")


@looped(
    "stream",
    [
        (Chunk(), Chunk(text="a"), Chunk(text=""), Chunk(text="b"), Chunk(finish_reason="stop")),
        (Chunk(text="a"), Chunk(text="b", finish_reason="stop")),
    ],
)
def test_a_choices_first_delta_says_the_role_and_its_last_is_empty(stream: tuple[Chunk, ...]) -> None:
    assert deltas(*stream) == [{"role": "assistant", "content": "a"}, {"content": "b"}, {}]
    assert deltas(Chunk(finish_reason="stop")) == [{"role": "assistant", "content": ""}, {}]


def test_each_choice_begins_with_its_role() -> None:
    assert deltas(Chunk(0, "a"), Chunk(1, "b"), Chunk(0, "c")) == [
        {"role": "assistant", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"content": "c"},
    ]


def test_deltas_carry_reasoning_refusals_and_pieces_of_calls() -> None:
    assert deltas(
        Chunk(reasoning="hm"),
        Chunk(refusal="No"),
        Chunk(text="No", refusal="No"),
        Chunk(tool_calls=(ToolCallDelta(0, "c1", "f"),)),
        Chunk(tool_calls=(ToolCallDelta(0, arguments="{}"),)),
    ) == [
        {"role": "assistant", "reasoning_content": "hm"},
        {"refusal": "No"},
        {"refusal": "No"},
        {"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]},
    ]


def test_log_probabilities_go_with_their_text_and_not_with_the_finish() -> None:
    hi = ContentLogprobs((TokenLogprob("Hi", -0.5, (72, 105)),))
    renderer = OPENAI.renderer(converse(stream=True, logprobs=True), FACTS)
    stream = renderer.chunk(Chunk(text="Hi", logprobs=hi, finish_reason="stop"))
    shown = {"content": [{"token": "Hi", "logprob": -0.5, "bytes": [72, 105], "top_logprobs": []}], "refusal": None}
    assert [choice["logprobs"] for choice in choices(*objects(stream))] == [shown, None]


def test_log_probabilities_alone_are_worth_a_frame() -> None:
    hi = ContentLogprobs((TokenLogprob("Hi", -0.5, None),))
    renderer = OPENAI.renderer(converse(stream=True, logprobs=True), FACTS)
    (choice,) = choices(*objects(renderer.chunk(Chunk(logprobs=hi))))
    assert choice["delta"] == {"role": "assistant"}
    assert renderer.chunk(Chunk()) == b""


@every_row
@given(texts=st.lists(st.text(min_size=1), max_size=5))
def test_every_frame_is_ascii_json_and_the_text_arrives_whole(row: CompletionSurface, texts: list[str]) -> None:
    renderer = row.renderer(converse(row, stream=True), FACTS)
    stream = play(renderer, *(Chunk(text=text) for text in texts), Chunk(finish_reason="stop"), USAGE)
    gained = [choice["delta"] for choice in choices(*objects(stream))]
    assert "".join(str(delta.get("content", "")) for delta in gained if isinstance(delta, dict)) == "".join(texts)


def test_the_tier_of_a_stream_comes_with_its_end() -> None:
    renderer = OPENAI.renderer(converse(stream=True), FACTS)
    (text,) = objects(renderer.chunk(Chunk(text="Hi")))
    (last,) = objects(renderer.chunk(Chunk(finish_reason="stop", service_tier="flex")))
    assert (text.get("service_tier"), last["service_tier"]) == (None, "flex")


def test_a_usage_has_the_vendor_s_own_members() -> None:
    completion = Completion((Choice(0, "Hi", "stop"),), Usage(6, 1, extra={"cost": 0.5, "total_tokens": 9}))
    body = orjson.loads(OPENAI.renderer(converse(), FACTS).completion(completion))
    assert body["usage"] == {"cost": 0.5, "prompt_tokens": 6, "completion_tokens": 1, "total_tokens": 7}


@given(
    st.builds(
        Choice,
        st.sampled_from([0, 3]),
        st.sampled_from(["", "text", "é\u2028"]),
        st.sampled_from(["stop", "length", "tool_calls", "odd"]),
        native_finish_reason=st.sampled_from([None, "eos"]),
        refusal=st.sampled_from([None, "no", "text"]),
        reasoning=st.sampled_from([None, "", "so"]),
        tool_calls=st.sampled_from([(), (ToolCall("1", "f", "{}"),)]),
        matched_stop=st.sampled_from([None, "x", 0]),
        signature=st.sampled_from([None, "s"]),
        extras=st.sampled_from([None, Extras(choice={"a": 1})]),
    ),
    st.sampled_from(
        [
            None,
            USAGE,
            Usage(1, 2, {"cached_tokens": 1}),
            Usage(1, 2, None, {"reasoning_tokens": 0}),
            Usage(1, 2, estimated=True),
            Usage(1, 2, extra={"cost": 1}),
        ]
    ),
    st.sampled_from([(None, None, None), ("fp", None, None), ("fp", "default", None), (None, "flex", {"a": 1})]),
    st.booleans(),
)
def test_an_answer_of_text_alone_is_written_at_once_as_any_other_is(
    choice: Choice, usage: Usage | None, rest: tuple[str | None, str | None, JsonObject | None], legacy: bool
) -> None:
    request = replace(converse(), legacy_calls=legacy)
    completion = Completion((choice,), usage, *rest)
    quick = OPENAI.renderer(request, FACTS).completion(completion)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("proxy.surfaces.response.chat._is_text", lambda choice: False)
        assert quick == OPENAI.renderer(request, FACTS).completion(completion)
