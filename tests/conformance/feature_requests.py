"""The request fields that a client sends for each feature."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from providers.dialects.capability_matrix import MatrixEntry
from providers.json_types import JsonObject, JsonValue
from providers.profiles.load_profiles import load_profiles
from providers.unified_request import Operation
from tests.conformance.engine import PATTERN, THOUGHT

PROMPT = "Say hi"
SMALLEST: Mapping[Operation, JsonObject] = {
    Operation.COMPLETIONS: {"prompt": PROMPT},
    Operation.CHAT: {"messages": [{"role": "user", "content": PROMPT}]},
}
"""The smallest request, without its model."""

SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"a": {"type": "integer"}},
    "required": ["a"],
    "additionalProperties": False,
}
CHOICES: list[JsonValue] = ["yes", "no"]
GRAMMAR = 'root ::= "yes" | "no"'
IMAGE = "data:image/png;base64,iVBORw0KGgo="
TOOL: JsonObject = {
    "type": "function",
    "function": {"name": "look", "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}},
}
HEADERS: JsonObject = {"x-trace-id": "abc"}
TOO_MANY = 4096
"""A limit that fits no fake's window. Some vendors accept no larger value."""

MANY_STOPS: list[JsonValue] = [*(f"never-{number}" for number in range(31)), "END"]
"""As many stops as a request may have; only the last one occurs in the response."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Fields added to the smallest request. `refused` replaces them if the vendor lacks the field and the value would
    be neutral or advisory."""

    fields: JsonObject
    refused: JsonObject | None = None


def _tools(**fields: JsonValue) -> Sample:
    return Sample({"tools": [TOOL], **fields})


