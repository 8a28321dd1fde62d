"""Reasoning on Converse: the words of each family, budgets below the limit, and five turns with tools."""

from dataclasses import replace

import orjson
import pytest

from providers.dialects.bedrock.converse_models import ConverseModel
from providers.json_types import JsonObject, JsonValue
from providers.target import Target
from tests.providers.dialects.bedrock.conversations import (
    CLAUDE,
    HIDDEN,
    LLAMA,
    NOVA,
    SIGNED,
    assistant,
    call,
    read,
    result,
)
from tests.providers.dialects.bedrock.kit import target
from tests.providers.dialects.bedrock.sdk_types import check_body
from tests.providers.dialects.kit import body_for, chat_request, decoded, refusal_for, sent_for, user
from tests.support.looped import looped

HAIKU, OPUS, SONNET = target(), target("anthropic.claude-opus-4-7"), target("anthropic.claude-sonnet-4-6")
OLD, SONNET_5_5, FABLE = (
    target("anthropic.claude-3-haiku-20240307-v1:0"),
    target("anthropic.claude-sonnet-5-5"),
    target("anthropic.claude-fable-5-1"),
)
NOVA_2, DEEPSEEK, GLM = target("us.amazon.nova-2-lite-v1:0"), target("deepseek.v3.2"), target("zai.glm-5.3")
GPT, GROK, QWEN = target("openai.gpt-oss-120b-1:0"), target("xai.grok-4.6"), target("qwen.qwen3-32b-v1:0")
TOOL: JsonObject = {"type": "function", "function": {"name": "now"}}
OFF: JsonObject = {"thinking": {"type": "disabled"}}


def budget(tokens: int) -> JsonObject:
    return {"additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": tokens}}}


def own(**members: JsonValue) -> JsonObject:
    return {"additionalModelRequestFields": members}


def nova(effort: str) -> JsonObject:
    return own(reasoningConfig={"type": "enabled", "maxReasoningEffort": effort})


def adaptive(effort: str, **more: JsonValue) -> JsonObject:
    return {**own(thinking={"type": "adaptive", **more}), "outputConfig": {"effort": effort}}


@looped(
    ("to", "effort", "members", "emulated"),
    [
        (HAIKU, "minimal", {**budget(1024), "inferenceConfig": {"maxTokens": 8192}}, ()),
        (HAIKU, "high", {**budget(7168), "inferenceConfig": {"maxTokens": 8192}}, ()),
        (HAIKU, 4096, {**budget(4096), "inferenceConfig": {"maxTokens": 8192}}, ()),
        (HAIKU, "none", {"additionalModelRequestFields": OFF}, ()),
        (HAIKU, False, {"additionalModelRequestFields": OFF}, ()),
        (OLD, "none", {}, ()),
        (SONNET, "xhigh", adaptive("max"), ("x",)),
        (SONNET, "minimal", adaptive("low"), ("x",)),
        (OPUS, "xhigh", adaptive("xhigh", display="summarized"), ()),
        (OPUS, "none", {"additionalModelRequestFields": OFF}, ()),
        (SONNET_5_5, "none", own(thinking={"type": "between_tools"}), ()),
        (FABLE, "none", {"outputConfig": {"effort": "low"}}, ("x",)),
        (NOVA_2, "low", nova("low"), ()),
        (NOVA_2, "max", nova("high"), ("x",)),
        (NOVA_2, "none", own(reasoningConfig={"type": "disabled"}), ()),
        (DEEPSEEK, "none", own(reasoning_effort="none"), ()),
        (DEEPSEEK, "low", own(reasoning_effort="high"), ("x",)),
        (GLM, "medium", own(reasoning_effort="high"), ("x",)),
        (GLM, "xhigh", own(reasoning_effort="max"), ("x",)),
        (GPT, "low", own(reasoning_effort="low"), ()),
        (GPT, "minimal", own(reasoning_effort="low"), ("x",)),
        (GPT, "none", own(reasoning_effort="low"), ("x",)),
        (GROK, "xhigh", own(reasoning={"effort": "xhigh"}), ()),
        (QWEN, "max", own(reasoning_config="high"), ("x",)),
    ],
)
def test_the_words_are_those_of_the_model(
    to: Target, effort: object, members: JsonObject, emulated: tuple[str, ...]
) -> None:
    sent = sent_for(chat_request(reasoning_effort=effort), to)
    assert orjson.loads(sent.body) == {**body_for(chat_request(), to), **members}
    assert (sent.emulated, sent.dropped) == (("reasoning_effort",) if emulated else (), ())


