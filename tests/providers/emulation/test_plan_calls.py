"""The calls of a request: their number, their contents, and the names under which emulation is reported."""

from dataclasses import replace

import orjson
import pytest

from providers.dialect import UpstreamRequest
from providers.dialects.openai.dialect import OpenAIDialect
from providers.emulation.merge_choices import MAX_CALLS, CallShare
from providers.emulation.plan_calls import MAX_CHOICES, MAX_SEED, CallPlan, plan_calls
from providers.emulation.post_processing import PostProcessing
from providers.failure import Refusal
from providers.json_types import JsonObject
from providers.target import Target
from providers.unified_request import (
    LogprobsWanted,
    NativeApi,
    NativeRequest,
    Operation,
    Params,
    TextPrompt,
    TokenPrompt,
    UnifiedRequest,
)
from tests.providers.dialects.anthropic import kit as anthropic_kit
from tests.providers.dialects.openai.kit import TALK, chat, completion, one_param, target
from tests.providers.kit import refusal_of
from tests.support.looped import looped

BASE_MODEL = target("openai", "davinci-002")
"""A model that supports every field itself."""
GPT = target("openai", "gpt-4o")
"""Chat with `n` and log probabilities."""
GROQ = target("groq")
"""Chat without `n` and log probabilities."""
LLAMACPP = target("llamacpp")
"""One raw prompt or list of token ids per call, one choice, log probabilities."""

ABC = TextPrompt(("a", "b", "c"))
IDS = TokenPrompt(((1, 2), (3,)))
DATA = "data:image/png;base64,AAAA"


def bodies(prepared: CallPlan) -> list[JsonObject]:
    """Return the body of each call."""
    return [orjson.loads(call.sent.body) for call in prepared.calls]


def parts(prepared: CallPlan) -> list[CallShare]:
    return [call.part for call in prepared.calls]


def sent(prepared: CallPlan, name: str) -> list[object]:
    return [body.get(name) for body in bodies(prepared)]


def said(prepared: CallPlan) -> list[object]:
    messages = [listed for listed in sent(prepared, "messages") if isinstance(listed, list)]
    assert all(len(listed) == 1 for listed in messages)
    return [listed[0]["content"] for listed in messages]


def refusal(request: UnifiedRequest, to: Target) -> Refusal:
    return refusal_of(plan_calls, request, to)


# One call is enough --------------------------------------------------------------------------------------------------


@looped(
    ("request_", "to"),
    [
        (completion(), BASE_MODEL),
        (completion({"n": 3, "best_of": 4, "echo": True, "seed": 1}), BASE_MODEL),
        (completion({"n": 3}, ABC), BASE_MODEL),
        (completion({"echo": True, "logprobs": LogprobsWanted(1, "legacy"), "max_tokens": 0}, IDS), BASE_MODEL),
        (completion(prompt=IDS), BASE_MODEL),
        (chat({"n": 3, "stop": ("a", "b", "c", "d")}), GPT),
        (chat({"n": 3}, stream=True), GPT),
        (chat({"n": 1, "temperature": 0.5}), GROQ),
        (completion(prompt=TokenPrompt(((1, 2),))), LLAMACPP),
    ],
)
def test_what_one_call_can_do_is_one_call_of_the_very_request(request_: UnifiedRequest, to: Target) -> None:
    prepared = plan_calls(request_, to)
    (call,) = prepared.calls
    assert prepared.request is request_
    assert call.request == request_
    assert call.sent == to.dialect.encode(request_, to)
    assert call.part == CallShare(0, 0, request_.choices)
    assert (prepared.finishing, prepared.emulated, prepared.dropped) == (None, (), ())


@looped("params", [{"temperature": 0.5}, {"stop": ("a",)}, {"stop": ("a", "b", "c", "d")}])
def test_a_request_that_needs_nothing_of_the_gateway_is_not_even_copied(params: Params) -> None:
    request = chat(params)
    assert plan_calls(request, GROQ).calls[0].request is request


def test_what_the_encoder_emulates_is_told() -> None:
    assert plan_calls(completion(), GROQ).emulated == ("prompt",)


def test_a_list_of_one_prompt_is_no_batch() -> None:
    (call,) = plan_calls(completion(prompt=TextPrompt(("a",), listed=True)), LLAMACPP).calls
    assert call.part == CallShare(0, 0, 1)


# Several calls -------------------------------------------------------------------------------------------------------


def test_prompts_become_calls_in_their_order() -> None:
    prepared = plan_calls(completion({"temperature": 0.5}, ABC), GROQ)
    assert said(prepared) == ["a", "b", "c"]
    assert sent(prepared, "temperature") == [0.5] * 3
    assert parts(prepared) == [CallShare(0, 0, 1), CallShare(1, 0, 1), CallShare(2, 0, 1)]
    assert prepared.emulated == ("prompt",)
    assert prepared.finishing == PostProcessing()


