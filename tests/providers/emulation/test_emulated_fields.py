"""Fields that the gateway emulates on the response, and fields that are dropped: the fields that the calls lack, the
post-processing of the response, and the report to the client."""

from dataclasses import replace
from typing import Literal

import orjson
import pytest
from pydantic import SecretStr

from providers.constraints.constraint_styles import Unenforceable
from providers.emulation import plan_checks
from providers.emulation.check_answer import AnswerCheck, CheckKind
from providers.emulation.plan_calls import CallPlan, plan_calls
from providers.emulation.post_processing import PostProcessing
from providers.failure import Refusal
from providers.json_types import JsonObject
from providers.request_fields import NEVER_DROPPED
from providers.target import Target
from providers.unified_request import Guided, LogprobsWanted, Params, TextPrompt, TokenPrompt, UnifiedRequest
from providers.vendor_credential import Credential
from tests.providers.dialects.anthropic import kit as anthropic_kit
from tests.providers.dialects.openai.kit import chat, completion, one_param, target
from tests.providers.kit import refusal_of
from tests.support.looped import looped

BASE_MODEL = target("openai", "davinci-002")
GPT = target("openai", "gpt-4o")
GROQ = target("groq")
CLOSED = replace(GROQ, profile=replace(GROQ.profile, forwards_unknown=False, overrides=()))
"""A vendor that accepts no fields outside the unified request."""
DEEPSEEK = target("deepseek")
LLAMACPP = target("llamacpp")
VLLM = target("vllm")

SIX = ("a", "b", "c", "d", "e", "f")
KEEP = "include_stop_str_in_output"
AB = Guided("choice", ("a", "b"))


def body_of(prepared: CallPlan) -> JsonObject:
    """Return the body of the first call."""
    body: JsonObject = orjson.loads(prepared.calls[0].sent.body)
    return body


def refusal(request: UnifiedRequest, to: Target, on_unsupported: Literal["error", "drop"] = "error") -> Refusal:
    return refusal_of(plan_calls, request, to, on_unsupported)


# Stops ---------------------------------------------------------------------------------------------------------------


def test_of_more_stops_than_a_vendor_takes_the_rest_are_looked_for() -> None:
    prepared = plan_calls(chat({"stop": SIX}), GPT)
    assert body_of(prepared)["stop"] == ["a", "b", "c", "d"]
    assert prepared.finishing == PostProcessing(stops=("e", "f"))
    assert prepared.emulated == ("stop",)


def test_an_answer_that_is_searched_is_asked_for_as_a_stream_which_can_be_ended_at_the_hit() -> None:
    prepared = plan_calls(chat({"stop": SIX}), GPT)
    assert body_of(prepared)["stream"] is True
    assert not prepared.request.stream


def test_as_many_stops_as_a_vendor_takes_are_its_own_matter() -> None:
    assert plan_calls(chat({"stop": SIX[:4]}), GPT).finishing is None
    assert plan_calls(chat({"stop": SIX}), DEEPSEEK).finishing is None
    assert plan_calls(chat({"stop": SIX}), anthropic_kit.TARGET).finishing is None


def test_a_vendor_without_stops_is_told_of_none() -> None:
    prepared = plan_calls(chat({"stop": ("a",)}), target("openai", "o3"))
    assert "stop" not in body_of(prepared)
    assert prepared.finishing == PostProcessing(stops=("a",))


def test_a_stop_that_shall_stay_is_found_by_the_gateway() -> None:
    prepared = plan_calls(chat({"stop": ("a", "b"), "include_stop_str_in_output": True}), GPT)
    assert "stop" not in body_of(prepared)
    assert prepared.finishing == PostProcessing(stops=("a", "b"), keep=True)
    assert prepared.emulated == (KEEP, "stop")


