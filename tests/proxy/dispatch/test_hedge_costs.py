"""The cost that is booked for a cancelled call, by the billing rules known of its vendor."""

from dataclasses import replace

from providers.completion import Usage
from providers.emulation.plan_calls import CallPlan, plan_calls
from providers.pricing import Price
from providers.profiles.load_profiles import load_profiles
from providers.unified_request import ChatPrompt, Operation, Params, UnifiedRequest
from proxy.dispatch.hedge_costs import bounded, ends_bill, most_generated, most_lost, usd_of, with_bound
from proxy.limits.token_estimate import DEFAULT_OUTPUT_TOKENS
from tests.proxy.kit.tables import snapshot
from tests.support.looped import looped

MODELS = snapshot(
    "vendors:\n"
    "  openai: {api_key: k}\n"
    "  azure: {api_key: k, url_params: {resource: r}}\n"
    "  engine: {profile: vllm, base_url: 'http://127.0.0.1:1/v1', allow_private: true}\n"
    "models: {openai/m: {price: {input: 2, output: 4}}, azure/m: {price: {input: 2, output: 4}}, engine/m: {}}\n"
).models
PROMPT = ChatPrompt(({"role": "user", "content": "x" * 4000},))


def planned(name: str, *, stream: bool = True, asked: int | None = None, most: int | None = None) -> CallPlan:
    target = replace(MODELS[name].targets[0], max_output_tokens=most)
    params: Params = {} if asked is None else {"max_tokens": asked}
    return plan_calls(UnifiedRequest(Operation.CHAT, name, PROMPT, params, stream), target)


@looped(
    ("name", "stream", "known"),
    [
        ("openai/m", True, True),
        ("openai/m", False, False),
        ("azure/m", True, False),
        ("azure/m", False, False),
        ("engine/m", True, True),
        ("engine/m", False, True),
    ],
)
def test_of_which_vendors_it_is_known_that_closing_ends_the_bill(name: str, stream: bool, known: bool) -> None:
    plan = planned(name, stream=stream)
    assert ends_bill(plan.target, stream=stream) == known
    used = ((Usage(10, 0, estimated=True), None),)
    assert bounded(used, plan) == (used if known else ((Usage(10, DEFAULT_OUTPUT_TOKENS, estimated=True), None),))


def test_only_vendors_that_say_so_are_believed() -> None:
    assert {name for name, each in load_profiles().items() if each.closing_ends_bill} == {"openai", "anthropic", "mock"}


@looped(
    ("asked", "allowed", "most"),
    [(None, None, DEFAULT_OUTPUT_TOKENS), (50, None, 50), (None, 70, 70), (50, 70, 50), (90, 70, 70)],
)
def test_the_most_that_is_generated(asked: int | None, allowed: int | None, most: int) -> None:
    assert most_generated(planned("azure/m", asked=asked, most=allowed)) == most


def test_what_a_vendor_reported_is_not_replaced() -> None:
    assert with_bound(Usage(10, 3), 90) == Usage(10, 3)
    assert with_bound(Usage(10, 3, estimated=True), 90) == Usage(10, 90, estimated=True)
    assert bounded((), planned("azure/m")) == ()


def test_a_price_that_is_not_known_costs_nothing_and_the_dearer_call_counts() -> None:
    price = Price(2.0, 4.0)
    assert usd_of(((Usage(1_000_000, 500_000), price), (Usage(1, 1), None))) == 4.0
    known, unknown, free = planned("openai/m"), planned("azure/m", asked=1_000), planned("engine/m")
    prompt = 2 * 1_004 / 1_000_000
    assert abs(most_lost(known, free) - prompt) < 2e-5
    assert abs(most_lost(known, unknown) - prompt - 0.004) < 2e-5
    assert most_lost(free) == 0.0