_FORMATS: Mapping[str, JsonObject] = {
    "json_object": {"type": "json_object"},
    "json_schema": {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": SCHEMA}},
    "grammar": {"type": "grammar", "grammar": GRAMMAR},
    "structural_tag": {"type": "structural_tag", "format": {"type": "const_string", "value": "no"}},
}

_SAMPLES: Mapping[str, Sample] = {
    "prompt": Sample({}),
    "prompt.batch": Sample({"prompt": [PROMPT, "Say good bye"]}),
    "prompt.tokens": Sample({"prompt": [11, 12, 13]}),
    "prompt.token_batch": Sample({"prompt": [[11, 12], [13]]}),
    "messages": Sample({}),
    "max_tokens": Sample({"max_tokens": 3}),
    "temperature": Sample({"temperature": 0.5}),
    "top_p": Sample({"top_p": 0.5}),
    "top_k": Sample({"top_k": 40}),
    "min_p": Sample({"min_p": 0.1}),
    "typical_p": Sample({"typical_p": 0.9}),
    "repetition_penalty": Sample({"repetition_penalty": 1.1}),
    "presence_penalty": Sample({"presence_penalty": 0.25}),
    "frequency_penalty": Sample({"frequency_penalty": 0.75}),
    "mirostat_lr": Sample({"mirostat_lr": 0.2}),
    "mirostat_target": Sample({"mirostat_target": 4.5}),
    "ignore_eos": Sample({"ignore_eos": True}),
    "n": Sample({"n": 2}),
    "best_of": Sample({"best_of": 2}),
    "stop": Sample({"stop": "END"}),
    "stop.blank": Sample({"stop": " "}),
    "stop.many": Sample({"stop": MANY_STOPS}),
    "include_stop_str_in_output": Sample({"stop": "END", "include_stop_str_in_output": True}),
    "logprobs": Sample({"logprobs": 1}),
    "echo": Sample({"echo": True}),
    "echo.logprobs": Sample({"echo": True, "logprobs": 1}),
    "echo_last": Sample({"echo_last": 2}),
    "suffix": Sample({"suffix": " to all."}),
    "logit_bias": Sample({"logit_bias": {"50256": -100}}),
    "seed": Sample({"seed": 7}),
    "user": Sample({"user": "user-1"}),
    "images": Sample({"prompt": "<image>Say hi", "images": [IMAGE]}),
    **{f"response_format.{name}": Sample({"response_format": value}) for name, value in _FORMATS.items()},
    "guided_json": Sample({"guided_json": SCHEMA}),
    "guided_regex": Sample({"guided_regex": PATTERN}),
    "guided_choice": Sample({"guided_choice": CHOICES}),
    "guided_grammar": Sample({"guided_grammar": GRAMMAR}),
    "tools": _tools(),
    "tool_choice.none": _tools(tool_choice="none"),
    "tool_choice.required": _tools(tool_choice="required"),
    "tool_choice.named": _tools(tool_choice={"type": "function", "function": {"name": "look"}}),
    "web_search_options": Sample({"web_search_options": {}}),
    "parallel_tool_calls": _tools(parallel_tool_calls=False),
    "audio": Sample({"audio": {"voice": "alloy", "format": "mp3"}}),
    "modalities": Sample({"modalities": ["text", "audio"]}),
    "prediction": Sample({"prediction": {"type": "content", "content": "one two"}}),
    "prompt_cache_key": Sample({"prompt_cache_key": "key-1"}),
    "prompt_cache_isolation_key": Sample({"prompt_cache_isolation_key": "key-2"}),
    "metadata": Sample({"metadata": {"run": "nightly"}}),
    "prompt_cache_retention": Sample({"prompt_cache_retention": "24h"}),
    "safety_identifier": Sample({"safety_identifier": "person-1"}),
    "store": Sample({"store": True}),
    "service_tier": Sample({"service_tier": "default"}, refused={"service_tier": "flex"}),
    "reasoning_effort": Sample({"max_tokens": 3000, "reasoning_effort": "low"}),
    "verbosity": Sample({"verbosity": "low"}),
    "reasoning_history": Sample({"reasoning_history": "preserved"}),
    "thinking": Sample({"max_tokens": 2048, "thinking": {"type": "enabled", "budget_tokens": 1024}}),
    "raw_output": Sample({"raw_output": True}),
    "return_token_ids": Sample({"return_token_ids": True}),
    "perf_metrics_in_response": Sample({"perf_metrics_in_response": True}),
    "speculation": Sample({"speculation": "one two"}),
    "context_length_exceeded_behavior.truncate": Sample(
        {"max_tokens": TOO_MANY, "context_length_exceeded_behavior": "truncate"}
    ),
    "context_length_exceeded_behavior.error": Sample(
        {"max_tokens": TOO_MANY, "context_length_exceeded_behavior": "error"}
    ),
    "stream": Sample({"stream": True}),
    "stream_options": Sample({"stream": True, "stream_options": {"include_usage": True}}),
    "inference_timeout": Sample({"inference_timeout": 30}),
    "inference_extra_params": Sample({"inference_extra_params": {"min_tokens": 3}}),
    "inference_extra_headers": Sample({"inference_extra_headers": HEADERS}),
    "unknown": Sample({"min_tokens": 3}),
}

_ON_CHAT: Mapping[str, Sample] = {
    "logprobs": Sample({"logprobs": True, "top_logprobs": 1}),
    "echo.logprobs": Sample({"echo": True, "logprobs": True}),
}


CODES = frozenset({"unsupported_parameter", "invalid_value"})
"""The codes that the error of a refused field may have."""


def params_of(row: MatrixEntry, feature: str) -> set[str]:
    """Return the fields that the error of a refused cell may name: its own field, or the field that keeps the model
    from the endpoint."""
    fields = {"min_tokens" if feature == "unknown" else feature.partition(".")[0]}
    if row.cells["tools"].refused:
        # A feature about tools is sent together with `tools`.
        fields.add("tools")
    if not load_profiles()[row.profile].chats(row.model):
        fields.add("messages" if row.operation is Operation.CHAT else "tools")
    return fields


_ONLY_VALUE: Mapping[str, JsonObject] = {
    "o3": {"temperature": 1},
    "gpt-5": {"temperature": 1},
    "gpt-5.1-codex": {"temperature": 1},
    "openai/o3": {"temperature": 1},
    "gemini-3.8-flash": {"temperature": 1},
    "kimi-k2.5": {"temperature": 1, "top_p": 0.95},
    "kimi-k3": {"temperature": 1, "top_p": 0.95},
    "anthropic.claude-opus-4-7": {"temperature": 1},
    "anthropic.claude-sonnet-5-5": {"temperature": 1},
    "command-a-03-2025": {"logprobs": True, "top_logprobs": 0},
}
"""Models that accept a single value of a field ("Reasoning models" page; "What's new in Gemini 3.6"; "What's new in
Claude Opus 4.7"; "Kimi API: Chat"; Cohere's "Chat", which lists no alternatives)."""

UNSAMPLED: Final = frozenset({"o3", "gpt-5", "gpt-5.1-codex", "openai/o3"})
"""OpenAI's models that always reason, to which a temperature of 1 is not sent."""

_REASONS_UNASKED: Final = frozenset({"gpt-5.6", "openai/gpt-5.6"})
_BESIDE_REASONING: Final = frozenset(
    {
        *("temperature", "top_p", "presence_penalty", "frequency_penalty", "logit_bias"),
        *("logprobs", "echo.logprobs", "best_of"),
    }
)
"""OpenAI's models that reason unless the effort is `none`, and the fields that they accept only without reasoning
("Using GPT-5.6" page)."""

_LIMITS: Mapping[str, JsonObject] = {"gpt-5.1-codex": {"max_tokens": THOUGHT + 3}}
"""Models whose API accepts no limit as low as the other models' limit, because their reasoning counts towards it."""


def fields_for(feature: str, row: MatrixEntry, *, refused: bool) -> JsonObject:
    """Return the fields that a client of an endpoint sends for a feature."""
    chosen = _ON_CHAT.get(feature) if row.operation is Operation.CHAT else None
    chosen = chosen or _SAMPLES[feature]
    if refused and chosen.refused is not None:
        return chosen.refused
    only = (_LIMITS if feature == "max_tokens" else _ONLY_VALUE).get(row.model, {})
    fields = {name: only.get(name, value) for name, value in chosen.fields.items()}
    if row.model in _REASONS_UNASKED and feature in _BESIDE_REASONING:
        fields["reasoning_effort"] = "none"
    return fields