def test_the_highest_effort_of_nova_takes_neither_limit_nor_sampling() -> None:
    for limit in ({"max_tokens": 900}, {"temperature": 0.5}):
        sent = sent_for(chat_request(reasoning_effort="high", **limit), NOVA_2)
        assert orjson.loads(sent.body)["additionalModelRequestFields"] == nova("medium")["additionalModelRequestFields"]
        assert sent.emulated == ("reasoning_effort",)
    filled = replace(chat_request(reasoning_effort="high", temperature=0), injected=frozenset({"temperature"}))
    assert "inferenceConfig" not in body_for(filled, NOVA_2)


@looped(("limit", "tokens"), [(1024, None), (1025, 1024), (3000, 1976), (9000, 7976), (60_000, 10_000)])
def test_a_budget_stays_below_the_limit_of_the_answer(limit: int, tokens: int | None) -> None:
    sent = sent_for(chat_request(reasoning_effort="medium", max_tokens=limit), HAIKU)
    body = orjson.loads(sent.body)
    assert body["inferenceConfig"] == {"maxTokens": limit}
    if tokens is None:
        assert "additionalModelRequestFields" not in body
        assert sent.dropped == ("reasoning_effort",)
    else:
        assert body["additionalModelRequestFields"] == budget(tokens)["additionalModelRequestFields"]


def test_a_budget_without_any_limit_brings_one_with_room_for_the_text() -> None:
    bare = replace(HAIKU, max_output_tokens=None)
    assert body_for(chat_request(reasoning_effort="low"), bare)["inferenceConfig"] == {"maxTokens": 2048 + 4096}


@looped(("to", "effort"), [(OLD, "low"), (HAIKU, "huge"), (GPT, 4096), (target("x.y"), "low")])
def test_an_effort_that_the_model_cannot_have_is_refused(to: Target, effort: object) -> None:
    assert refusal_for(chat_request(reasoning_effort=effort), to).param == "reasoning_effort"


def test_a_temperature_that_the_client_wants_beside_reasoning_is_refused() -> None:
    assert refusal_for(chat_request(reasoning_effort="low", temperature=0.5), HAIKU).param == "temperature"
    body = body_for(chat_request(reasoning_effort="low", temperature=1), HAIKU)
    assert body["inferenceConfig"] == {"temperature": 1, "maxTokens": 8192}


def test_the_client_s_own_thinking_decides_beside_an_effort() -> None:
    thinking = {"type": "adaptive"}
    body = body_for(chat_request(thinking=thinking, reasoning_effort="high"), SONNET)
    assert body["additionalModelRequestFields"] == {"thinking": thinking}
    assert body["outputConfig"] == {"effort": "high"}
    body = body_for(chat_request(thinking=thinking, reasoning_effort=False), HAIKU)
    assert "outputConfig" not in body


def test_a_choice_that_demands_a_call_goes_without_a_budget_of_thinking() -> None:
    sent = sent_for(chat_request(reasoning_effort="low", tools=[TOOL], tool_choice="required"), HAIKU)
    assert b"thinking" not in sent.body
    assert sent.dropped == ("reasoning_effort",)


def test_a_forced_call_of_a_model_that_takes_it_alone_goes_without_thinking() -> None:
    for alone in (SONNET, OPUS):
        sent = sent_for(chat_request(reasoning_effort="low", tools=[TOOL], tool_choice="required"), alone)
        assert b"thinking" not in sent.body
        assert b"effort" not in sent.body
        assert sent.dropped == ("reasoning_effort",)
    newer = target("anthropic.claude-opus-4-8")
    sent = sent_for(chat_request(reasoning_effort="low", tools=[TOOL], tool_choice="required"), newer)
    assert b"adaptive" in sent.body


