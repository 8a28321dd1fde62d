"""Roots of schemas, and names of formats, as OpenAI's structured output takes them: the root must be an object without
alternatives, so that any other value goes as the property of one.

Source: OpenAI "Structured outputs", November 2026: "schema must be a JSON Schema of 'type: "object"', got 'type:
"array"'", strict or not.
"""

import re

from providers.constraints.json_schema import DEFINITIONS, walk_schemas
from providers.json_types import JsonObject

SCHEMA_NAME = "guided_json"
VALUE_MEMBER = "value"
"""The property that holds a value which is no object, if only objects can be constrained."""

_ALTERNATIVES = frozenset({"anyOf", "oneOf"})
_NO_NAME = re.compile(r"[^a-zA-Z0-9_-]")
MOST_NAME = 64
"""OpenAI's `response_format.json_schema.name`: "Must be a-z, A-Z, 0-9, or contain underscores and dashes, with a
maximum length of 64"."""
_TO_DEFINITION = re.compile(rf"#/(?:{'|'.join(map(re.escape, DEFINITIONS))})/")


def wrapped_schema(schema: JsonObject) -> JsonObject | None:
    """Return the schema of an object that holds a value of another schema; `None` if that refers to its own root, which
    would be another one then."""
    inner = {name: value for name, value in schema.items() if name not in DEFINITIONS}
    for _, node in walk_schemas(schema):
        reference = node.get("$ref")
        if reference is not None and not (isinstance(reference, str) and _TO_DEFINITION.match(reference)):
            return None
    return {
        "type": "object",
        "properties": {VALUE_MEMBER: inner},
        "required": [VALUE_MEMBER],
        "additionalProperties": False,
        **{name: schema[name] for name in DEFINITIONS if name in schema},
    }


def with_root_type(schema: JsonObject) -> JsonObject:
    """Return a schema that describes properties with the type of objects, if it has no type; else the same object."""
    return {"type": "object", **schema} if "properties" in schema and "type" not in schema else schema


def is_object(schema: JsonObject) -> bool:
    """Return whether a schema describes objects, and no alternatives of them at its root."""
    return "$ref" in schema or (schema.get("type", "object") == "object" and schema.keys().isdisjoint(_ALTERNATIVES))


def fitting_name(name: object) -> str:
    """Return the name of a format in the pattern of OpenAI's names. It only names the output for the model."""
    fitting = _NO_NAME.sub("_", name)[:MOST_NAME] if isinstance(name, str) else ""
    return fitting or SCHEMA_NAME
