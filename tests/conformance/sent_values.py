"""Finds a feature's value in the vendor's request, unchanged or in a form that the vendor documents for it.

The forms are written by hand, not derived from the gateway's code.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import orjson

from providers.json_types import JsonObject, JsonValue
from tests.conformance.engine import WINDOW, EngineRequest, prompt_tokens
from tests.conformance.fake_engine import STREAMS_ONLY, fake_dialect_of
from tests.conformance.feature_requests import GRAMMAR, HEADERS, IMAGE, PROMPT, SCHEMA, TOOL, UNSAMPLED
from tests.conformance.run_matrix import CellRun, Exchange, Sent

_ANY_OBJECT: JsonObject = {"type": "object"}
_FUNCTION = TOOL["function"]

_FORMS: Mapping[str, Sequence[JsonValue]] = {
    "prompt": [PROMPT],
    "messages": [
        [{"role": "user", "content": PROMPT}],
        [{"role": "user", "parts": [{"text": PROMPT}]}],
        [{"role": "user", "content": [{"text": PROMPT}]}],
    ],
    "logprobs": [1, True],
    "response_format.json_object": [{"type": "json_object"}, _ANY_OBJECT, "application/json", "json"],
    "response_format.json_schema": [SCHEMA],
    "response_format.grammar": [GRAMMAR],
    "images": [IMAGE, IMAGE.partition(",")[2]],
    "tools": [_FUNCTION["parameters"]] if isinstance(_FUNCTION, dict) else [],
    "tool_choice.none": ["none", "NONE", {"mode": "NONE"}],
    "tool_choice.required": ["required", "REQUIRED", "any", {"mode": "ANY"}, {"any": {}}],
    "tool_choice.named": [
        {"type": "function", "function": {"name": "look"}},
        {"type": "tool", "name": "look"},
        {"type": "function", "name": "look"},
        {"mode": "ANY", "allowedFunctionNames": ["look"]},
        {"tool": {"name": "look"}},
    ],
    "parallel_tool_calls": [False, {"type": "auto", "disable_parallel_tool_use": True}],
    "service_tier": ["default", "standard_only", "standard", "on_demand"],
    "reasoning_effort": [
        "low",
        "high",
        {"type": "enabled"},
        {"thinkingLevel": "LOW", "includeThoughts": True},
        {"thinkingBudget": 1024, "includeThoughts": True},
    ],
    "thinking": [
        {"type": "enabled", "budget_tokens": 1024},
        {"type": "enabled", "token_budget": 1024},
        {"thinkingBudget": 1024, "includeThoughts": True},
        {"max_tokens": 1024},
    ],
    "inference_extra_params": [3],
    "unknown": [3],
}
"""The forms of a feature's value on the wire, if they differ from the client's value."""

_EFFORTS: Mapping[str, JsonValue] = {
    "mistral-medium-3.5": "high",
    "magistral-medium-2509": "reasoning",
    "qwen/qwen3-32b": "default",
    "glm-4.7": {"type": "enabled"},
    "kimi-k2.5": {"type": "enabled"},
    "anthropic.claude-haiku-4-5-20251001-v1:0": {"type": "enabled", "budget_tokens": 1976},
    "command-a-03-2025": {"type": "enabled", "token_budget": 2000},
}
"""The form of the lowest effort on models that know fewer effort words, or no effort ("Reasoning" pages of Mistral,
Groq, Z.ai and Moonshot; "Extended thinking" of Anthropic; `cohere` 7.3.1 type `Thinking`)."""

ADAPTIVE = frozenset({"anthropic.claude-opus-4-7", "anthropic.claude-sonnet-5-5"})
"""Models without reasoning budgets: a budget becomes adaptive thinking and is reported as emulated ("Adaptive
thinking" page of Anthropic, November 2026)."""

_STREAMED = frozenset({"stream", "stream_options"})
"""Features that turn a call into a stream. Some vendors express this in the path."""

_IN_HEADERS: Mapping[str, Mapping[str, str]] = {"service_tier": {"x-amzn-bedrock-service-tier": "default"}}
"""Features that some vendors accept in a header."""

_SILENT = frozenset({"inference_timeout"})
"""Features that only the gateway handles."""

_IN_EVERY_CALL = frozenset({"prompt", "messages", "context_length_exceeded_behavior"})
"""Features that the smallest request also has."""

_STREAM_SWITCHES = frozenset({"stream", "stream_options"})
"""Stream fields that every call has if its model only streams."""

_MINDED = ("fireworks", "together/model chat")
"""Vendors that obey `context_length_exceeded_behavior`. The others have a fixed behaviour."""


def is_sent(walked: CellRun, fields: JsonObject) -> bool:
    """Return whether a native field's value is among the fields by which the call differs from the smallest call."""
    (sent,) = walked.whole.calls(walked.row.profile)
    feature, field = walked.feature, walked.feature.partition(".")[0]
    if feature in _STREAMED:
        wire = fake_dialect_of(walked.row.profile).call(sent.endpoint)
        return wire is not None and wire.streams(sent.endpoint, sent.body or {})
    if feature == "inference_extra_headers":
        return HEADERS.items() <= dict(sent.headers).items()
    if feature in _IN_HEADERS and _IN_HEADERS[feature].items() <= dict(sent.headers).items():
        return True
    if feature == "temperature" and walked.row.model in UNSAMPLED:
        return "temperature" not in (sent.body or {})
    if feature in _SILENT or (field.startswith("context") and not _minds(walked)):
        return True
    everywhere = _IN_EVERY_CALL | (_STREAM_SWITCHES if STREAMS_ONLY.search(walked.row.model) else frozenset())
    body = sent.body if field in everywhere else changed(sent, walked.base)
    wanted = _FORMS.get(feature) or [fields[field]]
    if feature == "reasoning_effort" and walked.row.model in _EFFORTS:
        wanted = [*wanted, _EFFORTS[walked.row.model]]
    if feature == "thinking" and walked.row.model in ADAPTIVE:
        wanted = [{"type": "adaptive", "display": "summarized"}]
    return any(_holds(body, value) for value in wanted)


def engine_requests(walked: CellRun, exchange: Exchange) -> list[EngineRequest]:
    """Return the `EngineRequest` of each call of an exchange."""
    found: list[EngineRequest] = []
    for call in exchange.calls(walked.row.profile):
        wire = fake_dialect_of(walked.row.profile).call(call.endpoint)
        assert wire is not None
        found.append(wire.read_request(call.body or {}))
    return found


def fits_window(walked: CellRun) -> bool:
    """Return whether the last call leaves room for its limit in the window."""
    last = engine_requests(walked, walked.whole)[-1]
    return last.limit is not None and prompt_tokens(last) + last.limit <= WINDOW


WANTED_PROMPTS: Mapping[str, Counter[str]] = {
    "prompt": Counter([PROMPT]),
    "prompt.batch": Counter([PROMPT, "Say good bye"]),
    "prompt.token_batch": Counter(["11 12", "13"]),
    "messages": Counter([PROMPT]),
    "n": Counter([PROMPT] * 2),
    "best_of": Counter([PROMPT] * 2),
}
"""How often each prompt must be answered, in one call or in several."""


def answered_prompts(walked: CellRun, exchange: Exchange) -> Counter[str]:
    """Return how often each prompt was answered."""
    return Counter(
        [prompt for ask in engine_requests(walked, exchange) for prompt in ask.prompts * max(ask.n, ask.best_of)]
    )


def _minds(walked: CellRun) -> bool:
    return f"{walked.row.profile}/{walked.row.model} {walked.row.operation}".startswith(_MINDED)


def changed(sent: Sent, base: Exchange) -> JsonObject:
    """Return the fields of a body that the smallest request's body lacks, or has with another value."""
    before = base.sent[-1].body or {}
    return {name: value for name, value in (sent.body or {}).items() if name not in before or before[name] != value}


def _holds(holder: JsonValue, wanted: JsonValue) -> bool:
    if type(holder) is type(wanted) and holder == wanted:
        return True
    if isinstance(holder, dict):
        return any(_holds(member, wanted) for member in holder.values())
    if isinstance(holder, list):
        return any(_holds(member, wanted) for member in holder)
    if isinstance(holder, str) and holder.startswith("{"):
        return _holds(orjson.loads(holder), wanted)
    return False
