"""Checks a request's tools, the schemas of their parameters and the arguments of their calls, for all vendors' own
APIs."""

import orjson

from providers.adaptation.forced_calls import object_parameters
from providers.constraints.fit_references import Unfittable, follow
from providers.constraints.json_schema import References, required_names
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue, nests_deeper
from providers.unified_request import Params

MAX_DEPTH = 64
"""The most levels of a call's arguments. A client's complete request may have the same number of levels."""

_ALTERNATIVES = ("anyOf", "oneOf", "allOf")
_AT_ROOT = frozenset({*_ALTERNATIVES, "$ref"})


def offers_tools(params: Params) -> bool:
    """Return whether a request offers tools. Raises Refusal for a `tool_choice` without tools."""
    if params.get("tools"):
        return True
    if params.get("tool_choice") not in (None, "none", "auto"):
        raise Refusal("tool_choice", "'tool_choice' needs 'tools' to choose from.", "invalid_value")
    return False


def read_parameters(function: JsonObject) -> JsonObject:
    """Return the schema of a function's parameters, empty for a function without parameters. Raises Refusal unless the
    schema describes objects.

    Vendors refuse alternatives and references at the root of the schema. The properties of all of them are merged into
    one object.
    """
    parameters = object_parameters(function)
    return parameters if _AT_ROOT.isdisjoint(parameters) else _one_object(parameters)


def with_properties(function: JsonObject) -> JsonObject:
    """Return the function with a parameter schema that has type `object`, has properties, and has no alternatives at
    its root.

    The same object is returned if the schema is already like that. OpenAI refuses other schemas: "In context=(), object
    schema missing properties." (spring-projects/spring-ai issue 4776; nested schemas without properties are accepted),
    "schema must be a JSON Schema of 'type: \"object\"', got 'type: \"None\"'", "schema must have type 'object' and not
    have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level". Raises Refusal if the schema has another type.
    """
    parameters = function.get("parameters")
    if not isinstance(parameters, dict) or not parameters or has_properties(parameters):
        return function
    if not parameters.keys().isdisjoint(_AT_ROOT):
        parameters = read_parameters(function)
    kind = parameters.get("type")
    if isinstance(kind, list) and "object" in kind:
        kind = "object"
    if kind not in (None, "object"):
        raise Refusal("tools", "The parameters of a function must be a schema of type 'object'.", "invalid_value")
    properties = parameters.get("properties")
    typed: JsonObject = {**parameters, "type": "object", "properties": {} if properties is None else properties}
    return {**function, "parameters": typed}


def has_properties(parameters: JsonValue) -> bool:
    """Return whether a parameter schema has type `object`, has properties, and has no alternatives at its root."""
    return (
        isinstance(parameters, dict)
        and parameters.get("type") == "object"
        and parameters.get("properties") is not None
        and parameters.keys().isdisjoint(_AT_ROOT)
    )


def _one_object(schema: JsonObject) -> JsonObject:
    """Return a schema of one object, merged from all alternatives at the root."""
    references = References(schema)
    merged: JsonObject = {**(_part(references, schema) if "$ref" in schema else {})}
    merged.update({word: value for word, value in schema.items() if word not in (*_ALTERNATIVES, "$ref")})
    properties: JsonObject = {}
    required = required_names(merged)
    for word in _ALTERNATIVES:
        parts = schema.get(word)
        found = [_part(references, part) for part in parts] if isinstance(parts, list) else []
        for part in found:
            properties.update(_properties(part))
        if found:
            required_by_part = [required_names(part) for part in found]
            required |= set.union(*required_by_part) if word == "allOf" else set.intersection(*required_by_part)
    properties.update(_properties(merged))
    merged.update({"type": "object", "properties": properties})
    return {**merged, "required": [*sorted(required)]} if required else merged


def _properties(schema: JsonObject) -> JsonObject:
    named = schema.get("properties")
    return named if isinstance(named, dict) else {}


def _part(references: References, part: JsonValue) -> JsonObject:
    """Return the schema that a part of the root refers to, empty if the part is not an object. Raises Refusal."""
    try:
        return follow(references, part) if isinstance(part, dict) else {}
    except Unfittable as problem:
        message = f"The schema of a function's parameters {problem.reason}."
        raise Refusal("tools", message, "invalid_value") from None


def read_arguments(function: JsonObject) -> JsonObject | None:
    """Return the arguments of a call; `None` if they have more than MAX_DEPTH levels.

    Arguments that are not a JSON object become the only argument `arguments`. Models write such calls, clients send
    them back with a result that reports the error, and vendors accept only objects.
    """
    given = function.get("arguments")
    value = given
    if isinstance(given, str):
        try:
            value = orjson.loads(given) if given.strip() else {}
        except orjson.JSONDecodeError:
            value = None
    elif given is None:
        value = {}
    arguments: JsonObject = value if isinstance(value, dict) else {"arguments": given}
    for argument in arguments.values():
        if isinstance(argument, dict | list):
            return None if nests_deeper(arguments, MAX_DEPTH) else arguments
    return arguments
