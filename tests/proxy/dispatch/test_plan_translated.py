"""Requests in another API's form, on targets that support it and on others."""

from collections.abc import Mapping
from dataclasses import replace

import orjson
import pytest

from providers.emulation.plan_calls import CallPlan
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from providers.target import Target
from providers.unified_request import (
    ChatPrompt,
    NativeApi,
    NativeRequest,
    Params,
    TranslationLosses,
    UnifiedRequest,
    deferred_prompt,
)
from proxy.dispatch.plan_translated import instructions_as_users, plan_translated
from tests.providers.dialects.anthropic import kit as anthropic_kit
from tests.providers.dialects.gemini import kit as gemini_kit
from tests.providers.dialects.kit import chat_request, target_of
from tests.providers.dialects.openai.kit import chat, target
from tests.support.looped import looped

THINKING: JsonObject = {"type": "enabled", "budget_tokens": 2048}
INSTEAD: Mapping[str, JsonObject] = {"thinking": {"reasoning_effort": "low"}, "reasoning_effort": {}}
OWN: JsonObject = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}], "container": "c"}

GPT = target("openai", "gpt-4o")
"""Does not reason."""
GPT5 = target("openai", "gpt-5.1")
"""Takes an effort by its name."""
FIREWORKS = target("fireworks")
"""Takes Anthropic's form of reasoning."""


def planned(to: Target, losses: TranslationLosses, **params: object) -> CallPlan:
    fields: Params = {"max_tokens": 4096}
    fields.update(params)  # type: ignore[typeddict-item]  # names known at run time
    return plan_translated(losses, chat(fields), to)


def body(plan: CallPlan) -> JsonObject:
    read: JsonObject = orjson.loads(plan.calls[0].sent.body)
    return read


def test_a_field_goes_as_it_is_or_as_another_that_the_target_has() -> None:
    plan = planned(FIREWORKS, TranslationLosses({}, (), INSTEAD), thinking=THINKING)
    assert body(plan)["thinking"] == THINKING
    assert (plan.emulated, plan.dropped) == ((), ())
    plan = planned(GPT5, TranslationLosses({}, (), INSTEAD), thinking=THINKING)
    assert body(plan)["reasoning_effort"] == "low"
    assert (plan.emulated, plan.dropped) == (("thinking",), ())


def test_without_either_it_is_left_out_and_named_as_the_client_named_it() -> None:
    plan = planned(GPT, TranslationLosses({}, ("context_management",), INSTEAD), thinking=THINKING)
    assert not {"thinking", "reasoning_effort"} & body(plan).keys()
    assert (plan.emulated, plan.dropped) == ((), ("thinking", "context_management"))
    plan = planned(GPT, TranslationLosses({}, (), {"reasoning_effort": {}}), reasoning_effort="high")
    assert plan.dropped == ("reasoning_effort",)


def test_other_refusals_stay_refusals() -> None:
    losses = TranslationLosses({}, (), INSTEAD)
    with pytest.raises(Refusal) as caught:
        planned(GPT, losses, thinking=THINKING, top_k=3)
    assert caught.value.param == "top_k"
    request = chat({"max_tokens": 9, "thinking": THINKING, "top_k": 3})
    plan = plan_translated(losses, request, GPT, "drop")
    assert set(plan.dropped) == {"thinking", "top_k"}


def test_what_no_other_api_can_honour_is_refused_by_field_and_deployment() -> None:
    losses = TranslationLosses({"tools": "'tools' with a tool of type 'bash_20250124'"})
    for to in (GPT, gemini_kit.TARGET):
        with pytest.raises(Refusal) as caught:
            plan_translated(losses, chat(), to, "drop")
        assert caught.value.param == "tools"
        assert caught.value.code == "unsupported_parameter"
        assert caught.value.message == (
            "'tools' with a tool of type 'bash_20250124' is part of the API that this request came by alone, "
            f"and {to.name} is called by another."
        )


def test_a_conversation_that_makes_no_sense_without_what_was_left_out_is_refused_for_that() -> None:
    losses = TranslationLosses({"messages": "'messages' with a document from the source 'file'"})
    empty = replace(chat(), prompt=ChatPrompt(({"role": "user", "content": ""},)))
    with pytest.raises(Refusal, match="source 'file' is part of the API that this request came by alone"):
        plan_translated(losses, empty, gemini_kit.TARGET)


def own() -> UnifiedRequest:
    return replace(chat({"max_tokens": 5}), native=NativeRequest(NativeApi.MESSAGES, OWN))


