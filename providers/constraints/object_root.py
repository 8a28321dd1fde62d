"""Roots of schemas, and names of formats, in the form of OpenAI's structured output. The root must be an object without
alternatives, so any other value is sent as the property of an object.

Source: OpenAI "Structured outputs", November 2026: "schema must be a JSON Schema of 'type: "object"', got 'type:
"array"'", strict or not.
"""

import re

from providers.constraints.json_schema import DEFINITIONS, walk_schemas
from providers.json_types import JsonObject

SCHEMA_NAME = "guided_json"
VALUE_KEY = "value"
"""The property that holds a value which is no object, if only objects can be constrained."""

_ALTERNATIVES = frozenset({"anyOf", "oneOf"})
_NOT_IN_NAME = re.compile(r"[^a-zA-Z0-9_-]")
MOST_NAME = 64
"""The most characters of a format's name. OpenAI documents `response_format.json_schema.name`: "Must be a-z, A-Z, 0-9,
or contain underscores and dashes, with a maximum length of 64"."""
_TO_DEFINITION = re.compile(rf"#/(?:{'|'.join(map(re.escape, DEFINITIONS))})/")


def wrapped_schema(schema: JsonObject) -> JsonObject | None:
    """Return the schema of an object that holds a value of another schema. Return `None` if the other schema refers to
    its own root, which would then be a different one."""
    inner = {name: value for name, value in schema.items() if name not in DEFINITIONS}
    for _, node in walk_schemas(schema):
        reference = node.get("$ref")
        if reference is not None and not (isinstance(reference, str) and _TO_DEFINITION.match(reference)):
            return None
    return {
        "type": "object",
        "properties": {VALUE_KEY: inner},
        "required": [VALUE_KEY],
        "additionalProperties": False,
        **{name: schema[name] for name in DEFINITIONS if name in schema},
    }


def with_root_type(schema: JsonObject) -> JsonObject:
    """Return the schema with `type: object` if it has properties and no type; else the same object."""
    return {"type": "object", **schema} if "properties" in schema and "type" not in schema else schema


def is_object(schema: JsonObject) -> bool:
    """Return whether a schema describes objects, without alternatives at its root."""
    return "$ref" in schema or (schema.get("type", "object") == "object" and schema.keys().isdisjoint(_ALTERNATIVES))


def fitting_name(name: object) -> str:
    """Return the name of a format with the characters of OpenAI's names. The name only describes the output to the
    model."""
    fitting = _NOT_IN_NAME.sub("_", name)[:MOST_NAME] if isinstance(name, str) else ""
    return fitting or SCHEMA_NAME
