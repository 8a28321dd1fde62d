"""The rules of fields: every field of the unified request, with the check of its value.

Conflicts between fields are in `field_conflicts`.

Ranges are the union of the ranges of the four APIs: OpenAI OpenAPI 2.3.0, `scale-gp` 0.1.0a58, `fireworks-ai` 1.2.28,
VMware Private AI Services 9.1.1, read in November 2026.
"""

from collections.abc import Mapping

from providers.json_types import JsonValue
from providers.unified_request import Operation, StreamOptions
from proxy.surfaces.request import constraints
from proxy.surfaces.request import pass_through_fields as extras
from proxy.surfaces.request.chat_messages import messages
from proxy.surfaces.request.legacy_functions import function_call, functions
from proxy.surfaces.request.prompt import images, prompt
from proxy.surfaces.request.reasoning import reasoning_object
from proxy.surfaces.request.rule_kinds import (
    INT64_MIN,
    Check,
    Invalid,
    any_number,
    anything,
    boolean,
    check_at,
    integer,
    json_object,
    number,
    one_of,
    refuse,
    string,
    text,
    texts,
)
from proxy.surfaces.request.tools import tool_choice, tools

MAX_MODEL_LENGTH = 256
"""The most characters of a model name. The longest known public model name has about 100."""

STREAM_OPTIONS = ("include_usage", "include_obfuscation", "continuous_usage_stats")


def model(value: JsonValue) -> str:
    """Check a model's name. Names are looked up unchanged, so surrounding white space is refused rather than
    stripped."""
    if not isinstance(value, str) or not value:
        raise Invalid("must be a non-empty string")
    if value != value.strip():
        raise Invalid("must not begin or end with white space")
    if len(value) > MAX_MODEL_LENGTH or not value.isprintable():
        raise Invalid(f"must be at most {MAX_MODEL_LENGTH} printable characters")
    return value


def stream_options(value: JsonValue) -> StreamOptions:
    """Check the stream options. Unknown fields are refused, because they would have no effect."""
    given: dict[str, bool] = {}
    for name, option in json_object(value).items():
        if name not in STREAM_OPTIONS:
            raise Invalid(f"is not one of {', '.join(STREAM_OPTIONS)}", name)
        if option is not None:
            given[name] = check_at(boolean, option, name)
    return StreamOptions(**given)


def stop(value: JsonValue) -> tuple[str, ...]:
    """Check one stop string, or a list of stop strings. A stop string may not be empty."""
    return (text(value),) if isinstance(value, str) else texts(value)


def some_stop(value: JsonValue) -> tuple[str, ...]:
    """Check stop strings, of which there must be at least one (Private AI Services: minItems 1)."""
    listed = stop(value)
    if not listed:
        raise Invalid("must hold at least one string")
    return listed


_count = integer(0, 5)
_bias = number(-100, 100)


def logprobs(value: JsonValue) -> bool | int:
    """Check a boolean (Fireworks and Scale) or a count (OpenAI)."""
    return value if isinstance(value, bool) else _count(value)


def logit_bias(value: JsonValue) -> dict[str, float]:
    """Check a map from token ids, as decimal strings, to numbers."""
    biases: dict[str, float] = {}
    for token, bias in json_object(value).items():
        if not (token.isascii() and token.isdigit()):
            raise Invalid("must map token ids, written as decimal strings, to numbers")
        biases[token] = check_at(_bias, bias, token)
    return biases


def modalities(value: JsonValue) -> list[str]:
    """Check the kinds of content that a response may contain."""
    kinds = [*texts(value)]
    if not kinds:
        raise Invalid("must hold at least one kind of content")
    return kinds


def reasoning_effort(value: JsonValue) -> str | int | bool:
    """Check a level, a token budget or a boolean (Fireworks accepts all three)."""
    if isinstance(value, bool) or type(value) is int or (isinstance(value, str) and value):
        return value
    raise Invalid("must be a non-empty string, an integer or a boolean")


_EVERYWHERE: Mapping[str, Check] = {
    "model": model,
    "max_completion_tokens": integer(1),
    "max_tokens": integer(0),
    "max_new_tokens": integer(1),
    "temperature": number(0, 2),
    "top_p": number(0, 1),
    "top_k": integer(-1),
    "min_p": number(0, 1),
    "typical_p": number(0, 1),
    "repetition_penalty": number(0, 2),
    "presence_penalty": number(-2, 2),
    "frequency_penalty": number(-2, 2),
    "mirostat_lr": any_number,
    "mirostat_target": any_number,
    "ignore_eos": boolean,
    "n": integer(1, 128),
    "best_of": integer(0, 20),
    "stop": stop,
    "stop_sequences": texts,
    "include_stop_str_in_output": boolean,
    "logprobs": logprobs,
    "top_logprobs": integer(0, 20),
    "return_token_log_probs": boolean,
    "echo": boolean,
    "echo_last": integer(0),
    "suffix": string,
    "stream": boolean,
    "stream_options": stream_options,
    "logit_bias": logit_bias,
    "seed": integer(INT64_MIN),
    "user": string,
    "images": images,
    "context_length_exceeded_behavior": one_of("truncate", "error"),
    "response_format": constraints.response_format,
    "guided_json": constraints.schema,
    "guided_regex": constraints.regex,
    "guided_choice": constraints.choice,
    "guided_grammar": text,
    "structured_outputs": constraints.structured_outputs,
    "json_schema": constraints.schema,
    "regex": constraints.regex_or_none,
    "choice": constraints.choice,
    "ebnf": constraints.text_or_none,
    "grammar": constraints.text_or_none,
    "functions": functions,
    "function_call": function_call,
    "tools": tools,
    "tool_choice": tool_choice,
    "web_search_options": json_object,
    "parallel_tool_calls": boolean,
    "audio": json_object,
    "modalities": modalities,
    "prediction": json_object,
    "prompt_cache_key": string,
    "prompt_cache_isolation_key": string,
    "metadata": json_object,
    "prompt_cache_retention": string,
    "safety_identifier": string,
    "store": boolean,
    "service_tier": string,
    "reasoning_effort": reasoning_effort,
    "verbosity": string,
    "reasoning": reasoning_object,
    "reasoning_history": string,
    "thinking": json_object,
    "raw_output": boolean,
    "return_token_ids": boolean,
    "perf_metrics_in_response": boolean,
    "speculation": anything,
    "inference_timeout": extras.timeout,
    "inference_extra_params": extras.params,
    "inference_extra_headers": extras.headers,
}

FIELDS: Mapping[Operation, Mapping[str, Check]] = {
    Operation.COMPLETIONS: {
        **_EVERYWHERE,
        "prompt": prompt,
        "messages": refuse("belongs to chat completions; send 'prompt' here"),
    },
    Operation.CHAT: {
        **_EVERYWHERE,
        "messages": messages,
        "prompt": refuse("belongs to text completions; send 'messages' here"),
    },
}


def fields_with(changes: Mapping[str, Check]) -> Mapping[Operation, Mapping[str, Check]]:
    """Return the rules of all fields, with the checks in which a surface differs."""
    return {operation: {**fields, **changes} for operation, fields in FIELDS.items()}
