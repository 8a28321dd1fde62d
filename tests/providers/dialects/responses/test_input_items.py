"""Conversations of other APIs as input items, in order, with reasoning before the text or call that it led to."""

import pytest

from providers.dialects.responses.input_items import input_items
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from providers.profiles.load_profiles import load_profiles
from tests.support.looped import looped
from tests.support.not_none import not_none

PROFILE = load_profiles()["openai"].for_model("gpt-5.6")
OLDER = load_profiles()["openai"].for_model("gpt-5.5")
WIRE = not_none(PROFILE.responses)
AGENT = not_none(load_profiles()["perplexity"].responses)
FORM = "openai-responses-v1"
PNG = "data:image/png;base64,AA=="
MARK: JsonObject = {"mode": "explicit"}
LONG = "x" * 65


def sealed(data: str, **more: JsonValue) -> JsonObject:
    return {"type": "reasoning.encrypted", "data": data, "format": FORM, **more}


def reasoning(data: str, *summary: str, **more: JsonValue) -> JsonObject:
    texts: list[JsonValue] = [{"type": "summary_text", "text": text} for text in summary]
    return {"type": "reasoning", "summary": texts, "encrypted_content": data, **more}


def call(identity: str = "c1", arguments: str = '{"a": 1}') -> JsonObject:
    return {"id": identity, "type": "function", "function": {"name": "f", "arguments": arguments}}


def called(identity: str = "c1", arguments: str = '{"a": 1}') -> JsonObject:
    return {"type": "function_call", "call_id": identity, "name": "f", "arguments": arguments}


def model(content: JsonValue = None, **members: JsonValue) -> JsonObject:
    return {"role": "assistant", "content": content, **members}


def user(*parts: JsonValue) -> JsonObject:
    return {"role": "user", "content": [*parts]}


def text(words: str, **more: JsonValue) -> JsonObject:
    return {"type": "text", "text": words, **more}


CUSTOM: JsonObject = {"id": "c1", "type": "custom", "custom": {"name": "g", "input": "x = 1"}}
RESULT: JsonObject = {"role": "tool", "tool_call_id": "c1", "content": "done"}
SUMMARY: JsonObject = {"type": "reasoning.text", "text": "why", "format": "unknown"}
CLAUDES: JsonObject = {"type": "reasoning.text", "text": "hm", "signature": "s", "format": "anthropic-claude-v1"}
IMAGE: JsonObject = {"type": "image_url", "image_url": {"url": "https://a.b/c.png", "detail": "low"}}
FILE: JsonObject = {"type": "file", "file": {"file_data": "data:application/pdf;base64,AA==", "filename": "a.pdf"}}


