"""The results of hooks on conversations: the same content in another form, or a refusal. The input is never changed."""

from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.dialects.openai.message_hooks import HOOKS, apply_hooks
from providers.dialects.shared.thought_signatures import SKIP_SIGNATURE, pack_call_id
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from providers.profile import HookName
from tests.providers.dialects.openai.kit import target
from tests.support.looped import looped

TARGET = target("openai")


def text(words: JsonValue) -> JsonObject:
    return {"type": "text", "text": words}


def image(url: str) -> JsonObject:
    return {"type": "image_url", "image_url": {"url": url}}


def user(content: JsonValue, **more: JsonValue) -> JsonObject:
    return {"role": "user", "content": content, **more}


def model(content: JsonValue, **more: JsonValue) -> JsonObject:
    return {"role": "assistant", "content": content, **more}


def call(identity: str, name: str = "f") -> JsonObject:
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": "{}"}}


def calling(*calls: JsonObject, **more: JsonValue) -> JsonObject:
    return {"role": "assistant", "tool_calls": [*calls], **more}


def result(identity: str, content: JsonValue = "4", **more: JsonValue) -> JsonObject:
    return {"role": "tool", "tool_call_id": identity, "content": content, **more}


DATA, ADDRESS = image("data:image/png;base64,AA"), image("https://example.com/a.png")
STRING_IMAGE: JsonObject = {"type": "image_url", "image_url": "https://example.com/a.png"}
MARKED: JsonObject = {**text("a"), "cache_control": {"type": "ephemeral"}}
SOUND: JsonObject = {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}}
DOCUMENT: JsonObject = {"type": "document_url", "document_url": "https://a.example/b.pdf"}


SKIPS: JsonObject = {"extra_content": {"google": {"thought_signature": SKIP_SIGNATURE}}}


def file(**held: JsonValue) -> JsonObject:
    return {"type": "file", "file": held}


def chunk(thought: str) -> JsonObject:
    return {"type": "thinking", "thinking": [text(thought)], "closed": True}


def test_ids_that_all_fit_leave_the_conversation_as_it_is() -> None:
    talk: list[JsonObject] = [
        {"role": "assistant", "content": "a", "tool_calls": [{"id": "c" * 40, "type": "function"}, {"id": 1}, None]},
        {"role": "tool", "content": "b", "tool_call_id": "c" * 40},
    ]
    hook = HOOKS["forty_character_call_ids"]
    assert hook(target("openai"), talk) is talk
    longer_ids: list[JsonObject] = [{"tool_calls": [{"id": "c" * 41}]}, {"tool_call_id": "c" * 41}]
    for number, longer in enumerate(longer_ids):
        changed = hook(target("openai"), [{**each, **longer} if at == number else each for at, each in enumerate(talk)])
        assert "c" * 41 not in str(changed)


def test_every_name_that_a_row_may_use_is_a_hook() -> None:
    assert set(HOOKS) == set(get_args(HookName))


@looped(
    ("name", "given_", "expected"),
    [
        ("joined_text", [user([text("a"), text("b")])], [user("ab")]),
        ("joined_text", [user([MARKED, text("b")])], [user([MARKED, text("b")])]),
        (
            "document_parts",
            [user([file(file_data="data:application/pdf;base64,AA", filename="a.pdf"), file(file_id="f1"), SOUND])],
            [
                user(
                    [
                        {
                            "type": "document_url",
                            "document_url": "data:application/pdf;base64,AA",
                            "document_name": "a.pdf",
                        },
                        {"type": "file", "file_id": "f1"},
                        {"type": "input_audio", "input_audio": "AA"},
                    ]
                )
            ],
        ),
        ("document_parts", [user([file(file_url="https://a.example/b.pdf"), file()])], [user([DOCUMENT, file()])]),
        (
            "thinking_chunks",
            [model("a", reasoning_content="hm"), calling(call("1"), reasoning_content="so")],
            [model([chunk("hm"), text("a")]), calling(call("1"), content=[chunk("so")])],
        ),
        ("joined_text", [user([text("a"), DATA]), user("c")], [user([text("a"), DATA]), user("c")]),
        ("text_tool_results", [result("1", [text("a"), text("b")])], [result("1", "a\nb")]),
        ("joined_text", [result("1", [text("a"), text("b")])], [result("1", "a\nb")]),
        ("text_tool_results", [user([text("a")]), result("1")], [user([text("a")]), result("1")]),
        ("no_empty_text", [user([text(""), text("a"), DATA])], [user([text("a"), DATA])]),
        ("no_empty_text", [user([text("")])], [user("")]),
        ("no_empty_text", [result("1", "")], [result("1", "(empty)")]),
        ("no_empty_text", [calling(call("1"), content="")], [calling(call("1"))]),
        ("no_empty_text", [calling(call("1"), content=[text("")])], [calling(call("1"))]),
        ("no_empty_text", [model(""), calling(call("1"), content="a")], [model(""), calling(call("1"), content="a")]),
        ("inline_images", [user([text("a"), DATA]), user("b")], [user([text("a"), DATA]), user("b")]),
        ("alternating_roles", [user("a"), user("b"), model("c"), model("d")], [user("a\n\nb"), model("c\n\nd")]),
        ("alternating_roles", [user("a"), user([DATA])], [user([text("a"), DATA])]),
        ("alternating_roles", [user([DATA]), user("a"), user("b")], [user([DATA, text("a"), text("\n\nb")])]),
        (
            "alternating_roles",
            [{"role": "system", "content": "s"}, {"role": "system", "content": "t"}, user("a", name="x"), user("b")],
            [{"role": "system", "content": "s"}, {"role": "system", "content": "t"}, user("a", name="x"), user("b")],
        ),
        (
            "named_tool_results",
            [calling(call("1", "g")), result("1")],
            [calling(call("1", "g")), result("1", name="g")],
        ),
        (
            "named_tool_results",
            [calling(call("1")), result("1", name="own"), result("2")],
            [calling(call("1")), result("1", name="own"), result("2")],
        ),
        (
            "nine_character_call_ids",
            [calling(call("abcdef123")), result("abcdef123")],
            [calling(call("abcdef123")), result("abcdef123")],
        ),
        (
            "reasoning_on_calls",
            [model("a"), calling(call("1"))],
            [model("a"), calling(call("1"), reasoning_content=" ")],
        ),
        (
            "reasoning_on_calls",
            [calling(call("1"), reasoning_content="hm")],
            [calling(call("1"), reasoning_content="hm")],
        ),
        (
            "split_tool_results",
            [user("q"), calling(call("1"), call("2"), content="look"), result("2"), result("1"), user("r")],
            [user("q"), calling(call("1"), content="look"), result("1"), calling(call("2")), result("2"), user("r")],
        ),
        (
            "signed_calls",
            [user("a"), calling(call("1"), call("2")), result("1"), calling(content="x")],
            [user("a"), calling({**call("1"), **SKIPS}, call("2")), result("1"), calling(content="x")],
        ),
        ("split_tool_results", [calling(call("1")), result("1")], [calling(call("1")), result("1")]),
        (
            "split_tool_results",
            [calling(call("1"), call("2")), result("1"), user("r")],
            [calling(call("1"), call("2")), result("1"), user("r")],
        ),
    ],
)
def test_a_hook_writes_the_same_in_another_form(
    name: HookName, given_: list[JsonObject], expected: list[JsonObject]
) -> None:
    before = deepcopy(given_)
    assert apply_hooks(TARGET, (name,), given_) == expected
    assert given_ == before
    assert apply_hooks(TARGET, (name,), expected) == expected


