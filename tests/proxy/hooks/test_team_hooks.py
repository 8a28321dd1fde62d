"""A team's hooks: the hooks of the configured features, in a fixed order, and built once."""

from providers.unified_request import Operation, TextPrompt, UnifiedRequest
from proxy.deadlines import Deadlines
from proxy.dispatch.exchange import Exchange
from proxy.hooks.request_hook import RequestHook
from proxy.hooks.team_hooks import TeamHooks
from proxy.request_record import RequestRecord
from proxy.routing.request_plan import Plan
from proxy.routing.route_settings import CacheRules
from proxy.routing.snapshot import ANYONE
from tests.providers.dialects.openai.kit import target

CACHE = CacheRules(60.0, 0.0, "team", shared=False, max_bytes=1000)


def test_without_features_no_team_has_hooks() -> None:
    assert TeamHooks()["search", "openai"] == ()


def test_hooks_stand_in_the_order_of_the_features_and_are_made_once() -> None:
    hooks, first, last = TeamHooks(), RequestHook(), RequestHook()
    hooks.attach("payload_log", lambda team, surface: last)
    hooks.attach("tracing", lambda team, surface: first)
    assert hooks["search", "openai"] == (first, last)
    assert hooks["search", "openai"] is hooks["search", "openai"]


def test_a_team_that_does_not_use_a_feature_has_no_hook_of_it() -> None:
    hooks, hook = TeamHooks(), RequestHook()
    hooks.attach("payload_log", lambda team, surface: hook if team == "search" else None)
    assert (hooks["search", "openai"], hooks["ads", "openai"]) == ((hook,), ())


def test_what_is_attached_or_detached_holds_for_requests_from_then_on() -> None:
    hooks, old, new = TeamHooks(), RequestHook(), RequestHook()
    hooks.attach("tracing", lambda team, surface: old)
    before = hooks["search", "openai"]
    hooks.attach("tracing", lambda team, surface: new)
    assert (before, hooks["search", "openai"]) == ((old,), (new,))
    hooks.attach("tracing", None)
    assert hooks["search", "openai"] == ()


def test_a_hook_may_be_for_one_api_alone() -> None:
    hooks, hook = TeamHooks(), RequestHook()
    hooks.attach("stored_responses", lambda team, surface: hook if surface == "responses" else None)
    assert (hooks["search", "responses"], hooks["search", "openai"]) == ((hook,), ())


async def test_a_request_has_the_hooks_of_its_plan_s_features() -> None:
    hooks, reasoning, cache = TeamHooks(), RequestHook(), RequestHook()
    hooks.attach_to_plans("response_cache", lambda exchange, headers: cache)
    record = RequestRecord("r1", 0.0, "openai", "/v1/completions")
    request = UnifiedRequest(Operation.COMPLETIONS, "m", TextPrompt(("hi",)), {})

    def of(vendor: str, rules: CacheRules | None) -> tuple[RequestHook, ...]:
        plan = Plan("m", "m", (target(vendor),), False, (), cache=rules)
        return hooks.of_plan(Exchange(plan, ANYONE, request, record, Deadlines(1.0), 1.0), {})

    assert (of("openai", None), of("openai", CACHE), of("anthropic", CACHE)) == ((), (cache,), (cache,))
    hooks.attach_to_plans("reasoning", lambda exchange, headers: reasoning)
    assert (of("anthropic", CACHE), of("anthropic", None)) == ((reasoning, cache), (reasoning,))
    hooks.attach_to_plans("reasoning", lambda exchange, headers: None)
    assert of("anthropic", None) == ()
