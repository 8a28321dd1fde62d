"""The part of JSON Schema that each vendor's structured output accepts, as data for `fit_schema`.

Sources, read in November 2026: OpenAI "Structured outputs" (2026-08) and pydantic-ai 2.68.0 `profiles/openai`, which
probed it; Azure "Structured outputs" (2026-06); Anthropic "Structured outputs" and `anthropic` 2.12.0
`lib/_parse/_transform.py`; pydantic-ai 2.68.0 `providers/bedrock`; `google-genai` 3.4.0 `response_json_schema` and the
API's `GenerationConfig` page; Cohere "Structured outputs"; vLLM `v1/structured_output/backend_*` with xgrammar 0.2.8
and llguidance 1.9.1, tried with 44 schemas.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from providers.constraints.engine_gaps import Engine
from providers.constraints.openai_strict import strict_problem
from providers.constraints.regex_parse import MalformedPattern, find_unsupported, parse
from providers.json_types import JsonObject, JsonValue

ANNOTATIONS: Final = frozenset(
    {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "discriminator"}
    | {"$schema", "$id", "$comment", "$anchor", "contentEncoding", "contentMediaType", "contentSchema", "nullable"}
)
"""Keywords that no value can break."""

ASSERTIONS: Final = frozenset(
    {"type", "properties", "required", "additionalProperties", "items", "prefixItems", "enum", "const", "$ref"}
    | {"anyOf", "oneOf", "allOf", "not", "if", "then", "else", "pattern", "minLength", "maxLength", "minimum"}
    | {"maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems", "uniqueItems"}
    | {"contains", "minContains", "maxContains", "patternProperties", "propertyNames", "minProperties"}
    | {"maxProperties", "dependentRequired", "dependentSchemas", "dependencies", "unevaluatedProperties"}
    | {"unevaluatedItems", "additionalItems", "$dynamicRef", "$recursiveRef"}
)
"""Keywords that a value can break."""

Literals = Literal["any", "primitive", "text_or_number"]


@dataclass(frozen=True, slots=True, eq=False)
class SchemaRules:
    """The rules of one vendor.

    `keywords` are the accepted keywords. Any other keyword is removed, and the response is checked if the keyword can
    be violated. `None` accepts all keywords. `engine` names a converter that ignores keywords under some conditions
    only. `formats` are the known values of `format`; `None` stands for any. `patterns` returns whether a pattern is
    accepted. `literals` is the kind of values that `enum` and `const` may list.

    `closed` demands `additionalProperties: false` in every object, `all_required` every property in `required`,
    `some_required` at least one, `typed` a type everywhere, `object_root` an object without alternatives as the root.
    `own_root_definitions` demands that references lead to `$defs` of the root, and have no keywords beside them. With
    `wrapped` the annotations of a reference are written around it. `recursion` is `free`, `optional` (only through
    optional properties) or `none`.

    `most_items` is the largest `minItems`. `most_optional` and the following fields limit the whole schema, or all
    strict tools of a request together; there may be `most_tools` of them. `check` returns any other problem of a fitted
    schema.
    """

    keywords: frozenset[str] | None = None
    engine: Engine | None = None
    formats: frozenset[str] | None = None
    patterns: Callable[[str], bool] = lambda pattern: True
    literals: Literals = "any"
    closed: bool = False
    all_required: bool = False
    some_required: bool = False
    typed: bool = False
    object_root: bool = False
    own_root_definitions: bool = False
    wrapped: bool = False
    recursion: Literal["free", "optional", "none"] = "free"
    most_items: int | None = None
    most_optional: int | None = None
    most_unions: int | None = None
    most_levels: int | None = None
    most_properties: int | None = None
    most_values: int | None = None
    most_tools: int | None = None
    check: Callable[[JsonObject], str | None] | None = None

    def takes(self, keyword: str) -> bool:
        """Return whether a keyword is accepted."""
        return self.keywords is None or keyword in self.keywords


@lru_cache(maxsize=64)
def rules_of(engine: Engine) -> SchemaRules:
    """Return the rules of an engine that ignores keywords which it does not know."""
    return SchemaRules(engine=engine)


def takes_literal(literals: Literals, value: JsonValue) -> bool:
    """Return whether `enum` may list a value."""
    if literals == "any":
        return True
    plain = not isinstance(value, dict | list)
    return plain if literals == "primitive" else isinstance(value, str | int | float) and not isinstance(value, bool)


def _simple(pattern: str) -> bool:
    """Return whether a pattern has no look-around, back references or word boundaries."""
    try:
        return find_unsupported(parse(pattern)) is None
    except MalformedPattern:
        return False


_ESCAPED_DIGIT = re.compile(r"\\\d")
_ANCHORS = re.compile(r"[\^$]|\(\?[=!<]")
_SHAPE = frozenset(
    {"type", "properties", "required", "additionalProperties", "items", "enum", "anyOf", "$ref", "$defs"}
    | {"description"}
)
_BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_SIZES = frozenset({"minItems", "maxItems"})
_NINE_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})

OPENAI: Final = SchemaRules(
    _SHAPE | _BOUNDS | _SIZES | {"const", "pattern", "format", "minLength", "maxLength"},
    formats=_NINE_FORMATS,
    patterns=_simple,
    closed=True,
    all_required=True,
    typed=True,
    object_root=True,
    own_root_definitions=True,
    wrapped=True,
    most_levels=10,
    most_properties=5000,
    most_values=1000,
    check=strict_problem,
)
AZURE: Final = SchemaRules(
    _SHAPE | {"const"},
    formats=frozenset(),
    closed=True,
    all_required=True,
    typed=True,
    object_root=True,
    own_root_definitions=True,
    wrapped=True,
    most_levels=5,
    most_properties=100,
    most_values=500,
    check=strict_problem,
)
ANTHROPIC: Final = SchemaRules(
    _SHAPE | {"const", "allOf", "pattern", "format", "minItems", "title", "default"},
    formats=_NINE_FORMATS | {"uri"},
    patterns=_simple,
    literals="primitive",
    closed=True,
    typed=True,
    object_root=True,
    own_root_definitions=True,
    recursion="none",
    most_items=1,
    most_optional=24,
    most_unions=16,
    most_tools=20,
)
BEDROCK: Final = SchemaRules(
    _SHAPE | {"const", "allOf", "pattern", "format", "minItems", "default"},
    formats=_NINE_FORMATS | {"uri"},
    patterns=lambda pattern: _simple(pattern) and _ESCAPED_DIGIT.search(pattern) is None,
    literals="primitive",
    closed=True,
    typed=True,
    object_root=True,
    own_root_definitions=True,
    recursion="none",
    most_items=1,
    most_optional=24,
    most_unions=16,
    most_tools=20,
)
GEMINI: Final = SchemaRules(
    _SHAPE | _SIZES | {"minimum", "maximum", "prefixItems", "format", "title", "propertyOrdering"},
    literals="text_or_number",
    own_root_definitions=True,
    wrapped=True,
    recursion="optional",
)
COHERE: Final = SchemaRules(
    _SHAPE | {"const", "pattern", "format", "title", "default", "definitions"},
    formats=frozenset({"date-time", "uuid", "date", "time"}),
    patterns=lambda pattern: _ANCHORS.search(pattern) is None,
    some_required=True,
    object_root=True,
)
VLLM: Final = SchemaRules(
    ASSERTIONS
    - {"uniqueItems", "contains", "minContains", "maxContains", "patternProperties", "propertyNames", "not", "if"}
    - {"then", "else", "dependentRequired", "dependentSchemas", "dependencies"}
    - {"unevaluatedProperties", "unevaluatedItems"}
    | ANNOTATIONS
    | {"$defs", "definitions", "format", "$dynamicAnchor", "$recursiveAnchor"}
)
"""The keywords that xgrammar or llguidance enforce. vLLM tries the second if the first refuses a schema."""

TOOL_RULES: Final[Mapping[str, SchemaRules]] = {
    "any": SchemaRules(),
    "openai": OPENAI,
    "strict": OPENAI,
    "azure": AZURE,
    "anthropic": ANTHROPIC,
    "bedrock": BEDROCK,
    "gemini": GEMINI,
    "cohere": COHERE,
}
"""The rules for the parameters of strict tools, by the names in `Capabilities.strict_tools`."""