@looped(
    ("name", "message", "reason"),
    [
        ("inline_images", user([ADDRESS]), "images as data URIs only"),
        ("inline_images", user([STRING_IMAGE]), "images as data URIs only"),
        ("text_tool_results", result("1", [text("a"), DATA]), "takes tool results as text only"),
    ],
)
def test_what_cannot_be_said_is_refused(name: HookName, message: JsonObject, reason: str) -> None:
    with pytest.raises(Refusal, match=reason) as caught:
        apply_hooks(TARGET, (name,), [message])
    assert caught.value.param == "messages"
    assert TARGET.name in caught.value.message


def test_a_signature_leaves_the_id_and_stands_where_the_vendor_put_it() -> None:
    signed = pack_call_id("c1", "ab+/cA==")
    given_ = [calling(call(signed), call("c2"), content="look"), result(signed), result("c2")]
    extra: JsonObject = {"extra_content": {"google": {"thought_signature": "ab+/cA=="}}}
    assert apply_hooks(TARGET, ("signed_calls",), given_) == [
        calling({**call("c1"), **extra}, call("c2"), content="look"),
        result("c1"),
        result("c2"),
    ]


def test_a_model_that_demands_no_signature_gets_no_placeholder() -> None:
    older = replace(TARGET, upstream_model="gemini-2.5-flash", model="gemini-2.5-flash")
    assert apply_hooks(older, ("signed_calls",), [calling(call("1"))]) == [calling(call("1"))]


def test_a_signature_that_the_client_kept_stays() -> None:
    kept: JsonObject = {"extra_content": {"google": {"thought_signature": "own"}}}
    assert apply_hooks(TARGET, ("signed_calls",), [calling({**call(pack_call_id("c1", "AA==")), **kept})]) == [
        calling({**call("c1"), **kept})
    ]


@given(st.lists(st.text(min_size=1), min_size=1, max_size=5, unique=True))
def test_ids_stay_apart_and_each_result_keeps_its_call(ids: list[str]) -> None:
    given_ = [calling(*map(call, ids)), *map(result, ids)]
    calls, *results = apply_hooks(TARGET, ("nine_character_call_ids",), given_)
    made = [str(entry["id"]) for entry in calls["tool_calls"] if isinstance(entry, dict)]  # type: ignore[union-attr]
    assert made == [str(each["tool_call_id"]) for each in results]
    assert len(set(made)) == len(ids)
    assert all(len(each) == 9 and each.isalnum() and each.isascii() for each in made)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "a", "text", "tool", "assistant", "1"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["role", "content", "tool_calls", "tool_call_id", "id", "type", "text", "function", "name"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@given(
    st.lists(st.dictionaries(st.sampled_from(["role", "content", "tool_calls", "tool_call_id"]), ANYTHING), max_size=4)
)
def test_no_conversation_makes_a_hook_fail(messages: list[JsonObject]) -> None:
    before = deepcopy(messages)
    for hook in HOOKS.values():
        with suppress(Refusal):
            hook(TARGET, messages)
    assert messages == before


def test_hooks_run_one_after_the_other() -> None:
    given_ = [user([text("a"), text("")]), user("b")]
    assert apply_hooks(TARGET, ("joined_text", "alternating_roles"), given_) == [user("a\n\nb")]
