"""Checks the values that constrain the generated text: response formats and guided decoding.

Shapes: OpenAI OpenAPI 2.3.0 `ResponseFormat*`, `scale-gp` 0.1.0a58 `guided_*`, `fireworks-ai` 1.2.28 `response_format`.
"""

from providers.constraints.compiled_checks import first_invalid_keyword
from providers.constraints.json_schema import schema_problem
from providers.constraints.regex_parse import MalformedPattern, parse
from providers.json_types import JsonObject, JsonValue
from proxy.surfaces.request.parse_json import InvalidJson, decode
from proxy.surfaces.request.rule_kinds import Invalid, boolean, check_at, json_object, string, text


def schema(value: JsonValue) -> JsonObject:
    """Check a JSON Schema object, or a JSON string of one: valid by its own draft, all references within itself."""
    if isinstance(value, str):
        try:
            value = decode(value.encode())
        except InvalidJson as error:
            raise Invalid(f"must be a JSON Schema object or a JSON string of one; the string {error}") from None
    if not isinstance(value, dict):
        raise Invalid("must be a JSON Schema object, or a JSON string of one")
    path = first_invalid_keyword(value)
    if path is not None:
        raise Invalid(f"must be a valid JSON Schema; {path} is not what that keyword takes")
    problem = schema_problem(value)
    if problem is not None:
        raise Invalid(f"must be a JSON Schema that stands by itself; {problem}")
    return value


def regex(value: JsonValue) -> str:
    """Check a regular expression by the rules common to all dialects; the engine may refuse more."""
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
    """Check an object with a `type`; schemas written as JSON strings (Fireworks allows them) become objects."""
    wanted = json_object(value)
    kind = check_at(text, wanted.get("type"), "type")
    if kind == "json_schema":
        return {**wanted, "json_schema": check_at(_named_schema, wanted.get("json_schema"), "json_schema")}
    if kind == "json_object" and wanted.get("schema") is not None:
        return {**wanted, "schema": check_at(schema, wanted["schema"], "schema")}
    if kind == "grammar":
        check_at(text, wanted.get("grammar"), "grammar")
    return wanted


def _named_schema(value: JsonValue) -> JsonObject:
    named = json_object(value)
    for name, check in (("name", text), ("description", string), ("strict", boolean)):
        if named.get(name) is not None:
            check_at(check, named[name], name)
    if named.get("schema") is None:
        return named
    return {**named, "schema": check_at(schema, named["schema"], "schema")}
