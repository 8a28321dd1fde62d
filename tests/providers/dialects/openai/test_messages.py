"""Conversations in the form of each profile: fields that are renamed, dropped or refused."""

import operator
import sys
from collections import Counter
from contextlib import suppress
from copy import deepcopy
from types import FrameType
from typing import cast

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.dialects.openai.messages import vendor_messages
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from providers.profiles.load_profiles import load_profiles
from providers.unified_request import PLAIN_ROLES, ChatPrompt
from tests.providers.dialects.openai.kit import ROWS, every_row, target
from tests.support.examples import examples
from tests.support.looped import looped
from tests.support.usual_messages import USUAL_MESSAGES, of_subtypes

SIGNED: JsonObject = {"role": "assistant", "content": "a", "extra_content": {"google": {"thought_signature": "c2ln"}}}
UNSIGNED: JsonObject = {"role": "assistant", "content": "a"}
PARTS: JsonValue = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]


SPOKEN: JsonObject = {"id": "a1", "data": "UklG", "transcript": "Hm.", "expires_at": 1}
FUNCTION: JsonObject = {"name": "f", "arguments": "{}"}
CALL: JsonObject = {"id": "c1", "type": "function", "function": FUNCTION}
MARKER: JsonObject = {"type": "ephemeral"}
MARKED: JsonObject = {"type": "text", "text": "a", "cache_control": MARKER}


def messages(row: str, *given: JsonObject, dropped: list[str] | None = None) -> list[JsonValue]:
    noted = [] if dropped is None else dropped
    return vendor_messages(target(row), load_profiles()[row], ChatPrompt(given), noted)


@looped(
    ("row", "given", "wanted"),
    [
        ("openai", {"role": "user", "content": "a", "name": None}, {"role": "user", "content": "a"}),
        ("openai", {"role": "developer", "content": "a"}, {"role": "developer", "content": "a"}),
        ("groq", {"role": "developer", "content": "a"}, {"role": "system", "content": "a"}),
        ("moonshot", {**UNSIGNED, "reasoning": "r"}, {**UNSIGNED, "reasoning_content": "r"}),
        ("openai", {**UNSIGNED, "reasoning_content": "r"}, UNSIGNED),
        ("openai", SIGNED, UNSIGNED),
        ("gemini_compat", SIGNED, SIGNED),
        ("openai_compatible", SIGNED, SIGNED),
        ("vllm", SIGNED, UNSIGNED),
        ("openai", {**UNSIGNED, "extra_content": {"own": 1}}, UNSIGNED),
        ("openai", {**UNSIGNED, "refusal": "No."}, {**UNSIGNED, "refusal": "No."}),
        ("groq", {**UNSIGNED, "refusal": "No."}, {**UNSIGNED, "content": "aNo."}),
        ("groq", {"role": "assistant", "content": None, "refusal": "No."}, {"role": "assistant", "content": "No."}),
        (
            "groq",
            {**UNSIGNED, "annotations": [], "provider_specific_fields": {}, "id": "x", "phase": "final_answer"},
            UNSIGNED,
        ),
        (
            "openrouter",
            {**UNSIGNED, "annotations": [{"type": "file"}]},
            {**UNSIGNED, "annotations": [{"type": "file"}]},
        ),
        ("openai", {**UNSIGNED, "audio": {"id": "a1"}}, {**UNSIGNED, "audio": {"id": "a1"}}),
        ("openai", {**UNSIGNED, "audio": SPOKEN}, {**UNSIGNED, "audio": {"id": "a1"}}),
        ("groq", {"role": "assistant", "content": None, "audio": SPOKEN}, {**UNSIGNED, "content": "Hm."}),
        ("groq", {**UNSIGNED, "tool_calls": []}, UNSIGNED),
        ("vllm", {"role": "assistant", "content": None}, {**UNSIGNED, "content": ""}),
        ("vllm", {"role": "assistant", "tool_calls": None}, {**UNSIGNED, "content": ""}),
        (
            "groq",
            {**UNSIGNED, "tool_calls": [{**CALL, "index": 0, "function": {**FUNCTION, "parsed_arguments": {}}}]},
            {**UNSIGNED, "tool_calls": [CALL]},
        ),
        ("groq", {**UNSIGNED, "audio": {"id": "a1"}}, UNSIGNED),
        ("mistral", {**UNSIGNED, "prefix": True}, {**UNSIGNED, "prefix": True}),
        (
            "openrouter",
            {"role": "user", "content": "a", "cache_control": MARKER},
            {"role": "user", "content": [MARKED]},
        ),
        (
            "openrouter",
            {"role": "user", "content": PARTS, "cache_control": MARKER},
            {"role": "user", "content": [{"type": "text", "text": "a"}, {**MARKED, "text": "b"}]},
        ),
        ("openrouter", {"role": "user", "content": "", "cache_control": MARKER}, {"role": "user", "content": ""}),
    ],
)
def test_a_message_is_written_as_the_profile_wants_it(row: str, given: JsonObject, wanted: JsonObject) -> None:
    assert messages(row, given) == [wanted]


