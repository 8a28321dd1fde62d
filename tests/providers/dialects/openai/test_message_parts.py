"""Content parts and calls in vendors' forms: cache markers, media types, refusals, calls in OpenAI's other forms."""

from providers.dialects.openai.message_parts import (
    CallWriter,
    PartWriter,
    is_googles,
    is_legacy,
    without_legacy_calls,
)
from providers.dialects.shared.field_writers import without_markers
from providers.json_types import JsonObject, JsonValue
from providers.profiles.load_profiles import load_profiles
from tests.support.looped import looped

MARKER: JsonObject = {"type": "ephemeral"}
CALL: JsonObject = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CUSTOM: JsonObject = {"id": "1", "type": "custom", "custom": {"name": "grep", "input": 'a "b"'}}
SIGNED: JsonObject = {**CALL, "extra_content": {"google": {"thought_signature": "AA"}}}


def text(words: str, **more: JsonValue) -> JsonObject:
    return {"type": "text", "text": words, **more}


def image(url: str) -> JsonObject:
    return {"type": "image_url", "image_url": {"url": url, "detail": "low"}}


@looped(
    ("row", "part", "wanted", "dropped"),
    [
        ("openrouter", text("a", cache_control=MARKER), text("a", cache_control=MARKER), []),
        ("fireworks", text("a", cache_control=MARKER), text("a"), ["cache_control"]),
        ("openai", text("a", prompt_cache_breakpoint=MARKER), text("a"), ["prompt_cache_breakpoint"]),
        ("openai", image("data:image/jpg;base64,AA"), image("data:image/jpeg;base64,AA"), []),
        ("groq", image("data:image/JPG;base64,AA"), image("data:image/jpeg;base64,AA"), []),
        ("groq", image("https://a.example/b.jpg"), image("https://a.example/b.jpg"), []),
        (
            "mistral",
            {"type": "image_url", "image_url": "data:image/jpg;base64,AA"},
            {"type": "image_url", "image_url": "data:image/jpeg;base64,AA"},
            [],
        ),
        ("openai", {"type": "refusal", "refusal": "No."}, {"type": "refusal", "refusal": "No."}, []),
        ("groq", {"type": "refusal", "refusal": "No."}, text("No."), []),
        (
            "perplexity",
            {"type": "video_url", "video_url": {"url": "u"}},
            {"type": "video_url", "video_url": {"url": "u"}},
            [],
        ),
        ("groq", {"type": ["odd"]}, {"type": ["odd"]}, []),
        ("openai", {"type": "input_text", "text": "a", "cache_control": MARKER}, text("a"), ["cache_control"]),
        ("openai", {"type": "output_text", "text": "a"}, text("a"), []),
        (
            "groq",
            {"type": "input_image", "image_url": "data:image/jpg;base64,AA", "detail": "low"},
            image("data:image/jpeg;base64,AA"),
            [],
        ),
        ("groq", {**image("https://a.example/b"), "type": "input_image"}, image("https://a.example/b"), []),
        ("openai", {"type": "input_image", "file_id": "f1"}, {"type": "input_image", "file_id": "f1"}, []),
        (
            "openai",
            {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AA", "file_id": None},
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AA"}},
            [],
        ),
        ("openai", {"type": "input_file", "file": {"file_id": "f1"}}, {"type": "file", "file": {"file_id": "f1"}}, []),
    ],
)
def test_a_part_is_written_as_the_vendor_takes_it(
    row: str, part: JsonObject, wanted: JsonObject, dropped: list[str]
) -> None:
    noted: list[str] = []
    assert PartWriter(load_profiles()[row], noted).written([part, "text"]) == [wanted, "text"]
    assert noted == dropped


def test_the_end_of_what_is_cached_is_marked_for_models_that_know_the_mark() -> None:
    part = text("a", prompt_cache_breakpoint=MARKER)
    assert without_markers(part, load_profiles()["openai"].for_model("gpt-5.6"), []) == part


@looped(
    ("row", "call", "wanted", "dropped"),
    [
        ("openai", CUSTOM, CUSTOM, []),
        ("groq", CUSTOM, {**CALL, "function": {"name": "grep", "arguments": '{"input":"a \\"b\\""}'}}, []),
        ("openai", SIGNED, CALL, []),
        ("gemini_compat", SIGNED, SIGNED, []),
        ("openai", {**CALL, "provider_specific_fields": {"a": 1}}, CALL, []),
        ("openai", {**CALL, "cache_control": MARKER}, CALL, ["cache_control"]),
    ],
)
def test_a_call_is_written_as_the_vendor_takes_it(
    row: str, call: JsonObject, wanted: JsonObject, dropped: list[str]
) -> None:
    noted: list[str] = []
    assert CallWriter(load_profiles()[row], noted).written([call, None]) == [wanted, None]
    assert noted == dropped


def test_only_google_reads_what_is_googles() -> None:
    assert is_googles({"google": {}})
    assert not is_googles({"own": 1})
    assert not is_googles(None)


def test_calls_of_the_older_form_become_tools() -> None:
    called: JsonObject = {"role": "assistant", "content": "", "function_call": {"name": "f", "arguments": "{}"}}
    answered: JsonObject = {"role": "function", "name": "f", "content": "4"}
    assert is_legacy(called)
    assert is_legacy(answered)
    assert not is_legacy({"role": "tool"})
    assert without_legacy_calls(called) == {
        "role": "assistant",
        "content": "",
        "tool_calls": [{**CALL, "id": "call_f"}],
    }
    assert without_legacy_calls(answered) == {"role": "tool", "tool_call_id": "call_f", "content": "4"}
