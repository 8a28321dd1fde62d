"""The reasoning effort in each vendor's form, for every value of OpenAI's, by model."""

from typing import cast

import orjson

from providers.json_types import JsonObject
from providers.unified_request import Params
from tests.providers.dialects.openai.kit import DIALECT, body_of, chat, refusal_of, target
from tests.support.looped import looped


def effort(*words: str) -> dict[str, JsonObject]:
    return {word: {"reasoning_effort": said} for word, said in zip(WORDS, words, strict=True)}


WORDS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


@looped(
    ("row", "model", "words", "named"),
    [
        ("openai", "o3", ("low", "low", "low", "medium", "high", "high", "high"), "none"),
        ("openai", "gpt-5-mini", ("minimal", "minimal", "low", "medium", "high", "high", "high"), "none"),
        ("openai", "gpt-5-pro", ("high",) * 7, "none minimal low medium"),
        ("openai", "gpt-5.1", ("none", "low", "low", "medium", "high", "high", "high"), ""),
        ("openai", "gpt-5.2-chat-latest", ("medium",) * 7, "none minimal low high xhigh max"),
        (
            "openai",
            "gpt-5.4-pro",
            ("medium", "medium", "medium", "medium", "high", "xhigh", "xhigh"),
            "none minimal low",
        ),
        ("openai", "gpt-5.6", ("none", "low", "low", "medium", "high", "xhigh", "xhigh"), ""),
        ("openai", "gpt-6-astra", ("low", "low", "low", "medium", "high", "xhigh", "xhigh"), "none"),
        ("azure_v1", "o4-mini", ("low", "low", "low", "medium", "high", "high", "high"), "none"),
        ("xai", "grok-3-mini", ("none", "low", "low", "high", "high", "high", "high"), ""),
        ("xai", "grok-4.3", ("none", "low", "low", "medium", "high", "high", "high"), ""),
        ("xai", "grok-4.6", ("low", "low", "low", "medium", "high", "high", "high"), "none"),
        ("xai", "grok-4.7", ("low", "low", "low", "medium", "high", "xhigh", "xhigh"), "none"),
        ("groq", "openai/gpt-oss-20b", ("low", "low", "low", "medium", "high", "high", "high"), "none"),
        ("cerebras", "qwen-3-32b", ("none", "low", "low", "medium", "high", "high", "high"), ""),
        ("cerebras", "gpt-oss-120b", ("low", "low", "low", "medium", "high", "high", "high"), "none"),
        ("cerebras", "zai-glm-5.3", ("low", "low", "low", "high", "high", "max", "max"), "none"),
        ("fireworks", "m", ("none", "low", "low", "medium", "high", "high", "high"), ""),
        ("perplexity", "sonar-reasoning", ("minimal", "minimal", "low", "medium", "high", "high", "high"), "none"),
        ("moonshot", "kimi-k3", ("low", "low", "low", "high", "high", "max", "max"), "none"),
        ("zai", "glm-5.3", ("low", "low", "low", "high", "high", "max", "max"), "none"),
        ("ollama", "m", ("none", "low", "low", "medium", "high", "high", "high"), ""),
        ("gemini_compat", "m", ("none", "minimal", "low", "medium", "high", "high", "high"), ""),
    ],
)
def test_an_effort_is_told_in_the_model_s_own_words_and_named_where_the_model_thinks_otherwise(
    row: str, model: str, words: tuple[str, ...], named: str
) -> None:
    calls = {word: DIALECT.encode(chat({"reasoning_effort": word}), target(row, model)) for word in WORDS}
    plain = body_of(chat(), target(row, model)).keys()
    bodies = {word: orjson.loads(call.body) for word, call in calls.items()}
    told = {word: {name: body[name] for name in body.keys() - plain} for word, body in bodies.items()}
    if calls["high"].responses_because:
        told = {word: {"reasoning_effort": body["reasoning"]["effort"]} for word, body in told.items()}
    assert told == effort(*words)
    assert [word for word, call in calls.items() if call.dropped == ("reasoning_effort",)] == named.split()


ON: JsonObject = {"thinking": {"type": "enabled"}}
OFF: JsonObject = {"thinking": {"type": "disabled"}}


