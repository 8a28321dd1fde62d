"""OpenRouter's `reasoning`, and the fields with the same meaning."""

import orjson
import pytest

from providers.json_types import JsonObject, JsonValue
from providers.unified_request import Operation, UnifiedRequest
from proxy.errors import GatewayError
from proxy.surfaces.registry import SURFACES
from tests.support.looped import looped


def parsed(**fields: JsonValue) -> UnifiedRequest:
    body = {"model": "a/b", "messages": [{"role": "user", "content": "x"}], **fields}
    surface = next(each for each in SURFACES if each.name == "openai")
    return surface.parse(Operation.CHAT, orjson.dumps(body), None)


@looped(
    ("given", "params"),
    [
        ({"effort": "high"}, {"reasoning_effort": "high"}),
        ({"effort": "high", "exclude": False, "summary": None}, {"reasoning_effort": "high"}),
        ({"enabled": True}, {"reasoning_effort": "medium"}),
        ({"enabled": False, "effort": "high"}, {"reasoning_effort": "none"}),
        ({"max_tokens": 2000}, {"thinking": {"type": "enabled", "budget_tokens": 2000}}),
        ({}, {}),
    ],
)
def test_it_becomes_the_field_that_says_the_same(given: JsonObject, params: JsonObject) -> None:
    request = parsed(reasoning=given)
    assert {name: value for name, value in request.params.items() if name in ("reasoning_effort", "thinking")} == params
    assert request.unknown is None


def test_further_members_go_to_vendors_that_know_them() -> None:
    request = parsed(reasoning={"effort": "low", "exclude": True})
    assert request.params["reasoning_effort"] == "low"
    assert request.unknown == {"reasoning": {"exclude": True}}


@looped(
    ("fields", "problem"),
    [
        ({"reasoning": {"effort": "low", "max_tokens": 2000}}, "'reasoning' may hold 'effort' or 'max_tokens'"),
        ({"reasoning": {"effort": 3}}, "'reasoning.effort' must be"),
        ({"reasoning": {"max_tokens": 0}}, "'reasoning.max_tokens' must be"),
        ({"reasoning": "high"}, "'reasoning' must be"),
        ({"reasoning": {"effort": "low"}, "reasoning_effort": "high"}, "differs from 'reasoning_effort'"),
        ({"thinking": {"type": "enabled"}, "reasoning_effort": "high"}, "cannot go with 'thinking'"),
    ],
)
def test_what_contradicts_itself_is_refused_by_name(fields: JsonObject, problem: str) -> None:
    with pytest.raises(GatewayError) as refused:
        parsed(**fields)
    assert problem in refused.value.facts.message


def test_the_same_said_twice_is_no_conflict() -> None:
    assert parsed(reasoning={"effort": "low"}, reasoning_effort="low").params["reasoning_effort"] == "low"
