"""The requests that may be sent to two deployments."""

from dataclasses import replace

from providers.emulation.plan_calls import plan_calls
from providers.json_types import JsonObject
from providers.target import Retries, Target
from providers.unified_request import ChatPrompt, NativeApi, NativeRequest, Operation, UnifiedRequest
from proxy.hedging.hedged_requests import (
    HOSTED,
    NO_SECOND,
    ONE_DEPLOYMENT,
    SEVERAL,
    STORED,
    why_never,
    why_not_first,
    why_not_hedged,
)
from tests.proxy.kit.tables import snapshot
from tests.support.looped import looped

PLAIN = UnifiedRequest(Operation.CHAT, "v/m", ChatPrompt(({"role": "user", "content": "hi"},)), {})
FUNCTION: JsonObject = {"type": "function", "function": {"name": "f", "parameters": {}}}
TARGETS = (
    snapshot("vendors: {v: {profile: openai, api_key: k}}\nmodels: {v/m: {deployments: {a: {}, b: {}}}}")
    .models["v/m"]
    .targets
)


def native(api: NativeApi, **body: object) -> UnifiedRequest:
    return replace(PLAIN, native=NativeRequest(api, {"model": "v/m", **body}))  # type: ignore[dict-item]  # JSON


@looped(
    ("request", "storing", "why"),
    [
        (PLAIN, False, None),
        (replace(PLAIN, params={"tools": [FUNCTION], "store": False}), False, None),
        (replace(PLAIN, params={"store": True}), False, STORED),
        (PLAIN, True, STORED),
        (native(NativeApi.RESPONSES), True, STORED),
        (native(NativeApi.RESPONSES, store=True), True, STORED),
        (native(NativeApi.RESPONSES, store=False), True, None),
        (native(NativeApi.RESPONSES, store=False, tools=[{"type": "custom", "name": "patch"}]), True, None),
        (native(NativeApi.RESPONSES, store=False, tools=[{"type": "web_search"}]), True, HOSTED),
        (native(NativeApi.RESPONSES, store=False, tools=[{"type": "mcp"}]), True, HOSTED),
        (native(NativeApi.RESPONSES, store=False, background=True), True, HOSTED),
        (native(NativeApi.MESSAGES, tools=[{"name": "Bash", "input_schema": {}}]), False, None),
        (native(NativeApi.MESSAGES, tools=[{"type": "web_search_20250305", "name": "web_search"}]), False, HOSTED),
        (native(NativeApi.MESSAGES, mcp_servers=[{"type": "url"}]), False, HOSTED),
        (native(NativeApi.MESSAGES, mcp_servers=[]), False, None),
        (replace(PLAIN, params={"web_search_options": {}}), False, HOSTED),
        (replace(PLAIN, params={"tools": [{"type": "web_search_20250305"}]}), False, HOSTED),
        (replace(PLAIN, unknown={"plugins": [{"id": "web"}]}), False, HOSTED),
        (replace(PLAIN, extra_params={"enable_search": True}), False, HOSTED),
        (replace(PLAIN, extra_params={"enable_search": False}), False, None),
    ],
)
def test_what_has_an_effect_beside_its_response_is_sent_once(
    request: UnifiedRequest, storing: bool, why: str | None
) -> None:
    assert why_not_hedged(request, storing=storing) == why


@looped(
    ("retries", "why"),
    [
        (Retries(2, "safe"), None),
        (Retries(1, "safe"), NO_SECOND),
        (Retries(3, "strict"), NO_SECOND),
        (Retries(3, "off"), NO_SECOND),
    ],
)
def test_a_second_attempt_is_one_of_those_that_the_first_deployment_permits(retries: Retries, why: str | None) -> None:
    targets: list[Target] = [replace(target, retries=retries) for target in TARGETS]
    plan = plan_calls(PLAIN, targets[0])
    assert why_not_first(plan) == why
    assert why_not_first(replace(plan, calls=plan.calls * 2)) == SEVERAL
    assert why_never(targets) == why
    assert why_never([TARGETS[0], targets[1]]) == (None if TARGETS[0].retries.attempts > 1 else why)
    assert why_never(targets[:1]) == ONE_DEPLOYMENT