def test_prompts_of_a_vendor_that_takes_n_keep_it() -> None:
    prepared = plan_calls(completion({"n": 2}, ABC), GPT)
    assert sent(prepared, "n") == [2, 2, 2]
    assert parts(prepared) == [CallShare(0, 0, 2), CallShare(1, 0, 2), CallShare(2, 0, 2)]
    assert prepared.finishing == PostProcessing(n=2, candidates=2)


def test_lists_of_token_ids_become_calls_with_one_list_each() -> None:
    prepared = plan_calls(completion(prompt=IDS), LLAMACPP)
    assert sent(prepared, "prompt") == [[1, 2], [3]]
    assert prepared.emulated == ("prompt",)


def test_token_ids_for_a_vendor_without_them_are_refused() -> None:
    assert refusal(completion(prompt=IDS), GROQ).param == "prompt"
    assert refusal(completion(prompt=TokenPrompt(((1,),))), GROQ).param == "prompt"


def test_candidates_become_calls() -> None:
    prepared = plan_calls(chat({"n": 3, "temperature": 0.5}), GROQ)
    assert sent(prepared, "n") == [None] * 3
    assert sent(prepared, "temperature") == [0.5] * 3
    assert parts(prepared) == [CallShare(0, 0, 1), CallShare(0, 1, 1), CallShare(0, 2, 1)]
    assert prepared.emulated == ("n",)
    assert prepared.finishing == PostProcessing(n=3, candidates=3)
    assert all(call.request.prompt == TALK for call in prepared.calls)


def test_prompts_and_candidates_become_calls_prompt_by_prompt() -> None:
    prepared = plan_calls(completion({"n": 2}, ABC), GROQ)
    assert said(prepared) == ["a", "a", "b", "b", "c", "c"]
    assert parts(prepared) == [CallShare(prompt, number, 1) for prompt in range(3) for number in range(2)]
    assert prepared.emulated == ("prompt", "n")


def test_candidates_of_one_seed_get_seeds_of_their_own() -> None:
    assert sent(plan_calls(chat({"n": 3, "seed": 7}), GROQ), "seed") == [7, 8, 9]
    assert sent(plan_calls(chat({"n": 2, "seed": MAX_SEED}), GROQ), "seed") == [MAX_SEED, 0]
    assert sent(plan_calls(chat({"n": 2, "seed": -1}), GROQ), "seed") == [-1, 0]


def test_prompts_share_the_seed_as_they_would_in_one_call() -> None:
    assert sent(plan_calls(completion({"seed": 7}, ABC), GROQ), "seed") == [7, 7, 7]
    assert sent(plan_calls(completion({"seed": 7, "n": 2}, ABC), GPT), "seed") == [7, 7, 7]


def test_images_go_with_their_prompts() -> None:
    prompt = TextPrompt(("<image>a", "b", "<image>c"))
    prepared = plan_calls(completion({"images": ((DATA,), (), (DATA,))}, prompt), GPT)
    assert [isinstance(content, list) for content in said(prepared)] == [True, False, True]
    assert prepared.emulated == ("prompt", "images")


def test_a_stream_s_calls_are_streams() -> None:
    assert sent(plan_calls(chat({"n": 2}, stream=True), GROQ), "stream") == [True, True]
    assert sent(plan_calls(chat({"n": 2}), GROQ), "stream") == [None, None]


# best_of -------------------------------------------------------------------------------------------------------------


def test_best_of_becomes_candidates_with_log_probabilities_to_choose_by() -> None:
    prepared = plan_calls(chat({"best_of": 3}), target("deepseek"))
    assert sent(prepared, "best_of") == [None] * 3
    assert sent(prepared, "logprobs") == [True] * 3
    assert parts(prepared) == [CallShare(0, number, 1) for number in range(3)]
    assert prepared.emulated == ("best_of",)
    assert prepared.finishing == PostProcessing(n=1, candidates=3, drop_logprobs=True)
    assert prepared.request.params == {"best_of": 3}


def test_best_of_is_one_call_where_n_is_known() -> None:
    prepared = plan_calls(chat({"best_of": 4, "n": 2}), GPT)
    assert sent(prepared, "n") == [4]
    assert parts(prepared) == [CallShare(0, 0, 4)]
    assert prepared.finishing == PostProcessing(n=2, candidates=4, drop_logprobs=True)
    assert prepared.emulated == ("best_of",)


def test_log_probabilities_that_were_asked_for_stay() -> None:
    prepared = plan_calls(chat({"best_of": 2, "logprobs": LogprobsWanted(5, "content")}), GPT)
    assert sent(prepared, "top_logprobs") == [5]
    assert prepared.finishing == PostProcessing(n=1, candidates=2)