@looped("name", ["annotations", "citations"])
def test_sources_of_an_earlier_response_that_are_left_out_are_named(name: str) -> None:
    rows: list[tuple[list[JsonValue], list[str]]] = [([{"type": "url_citation"}], [name]), ([], [])]
    for value, named in rows:
        noted: list[str] = []
        assert messages("openai", {**UNSIGNED, name: value}, dropped=noted) == [UNSIGNED]
        assert noted == named


@looped(
    ("content", "said"),
    [
        ("no", "The call failed: no"),
        ("", "The call failed."),
        ([{"type": "text", "text": "no"}, MARKED], [{"type": "text", "text": "The call failed: no"}, MARKED]),
        ([], [{"type": "text", "text": "The call failed."}]),
    ],
)
def test_a_failed_result_says_so_at_every_vendor(content: JsonValue, said: JsonValue) -> None:
    result: JsonObject = {"role": "tool", "tool_call_id": "abcdefgh1", "content": content}
    for failed, wanted in ((True, said), (False, content)):
        noted: list[str] = []
        made = messages("openai_compatible", {**result, "is_error": failed}, dropped=noted)
        assert (made, noted) == ([{**result, "content": wanted}], [])
    for row, profile in load_profiles().items():
        if profile.dialect == "openai" and isinstance(content, str) and profile.wires:
            assert str(said) in orjson.dumps(messages(row, {**result, "is_error": True})).decode(), row


def test_parts_become_one_text_where_content_must_be_a_string() -> None:
    row = next(name for name, profile in load_profiles().items() if not profile.content_parts)
    assert messages(row, {"role": "user", "content": PARTS}) == [{"role": "user", "content": "ab"}]
    result: JsonObject = {"role": "tool", "tool_call_id": "1", "content": PARTS}
    assert messages(row, result) == [{**result, "content": "a\nb"}]
    with pytest.raises(Refusal, match="only text"):
        messages(row, {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]})


@looped(
    ("row", "message", "kept", "dropped"),
    [
        ("xai", {"role": "user", "content": "a", "name": "ann"}, True, []),
        ("xai", {"role": "assistant", "content": "a", "name": "bot"}, False, ["name"]),
        ("xai", {"role": "tool", "content": "a", "tool_call_id": "1", "name": "f"}, False, []),
        ("mistral", {"role": "user", "content": "a", "name": "ann"}, False, ["name"]),
        ("mistral", {"role": "tool", "content": "a", "tool_call_id": "abcdefgh1", "name": "f"}, True, []),
        ("fireworks", {"role": "user", "content": "a", "name": "ann"}, False, ["name"]),
        ("groq", {"role": "user", "content": "a", "name": "ann"}, True, []),
        ("openai", {"role": "developer", "content": "a", "name": "ann"}, True, []),
        ("openai", {"role": "user", "content": "a", "name": "Ann Lee"}, False, ["name"]),
        ("openai", {"role": "user", "content": "a", "name": "a" * 65}, False, ["name"]),
        ("openai", {"role": "assistant", "content": "a", "name": ""}, False, ["name"]),
        ("vllm", {"role": "user", "content": "a", "name": "Ann Lee"}, True, []),
    ],
)
def test_a_name_goes_where_it_is_taken_and_is_left_out_elsewhere(
    row: str, message: JsonObject, kept: bool, dropped: list[str]
) -> None:
    noted: list[str] = []
    (made,) = messages(row, message, dropped=noted)
    assert isinstance(made, dict)
    assert ("name" in made) is kept
    assert noted == dropped


@looped("row", ["openai", "fireworks", "groq", "mistral", "deepseek", "vllm"])
def test_cache_markers_and_foreign_thinking_never_reach_vendors_that_refuse_them(row: str) -> None:
    noted: list[str] = []
    made = messages(
        row,
        {"role": "system", "content": [MARKED]},
        {"role": "user", "content": "q", "cache_control": MARKER},
        {**UNSIGNED, "thinking_blocks": [{"type": "thinking", "thinking": "", "signature": "c2ln"}]},
        {"role": "user", "content": "q"},
        dropped=noted,
    )
    assert "cache_control" in noted
    assert "thinking" in noted
    assert b"cache_control" not in orjson.dumps(made)
    assert b"c2ln" not in orjson.dumps(made)