@looped(
    ("messages", "items", "dropped"),
    [
        ([{"role": "system", "content": "s"}, {"role": "developer", "content": "d"}], None, []),
        ([{"role": "user", "content": "hi", "name": "ann"}], [{"role": "user", "content": "hi"}], ["name"]),
        ([user(text("a"))], [{"role": "user", "content": "a"}], []),
        (
            [user(text("a"), IMAGE, FILE, {"type": "image_url", "image_url": {"url": PNG}})],
            [
                user(
                    {"type": "input_text", "text": "a"},
                    {"type": "input_image", "detail": "low", "image_url": "https://a.b/c.png"},
                    {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AA=="},
                    {"type": "input_image", "detail": "auto", "image_url": PNG},
                )
            ],
            [],
        ),
        (
            [
                user(
                    {"type": "file", "file": {"file_id": "file-1"}},
                    {"type": "input_file", "file_url": "https://a.b/c.pdf"},
                    {"type": "of_tomorrow", "x": 1},
                )
            ],
            [
                user(
                    {"type": "input_file", "file_id": "file-1"},
                    {"type": "input_file", "file_url": "https://a.b/c.pdf"},
                    {"type": "of_tomorrow", "x": 1},
                )
            ],
            [],
        ),
        (
            [user(text("a", prompt_cache_breakpoint=MARK), text("b", cache_control={"type": "ephemeral"}))],
            [
                user(
                    {"type": "input_text", "text": "a", "prompt_cache_breakpoint": MARK},
                    {"type": "input_text", "text": "b"},
                )
            ],
            ["cache_control"],
        ),
        ([model([text("a"), text("b")])], [model("ab")], []),
        ([model("a", phase="commentary")], [model("a", phase="commentary")], []),
        ([model("a", phase="of_tomorrow", id="1")], [model("a")], []),
        ([model("", refusal="no")], [model("no")], []),
        ([model(tool_calls=[call(), call("c2", "")])], [called(), called("c2", "{}")], []),
        # Arguments exactly as the model wrote them, although they are not JSON.
        ([model(tool_calls=[call(arguments="{oops")])], [called(arguments="{oops")], []),
        (
            [model(function_call={"name": "f", "arguments": "{}"}), {"role": "function", "name": "f", "content": "r"}],
            [called("call_f", "{}"), {"type": "function_call_output", "call_id": "call_f", "output": "r"}],
            [],
        ),
        (
            [model(tool_calls=[call()]), {**RESULT, "is_error": True}],
            [called(), {"type": "function_call_output", "call_id": "c1", "output": "done"}],
            ["is_error"],
        ),
        (
            [model(tool_calls=[CUSTOM]), {**RESULT, "content": [text("a"), IMAGE]}],
            [
                {"type": "custom_tool_call", "call_id": "c1", "name": "g", "input": "x = 1"},
                {
                    "type": "custom_tool_call_output",
                    "call_id": "c1",
                    "output": [
                        {"type": "input_text", "text": "a"},
                        {"type": "input_image", "detail": "low", "image_url": "https://a.b/c.png"},
                    ],
                },
            ],
            [],
        ),
        # Reasoning.
        (
            [model("hi", tool_calls=[call()], reasoning_details=[sealed("A", id="rs_1"), sealed("B", after=[2, 0])])],
            [reasoning("A", id="rs_1"), model("hi"), reasoning("B"), called()],
            [],
        ),
        (
            [model(tool_calls=[call()], reasoning_details=[SUMMARY, sealed("A")])],
            [reasoning("A", "why"), called()],
            [],
        ),
        # Reasoning with no item after it, with another vendor's signature, or with only a text.
        ([model(tool_calls=[call()], reasoning_details=[sealed("A", after=[0, 1])])], [called()], ["thinking"]),
        ([model("a", reasoning_details=[CLAUDES])], [model("a")], ["thinking"]),
        ([model("a", reasoning_details=[{**sealed("A"), "format": "azure-" + FORM}])], [model("a")], ["thinking"]),
        ([model("a", reasoning_content="hm")], [model("a")], ["thinking"]),
    ],
)
def test_each_message_becomes_its_items(
    messages: list[JsonValue], items: list[JsonValue] | None, dropped: list[str]
) -> None:
    noted: list[str] = []
    assert input_items(messages, "messages", PROFILE, WIRE, noted) == (messages if items is None else items)
    assert noted == dropped


def test_a_mark_that_the_model_does_not_know_and_a_long_id() -> None:
    noted: list[str] = []
    given = [user(text("a", prompt_cache_breakpoint=MARK)), model(tool_calls=[call(LONG)])]
    said, made, result = input_items([*given, {**RESULT, "tool_call_id": LONG}], "messages", OLDER, WIRE, noted)
    assert said == {"role": "user", "content": "a"}
    assert isinstance(made, dict)
    assert isinstance(result, dict)
    assert made["call_id"] == result["call_id"]
    assert len(str(made["call_id"])) <= 64
    assert noted == ["prompt_cache_breakpoint"]


@looped(
    ("message", "kind"),
    [
        (user({"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}), "input_audio"),
        (user({"type": "video_url", "video_url": {"url": "https://a.b/c.mp4"}}), "video_url"),
        (user({"type": "thinking", "thinking": "hm"}), "thinking"),
        (model([IMAGE]), "image_url"),
    ],
)
def test_what_the_api_does_not_take_is_refused(message: JsonObject, kind: str) -> None:
    with pytest.raises(Refusal, match=kind):
        input_items([message], "messages", PROFILE, WIRE, [])


def test_a_vendor_of_its_own_gets_texts_and_images_alone() -> None:
    noted: list[str] = []
    profile = load_profiles()["perplexity"]
    given: list[JsonValue] = [user(text("a"), IMAGE), model("b", phase="commentary"), model(tool_calls=[call()])]
    given.append({**RESULT, "content": [text("one"), text("two")]})
    made = input_items(given, "messages", profile, AGENT, noted)
    assert made == [
        user({"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": "https://a.b/c.png"}),
        model("b"),
        called(),
        {"type": "function_call_output", "call_id": "c1", "output": "one\ntwo"},
    ]
    assert noted == ["detail"]
    result: JsonObject = {**RESULT, "content": [IMAGE]}
    with pytest.raises(Refusal, match="may hold only text"):
        input_items([model(tool_calls=[call()]), result], "messages", profile, AGENT, [])
    with pytest.raises(Refusal, match="a part of type 'input_file'"):
        input_items([user(FILE)], "messages", profile, AGENT, [])