def test_a_vendor_that_keeps_stops_itself_does_and_the_gateway_keeps_the_rest() -> None:
    prepared = plan_calls(chat({"stop": SIX, "include_stop_str_in_output": True}), VLLM)
    assert body_of(prepared)["stop"] == ["a", "b", "c", "d"]
    assert body_of(prepared)[KEEP] is True
    assert prepared.finishing == PostProcessing(stops=("e", "f"), keep=True)
    assert prepared.emulated == ("stop",)


def test_keeping_a_stop_asks_for_nothing_where_there_is_none() -> None:
    prepared = plan_calls(chat({"include_stop_str_in_output": True}), GPT)
    assert KEEP not in body_of(prepared)
    assert (prepared.finishing, prepared.emulated) == (None, ())
    assert plan_calls(chat({"stop": ("a",), "include_stop_str_in_output": False}), GPT).finishing is None


def test_candidates_of_the_vendor_s_own_choosing_are_not_streamed_so_the_gateway_chooses_among_searched_ones() -> None:
    prepared = plan_calls(completion({"stop": SIX, "best_of": 3}), BASE_MODEL)
    body = body_of(prepared)
    assert ("best_of" in body, body["n"], body["stream"], body["logprobs"]) == (False, 3, True, 0)
    assert prepared.finishing == PostProcessing(stops=("e", "f"), candidates=3, drop_logprobs=True)
    assert prepared.emulated == ("stop", "best_of")


# Echo ----------------------------------------------------------------------------------------------------------------


def test_a_vendor_s_own_echo_is_its_own() -> None:
    prepared = plan_calls(
        completion({"echo": True, "logprobs": LogprobsWanted(1, "legacy"), "max_tokens": 0}), BASE_MODEL
    )
    assert (body_of(prepared)["echo"], prepared.finishing, prepared.emulated) == (True, None, ())


def test_where_there_is_none_the_prompts_are_put_before_their_answers() -> None:
    prepared = plan_calls(completion({"echo": True}, TextPrompt(("a", "b"))), GROQ)
    assert "echo" not in body_of(prepared)
    assert prepared.finishing == PostProcessing(echo=("a", "b"))
    assert prepared.emulated == ("echo", "prompt")


@pytest.mark.parametrize("params", [{"stop": SIX}, {"stop": SIX, "best_of": 3}])
def test_an_echo_is_kept_out_of_what_is_searched_or_ranked(params: Params) -> None:
    prepared = plan_calls(completion({**params, "echo": True}), BASE_MODEL)
    assert "echo" not in body_of(prepared)
    assert prepared.finishing is not None
    assert prepared.finishing.echo == ("hello",)
    assert "echo" in prepared.emulated


@pytest.mark.parametrize("to", [GROQ, LLAMACPP])
def test_the_log_probabilities_of_an_echoed_prompt_come_from_the_vendor_or_not_at_all(to: Target) -> None:
    why = refusal(completion({"echo": True, "logprobs": LogprobsWanted(1, "legacy")}), to)
    assert (why.param, why.code) == ("echo", "unsupported_parameter")
    assert "log probabilities of a prompt" in why.message


def test_an_echo_with_log_probabilities_cannot_be_taken_from_the_vendor() -> None:
    why = refusal(completion({"echo": True, "logprobs": LogprobsWanted(1, "legacy"), "stop": SIX}), BASE_MODEL)
    assert why.param == "echo"
    assert "'stop'" in why.message


def test_token_ids_cannot_be_echoed_by_a_gateway_that_does_not_know_their_text() -> None:
    why = refusal(completion({"echo": True}, TokenPrompt(((1, 2),))), LLAMACPP)
    assert why.param == "echo"
    assert "token ids" in why.message


def test_a_conversation_is_echoed_by_the_vendor_or_not_at_all() -> None:
    fireworks = target("fireworks")
    assert body_of(plan_calls(chat({"echo": True}), fireworks))["echo"] is True
    assert refusal(chat({"echo": True}), GROQ).message == "'echo' is not supported by v/m/d."
    why = refusal(chat({"echo": True, "stop": SIX}), fireworks)
    assert (why.param, "the text of a conversation" in why.message) == ("echo", True)


