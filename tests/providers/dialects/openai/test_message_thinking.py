"""Reasoning of earlier turns: in the field that the vendor reads, and unchanged if it has signatures."""

from providers.dialects.openai.message_thinking import has_reasoning, with_readable_reasoning
from providers.json_types import JsonObject
from providers.profiles.load_profiles import load_profiles
from tests.support.looped import looped

TURN: JsonObject = {"role": "assistant", "content": "a"}
DETAILS: JsonObject = {
    "reasoning_details": [
        {"type": "reasoning.text", "text": "hm", "signature": "c2ln", "format": "anthropic-claude-v1", "index": 0},
        {"type": "reasoning.encrypted", "data": "AA", "format": "anthropic-claude-v1", "index": 1},
        {"type": "reasoning.odd", "kept": True},
    ]
}
BLOCK: JsonObject = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
BLOCKS: JsonObject = {"thinking_blocks": [BLOCK, {"type": "redacted_thinking", "data": "AA"}]}
PARTS: JsonObject = {
    "role": "assistant",
    "content": [{"type": "thinking", "thinking": "hm", "signature": "c2ln"}, {"type": "text", "text": "a"}],
}
TEXT: JsonObject = {"type": "text", "text": "a"}


@looped(
    ("row", "given", "wanted", "dropped"),
    [
        ("openrouter", {**TURN, **DETAILS}, {**TURN, **DETAILS, "reasoning": "hm"}, []),
        ("openai", {**TURN, **DETAILS}, TURN, ["thinking"]),
        ("openai", {**TURN, "reasoning_content": "hm"}, TURN, ["thinking"]),
        ("openai", {**TURN, "reasoning_content": "", "reasoning_details": []}, TURN, []),
        ("groq", {**TURN, **BLOCKS}, {**TURN, "reasoning": "hm"}, []),
        ("cerebras", {**TURN, "reasoning_content": "hm"}, {**TURN, "reasoning": "hm"}, []),
        ("fireworks", {**TURN, "reasoning": "hm", **DETAILS}, {**TURN, "reasoning_content": "hm"}, []),
        ("deepseek", PARTS, {"role": "assistant", "content": [TEXT], "reasoning_content": "hm"}, []),
        ("novita", {**TURN, **DETAILS}, {**TURN, **DETAILS, "reasoning_content": "hm"}, []),
        ("openai", {"role": "assistant", "content": [BLOCK]}, {**TURN, "content": ""}, ["thinking"]),
    ],
)
def test_thinking_goes_under_the_member_that_the_vendor_reads(
    row: str, given: JsonObject, wanted: JsonObject, dropped: list[str]
) -> None:
    noted: list[str] = []
    assert has_reasoning(given)
    assert with_readable_reasoning(given, load_profiles()[row], noted) == wanted
    assert noted == dropped


NEITHER: tuple[str, ...] = ()
FIRST: tuple[str, ...] = ("reasoning",)
SECOND: tuple[str, ...] = ("reasoning_content",)
READ: dict[tuple[str, ...], str] = {
    NEITHER: "openai azure azure_v1 xai perplexity tgi huggingface cohere_compat gemini_compat openai_compatible",
    FIRST: "groq cerebras sambanova openrouter ollama localai",
    SECOND: "fireworks mistral deepseek moonshot zai dashscope novita nebius deepinfra sglang llamacpp watsonx",
    (*FIRST, *SECOND): "vllm sagemaker nim nim_1 together lm_studio",
}
"""The profiles by the field from which their vendors read reasoning. The sources are in the comments of the
profiles."""


@looped(("names", "row"), [(names, row) for names, rows in READ.items() for row in rows.split()])
def test_a_turn_s_thinking_is_sent_under_the_names_that_an_engine_or_vendor_reads(
    names: tuple[str, ...], row: str
) -> None:
    for given in (*FIRST, *SECOND):
        noted: list[str] = []
        made = with_readable_reasoning({**TURN, given: "hm"}, load_profiles()[row], noted)
        assert made == {**TURN, **dict.fromkeys(names, "hm")}
        assert noted == ([] if names else ["thinking"])


def test_signed_thinking_in_another_form_becomes_details() -> None:
    made = with_readable_reasoning({**TURN, **BLOCKS}, load_profiles()["openrouter"], [])
    assert made["reasoning_details"] == [
        {"type": "reasoning.text", "text": "hm", "format": "anthropic-claude-v1", "index": 0, "signature": "c2ln"},
        {"type": "reasoning.encrypted", "data": "AA", "format": "anthropic-claude-v1", "index": 1},
    ]
    assert made["reasoning"] == "hm"


def test_a_turn_without_thinking_holds_none() -> None:
    assert not has_reasoning(TURN)
    assert not has_reasoning({"role": "assistant", "content": [TEXT, {"type": ["odd"]}]})


def test_the_noted_place_of_a_thought_does_not_go_to_the_vendor() -> None:
    detail: JsonObject = {"type": "reasoning.text", "text": "hm", "signature": "c2ln", "format": "anthropic-claude-v1"}
    made = with_readable_reasoning(
        {**TURN, "reasoning_details": [{**detail, "after": [1, 1]}]}, load_profiles()["openrouter"], []
    )
    assert made["reasoning_details"] == [detail]
