"""The end of one request: the length of its response, and the memory that is freed when the response has begun."""

from dataclasses import replace

from providers.completion import Choice, Completion, Extras, LegacyLogprobs, ToolCall
from providers.emulation.estimate_missing_usage import estimate_usage
from providers.emulation.plan_calls import CallPlan, plan_calls
from providers.unified_request import ChatPrompt, Operation, TextPrompt, UnifiedRequest
from proxy.gateway.answer_request import LONG, is_long, let_request_go
from tests.proxy.kit.tables import snapshot
from tests.support.looped import looped

TABLE = snapshot(
    "vendors: {v: {profile: openai, api_key: k}}\n"
    "models: {v/m: {deployments: {quick: {timeouts: {total: 10s}}, slow: {timeouts: {total: 5m}}}}}"
)


@looped(
    ("choice", "long"),
    [
        (Choice(0, "x" * LONG, "stop"), False),
        (Choice(0, "x" * LONG, "stop", reasoning="x"), True),
        (Choice(0, "", "tool_calls", tool_calls=(ToolCall("a", "f", "x" * LONG),)), False),
        (Choice(0, "x", "tool_calls", tool_calls=(ToolCall("a", "f", "x" * LONG),)), True),
        (Choice(0, "x", "stop", logprobs=LegacyLogprobs(("x",) * 100, (0.0,) * 100, None, None)), False),
        (Choice(0, "x", "stop", logprobs=LegacyLogprobs(("x",) * 200, (0.0,) * 200, None, None)), True),
        (Choice(0, "x", "stop", extras=Extras(reasoning_details=({"text": "x" * 100},))), False),
        (Choice(0, "x", "stop", extras=Extras(reasoning_details=({"text": "x" * LONG},))), True),
        (Choice(0, "x", "stop", extras=Extras(images=({},))), True),
    ],
)
def test_a_long_answer_is_told_by_what_it_holds(choice: Choice, long: bool) -> None:
    assert is_long(Completion((choice,), None)) is long
    assert is_long(Completion((), None, native=b"x" * (LONG + 1)))


def test_the_body_of_a_begun_stream_is_let_go_but_not_those_of_calls_to_come() -> None:
    (target,) = TABLE.models["v/m"].targets[:1]
    alone = plan_calls(UnifiedRequest(Operation.COMPLETIONS, "v/m", TextPrompt(("hi",)), {}), target)
    several = plan_calls(UnifiedRequest(Operation.COMPLETIONS, "v/m", TextPrompt(("a", "b")), {"best_of": 2}), target)
    for prepared in (alone, several):
        let_request_go(prepared, prepared.request, heavy=False)
    assert [call.sent.body for call in alone.calls] == [b""]
    assert all(call.sent.body for call in several.calls)


@looped(("heavy", "n", "kept"), [(False, 1, 0), (True, 1, 1), (False, 2, 1)])
def test_the_conversation_of_a_begun_stream_is_let_go_and_its_estimate_kept(heavy: bool, n: int, kept: int) -> None:
    (target,) = TABLE.models["v/m"].targets[:1]
    prompt = ChatPrompt(({"role": "user", "content": "hello"},))
    asked = UnifiedRequest(Operation.CHAT, "v/m", prompt, {"n": n, "stop": ("a", "b", "c", "d", "e")}, stream=True)
    prepared = plan_calls(asked, target) if n == 1 else _in_two(plan_calls(asked, target))
    before = estimate_usage(prepared.request, 8)
    let_request_go(prepared, asked, heavy=heavy)
    assert len(prompt.messages) == kept
    assert estimate_usage(prepared.request, 8) == estimate_usage(asked, 8) == before


def _in_two(prepared: CallPlan) -> CallPlan:
    """Return the plan with its call duplicated."""
    return replace(prepared, calls=prepared.calls * 2)