def test_best_of_and_n_and_prompts_together() -> None:
    prepared = plan_calls(completion({"best_of": 3, "n": 2}, TextPrompt(("a", "b"))), target("deepseek"))
    assert parts(prepared) == [CallShare(prompt, number, 1) for prompt in range(2) for number in range(3)]
    assert prepared.emulated == ("best_of", "prompt", "n")
    assert prepared.finishing == PostProcessing(n=2, candidates=3, drop_logprobs=True)


def test_best_of_without_log_probabilities_is_refused() -> None:
    why = refusal(chat({"best_of": 2}), GROQ)
    assert (why.param, why.code) == ("best_of", "unsupported_parameter")
    assert "log probabilities" in why.message


# Limits --------------------------------------------------------------------------------------------------------------


@looped(
    ("params", "prompts", "to", "param"),
    [
        ({"n": MAX_CALLS + 1}, 1, GROQ, "n"),
        ({"n": 128}, 3, GROQ, "n"),
        ({"best_of": 20}, 20, target("deepseek"), "best_of"),
        ({}, MAX_CALLS + 1, GROQ, "prompt"),
        ({"n": 2}, MAX_CALLS + 1, GROQ, "prompt"),
        ({"n": 2}, MAX_CALLS + 1, GPT, "prompt"),
    ],
)
def test_more_calls_than_one_request_may_become_are_refused_by_what_asks_for_them(
    params: Params, prompts: int, to: Target, param: str
) -> None:
    why = refusal(completion(params, TextPrompt(("a",) * prompts)), to)
    assert (why.param, why.code) == (param, "invalid_value")
    assert to.name in why.message
    assert str(MAX_CALLS) in why.message


