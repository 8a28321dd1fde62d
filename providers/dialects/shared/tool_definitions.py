"""Checks of a request's tools, the schemas of their parameters and the arguments of their calls, common to all vendors'
own APIs."""

import orjson

from providers.adaptation.forced_calls import object_parameters
from providers.constraints.fit_references import Unfittable, follow
from providers.constraints.json_schema import References, required_names
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue, nests_deeper
from providers.unified_request import Params

MAX_DEPTH = 64
"""Levels of a call's arguments, as many as a client's whole request may have."""

_COMBINED = ("anyOf", "oneOf", "allOf")
_AT_ROOT = frozenset({*_COMBINED, "$ref"})


def offers_tools(params: Params) -> bool:
    """Return whether a request offers tools. Raises Refusal for a `tool_choice` without any."""
    if params.get("tools"):
        return True
    if params.get("tool_choice") not in (None, "none", "auto"):
        raise Refusal("tool_choice", "'tool_choice' needs 'tools' to choose from.", "invalid_value")
    return False


def read_parameters(function: JsonObject) -> JsonObject:
    """Return the schema of a function's parameters, empty where it has none. Raises Refusal unless it is of objects.

    Vendors refuse alternatives and references at its root: the properties of all of them are then the function's.
    """
    parameters = object_parameters(function)
    return parameters if _AT_ROOT.isdisjoint(parameters) else _one_object(parameters)


def with_properties(function: JsonObject) -> JsonObject:
    """Return a function whose parameters are a schema of objects with properties, and without alternatives at its root;
    the same object if they are. OpenAI refuses others: "In context=(), object schema missing properties."
    (spring-projects/spring-ai issue 4776; nested ones are taken), "schema must be a JSON Schema of 'type: \"object\"',
    got 'type: \"None\"'", "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top
    level". Raises Refusal for parameters that are no objects."""
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
    """Return whether parameters are a schema of objects with properties, and without alternatives at its root."""
    return (
        isinstance(parameters, dict)
        and parameters.get("type") == "object"
        and parameters.get("properties") is not None
        and parameters.keys().isdisjoint(_AT_ROOT)
    )


def _one_object(schema: JsonObject) -> JsonObject:
    """Return a schema of one object that all alternatives at the root are part of."""
    references = References(schema)
    whole: JsonObject = {**(_part(references, schema) if "$ref" in schema else {})}
    whole.update({word: value for word, value in schema.items() if word not in (*_COMBINED, "$ref")})
    properties: JsonObject = {}
    required = required_names(whole)
    for word in _COMBINED:
        parts = schema.get(word)
        found = [_part(references, part) for part in parts] if isinstance(parts, list) else []
        for part in found:
            properties.update(_properties(part))
        if found:
            needed = [required_names(part) for part in found]
            required |= set.union(*needed) if word == "allOf" else set.intersection(*needed)
    properties.update(_properties(whole))
    whole.update({"type": "object", "properties": properties})
    return {**whole, "required": [*sorted(required)]} if required else whole


def _properties(schema: JsonObject) -> JsonObject:
    named = schema.get("properties")
    return named if isinstance(named, dict) else {}


def _part(references: References, part: JsonValue) -> JsonObject:
    """Return what a part of the root refers to, empty for anything that is no object. Raises Refusal."""
    try:
        return follow(references, part) if isinstance(part, dict) else {}
    except Unfittable as problem:
        message = f"The schema of a function's parameters {problem.reason}."
        raise Refusal("tools", message, "invalid_value") from None


def read_arguments(function: JsonObject) -> JsonObject | None:
    """Return the arguments of a call; `None` if they have more than MAX_DEPTH levels.

    What is no JSON object is kept as the only argument `arguments`: models write such calls, clients send them back
    with the result that says so, and vendors take objects only.
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