def test_prompts_that_are_only_to_be_repeated_need_no_call() -> None:
    prepared = plan_calls(completion({"echo": True, "max_tokens": 0, "n": 2}, TextPrompt(("a", "b"))), GROQ)
    assert prepared.calls == ()
    assert prepared.finishing == PostProcessing(echo=("a", "b"), n=2, candidates=2)
    assert prepared.emulated == ("echo",)


def test_no_tokens_without_an_echo_are_the_vendor_s_to_refuse_or_give() -> None:
    assert len(plan_calls(completion({"max_tokens": 0}), BASE_MODEL).calls) == 1
    assert refusal(completion({"max_tokens": 0}), LLAMACPP).param == "max_tokens"


# Constraints that an engine may ignore -------------------------------------------------------------------------------


WORDS = AnswerCheck("guided_choice", CheckKind.CHOICE, choices=frozenset({"a", "b"}))


@pytest.mark.parametrize(
    ("name", "value", "check"),
    [
        ("guided", AB, WORDS),
        ("response_format", {"type": "json_object"}, AnswerCheck("response_format", CheckKind.OBJECT)),
    ],
)
def test_an_answer_is_held_against_its_constraint_where_the_engine_may_ignore_it(
    name: str, value: object, check: AnswerCheck
) -> None:
    prepared = plan_calls(chat(one_param(name, value)), VLLM)
    assert prepared.finishing == PostProcessing(check=check)
    assert len(prepared.calls) == 1
    assert not prepared.calls[0].sent.stream


def test_a_constraint_that_goes_without_its_strict_form_is_checked() -> None:
    prepared = plan_calls(chat({"guided": AB}, stream=True), target("groq", "openai/gpt-oss-20b"))
    assert prepared.finishing is not None
    assert prepared.finishing.check is not None


def test_a_vendor_that_keeps_its_word_is_believed() -> None:
    assert plan_calls(chat({"guided": AB}), target("groq", "openai/gpt-oss-20b")).finishing is None
    assert plan_calls(chat({"guided": AB}), target("openai")).finishing is None
    assert plan_calls(chat({"temperature": 0.5}), VLLM).finishing is None


def test_what_is_verified_is_the_answer_without_the_prompt() -> None:
    prepared = plan_calls(completion({"guided": AB, "echo": True}), VLLM)
    assert "echo" not in body_of(prepared)
    assert prepared.finishing == PostProcessing(check=WORDS, echo=("hello",))


def test_what_is_verified_ends_where_the_gateway_knows_why() -> None:
    prepared = plan_calls(chat({"guided": AB, "stop": ("a",)}), VLLM)
    assert "stop" not in body_of(prepared)
    assert prepared.finishing == PostProcessing(check=WORDS, stops=("a",))
    assert prepared.emulated == ("stop",)


def test_a_constraint_that_nobody_can_check_is_refused_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def unable(params: Params) -> None:
        raise Unenforceable("nobody knows")

    monkeypatch.setattr(plan_checks, "required_check", unable)
    why = refusal(chat({"guided": AB}), VLLM)
    assert (why.param, why.message) == ("guided_choice", "'guided_choice' is not supported by v/m/d: nobody knows.")


def test_a_ranking_that_would_need_what_a_constraint_hides_is_refused_by_the_field_that_was_sent() -> None:
    why = refusal(chat({"guided": AB, "best_of": 2}), GPT)
    assert why.param == "best_of"
    assert "'logprobs'" not in why.message


# Dropped fields ----- -------------------------------------------------------------------------------------------------


