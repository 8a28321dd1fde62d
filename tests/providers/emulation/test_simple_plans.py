"""The plan of a conversation of texts alone, which is made at once, against the one that all questions lead to."""

from dataclasses import fields, replace
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.emulation.split_into_calls import plan_calls
from providers.failure import Refusal
from providers.unified_request import (
    ChatPrompt,
    Guided,
    LogprobsWanted,
    Operation,
    Params,
    Prompt,
    TextPrompt,
    UnifiedRequest,
)
from tests.providers.dialects.openai.kit import TALK, target

SIMPLE = ChatPrompt(({"role": "user", "content": "![](http://10.0.0.1/x)"},), plain=True)


@given(
    st.sampled_from(["openai", "groq", "llamacpp", "vllm", "tgi", "deepseek"]),
    st.sampled_from([SIMPLE, TALK, TextPrompt(("a",))]),
    st.fixed_dictionaries(
        {},
        optional={
            "n": st.sampled_from([1, 3]),
            "stop": st.sampled_from([("a",), ("a", "b", "c", "d", "e")]),
            "logprobs": st.just(LogprobsWanted(1, "content")),
            "user": st.just("u"),
            "store": st.just(False),
            "guided": st.just(Guided("regex", "a+")),
            "context_length_exceeded_behavior": st.sampled_from(["error", "truncate"]),
            "images": st.just((("data:image/png;base64,AAAA",),)),
        },
    ),
    st.sampled_from([{}, {"unknown": {"template": "x"}}, {"extra_headers": {"x-a": "b"}}]),
    st.booleans(),
    st.sampled_from(["auto", "off"]),
)
def test_a_plan_made_at_once_is_the_one_of_all_questions(
    row: str, prompt: Prompt, params: Params, more: dict[str, Any], stream: bool, whole: Literal["auto", "off"]
) -> None:
    operation = Operation.CHAT if isinstance(prompt, ChatPrompt) else Operation.COMPLETIONS
    request = UnifiedRequest(operation, "v/m", prompt, params, stream, injected=frozenset(params), **more)
    to = replace(target(row), stream_upstream=whole, context_window=100)

    def outcome() -> list[object]:
        try:
            made = plan_calls(request, to)
        except Refusal as refusal:
            return [refusal.param, refusal.code, refusal.message]
        return [getattr(made, each.name) for each in fields(made)]

    quick = outcome()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("providers.emulation.split_into_calls._simple_plan", lambda request, target: None)
        assert quick == outcome()
