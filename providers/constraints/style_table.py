"""The styles that profiles name in `structured`: how each vendor of the OpenAI family enforces constraints.

Sources: vLLM 0.9 to 0.33, SGLang 0.5.23, llama.cpp server, TGI, NVIDIA NIM 1.x, Fireworks "Structured outputs", OpenAI
"Structured outputs" strict rules; read in November 2026. That llama.cpp's completions honour `json_schema` and ignore
`response_format` was found by trial. Groq's "Structured outputs" (strict models, all fields required, closed objects).
"""

from collections.abc import Mapping
from dataclasses import replace

import orjson

from providers.capabilities import NATIVE, Cell
from providers.constraints.constraint_styles import (
    BY_ENUM,
    BY_GRAMMAR,
    BY_PROMPT_ALONE,
    BY_REGEX,
    LOOSELY,
    SCHEMA_FORMAT,
    SCHEMA_MODE,
    SCHEMA_ONLY,
    ConstraintStyle,
    Encoding,
    Make,
    Unenforceable,
    body_field,
    choice_grammar,
    choice_regex,
    choice_schema,
    json_schema_format,
    refused_encoding,
    regex_grammar,
    style_by_kind,
)
from providers.constraints.engine_gaps import FIREWORKS, LLAMACPP, SGLANG, TGI
from providers.constraints.object_root import SCHEMA_NAME
from providers.constraints.openai_strict import strict_problem
from providers.constraints.schema_rules import AZURE, OPENAI, VLLM
from providers.json_types import JsonObject
from providers.unified_request import Guided, Operation


def _by_response_format(make: Make, cell: Cell = NATIVE, *, unwrap: bool = False) -> Encoding:
    """Return the encoding that sends a `response_format`."""
    return Encoding(cell, lambda guided: {"response_format": make(guided)}, unwrap)


def _choice_object(guided: Guided) -> JsonObject:
    return choice_schema(guided.choices)


def _strict_format(schema: JsonObject) -> JsonObject:
    problem = strict_problem(schema)
    if problem is not None:
        raise Unenforceable(f"its strict mode refuses this schema: {problem}")
    return json_schema_format(schema, strict=True)


def _both_spellings(kind: str) -> Encoding:
    """Return the encoding that sends both spellings: vLLM before 0.11 ignores the new one and from 0.12 the old one,
    without an error."""
    old, new = body_field(f"guided_{kind}"), body_field("structured_outputs", kind)
    return Encoding(NATIVE, lambda guided: {**new.make(guided), **old.make(guided)})


_ENUM = _by_response_format(
    lambda guided: json_schema_format(_choice_object(guided), strict=True), BY_ENUM, unwrap=True
)
# Strict mode limits the size of an enum.
_STRICT_ENUM = _by_response_format(lambda guided: _strict_format(_choice_object(guided)), BY_ENUM, unwrap=True)

_FORMATS = frozenset({"json_object", "json_schema"})
_VLLM_FORMATS = _FORMATS | {"structural_tag"}
_FIREWORKS_FORMATS = _FORMATS | {"grammar", SCHEMA_MODE}
Endpoints = Mapping[Operation, ConstraintStyle]


def _no_constraints(reason: str) -> ConstraintStyle:
    return style_by_kind(lambda kind: refused_encoding(reason))


def _on_both_endpoints(style: ConstraintStyle) -> Endpoints:
    return dict.fromkeys((Operation.CHAT, Operation.COMPLETIONS), style)