def test_calls_of_the_older_form_go_to_openai_as_they_are_and_to_others_as_tools() -> None:
    call: JsonObject = {"name": "f", "arguments": "{}"}
    given: list[JsonObject] = [
        {"role": "assistant", "content": None, "function_call": call},
        {"role": "function", "name": "f", "content": "4"},
    ]
    assert messages("openai", *given) == [{"role": "assistant", "function_call": call}, given[1]]
    assert messages("groq", *given) == [
        {"role": "assistant", "tool_calls": [{"id": "call_f", "type": "function", "function": call}]},
        {"role": "tool", "tool_call_id": "call_f", "content": "4"},
    ]


def test_a_sound_that_only_its_vendor_knows_is_refused_where_it_is_all_that_was_said() -> None:
    with pytest.raises(Refusal, match=r"audio\.id"):
        messages("groq", {"role": "assistant", "content": None, "audio": {"id": "a1"}})


def test_images_of_an_answer_are_named_where_no_turn_of_the_model_may_hold_them() -> None:
    noted: list[str] = []
    image: JsonObject = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
    assert messages("openai", {**UNSIGNED, "images": [image]}, dropped=noted) == [UNSIGNED]
    assert noted == ["images"]
    assert messages("openrouter", {**UNSIGNED, "images": [image]}) == [{**UNSIGNED, "images": [image]}]


MEMBERS = (
    *("role", "content", "name", "tool_calls", "function_call", "refusal", "audio", "images", "annotations"),
    *("reasoning", "reasoning_content", "reasoning_details", "thinking_blocks", "extra_content", "cache_control"),
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.sampled_from(["", "a", "text", "tool", "assistant", "user", "function", "thinking"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from((*MEMBERS, "type", "text")), inner, max_size=4)
    ),
    max_leaves=10,
)
ROLES = st.sampled_from(["system", "developer", "user", "assistant", "tool", "function", "other"])


@given(row=st.sampled_from(ROWS), role=ROLES, message=st.dictionaries(st.sampled_from(MEMBERS), ANYTHING, max_size=6))
def test_no_message_makes_a_row_fail_and_none_is_edited(row: str, role: str, message: JsonObject) -> None:
    given = {**message, "role": role}
    before = deepcopy(given)
    with suppress(Refusal):
        messages(row, given)
    assert given == before


def test_plain_messages_cost_no_call_each() -> None:
    calls: Counter[str] = Counter()
    talk = tuple[JsonObject, ...]({"role": role, "content": "a"} for role in ("user", "assistant") * 500)
    profile = load_profiles()["openai"]

    def count(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            calls[frame.f_code.co_name] += 1

    sys.setprofile(count)
    try:
        made = vendor_messages(target("openai"), profile, ChatPrompt(talk), [])
    finally:
        sys.setprofile(None)
    assert made == [*talk]
    assert calls.total() < 40, calls


def test_a_long_conversation_costs_linear_time() -> None:
    turn: JsonObject = {**UNSIGNED, "reasoning_details": [{"type": "reasoning.text", "text": "x" * 10}] * 100}
    parts: list[JsonValue] = [MARKED] * 50_000
    noted: list[str] = []
    made = messages("fireworks", *[turn] * 200, {"role": "user", "content": parts}, dropped=noted)
    assert len(made) == 201
    assert len(noted) == 50_000


@every_row
def test_a_plain_conversation_goes_out_as_it_would_if_it_were_not_known_to_be_plain(row: str) -> None:
    talk: list[JsonObject] = [{"role": role, "content": text} for role in PLAIN_ROLES for text in ("a", "b")]
    known, unknown = (outcome(row, ChatPrompt((*talk, *talk), plain=plain)) for plain in (True, False))
    assert known == unknown


def outcome(row: str, prompt: ChatPrompt) -> object:
    dropped: list[str] = []
    try:
        return vendor_messages(target(row), load_profiles()[row], prompt, dropped), dropped
    except Refusal as refused:
        return refused.message


@examples(4000)
@given(st.sampled_from(ROWS), st.lists(USUAL_MESSAGES, min_size=1, max_size=3))
def test_messages_that_go_unchanged_at_once_are_those_in_which_nothing_has_to_change(
    row: str, talk: list[JsonObject]
) -> None:
    talks = (talk, [cast(JsonObject, of_subtypes(message)) for message in talk])
    at_once, fully = (outcome(row, ChatPrompt(tuple(each))) for each in talks)
    assert at_once == fully


def test_a_conversation_of_an_agent_goes_out_as_the_same_objects() -> None:
    talk: list[JsonObject] = [
        {"role": "user", "content": [{"type": "text", "text": "a"}]},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "content": "", "tool_call_id": "c1"},
        {"role": "assistant", "content": "b", "tool_calls": [CALL]},
        {"role": "tool", "content": "c", "tool_call_id": "c1"},
    ]
    made = messages("openai", *talk)
    assert all(map(operator.is_, made, talk))
    assert len(made) == len(talk)
