"""Where a value is found in what a vendor got: as it is, or in one of the forms that the vendors document for it.

Never what the gateway's own code makes of a value.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import orjson

from providers.unified import JsonObject, JsonValue
from tests.conformance.engine import WINDOW, Ask, prompt_tokens
from tests.conformance.fake import STREAMS_ONLY, spoken
from tests.conformance.samples import GRAMMAR, HEADERS, IMAGE, PROMPT, SCHEMA, TOOL
from tests.conformance.walk import Exchange, Sent, Walked

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
        {"mode": "ANY", "allowedFunctionNames": ["look"]},
        {"tool": {"name": "look"}},
    ],
    "parallel_tool_calls": [False, {"type": "auto", "disable_parallel_tool_use": True}],
    "service_tier": ["default", "standard_only", "standard", "on_demand"],
    "reasoning_effort": ["low", {"thinkingLevel": "LOW"}, {"thinkingBudget": 1024}],
    "thinking": [
        {"type": "enabled", "budget_tokens": 1024},
        {"type": "enabled", "token_budget": 1024},
        {"thinkingBudget": 1024, "includeThoughts": True},
    ],
    "inference_extra_params": [3],
    "unknown": [3],
}
"""What is looked for where that is not the value of the feature's field."""

_STREAMED = frozenset({"stream", "stream_options"})
"""What makes a call one for a stream, which some wires say in the path."""

_IN_HEADERS: Mapping[str, Mapping[str, str]] = {"service_tier": {"x-amzn-bedrock-service-tier": "default"}}
"""What some wires say in a header."""

_SILENT = frozenset({"inference_timeout"})
"""What only the gateway hears of."""

_IN_EVERY_CALL = frozenset({"prompt", "messages", "context_length_exceeded_behavior"})
"""What the smallest request has too."""

_STREAM_SWITCHES = frozenset({"stream", "stream_options"})
"""What every call of a model has that only streams."""

_MINDED = ("fireworks", "together/model chat")
"""Vendors that obey `context_length_exceeded_behavior`; the others do one thing or the other of themselves."""


def found(walked: Walked, fields: JsonObject) -> bool:
    """Whether a native field's value is in the members by which the call differs from the smallest one."""
    (sent,) = walked.whole.calls(walked.row.profile)
    feature, field = walked.feature, walked.feature.partition(".")[0]
    if feature in _STREAMED:
        wire = spoken(walked.row.profile).call(sent.endpoint)
        return wire is not None and wire.streams(sent.endpoint, sent.body or {})
    if feature == "inference_extra_headers":
        return HEADERS.items() <= dict(sent.headers).items()
    if feature in _IN_HEADERS and _IN_HEADERS[feature].items() <= dict(sent.headers).items():
        return True
    if feature in _SILENT or (field.startswith("context") and not _minds(walked)):
        return True
    everywhere = _IN_EVERY_CALL | (_STREAM_SWITCHES if STREAMS_ONLY.search(walked.row.model) else frozenset())
    body = sent.body if field in everywhere else changed(sent, walked.base)
    wanted = _FORMS.get(feature) or [fields[field]]
    return any(_holds(body, value) for value in wanted)


def asks(walked: Walked, exchange: Exchange) -> list[Ask]:
    """What each call of an exchange asked the model."""
    found: list[Ask] = []
    for call in exchange.calls(walked.row.profile):
        wire = spoken(walked.row.profile).call(call.endpoint)
        assert wire is not None
        found.append(wire.ask(call.body or {}))
    return found


def fits(walked: Walked) -> bool:
    """Whether the last call leaves room in the window for what it asks."""
    last = asks(walked, walked.whole)[-1]
    return last.limit is not None and prompt_tokens(last) + last.limit <= WINDOW


WANTED: Mapping[str, Counter[str]] = {
    "prompt": Counter([PROMPT]),
    "prompt.batch": Counter([PROMPT, "Say good bye"]),
    "prompt.token_batch": Counter(["11 12", "13"]),
    "messages": Counter([PROMPT]),
    "n": Counter([PROMPT] * 2),
    "best_of": Counter([PROMPT] * 2),
}
"""How often each prompt is to be answered, by one call or by several; nothing is added to a prompt."""


def answered(walked: Walked, exchange: Exchange) -> Counter[str]:
    """How often each prompt was."""
    return Counter([prompt for ask in asks(walked, exchange) for prompt in ask.prompts * max(ask.n, ask.best_of)])


def _minds(walked: Walked) -> bool:
    return f"{walked.row.profile}/{walked.row.model} {walked.row.operation}".startswith(_MINDED)


def changed(sent: Sent, base: Exchange) -> JsonObject:
    """The members of a body that the smallest request's has not, or has with another value."""
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
