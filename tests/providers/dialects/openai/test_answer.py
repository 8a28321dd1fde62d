"""Non-streaming responses of the OpenAI family, from fixture bytes."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.completion import (
    Choice,
    Completion,
    ContentLogprobs,
    Extras,
    LegacyLogprobs,
    TokenLogprob,
    ToolCall,
    Usage,
)
from providers.dialects.openai.answer import decode_body, decode_object, only_text_in
from providers.dialects.openai.read import usage_of
from providers.dialects.openai.read_extras import KNOWN_IN_ANSWER
from providers.dialects.shared.read_json import MAX_UNKNOWN, call_id
from providers.failure import Failure, FailureKind, UpstreamError
from providers.json_types import JsonObject, JsonValue
from providers.profiles.load_profiles import load_profiles
from tests.faults.memory import growth
from tests.providers.dialects.openai.kit import DIALECT, ROWS, broken, decoded, fixture, sent
from tests.support.cpu_growth import growth as cpu_growth
from tests.support.looped import looped


def only(name: str) -> Choice:
    (choice,) = DIALECT.decode(sent(), fixture(f"openai/{name}.json")).choices
    return choice


def message(content: JsonValue, finish: JsonValue = "stop", **more: JsonValue) -> JsonObject:
    return {"choices": [{"index": 0, "message": {"content": content, **more}, "finish_reason": finish}]}


def test_choices_come_in_the_order_of_their_indices() -> None:
    answer = DIALECT.decode(sent(), fixture("openai/openai_completion.json"))
    assert [(choice.index, choice.text) for choice in answer.choices] == [(0, " Pàris"), (1, " Paris")]
    assert answer.system_fingerprint == "fp_1"
    assert answer.usage == Usage(6, 2, {"cached_tokens": 4, "audio_tokens": 0}, {"reasoning_tokens": 1})


def test_choices_without_an_index_are_in_place() -> None:
    answer = decoded(sent(), {"choices": [{"text": t, "finish_reason": "stop"} for t in "ab"]})
    assert [(choice.index, choice.text) for choice in answer.choices] == [(0, "a"), (1, "b")]


def test_the_service_tier_is_the_one_that_was_used() -> None:
    assert DIALECT.decode(sent(), fixture("openai/openai_chat.json")).service_tier == "default"


def test_tool_calls_are_whole_and_name_the_clients_tools() -> None:
    answer = DIALECT.decode(replace(sent(), tool_names={"g": "g.1"}), fixture("openai/openai_tools.json"))
    assert answer.choices[0].tool_calls == (ToolCall("call_a", "f", '{"x":1}'), ToolCall("call_b", "g.1", "{}"))
    assert answer.choices[0].finish_reason == "tool_calls"


def test_a_stop_with_tool_calls_is_one_for_them() -> None:
    calls: JsonValue = [{"function": {"name": "f", "arguments": {"x": 1}}}, {"id": "", "function": {"name": "f"}}]
    choice = decoded(sent(), {"id": "1", **message(None, tool_calls=calls)}).choices[0]
    assert (choice.finish_reason, choice.native_finish_reason) == ("tool_calls", None)
    assert [call.arguments for call in choice.tool_calls] == ['{"x":1}', "{}"]
    assert len({call.id for call in choice.tool_calls}) == 2


def test_a_filtered_choice_needs_no_message() -> None:
    (choice,) = decoded(sent(), {"choices": [{"index": 0, "finish_reason": "content_filter"}]}).choices
    assert (choice.text, choice.finish_reason) == ("", "content_filter")


def test_a_refusal_is_the_text_where_there_is_no_other() -> None:
    refused = only("openai_refusal")
    assert (refused.text, refused.refusal, refused.finish_reason) == ("I cannot.", "I cannot.", "stop")


def test_reasoning_and_blank_lines_before_the_body_are_no_text() -> None:
    thought = only("deepseek_chat")
    assert (thought.text, thought.reasoning) == (" Paris", "France.")
    assert DIALECT.decode(sent(), fixture("openai/deepseek_chat.json")).usage == Usage(
        6, 2, {"cached_tokens": 4}, extra={"prompt_cache_miss_tokens": 2}
    )


def test_a_list_of_parts_is_joined() -> None:
    listed = only("mistral_chat")
    assert (listed.text, listed.reasoning) == (" Paris", "hm")
    assert (listed.finish_reason, listed.native_finish_reason) == ("length", "model_length")


def test_log_probabilities_keep_the_vendors_shape() -> None:
    assert only("openai_logprobs").logprobs == ContentLogprobs(
        (
            TokenLogprob(
                "é", -0.5, (0xC3, 0xA9), (TokenLogprob("é", -0.5, (0xC3, 0xA9)), TokenLogprob("e", -2.0, (101,)))
            ),
            TokenLogprob("!", -9999.0, (33,)),
        )
    )
    echoed = only("vllm_echo")
    assert echoed.logprobs == LegacyLogprobs(
        ("The", " end", "."),
        (None, -1.5, -9999.0),
        (None, {" end": -1.5, " cat": -2.0}, {".": -9999.0, "!": -0.1}),
        (0, 3, 7),
    )
    assert echoed.matched_stop == "\n"
    together = only("together_completion")
    assert together.logprobs == LegacyLogprobs((" Paris",), (-0.25,), ({" Paris": -0.25, "x": -3.0},), None)
    assert (together.finish_reason, together.native_finish_reason) == ("stop", "eos")


def test_a_choice_inside_an_object_comes_out() -> None:
    assert decoded(sent(unwrap=True), message('{"choice":"blue"}')).choices[0].text == "blue"
    assert decoded(sent(unwrap=True), message('{"choice":"bl', "length")).choices[0].text == '{"choice":"bl'
    assert decoded(sent(unwrap=True), message(None, refusal="no")).choices[0].text == "no"


@looped(
    ("body", "kind"),
    [
        (b"", FailureKind.MALFORMED),
        (b"<html>", FailureKind.MALFORMED),
        (b"1", FailureKind.MALFORMED),
        (b"[]", FailureKind.MALFORMED),
        (b"{}", FailureKind.MALFORMED),
        (b'{"choices": []}', FailureKind.MALFORMED),
        (b'{"choices": [1]}', FailureKind.MALFORMED),
        (b'{"choices": [{"index": 0, "finish_reason": "stop"}]}', FailureKind.MALFORMED),
        (b'{"choices": [{"index": 0, "message": null, "finish_reason": "stop"}]}', FailureKind.MALFORMED),
        (b'{"choices": [{"message": {"content": "a"}, "finish_reason": "cancelled"}]}', FailureKind.SERVER),
        (b'{"choices": [{"text": "a", "finish_reason": null}]}', FailureKind.MALFORMED),
        (b'{"choices": [{"text": "a", "finish_reason": {}}]}', FailureKind.MALFORMED),
        (b'{"choices": [{"text": "a", "finish_reason": "error"}]}', FailureKind.SERVER),
        (b'{"choices": [{"message": {"tool_calls": [{}]}, "finish_reason": "stop"}]}', FailureKind.MALFORMED),
        (b'{"error": {"message": "no", "code": "invalid_api_key"}}', FailureKind.AUTH),
        (b'[{"error": {"message": "no", "code": 400}}]', FailureKind.INVALID_REQUEST),
        (b'{"object": "error", "message": "no", "code": 404}', FailureKind.NOT_FOUND),
        (fixture("openai/openrouter_error.json"), FailureKind.RATE_LIMITED),
    ],
)
def test_an_answer_that_is_none_is_a_failure(body: bytes, kind: FailureKind) -> None:
    assert broken(sent(), body).kind is kind


def test_an_object_without_the_choice_is_malformed() -> None:
    assert broken(sent(unwrap=True), orjson.dumps(message("blue"))).kind is FailureKind.MALFORMED


def test_a_custom_tool_s_call_has_its_text() -> None:
    call: JsonObject = {"id": "c1", "type": "custom", "custom": {"name": "run", "input": "ls -l"}}
    (choice,) = decoded(sent(), message(None, "tool_calls", tool_calls=[call])).choices
    assert choice.tool_calls == (ToolCall("c1", "run", "ls -l", "custom"),)
    assert choice.finish_reason == "tool_calls"


def test_the_older_form_of_a_call_is_a_tool_call() -> None:
    body = message(None, "function_call", function_call={"name": "f", "arguments": "{}"})
    (choice,) = decoded(sent(), body).choices
    assert choice.tool_calls == (ToolCall(call_id(None, 0, 0), "f", "{}"),)
    assert (choice.finish_reason, choice.native_finish_reason) == ("tool_calls", "function_call")


def test_a_call_s_and_a_usage_s_further_members_stay_with_them() -> None:
    call: JsonObject = {"id": "c1", "function": {"name": "f", "arguments": "{}"}, "extra_content": {"a": 1}}
    body = message(None, "tool_calls", tool_calls=[call])
    body["usage"] = {"prompt_tokens": 1, "completion_tokens": 2, "cost": 0.5, "cost_details": None}
    answer = decoded(sent(), body)
    assert answer.choices[0].tool_calls[0].extra == {"extra_content": {"a": 1}}
    assert answer.usage == Usage(1, 2, extra={"cost": 0.5})


def test_the_word_of_the_vendor_behind_the_vendor_is_told() -> None:
    body = message("Hi")
    choice = body["choices"][0] if isinstance(body["choices"], list) else None
    assert isinstance(choice, dict)
    for own, native in (("end_turn", "end_turn"), ("stop", None), (None, None), (7, None)):
        choice["native_finish_reason"] = own
        assert decoded(sent(), body).choices[0].native_finish_reason == native


def test_marks_are_cited_unless_the_vendor_cites_itself() -> None:
    body: JsonObject = {**message("Oslo [1]."), "citations": ["https://a.example"]}
    (choice,) = decoded(sent("perplexity"), body).choices
    citation: JsonObject = {"url": "https://a.example", "title": "", "start_index": 5, "end_index": 8}
    assert choice.extras == Extras(annotations=({"type": "url_citation", "url_citation": citation},))
    found: JsonObject = {"title": "", "link": "https://a.example", "refer": "ref_1", "content": "Oslo"}
    (choice,) = decoded(sent("zai"), {**message("Oslo [ref_1]."), "web_search": [found]}).choices
    assert choice.extras == Extras(
        annotations=({"type": "url_citation", "url_citation": {**citation, "end_index": 12}},)
    )
    own: JsonObject = {"type": "url_citation", "url_citation": {"url": "https://b.example"}}
    body = {**message("Oslo [1].", annotations=[own]), "citations": ["https://a.example"]}
    assert decoded(sent("perplexity"), body).choices[0].extras == Extras(annotations=(own,))


def test_an_empty_delta_beside_the_message_hides_nothing() -> None:
    choice: JsonObject = {"message": {"content": "Hi"}, "delta": {"content": ""}, "finish_reason": "stop"}
    assert decoded(sent("perplexity"), {"choices": [choice]}).choices[0].text == "Hi"


def test_half_a_character_in_a_whole_answer_is_replaced() -> None:
    body = rb'{"choices":[{"message":{"content":"a\ud83d"},"finish_reason":"stop"}]}'
    assert DIALECT.decode(sent(), body).choices[0].text == "a\ufffd"


def test_hundreds_of_thousands_of_unknown_members_are_refused_at_little_cost() -> None:
    def body_of(count: int) -> bytes:
        members = b",".join([b'"n%d":1' % number for number in range(count)])
        return b'{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}],' + members + b"}"

    def refused(body: bytes) -> None:
        with pytest.raises(UpstreamError):
            DIALECT.decode(sent(), body)

    body = body_of(400_000)
    with growth() as grown, pytest.raises(UpstreamError, match="more fields than are passed on"):
        DIALECT.decode(sent(), body)
    assert grown.bytes < 205 * 2**20
    assert cpu_growth(partial(refused, body_of(100_000)), partial(refused, body)) == ""


def test_as_many_members_as_any_vendor_has_are_passed_on() -> None:
    members = ",".join([f'"n{number}":1' for number in range(MAX_UNKNOWN - 1)])
    body = f'{{"choices":[{{"message":{{"content":"a"}},"finish_reason":"stop"}}],{members}}}'.encode()
    assert len(DIALECT.decode(sent(), body).extra or ()) == MAX_UNKNOWN - 1


ODD: list[JsonValue] = [None, "", "text", [], [{}], {}, {"a": 1}, 0, 1, True, 0.5]
HELD = ("content", "refusal", "annotations", "role", "reasoning_content", "tool_calls", "extra_content", "prefix")
BESIDE = (
    "index",
    "message",
    "logprobs",
    "finish_reason",
    "text",
    "matched_stop",
    "native_finish_reason",
    "delta",
    "own",
)
REASONS: list[JsonValue] = ["stop", "length", "eos", "content_filter", "tool_calls", "other", *ODD]


@given(
    st.dictionaries(st.sampled_from(HELD), st.sampled_from(ODD), max_size=3),
    st.dictionaries(st.sampled_from(BESIDE), st.sampled_from(ODD), max_size=2),
    st.sampled_from(REASONS),
    st.booleans(),
    st.booleans(),
)
def test_a_choice_with_a_text_alone_is_read_as_any_other(
    held: JsonObject, beside: JsonObject, reason: JsonValue, unwrap: bool, chats: bool
) -> None:
    plain: JsonObject = {"role": "assistant", "content": "some text", "refusal": None, **held}
    said: JsonObject = {"message": plain} if chats else {"text": "some text"}
    choice: JsonObject = {"index": 0, **said, "logprobs": None, "finish_reason": reason, **beside}
    # A field without meaning, which a choice with only a text does not have.
    longer = {**choice, "stop_reason": None}
    assert only_text_in(longer) is None
    assert outcome(choice, unwrap) == outcome(longer, unwrap)


def outcome(choice: JsonObject, unwrap: bool) -> object:
    """Return the choices of a response with one choice, or its failure."""
    try:
        return decoded(sent(unwrap=unwrap), {"choices": [choice]}).choices
    except UpstreamError as error:
        return error.failure


def test_the_common_choice_takes_the_short_way() -> None:
    assert only_text_in(message("hi")["choices"][0]) == Choice(0, "hi", "stop")  # type: ignore[index, arg-type]


STRANGE: st.SearchStrategy[Any] = st.sampled_from([None, 0, 1, -1, 1.5, True, "", "stop", "error", [], {}, {"a": 1}])
ENTRY: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {
        "index": st.sampled_from([0, 0, 1, None]),
        "finish_reason": st.sampled_from(["stop", "length", "tool_calls", None]),
    },
    optional={
        "message": st.fixed_dictionaries(
            {"role": st.just("assistant"), "content": st.sampled_from(["a", "a", "", None])},
            optional={"refusal": STRANGE, "annotations": STRANGE, "reasoning": STRANGE},
        ),
        "text": st.sampled_from(["t", ""]),
        "usage": st.just({"prompt_tokens": 1}),
        "stop_reason": STRANGE,
        "logprobs": st.none(),
    },
)
COUNT: st.SearchStrategy[Any] = st.sampled_from([0, 3, 3, 5, -1, None, True, 2.0])
USAGE: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {"prompt_tokens": COUNT, "completion_tokens": COUNT, "total_tokens": COUNT},
    optional={"reasoning_tokens": COUNT, "cost": STRANGE, "prompt_tokens_details": st.just({"cached_tokens": 1})},
)
BODY: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {
        "id": STRANGE,
        "object": st.sampled_from(["chat.completion", "error", None]),
        "choices": st.lists(ENTRY, max_size=2),
    },
    optional={
        "usage": USAGE,
        "error": STRANGE,
        "error_code": STRANGE,
        "system_fingerprint": STRANGE,
        "service_tier": STRANGE,
        "x_groq": st.just({"usage": {"prompt_tokens": 1, "completion_tokens": 1}}),
        "citations": st.just(["http://a"]),
    },
)


@given(BODY, st.sampled_from(ROWS), st.booleans())
def test_an_answer_of_text_alone_is_read_at_once_as_any_other_is(body: JsonObject, row: str, unwrap: bool) -> None:
    call = sent(row, unwrap=unwrap)

    def outcome(decode: Callable[[], Completion]) -> Completion | Failure:
        try:
            return decode()
        except UpstreamError as error:
            return error.failure

    read = outcome(lambda: decode_body(call, orjson.dumps(body)))
    assert read == outcome(lambda: decode_object(call, body))
    if body.get("usage") is not None and isinstance(read, Completion):
        assert read.usage == usage_of(body)


def test_no_vendors_own_member_is_a_known_one() -> None:
    assert KNOWN_IN_ANSWER.isdisjoint({profile.own_member for profile in load_profiles().values()})