def test_between_tools_is_named_where_there_are_tools() -> None:
    sent = sent_for(chat_request(reasoning_effort="none", tools=[TOOL]), SONNET_5_5)
    assert (sent.emulated, sent.dropped) == (("reasoning_effort",), ())


@looped("off", [{}, {"reasoning_effort": "none"}, {"thinking": {"type": "disabled"}}])
def test_thinking_within_a_loop_of_tools_is_left_out_and_named_where_the_model_does_not_think(
    off: dict[str, object],
) -> None:
    loop = [user("go"), assistant(None, call(), reasoning_details=[SIGNED, HIDDEN]), result("3")]
    sent = sent_for(chat_request(*loop, tools=[TOOL], **off), HAIKU)
    assert b"reasoningContent" not in sent.body
    assert sent.dropped == ("thinking",)
    assert b"reasoningContent" in sent_for(chat_request(*loop, tools=[TOOL], reasoning_effort="low"), HAIKU).body


def test_thinking_of_a_last_turn_is_left_out_where_the_model_does_not_think() -> None:
    detail: JsonObject = {"type": "reasoning.text", "text": "Hm.", "signature": "EqQB", "format": "anthropic-claude-v1"}
    begun: JsonObject = {"role": "assistant", "content": "Oslo", "reasoning_details": [detail]}
    assert body_for(chat_request(user("a"), begun), HAIKU)["messages"] == [
        {"role": "user", "content": [{"text": "a"}]},
        {"role": "assistant", "content": [{"text": "Oslo"}]},
    ]


# In conversations ---------------------------------------------------------------------------------------------------


def test_claude_s_thinking_goes_back_first_with_its_signature() -> None:
    turns = read(
        user("go"), assistant("Wait.", call(), reasoning_details=[SIGNED, HIDDEN]), result("3"), model=CLAUDE
    ).turns
    assert turns[1]["content"] == [
        {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "EqQB"}}},
        {"reasoningContent": {"redactedContent": "AAEC"}},
        {"text": "Wait."},
        {"toolUse": {"toolUseId": "call_1", "name": "now", "input": {}}},
    ]


@looped(
    ("model", "more"),
    [
        (CLAUDE, {"reasoning_details": [{**SIGNED, "format": "google-gemini-v1"}]}),
        (NOVA, {"reasoning_details": [SIGNED]}),
        (LLAMA, {"reasoning_details": [HIDDEN]}),
    ],
)
def test_thinking_that_the_model_would_refuse_is_left_out_and_named(model: ConverseModel, more: JsonObject) -> None:
    conversation = read(user("a"), assistant("b", **more), user("c"), model=model)
    assert conversation.turns[1] == {"role": "assistant", "content": [{"text": "b"}]}
    assert conversation.dropped == ["thinking"]


@pytest.mark.parametrize("model", [CLAUDE, LLAMA])
def test_unsigned_thinking_is_left_out_and_named(model: ConverseModel) -> None:
    conversation = read(user("a"), assistant("b", reasoning_content="Hm."), user("c"), model=model)
    assert conversation.turns[1] == {"role": "assistant", "content": [{"text": "b"}]}
    assert conversation.dropped == ["thinking"]


def test_redacted_thinking_of_another_api_becomes_base64() -> None:
    hidden: JsonObject = {**HIDDEN, "data": "no base64!"}
    turns = read(user("a"), assistant("b", reasoning_details=[hidden]), user("c"), model=CLAUDE).turns
    assert turns[1]["content"] == [{"reasoningContent": {"redactedContent": "bm8gYmFzZTY0IQ=="}}, {"text": "b"}]