_SGLANG = ConstraintStyle(
    SCHEMA_FORMAT,
    body_field("regex"),
    Encoding(BY_REGEX, lambda guided: {"regex": choice_regex(guided.choices)}),
    body_field("ebnf"),
    _VLLM_FORMATS,
    engine=SGLANG,
)
_SGLANG_TEXT = replace(
    _SGLANG,
    json=Encoding(NATIVE, lambda guided: {"json_schema": orjson.dumps(guided.schema).decode()}),
    passes=frozenset(),
    object_by_schema=True,
)
_LLAMACPP_TEXT = ConstraintStyle(
    Encoding(NATIVE, lambda guided: {"json_schema": guided.schema}),
    Encoding(BY_GRAMMAR, lambda guided: {"grammar": regex_grammar(guided.value_text)}),
    Encoding(BY_GRAMMAR, lambda guided: {"grammar": choice_grammar(guided.choices)}),
    body_field("grammar"),
    object_by_schema=True,
    engine=LLAMACPP,
)
_FIREWORKS = ConstraintStyle(
    _by_response_format(
        lambda guided: {"type": "json_schema", "json_schema": {"name": SCHEMA_NAME, "schema": guided.schema}}
    ),
    _by_response_format(lambda guided: {"type": "grammar", "grammar": regex_grammar(guided.value_text)}, BY_GRAMMAR),
    _by_response_format(lambda guided: {"type": "grammar", "grammar": choice_grammar(guided.choices)}, BY_GRAMMAR),
    _by_response_format(lambda guided: {"type": "grammar", "grammar": guided.value_text}),
    _FIREWORKS_FORMATS,
    engine=FIREWORKS,
)
_TGI = ConstraintStyle(
    _by_response_format(lambda guided: {"type": "json", "value": guided.schema}),
    _by_response_format(lambda guided: {"type": "regex", "value": guided.value_text}),
    _by_response_format(lambda guided: {"type": "regex", "value": choice_regex(guided.choices)}, BY_REGEX),
    refused_encoding("it has no grammars"),
    engine=TGI,
)
_SCHEMAS = ConstraintStyle(SCHEMA_FORMAT, SCHEMA_ONLY, _ENUM, SCHEMA_ONLY, _FORMATS)
_SCHEMAS_BY_MODE = ConstraintStyle(
    _by_response_format(lambda guided: {"type": "json_object", "schema": guided.schema}),
    SCHEMA_ONLY,
    _by_response_format(lambda guided: {"type": "json_object", "schema": _choice_object(guided)}, BY_ENUM, unwrap=True),
    SCHEMA_ONLY,
    frozenset({"json_object", SCHEMA_MODE}),
)
_SCHEMAS_ALONE = replace(_SCHEMAS, passes=frozenset({"json_schema"}), object_by_schema=True)
_OPENAI = ConstraintStyle(
    SCHEMA_FORMAT,
    SCHEMA_ONLY,
    _STRICT_ENUM,
    SCHEMA_ONLY,
    _FORMATS,
    rules=OPENAI,
    loosely=lambda guided: {"response_format": json_schema_format(guided.schema, strict=False)},
    loose_unless_strict=True,
    wraps=True,
)
_BEST_EFFORT = ConstraintStyle(
    _by_response_format(lambda guided: json_schema_format(guided.schema, strict=False), LOOSELY),
    SCHEMA_ONLY,
    _by_response_format(lambda guided: json_schema_format(_choice_object(guided), strict=False), BY_ENUM, unwrap=True),
    SCHEMA_ONLY,
    frozenset({"json_object"}),
    best_effort=True,
)
_MODE_ONLY = replace(_no_constraints("it has a JSON mode only, without schemas"), passes=frozenset({"json_object"}))

STYLES: Mapping[str, Endpoints] = {
    "guided": _on_both_endpoints(
        replace(style_by_kind(lambda kind: body_field(f"guided_{kind}")), passes=_VLLM_FORMATS)
    ),
    "structured_outputs": _on_both_endpoints(
        replace(style_by_kind(lambda kind: body_field("structured_outputs", kind)), passes=_VLLM_FORMATS, rules=VLLM)
    ),
    "vllm_both": _on_both_endpoints(
        replace(style_by_kind(_both_spellings), json=SCHEMA_FORMAT, passes=_VLLM_FORMATS, rules=VLLM)
    ),
    "nvext": _on_both_endpoints(
        replace(style_by_kind(lambda kind: body_field("nvext", f"guided_{kind}")), object_by_schema=True)
    ),
    "sglang": {Operation.CHAT: _SGLANG, Operation.COMPLETIONS: _SGLANG_TEXT},
    "llamacpp": {
        Operation.CHAT: replace(_LLAMACPP_TEXT, passes=_FORMATS | {SCHEMA_MODE}),
        Operation.COMPLETIONS: _LLAMACPP_TEXT,
    },
    "ollama": _on_both_endpoints(replace(_SCHEMAS, engine=LLAMACPP)),
    "fireworks": _on_both_endpoints(_FIREWORKS),
    "tgi": {
        Operation.CHAT: replace(_TGI, object_in_text=True),
        Operation.COMPLETIONS: _no_constraints("its completions route ignores constraints; send a chat"),
    },
    "openai": {
        Operation.CHAT: _OPENAI,
        Operation.COMPLETIONS: _no_constraints("its completions endpoint has no structured output"),
    },
    "azure": {
        Operation.CHAT: replace(_OPENAI, rules=AZURE),
        Operation.COMPLETIONS: _no_constraints("its completions endpoint has no structured output"),
    },
    "json_schema": _on_both_endpoints(_SCHEMAS),
    "strict": _on_both_endpoints(replace(_OPENAI, choice=_ENUM)),
    "best_effort": _on_both_endpoints(_BEST_EFFORT),
    "schema_only": _on_both_endpoints(_SCHEMAS_ALONE),
    "schema_in_mode": _on_both_endpoints(_SCHEMAS_BY_MODE),
    "localai": _on_both_endpoints(replace(_LLAMACPP_TEXT, json=SCHEMA_FORMAT, passes=_FORMATS)),
    "json_object_only": {
        Operation.CHAT: replace(_MODE_ONLY, json=BY_PROMPT_ALONE, choice=BY_PROMPT_ALONE),
        # A model that only continues the prompt follows no instruction.
        Operation.COMPLETIONS: _MODE_ONLY,
    },
    "none": _on_both_endpoints(_no_constraints("it cannot be held to a constraint")),
}
"""The values of a profile's `structured`. `json_schema` is for vendors that compile any schema, beyond OpenAI's strict
subset. `strict` is for vendors that demand that subset. `best_effort` is for vendors that do not enforce a schema.
`json_object_only` is for vendors that have a JSON mode and get the schema in the prompt."""
