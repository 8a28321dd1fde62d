"""Models as people write them, at every vendor with structured output.

None is refused, and the schema that is sent follows the vendor's documented rules. If it promises less, the response is
checked against the model's own schema.
"""

from collections.abc import Mapping

import orjson

from providers.constraints.compiled_checks import schema_check
from providers.constraints.object_root import VALUE_KEY
from providers.emulation.check_answer import CheckKind, compile_check
from providers.emulation.plan_calls import CallPlan, plan_calls
from providers.json_types import JsonObject, JsonValue
from providers.target import Target
from providers.unified_request import ChatPrompt, Guided, Operation, Params, UnifiedRequest
from tests.providers.constraints import vendor_schema_rules as vendor
from tests.providers.constraints.pydantic_models import MODELS
from tests.providers.dialects.kit import target_of
from tests.support.looped import looped

CLAUDE = "claude-haiku-4-5"
VENDORS: Mapping[str, tuple[str, vendor.Check]] = {
    "openai": ("gpt-4o", vendor.openai),
    "azure": ("gpt-4o", vendor.azure),
    "azure_v1": ("gpt-4o", vendor.azure),
    "anthropic": (CLAUDE, vendor.claude),
    "vertex_anthropic": (CLAUDE, vendor.claude),
    "bedrock": ("anthropic.claude-haiku-4-5-20251001-v1:0", vendor.claude_on_bedrock),
    "bedrock_anthropic": ("anthropic.claude-haiku-4-5-20251001-v1:0", vendor.claude_on_bedrock),
    "gemini": ("gemini-2.5-flash", vendor.gemini),
    "vertex": ("gemini-2.5-flash", vendor.gemini),
    "groq": ("openai/gpt-oss-120b", vendor.openai),
    "mistral": ("mistral-large-latest", vendor.any_schema),
    "fireworks": ("m", vendor.any_schema),
    "together": ("m", vendor.any_schema),
    "cohere": ("command-a-03-2025", vendor.cohere),
    "vllm": ("m", vendor.vllm),
    "sglang": ("m", vendor.any_schema),
    "llamacpp": ("m", vendor.llamacpp),
    "ollama": ("m", vendor.llamacpp),
    "openrouter": ("m", vendor.openai),
    "cerebras": ("m", vendor.openai),
    "xai": ("grok-4", vendor.any_schema),
}
CASES = [(name, model) for name in VENDORS for model in MODELS]


def target(name: str) -> Target:
    return target_of(name, VENDORS[name][0])


def planned(name: str, params: Params) -> CallPlan:
    prompt = ChatPrompt(({"role": "user", "content": "Hello"},))
    return plan_calls(UnifiedRequest(Operation.CHAT, "v/m", prompt, {"max_tokens": 99, **params}), target(name))


_SCHEMAS = frozenset({"schema", "responseJsonSchema"})


def schemas_in(value: JsonValue) -> list[JsonObject]:
    """Return the schemas of a body, from any field."""
    found: list[JsonObject] = []
    rest: list[JsonValue] = [value]
    while rest:
        here = rest.pop()
        if not isinstance(here, dict):
            continue
        for key, member in here.items():
            if key == "schema" and isinstance(member, str):
                found.append(orjson.loads(member))
            elif isinstance(member, dict):
                alone = key == "json_schema" and "schema" not in member
                (found if alone or key in _SCHEMAS else rest).append(member)
    return found


def told_loosely(body: JsonObject) -> bool:
    """Return whether a schema is sent without the vendor's strict mode."""
    form = body.get("response_format")
    named = form.get("json_schema") if isinstance(form, dict) else None
    return isinstance(named, dict) and named.get("strict") is False


def is_wrapped(schema: JsonObject, sent: JsonObject) -> bool:
    """Return whether a schema is sent as the property of an object."""
    return schema.get("type", "object") != "object" and sent.get("required") == [VALUE_KEY]


