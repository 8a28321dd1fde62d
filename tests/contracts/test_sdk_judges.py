"""The judges find the errors that vendors report, also the errors that the unmodified types accept."""

import re

import orjson
import pytest

from providers.json_types import JsonObject, JsonValue
from tests.contracts.sdk_judges import SDKS, Judges
from tests.support.looped import looped

HI: JsonObject = {"role": "user", "content": "hi"}
CHAT: JsonObject = {"model": "m", "messages": [HI]}
CLAUDE: JsonObject = {**CHAT, "max_tokens": 5}
TEXT: JsonObject = {"model": "m", "prompt": "hi"}

GOOD: list[tuple[str, str, JsonObject]] = [
    ("openai:chat", "chat", {**CHAT, "stream": True, "stream_options": {"include_usage": True}}),
    ("openai:completions", "completions", {**TEXT, "prompt": [[1, 2], [3]]}),
    ("anthropic.sdk_types", "chat", {**CLAUDE, "temperature": 0.5}),
    ("openai.mistral_sdk_types", "chat", {**CHAT, "random_seed": 1}),
    ("openai.openrouter_sdk_types", "chat", {**CHAT, "top_k": 4}),
]

BAD: list[tuple[str, str, JsonObject, str]] = [
    ("openai:chat", "chat", {**CHAT, "top_k": 4}, "top_k"),
    ("openai:chat", "chat", {**CHAT, "messages": [{**HI, "strange": 1}]}, "strange"),
    ("openai:chat", "chat", {**CHAT, "messages": [{"role": "robot", "content": "hi"}]}, "role"),
    ("openai:chat", "chat", {**CHAT, "max_tokens": "5"}, "max_tokens"),
    ("openai:chat", "chat", {**CHAT, "tools": [{"type": "function"}]}, "function"),
    ("openai:chat", "chat", {**CHAT, "stream": "yes"}, "stream"),
    ("openai:completions", "completions", {**TEXT, "prompt": [1, "a"]}, "prompt"),
    ("anthropic.sdk_types", "chat", {**CLAUDE, "messages": [{"role": "tool", "content": "hi"}]}, "role"),
    (
        "anthropic.sdk_types",
        "chat",
        {**CLAUDE, "messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
        "content",
    ),
    ("anthropic.sdk_types", "chat", CHAT, "max_tokens"),
    ("anthropic.sdk_types", "chat", {**CLAUDE, "stop_sequences": "END"}, "stop_sequences"),
    ("anthropic.sdk_types", "chat", {**CLAUDE, "temperature": 2}, "temperature"),
    ("anthropic.sdk_types", "completions", CLAUDE, "completions"),
    ("groq:chat", "chat", {**CHAT, "response_format": {"type": "regex"}}, "response_format"),
    ("together:chat", "chat", {**CHAT, "top_logprobs": 3}, "top_logprobs"),
    ("fireworks:completions", "completions", {**TEXT, "guided_regex": "a"}, "guided_regex"),
    ("cerebras:chat", "chat", {**CHAT, "top_k": 4}, "top_k"),
    ("sambanova:chat", "chat", {**CHAT, "stream_options": {"strange": 1}}, "strange"),
    ("scale_gp_beta:completions", "completions", {**TEXT, "guided_json": {}}, "guided_json"),
    ("openai.mistral_sdk_types", "chat", {**CHAT, "seed": 1}, "seed"),
    ("openai.mistral_sdk_types", "chat", {**CHAT, "messages": [{"role": "developer", "content": "hi"}]}, "developer"),
    ("openai.mistral_sdk_types", "chat", {**CHAT, "response_format": {"type": "xml"}}, "AssertionError"),
    ("openai.openrouter_sdk_types", "chat", {**CHAT, "strange": 4}, "strange"),
    ("gemini.sdk_types", "chat", {"contents": [{"role": "user", "parts": [{"words": "hi"}]}]}, "words"),
    ("bedrock.sdk_types", "chat", {"messages": [{"role": "tool", "content": [{"text": "hi"}]}]}, "role"),
    ("cohere.sdk_types", "chat", {**CHAT, "messages": [{"role": "developer", "content": "hi"}]}, "developer"),
    (
        "ollama.sdk_types",
        "chat",
        {**CHAT, "stream": False, "truncate": False, "shift": False, "options": {"n": 2}},
        "n",
    ),
    ("tgi.sdk_types", "completions", {"inputs": "hi", "parameters": {"temperature": 0}}, "temperature"),
    ("sglang.sdk_types", "completions", {"text": "hi", "sampling_params": {"max_new_tokens": 1, "seed": 3}}, "seed"),
    ("llm_engine.sdk_types", "completions", {"prompt": "hi", "max_new_tokens": 1}, "temperature"),
    ("watsonx.sdk_types", "chat", {"messages": [HI], "strange": 1}, "strange"),
]

ANSWER: JsonObject = {
    "id": "a",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hi"}}],
}


def body_fault(judges: Judges, judge: str, operation: str, body: JsonValue) -> str | None:
    """Return the fault of a body."""
    return judges.fault(judge, "body", [orjson.dumps(body)], operation)


pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]


@looped(("judge", "operation", "body"), GOOD)
def test_what_a_vendor_takes_passes(judges: Judges, judge: str, operation: str, body: JsonObject) -> None:
    assert body_fault(judges, judge, operation, body) is None


@looped(("judge", "operation", "body", "word"), BAD)
def test_what_a_vendor_refuses_is_not(judges: Judges, judge: str, operation: str, body: JsonObject, word: str) -> None:
    fault = body_fault(judges, judge, operation, body)
    assert fault is not None
    assert word in fault


def test_an_answer_is_held_to_the_types_of_answers(judges: Judges) -> None:
    assert judges.fault("openai:chat", "answer", [orjson.dumps(ANSWER)]) is None
    fault = judges.fault("openai:chat", "answer", [orjson.dumps({**ANSWER, "choices": [{"index": 0}]})])
    assert fault is not None
    assert "message" in fault


def test_each_event_of_a_stream_is_held(judges: Judges) -> None:
    chunk: JsonObject = {
        **ANSWER,
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": {"content": "h"}}],
    }
    assert judges.fault("openai:chat", "events", [orjson.dumps(chunk)]) is None
    fault = judges.fault("openai:chat", "events", [orjson.dumps(chunk), orjson.dumps({**chunk, "choices": [{}]})])
    assert fault is not None
    assert "index" in fault


def test_the_lock_pins_every_sdk_with_hashes_and_names_no_host() -> None:
    text = SDKS.lock.read_text(encoding="utf-8")
    pins = re.findall(r"^[a-z0-9._-]+==.*(?:\n    --hash=sha256:[0-9a-f]{64}.*)*", text, re.MULTILINE)
    names = {pin.partition("==")[0] for pin in pins}
    assert [pin.splitlines()[0] for pin in pins if "--hash=" not in pin] == []
    wanted = {requirement.partition(";")[0] for requirement in (*SDKS.requirements, *SDKS.alone)}
    assert {name for name in wanted if "==" in name} <= {pin.split()[0] for pin in pins}
    assert {name.partition("==")[0] for name in wanted} <= names
    assert names.isdisjoint(SDKS.left_out)
    assert re.findall(r"://|^\s*-(?!-hash)|@ ", text, re.MULTILINE) == []