def test_as_many_as_that_are_made() -> None:
    assert len(plan_calls(completion({"n": 2}, TextPrompt(("a",) * (MAX_CALLS // 2))), GROQ).calls) == MAX_CALLS


# The window ----------------------------------------------------------------------------------------------------------

WINDOW = "context_length_exceeded_behavior"
COMPATIBLE = target("openai_compatible")
OLLAMA = replace(target("ollama"), context_window=4096)


def behaving(behaviour: str, params: Params | None = None) -> UnifiedRequest:
    return completion({**one_param(WINDOW, behaviour), **(params or {})})


@looped(
    ("behaviour", "to", "counted"),
    [
        ("error", LLAMACPP, True),
        ("truncate", LLAMACPP, False),
        ("error", COMPATIBLE, False),
        ("truncate", COMPATIBLE, False),
        ("error", OLLAMA, True),
        ("truncate", OLLAMA, True),
    ],
)
def test_a_prompt_is_counted_where_the_vendor_would_do_the_other_thing(
    behaviour: str, to: Target, counted: bool
) -> None:
    assert plan_calls(behaving(behaviour), to).counted is counted
    assert plan_calls(behaving(behaviour, {"n": 2}), to).counted is counted


def test_the_operator_s_behaviour_stands_in_for_the_surface_s_default() -> None:
    injected = replace(behaving("error"), injected=frozenset({WINDOW}))
    assert plan_calls(injected, COMPATIBLE, behavior="truncate").request.params == {WINDOW: "truncate"}
    assert plan_calls(injected, COMPATIBLE).request.params == {WINDOW: "error"}


def test_a_word_of_the_client_is_never_replaced() -> None:
    assert plan_calls(behaving("error"), COMPATIBLE, behavior="truncate").request.params == {WINDOW: "error"}
    assert plan_calls(completion(), COMPATIBLE, behavior="truncate").request.params == {}


@looped(("window", "limit", "calls"), [(None, 10, 3), (4096, 4000, 3), (100_000, 10, 1), (None, None, 1)])
def test_prompts_that_may_need_different_limits_get_a_call_each(
    window: int | None, limit: int | None, calls: int
) -> None:
    params: Params = {"context_length_exceeded_behavior": "truncate"}
    if limit is not None:
        params["max_tokens"] = limit
    prepared = plan_calls(completion(params, ABC), replace(COMPATIBLE, context_window=window))
    assert len(prepared.calls) == calls
    assert prepared.emulated == (("prompt",) if calls > 1 else ())


def test_prompts_whose_window_only_errors_concern_stay_together() -> None:
    params: Params = {"context_length_exceeded_behavior": "error", "max_tokens": 10}
    assert len(plan_calls(completion(params, ABC), COMPATIBLE).calls) == 1


# Trusted counts and fields ----- --------------------------------------------------------------------------------------


def test_the_request_is_left_as_it_was() -> None:
    params: Params = {"n": 2, "best_of": 3, "stop": tuple("abcdef"), "echo": True, "seed": 3}
    request = completion(params.copy(), ABC)
    plan_calls(request, LLAMACPP)
    assert request == completion(params, ABC)


def test_blank_stops_are_kept_from_a_vendor_that_takes_none() -> None:
    request = UnifiedRequest(Operation.CHAT, "v/m", TALK, {"stop": ("\n", "END", " ")})
    prepared = plan_calls(request, anthropic_kit.TARGET)
    assert sent(prepared, "stop_sequences") == [["END"]]
    assert prepared.finishing == PostProcessing(stops=("\n", " "))
    assert prepared.emulated == ("stop",)


@pytest.mark.parametrize(("prompts", "n", "param"), [(2000, 128, "n"), (MAX_CHOICES + 1, 1, "prompt")])
def test_a_request_for_more_choices_than_can_be_answered_is_refused_where_one_call_takes_them_too(
    prompts: int, n: int, param: str
) -> None:
    asked = UnifiedRequest(Operation.COMPLETIONS, "v/m", TextPrompt(("a",) * prompts), {"n": n})
    refusal = refusal_of(plan_calls, asked, target("vllm"))
    assert (refusal.param, refusal.code) == (param, "invalid_value")


def test_as_many_choices_as_can_be_answered_go_out_in_one_call() -> None:
    asked = UnifiedRequest(Operation.COMPLETIONS, "v/m", TextPrompt(("a",) * (MAX_CHOICES // 2)), {"n": 2})
    assert len(plan_calls(asked, target("vllm")).calls) == 1


class NativeVendor(OpenAIDialect):
    """A vendor that has the Messages API beside chat, except for models with the name `other`."""

    def encode_native(self, request: UnifiedRequest, target: Target) -> UpstreamRequest | None:
        """Return a call with the client's body, or `None` if the model has another API."""
        if request.native is None or target.upstream_model == "other":
            return None
        body = orjson.dumps(request.native.body)
        return UpstreamRequest(target, Operation.CHAT, "http://up/v1/messages", body, request.stream, native=True)


OWN_BODY: JsonObject = {"model": "v/m", "unheard_of": [1]}


@pytest.mark.parametrize(("model", "native"), [("m", True), ("other", False)])
def test_a_request_goes_on_as_it_came_to_a_target_that_speaks_its_api(model: str, native: bool) -> None:
    to = replace(target("vllm"), dialect=NativeVendor(), upstream_model=model)
    asked = UnifiedRequest(Operation.CHAT, "v/m", TALK, {}, native=NativeRequest(NativeApi.MESSAGES, OWN_BODY))
    plan = plan_calls(asked, to)
    assert [call.sent.native for call in plan.calls] == [native]
    assert (bodies(plan) == [OWN_BODY]) is native


def test_a_dialect_that_clients_do_not_speak_gets_the_translated_request() -> None:
    asked = UnifiedRequest(Operation.CHAT, "v/m", TALK, {}, native=NativeRequest(NativeApi.MESSAGES, OWN_BODY))
    assert [call.sent.native for call in plan_calls(asked, target("vllm")).calls] == [False]


# One call of a tool ---------------------------------------------------------------------------------------------------

ONE_TOOL: JsonObject = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


@looped("profile", ["deepseek", "fireworks", "together", "databricks", "cohere_compat", "tgi"])
def test_the_gateway_keeps_one_call_where_the_vendor_has_no_such_switch(profile: str) -> None:
    plan = plan_calls(chat({"tools": [ONE_TOOL], "parallel_tool_calls": False}), target(profile))
    assert plan.emulated == ("parallel_tool_calls",)
    assert plan.finishing == PostProcessing(one_call=True)
    assert sent(plan, "parallel_tool_calls") == [None]


@looped(
    ("to", "params"),
    [
        (GPT, {"tools": [ONE_TOOL], "parallel_tool_calls": False}),
        (target("deepseek"), {"tools": [ONE_TOOL]}),
        (target("deepseek"), {"parallel_tool_calls": False}),
    ],
    ids=["the vendor's own", "not asked for", "no tools"],
)
def test_the_gateway_has_no_part_in_calls_otherwise(to: Target, params: Params) -> None:
    plan = plan_calls(chat(params), to)
    assert (plan.emulated, plan.finishing) == ((), None)


def test_each_call_knows_how_many_choices_answer_it() -> None:
    three = completion({"n": 2}, ABC)
    for request_ in (chat(), chat({"n": 3}), chat({"best_of": 4, "n": 2}), three):
        for row in ("openai", "deepseek", "anthropic", "vllm"):
            for call in plan_calls(request_, target(row)).calls if request_ is not three or row == "vllm" else ():
                assert call.sent.choices == call.part.count