@looped(("name", "model"), CASES)
def test_a_model_goes_out_within_the_vendors_rules_and_what_they_lack_is_checked(name: str, model: str) -> None:
    schema, good, bad = MODELS[model]
    plan = planned(name, {"guided": Guided("json", schema)})
    body = orjson.loads(plan.calls[0].sent.body)
    sent = schemas_in(body)
    told = any(check.fenced for check in plan.checks)
    assert len(sent) == (0 if told else 1)
    if told:
        assert b"must be valid against this JSON Schema" in plan.calls[0].sent.body
    if sent and not told_loosely(body):
        assert VENDORS[name][1](sent[0]) == []
    wrapped = plan.calls[0].sent.unwrap_choice
    assert plan.checks or wrapped or "guided_json" not in plan.emulated
    for check in plan.checks:
        assert check.kind is CheckKind.SCHEMA
        keeps = compile_check(check)
        assert keeps(orjson.dumps(good).decode()) is None
        assert keeps(orjson.dumps(bad).decode()) == "it does not satisfy the schema"
    if not plan.checks:
        # The vendor enforces at least the model's own schema.
        if is_wrapped(schema, sent[0]):
            good, bad = {VALUE_KEY: good}, {VALUE_KEY: bad}
        assert not schema_check(sent[0])(bad)
        assert schema_check(sent[0])(good)


@looped("name", ["openai", "azure", "anthropic", "bedrock", "gemini", "cohere", "groq"])
@looped("model", MODELS)
def test_a_strict_tool_with_a_models_parameters_is_held_or_checked(name: str, model: str) -> None:
    schema, good, bad = MODELS[model]
    if schema.get("type", "object") != "object":
        return
    tools: list[JsonObject] = [{"type": "function", "function": {"name": "f", "strict": True, "parameters": schema}}]
    plan = planned(name, {"tools": tools})
    for check in plan.checks:
        keeps = compile_check(check)
        assert check.field == "tools.strict"
        assert keeps(orjson.dumps(good).decode()) is None
        assert keeps(orjson.dumps(bad).decode()) is not None
    assert bool(plan.checks) == ("tools.strict" in plan.emulated)


OLD_CLAUDES = {
    "anthropic": "claude-opus-4-1",
    "vertex_anthropic": "claude-sonnet-4@20250514",
    "bedrock_anthropic": "us.anthropic.claude-3-7-sonnet-20250219-v1:0",
    "bedrock": "us.anthropic.claude-3-5-haiku-20241022-v1:0",
}


@looped(("name", "model"), OLD_CLAUDES.items())
@looped("stream", [False, True])
def test_a_strict_tool_beside_a_schema_is_only_told_to_a_model_before_claude_4_5(
    name: str, model: str, stream: bool
) -> None:
    schema, good, bad = MODELS["nested"]
    tools: list[JsonObject] = [{"type": "function", "function": {"name": "f", "strict": True, "parameters": schema}}]
    prompt = ChatPrompt(({"role": "user", "content": "Hello"},))
    params: Params = {"max_tokens": 99, "guided": Guided("json", schema), "tools": tools, "n": 2}
    request = UnifiedRequest(Operation.CHAT, "v/m", prompt, params, stream=stream)
    plan = plan_calls(request, target_of(name, model))
    assert len(plan.calls) == 2
    assert {"guided_json", "tools.strict"} <= set(plan.emulated)
    for call in plan.calls:
        assert b"must be valid against this JSON Schema" in call.sent.body
        assert b'"strict"' not in call.sent.body
        assert not schemas_in(orjson.loads(call.sent.body))
    assert {(check.field, check.fenced) for check in plan.checks} == {("guided_json", True), ("tools.strict", False)}
    for check in plan.checks:
        keeps = compile_check(check)
        assert keeps(orjson.dumps(good).decode()) is None
        assert keeps(orjson.dumps(bad).decode()) is not None