def test_what_a_deployment_lacks_is_an_error_unless_the_operator_says_otherwise() -> None:
    assert refusal(chat({"top_k": 5}), GPT).param == "top_k"
    prepared = plan_calls(chat({"top_k": 5, "temperature": 0.5}), GPT, "drop")
    assert "top_k" not in body_of(prepared)
    assert body_of(prepared)["temperature"] == 0.5
    assert prepared.dropped == ("top_k",)
    assert prepared.request.params == {"temperature": 0.5}


def test_several_fields_are_dropped_one_after_the_other() -> None:
    request = replace(chat({"top_k": 5, "min_p": 0.1, "n": 2}), unknown={"mystery": 1, "riddle": 2})
    prepared = plan_calls(request, CLOSED, "drop")
    assert set(prepared.dropped) == {"top_k", "min_p", "mystery", "riddle"}
    assert prepared.emulated == ("n",)
    assert prepared.request.unknown is None


@looped("name", ["a\r\nSet-Cookie: b", "ü", "a" * 65, "a, b"])
def test_a_dropped_field_s_name_cannot_write_a_header(name: str) -> None:
    request = replace(chat(), unknown={name: 1})
    assert plan_calls(request, CLOSED, "drop").dropped == ("unknown",)


def test_nothing_is_dropped_where_nothing_is_lacking() -> None:
    request = chat({"temperature": 0.5})
    prepared = plan_calls(request, GPT, "drop")
    assert (prepared.dropped, prepared.request) == ((), request)


@looped(
    ("params", "param", "to"),
    [
        ({"best_of": 2}, "best_of", GROQ),
        ({"logprobs": LogprobsWanted(1, "content")}, "logprobs", GROQ),
        ({"guided": Guided("regex", "a+")}, "guided_regex", GPT),
        ({"response_format": {"type": "grammar", "grammar": "x"}}, "response_format", GPT),
        ({"tools": [{"type": "function"}], "tool_choice": "required"}, "tool_choice", target("ollama")),
        ({"echo": True}, "echo", GROQ),
    ],
)
def test_what_an_answer_would_be_wrong_without_is_never_dropped(params: Params, param: str, to: Target) -> None:
    assert refusal(chat(params), to, "drop").param == param


def test_the_promise_names_all_that_is_never_dropped() -> None:
    promised = {"tools", "n", "logprobs", "stop", "response_format"}
    guided = {f"guided_{kind}" for kind in ("json", "regex", "choice", "grammar")}
    assert promised | guided <= NEVER_DROPPED


def test_a_value_that_is_wrong_is_no_field_that_is_lacking() -> None:
    why = refusal(chat({"top_k": 500}), target("fireworks"), "drop")
    assert (why.param, why.code) == ("top_k", "invalid_value")


def test_a_client_s_header_that_the_table_sets_too_gives_way_and_is_told() -> None:
    credential = Credential("bearer", "Authorization", SecretStr("k"), {"X-Org": SecretStr("acme")})
    to = replace(GPT, credential=credential)
    assert plan_calls(replace(chat(), extra_headers={"x-org": "mine"}), to).dropped == ("inference_extra_headers",)
    assert plan_calls(replace(chat(), extra_headers={"baggage": "mine"}), to).dropped == ()
    both = replace(chat({"top_k": 5}), extra_headers={"x-org": "mine"})
    assert plan_calls(both, to, "drop").dropped == ("top_k", "inference_extra_headers")


# Constraints that the vendor does not enforce ----- -------------------------------------------------------------------


def test_a_json_mode_that_claude_lacks_is_asked_for_in_the_prompt_and_checked() -> None:
    wanted: JsonObject = {"type": "json_object"}
    prepared = plan_calls(chat({"response_format": wanted, "max_tokens": 9}), anthropic_kit.TARGET)
    assert "one JSON object" in orjson.dumps(body_of(prepared)["system"]).decode()
    assert "output_config" not in body_of(prepared)
    assert prepared.emulated == ("response_format",)
    assert prepared.checks == (AnswerCheck("response_format", CheckKind.OBJECT, fenced=True),)
    assert prepared.request.params["response_format"] == wanted