@looped(
    ("row", "model", "word", "members", "named"),
    [
        ("deepseek", "deepseek-v4", "none", OFF, False),
        ("deepseek", "deepseek-v4", "medium", {"reasoning_effort": "high"}, False),
        ("deepseek", "deepseek-v4", "xhigh", {"reasoning_effort": "max"}, False),
        ("moonshot", "kimi-k2.6", "none", OFF, False),
        ("moonshot", "kimi-k2.6", "high", ON, False),
        ("moonshot", "kimi-k2.6", "low", ON, True),
        ("zai", "glm-4.7", "none", OFF, False),
        ("zai", "glm-4.7", "minimal", ON, True),
        ("zai", "glm-5.2", "minimal", {"reasoning_effort": "minimal"}, False),
        ("zai", "glm-5.2", "none", OFF, False),
        ("mistral", "mistral-medium-3.5", "none", {"reasoning_effort": "none"}, False),
        ("mistral", "mistral-medium-3.5", "medium", {"reasoning_effort": "high"}, False),
        ("mistral", "mistral-medium-3.5", "low", {"reasoning_effort": "high"}, True),
        ("mistral", "magistral-medium-2509", "high", {"prompt_mode": "reasoning"}, False),
        ("groq", "qwen/qwen3-32b", "none", {"reasoning_effort": "none"}, False),
        ("groq", "qwen/qwen3-32b", "low", {"reasoning_effort": "default"}, True),
        ("together", "m", "none", {"reasoning": {"enabled": False}}, False),
        ("together", "m", "max", {"reasoning_effort": "high"}, False),
        ("openrouter", "m", "xhigh", {"reasoning": {"effort": "xhigh"}}, False),
    ],
)
def test_an_effort_may_be_another_member_there_and_is_named_where_it_only_comes_near(
    row: str, model: str, word: str, members: JsonObject, named: bool
) -> None:
    call = DIALECT.encode(chat({"reasoning_effort": word}), target(row, model))
    body, plain = orjson.loads(call.body), body_of(chat(), target(row, model))
    assert {name: body[name] for name in body.keys() - plain.keys()} == members
    assert call.dropped == (("reasoning_effort",) if named else ())


@looped(
    ("row", "model"),
    [
        ("openai", "gpt-4o"),
        ("openai", "gpt-5-chat-latest"),
        ("xai", "grok-4"),
        ("mistral", "mistral-large-2512"),
        ("groq", "llama-3.3-70b-versatile"),
    ],
)
def test_a_model_that_does_not_reason_takes_no_effort(row: str, model: str) -> None:
    assert refusal_of(chat({"reasoning_effort": "low"}), target(row, model)).param == "reasoning_effort"


def test_a_member_that_the_client_gives_itself_stays() -> None:
    own: JsonObject = {"type": "enabled", "budget_tokens": 5}
    for params in ({"reasoning_effort": "none", "thinking": own}, {"thinking": own, "reasoning_effort": "none"}):
        body = body_of(chat(cast(Params, params)), target("moonshot", "kimi-k2.6"))
        assert body["thinking"] == {**own}


NAMED_TOOL: JsonObject = {"type": "function", "function": {"name": "f"}}


@looped("choice", ["required", NAMED_TOOL])
@looped(
    ("given", "dropped"),
    [
        ({}, ()),
        ({"reasoning_effort": "high"}, ("reasoning_effort",)),
        ({"thinking": {"type": "enabled"}}, ("thinking",)),
        ({"reasoning_effort": "none"}, ()),
        ({"thinking": {"type": "disabled"}}, ()),
    ],
)
def test_a_call_is_forced_without_thinking_where_thinking_rules_it_out(
    choice: str | JsonObject, given: JsonObject, dropped: tuple[str, ...]
) -> None:
    asked: JsonObject = {"tools": [NAMED_TOOL], "tool_choice": choice}
    for params in ({**asked, **given}, {**given, **asked}):
        call = DIALECT.encode(chat(cast(Params, params)), target("deepseek", "deepseek-v4"))
        body = orjson.loads(call.body)
        assert (body["thinking"], "reasoning_effort" in body) == ({"type": "disabled"}, False)
        assert body["tool_choice"] == choice
        assert call.dropped == dropped


def test_thinking_stays_where_no_call_is_forced() -> None:
    for choice in ("auto", "none"):
        params: Params = {"tools": [NAMED_TOOL], "tool_choice": choice, "reasoning_effort": "high"}
        body = body_of(chat(params), target("deepseek", "deepseek-v4"))
        assert (body["reasoning_effort"], "thinking" in body) == ("high", False)