@looped(
    ("messages", "lacks_reasoning"),
    [
        ([user("a"), assistant(None, call()), result("b")], True),
        ([user("a"), assistant(None, call(), reasoning_details=[SIGNED]), result("b")], False),
        ([user("a"), assistant(None, call(), reasoning_details=[SIGNED]), result("b"), assistant(None, call())], False),
        ([user("a"), assistant(None, call()), result("b"), assistant("c"), user("d")], False),
        ([user("a"), assistant(None, call()), result("b"), user("c")], True),
        ([user("a")], False),
    ],
)
def test_calls_that_are_still_open_without_their_thinking_are_told(
    messages: list[JsonValue], lacks_reasoning: bool
) -> None:
    assert read(*messages, model=CLAUDE).lacks_reasoning == lacks_reasoning


def test_a_turn_that_holds_thinking_alone_is_left_out() -> None:
    turns = read(user("a"), assistant(None, reasoning_details=[SIGNED]), user("b"), model=CLAUDE).turns
    assert turns == [{"role": "user", "content": [{"text": "a"}, {"text": "b"}]}]


# Five turns -----------------------------------------------------------------------------------------------------------


def vendor(body: JsonObject) -> str | None:
    """Return the error of a service that checks `thinking` as Claude's does, or `None` if it accepts the body."""
    own_fields = body.get("additionalModelRequestFields")
    thinking = own_fields.get("thinking") if isinstance(own_fields, dict) else None
    enabled = isinstance(thinking, dict) and thinking.get("type") == "enabled"
    messages = body["messages"]
    assert isinstance(messages, list)
    loop = 0
    for number, turn in enumerate(messages):
        assert isinstance(turn, dict)
        content = turn["content"]
        assert isinstance(content, list)
        kinds = [next(iter(block)) for block in content if isinstance(block, dict)]
        if turn["role"] == "user" and "toolResult" not in kinds:
            loop = number + 1
        if "toolResult" in kinds and kinds[: kinds.count("toolResult")] != ["toolResult"] * kinds.count("toolResult"):
            return f"messages.{number}: results must come first"
        for block in content:
            if isinstance(block, dict) and isinstance(held := block.get("reasoningContent"), dict):
                text = held.get("reasoningText")
                if not isinstance(text, dict) or text.get("signature") != f"signed:{text.get('text')}":
                    return "Invalid `signature` in `thinking` block"
    if loop < len(messages) and enabled:
        first = messages[loop]
        assert isinstance(first, dict)
        content = first["content"]
        assert isinstance(content, list)
        if isinstance(content[0], dict) and "reasoningContent" not in content[0]:
            return f"messages.{loop}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`"
    return None


def whole_answer(number: int) -> bytes:
    thought = {"reasoningText": {"text": f"Step {number}.", "signature": f"signed:Step {number}."}}
    call = {"toolUseId": f"tooluse_{number}", "name": "now", "input": {}}
    message = {"role": "assistant", "content": [{"reasoningContent": thought}, {"toolUse": call}]}
    usage = {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}
    return orjson.dumps({"output": {"message": message}, "stopReason": "tool_use", "usage": usage})


@looped("to", [HAIKU, SONNET, OPUS], ids=lambda each: each.model)
@looped("keeps", [True, False], ids=["keeps the details", "keeps nothing"])
def test_five_turns_of_thinking_and_tools_pass_what_the_service_checks(to: Target, keeps: bool) -> None:
    messages: list[JsonObject] = [user("What time is it?")]
    sent = sent_for(chat_request(*messages), to)
    for number in range(5):
        sent = sent_for(chat_request(*messages, tools=[TOOL], reasoning_effort="low", max_tokens=9000), to)
        check_body("chat", sent.body)
        body = orjson.loads(sent.body)
        assert vendor(body) is None
        if not keeps and number and to is HAIKU:
            assert sent.dropped == ("reasoning_effort",)
        choice = decoded(sent, whole_answer(number)).choices[0]
        assert choice.extras is not None
        calls: list[JsonValue] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in choice.tool_calls
        ]
        answer: JsonObject = {"role": "assistant", "content": None, "tool_calls": calls}
        if keeps:
            answer["reasoning_details"] = [*choice.extras.reasoning_details]
        messages += [answer, {"role": "tool", "tool_call_id": choice.tool_calls[0].id, "content": f"1{number}:00"}]
    if keeps:
        assert sent.dropped == ()
        assert sent.body.count(b"signed:Step") == 4