def test_a_target_of_the_same_api_loses_nothing() -> None:
    losses = TranslationLosses({"container": "'container'"}, ("context_management",), INSTEAD)
    plan = plan_translated(losses, own(), anthropic_kit.TARGET)
    assert plan.calls[0].sent.native
    assert body(plan)["container"] == "c"
    assert plan.dropped == ()


def test_what_the_client_s_own_body_goes_without_is_named_where_it_goes_on() -> None:
    losses = TranslationLosses({}, ("context_management",), INSTEAD, ("reasoning",))
    assert plan_translated(losses, own(), anthropic_kit.TARGET).dropped == ("reasoning",)
    assert planned(GPT, losses).dropped == ("context_management",)


def test_a_field_below_the_top_is_refused_by_the_name_of_its_holder() -> None:
    with pytest.raises(Refusal) as caught:
        plan_translated(TranslationLosses({"output_config.x": "'output_config.x'"}), chat(), GPT)
    assert caught.value.param == "output_config"


# Instructions within the conversation ---------------------------------------------------------------------------------

VLLM = target("vllm")


def talk(*turns: tuple[str, JsonValue]) -> ChatPrompt:
    return ChatPrompt(tuple({"role": role, "content": content} for role, content in turns))


def part(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def test_an_engine_gets_later_instructions_as_text_of_the_user_s() -> None:
    prompt = talk(("system", "S"), ("user", "a"), ("system", "b"), ("assistant", "c"), ("user", "d"))
    plan = plan_translated(TranslationLosses({}), chat(prompt=prompt), VLLM)
    assert body(plan)["messages"] == [
        {"role": "system", "content": "S"},
        {"role": "user", "content": "a\n\nb"},
        {"role": "assistant", "content": "c"},
        {"role": "user", "content": "d"},
    ]
    assert plan.emulated == ("messages",)


def test_a_hosted_vendor_gets_them_in_their_place() -> None:
    prompt = talk(("user", "a"), ("system", "b"))
    plan = plan_translated(TranslationLosses({}), chat(prompt=prompt), GPT)
    assert body(plan)["messages"] == [{"role": "user", "content": "a"}, {"role": "system", "content": "b"}]
    assert plan.emulated == ()


def test_turns_that_follow_each_other_are_joined_only_around_instructions() -> None:
    asked = talk(("user", "a"), ("user", "b"), ("system", [part("c")]), ("user", "d"), ("tool", "e"), ("system", "f"))
    joined = asked.changed_by(instructions_as_users)
    apart: list[JsonValue] = [part("b"), part("\n\nc"), part("\n\nd")]
    assert joined == talk(("user", "a"), ("user", apart), ("tool", "e"), ("user", "f"))
    joined = talk(("user", "a"), ("developer", "b"), ("user", "c")).changed_by(instructions_as_users)
    assert joined == talk(("user", "a\n\nb\n\nc"))


@looped(
    "to",
    [
        *(target_of(name, base_url="http://10.0.0.1/v1") for name in ("deepseek", "moonshot", "dashscope")),
        target_of("perplexity", base_url="http://10.0.0.1/v1"),
        *(target("vllm"), target_of("ollama_native")),
    ],
    ids=lambda to: to.profile.name,
)
def test_no_vendor_gets_texts_of_two_speakers_or_two_instructions_as_one_word(to: Target) -> None:
    asked = chat_request(
        {"role": "system", "content": [part("S1."), part("S2.")]},
        {"role": "user", "content": "Q?"},
        {"role": "system", "content": "French."},
        {"role": "user", "content": [part("Go"), part(" on")]},
    )
    sent = plan_translated(TranslationLosses({}), asked, to).calls[0].sent.body.decode()
    glued = ("S1.S2.", "Q?French.", "French.Go", "Go\\n\\n on")
    assert not [each for each in glued if each in sent]


def test_a_conversation_without_later_instructions_stays() -> None:
    for unchanged in (talk(("system", "S"), ("system", "T"), ("user", "a")), talk(("system", "S"))):
        assert unchanged.changed_by(instructions_as_users) is unchanged


def test_a_deferred_conversation_is_not_made_for_an_engine_with_the_clients_own_api() -> None:
    def read() -> tuple[JsonObject, ...]:
        raise AssertionError("the conversation was read")

    deferred = deferred_prompt(read, without_parts=True).changed_by(instructions_as_users)
    assert (deferred.plain, deferred.without_parts) == (False, True)
    later = deferred_prompt(lambda: talk(("user", "a"), ("system", "b")).messages).changed_by(instructions_as_users)
    assert later.messages == talk(("user", "a\n\nb")).messages
