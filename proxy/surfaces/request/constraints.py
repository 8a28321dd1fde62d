"""Checks the values that constrain the generated text: response formats and guided decoding.

Shapes: OpenAI OpenAPI 2.3.0 `ResponseFormat*`, `scale-gp` 0.1.0a58 `guided_*`, `fireworks-ai` 1.2.28 `response_format`,
vLLM 0.33 `StructuredOutputsParams`, SGLang 0.5.23 `ChatCompletionRequest` (`regex`, `ebnf`), llama.cpp server's README
(`grammar`, `json_schema`, in which an empty string means no constraint), November 2026.
"""

from collections.abc import Callable, Mapping

from providers.constraints.compiled_checks import first_invalid_keyword
from providers.constraints.json_schema import schema_problem
from providers.constraints.regex_parse import MalformedPattern, parse
from providers.json_types import JsonObject, JsonValue
from proxy.surfaces.request.parse_json import InvalidJson, decode
from proxy.surfaces.request.rule_kinds import Invalid, boolean, check_at, json_object, string, text


def schema(value: JsonValue) -> JsonObject:
    """Check a JSON Schema object, or a JSON string of one. The schema must be valid by its own draft, and all of its
    references must be within the schema."""
    if isinstance(value, str):
        try:
            value = decode(value.encode())
        except InvalidJson as error:
            raise Invalid(f"must be a JSON Schema object or a JSON string of one; the string {error}") from None
    if not isinstance(value, dict):
        raise Invalid("must be a JSON Schema object, or a JSON string of one")
    path = first_invalid_keyword(value)
    if path is not None:
        raise Invalid(f"must be a valid JSON Schema; the value at {path} is invalid for its keyword")
    problem = schema_problem(value)
    if problem is not None:
        raise Invalid(f"must be a self-contained JSON Schema; {problem}")
    return value


def regex(value: JsonValue) -> str:
    """Check a regular expression by the rules that all dialects share; the engine may refuse further expressions."""
    pattern = text(value)
    try:
        parse(pattern)
    except MalformedPattern as error:
        raise Invalid(f"must be a regular expression; the pattern {error}") from None
    return pattern


def choice(value: JsonValue) -> tuple[str, ...]:
    """Check a list of at least one string, all different and non-empty."""
    if not isinstance(value, list) or not value:
        raise Invalid("must be a non-empty list of strings")
    words = tuple([check_at(text, item, index) for index, item in enumerate(value)])
    if len(set(words)) != len(words):
        raise Invalid("must not list a string twice")
    return words


def response_format(value: JsonValue) -> JsonObject:
    """Check an object with a `type`. Schemas written as JSON strings, which Fireworks allows, become objects."""
    format_object = json_object(value)
    kind = check_at(text, format_object.get("type"), "type")
    if kind == "json_schema":
        return {
            **format_object,
            "json_schema": check_at(_named_schema, format_object.get("json_schema"), "json_schema"),
        }
    if kind == "json_object" and format_object.get("schema") is not None:
        return {**format_object, "schema": check_at(schema, format_object["schema"], "schema")}
    if kind == "grammar":
        check_at(text, format_object.get("grammar"), "grammar")
    return format_object


def _named_schema(value: JsonValue) -> JsonObject:
    named = json_object(value)
    for name, check in (("name", text), ("description", string), ("strict", boolean)):
        if named.get(name) is not None:
            check_at(check, named[name], name)
    if named.get("schema") is None:
        return named
    return {**named, "schema": check_at(schema, named["schema"], "schema")}


def text_or_none(value: JsonValue) -> str | None:
    """Check a text; an empty one counts as absent."""
    return text(value) if value != "" else None


def regex_or_none(value: JsonValue) -> str | None:
    """Check a regular expression; an empty one counts as absent."""
    return regex(value) if value != "" else None


def structural_tag(value: JsonValue) -> JsonObject:
    """Check a structural tag, an object or a JSON string of one, and return it as a `response_format`."""
    if isinstance(value, str):
        try:
            value = decode(value.encode())
        except InvalidJson as error:
            raise Invalid(f"must be a JSON object or a JSON string of one; the string {error}") from None
    return {**json_object(value), "type": "structural_tag"}


_OUTPUTS: Mapping[str, tuple[str, Callable[[JsonValue], object]]] = {
    "json": ("guided_json", schema),
    "regex": ("guided_regex", regex),
    "choice": ("guided_choice", choice),
    "grammar": ("guided_grammar", text),
    "structural_tag": ("response_format", structural_tag),
    "json_object": ("response_format", lambda value: {"type": "json_object"}),
}


def structured_outputs(value: JsonValue) -> dict[str, object]:
    """Check vLLM's object of one constraint, and return the constraint under the name of the unified field. The result
    is empty if there is no constraint."""
    present = {
        name: constraint
        for name, constraint in json_object(value).items()
        if constraint is not None and constraint is not False
    }
    for name in present:
        if name not in _OUTPUTS:
            raise Invalid("is not a constraint but an option of a single engine", name[:64])
    if len(present) > 1:
        first, second = [*present][:2]
        raise Invalid(f"cannot go with '{first}' in it", second, code="conflicting_parameters")
    return {_OUTPUTS[name][0]: check_at(_OUTPUTS[name][1], constraint, name) for name, constraint in present.items()}
