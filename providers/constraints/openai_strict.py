"""Checks whether a schema is in OpenAI's strict subset of JSON Schema, which its structured output compiles.

Source: OpenAI "Structured outputs", supported schemas, read in November 2026. The root must be an object and no anyOf.
Every object must be closed, with all its properties required. There is no composition except anyOf. Sizes are limited.
That objects of an anyOf "must not share identical first keys" is only known from OpenAI's refusals.
"""

from collections.abc import Mapping

from providers.constraints.json_schema import (
    DEFINITIONS,
    object_subschemas,
    required_names,
    resolve_pointer,
    walk_schemas,
)
from providers.json_types import JsonObject, JsonValue

MAX_PROPERTIES = 5000
MAX_LEVELS = 10
MAX_ENUM_VALUES = 1000
MAX_CHARACTERS = 120_000
"""The most characters of names of properties and definitions, and of enum and const strings, all together."""
LONG_ENUM = 250
MAX_LONG_ENUM_CHARACTERS = 15_000
MAX_HOPS = 16
"""The most steps from an alternative to its object."""

_REFUSED = (
    "allOf",
    "not",
    "dependentRequired",
    "dependentSchemas",
    "if",
    "then",
    "else",
    "oneOf",
    "patternProperties",
)


def strict_problem(schema: JsonObject) -> str | None:
    """Return why OpenAI's strict mode would refuse a schema, with the path; `None` if it would not."""
    if schema.get("type") != "object" or "anyOf" in schema:
        return "the root of the schema must have type object and no anyOf"
    for path, node in walk_schemas(schema):
        if problem := _node_problem(path, node):
            return problem
    return _size_problem(schema) or _depth_problem(schema) or _union_problem(schema)


def _node_problem(path: str, node: JsonObject) -> str | None:
    word = next((word for word in _REFUSED if word in node), None)
    if word is not None:
        return f"{path}.{word} cannot be enforced"
    types = node.get("type")
    if types != "object" and not (isinstance(types, list) and "object" in types) and "properties" not in node:
        return None
    if node.get("additionalProperties") is not False:
        return f"{path} must set additionalProperties to false"
    required = required_names(node)
    missing = next((name for name in _mapping(node, "properties") if name not in required), None)
    return None if missing is None else f"{path}.required must list {missing!r}"


def _size_problem(schema: JsonObject) -> str | None:
    properties = values = characters = 0
    for path, node in walk_schemas(schema):
        enum = node.get("enum")
        listed = enum if isinstance(enum, list) else []
        own = _count_characters(listed)
        if len(listed) > LONG_ENUM and own > MAX_LONG_ENUM_CHARACTERS:
            return f"{path}.enum lists more than {LONG_ENUM} values of over {MAX_LONG_ENUM_CHARACTERS} characters"
        properties += len(_mapping(node, "properties"))
        values += len(listed)
        names = [name for keyword in ("properties", *DEFINITIONS) for name in _mapping(node, keyword)]
        characters += own + _count_characters([*names, node.get("const")])
        for amount, most, name in (
            (properties, MAX_PROPERTIES, "properties"),
            (values, MAX_ENUM_VALUES, "enum values"),
            (characters, MAX_CHARACTERS, "characters of names and values"),
        ):
            if amount > most:
                return f"{path} brings the schema to more than {most} {name}"
    return None


def _depth_problem(schema: JsonObject) -> str | None:
    """Check the nesting of objects as they are written. A definition starts at the first level."""
    rest: list[tuple[str, JsonObject, int]] = [("$", schema, 1)]
    while rest:
        path, node, level = rest.pop()
        if level > MAX_LEVELS:
            return f"{path} is more than {MAX_LEVELS} levels deep"
        starts = tuple(f"{path}.{keyword}." for keyword in DEFINITIONS)
        for at, child in object_subschemas(node, path):
            within = 0 if at.startswith(starts) else level
            rest.append((at, child, within + ("properties" in child)))
    return None


def _union_problem(schema: JsonObject) -> str | None:
    """Check that the objects of a union begin with properties of different names."""
    # Each reference is resolved once: a long pointer in many branches would cost its length each time.
    first_by_pointer: dict[str, str | None] = {}
    for path, node in walk_schemas(schema):
        options = node.get("anyOf")
        firsts: set[str] = set()
        for option in options if isinstance(options, list) else ():
            first = _first_key(schema, option, first_by_pointer)
            if first in firsts:
                return f"{path}.anyOf has objects that share the first key {first[:64]!r}"
            if first is not None:
                firsts.add(first)
    return None


def _first_key(schema: JsonObject, option: JsonValue, by_pointer: dict[str, str | None]) -> str | None:
    """Return the name of the first property of an alternative; `None` if the alternative is no object."""
    followed: list[str] = []
    first: str | None = None
    for _ in range(MAX_HOPS):
        match option:
            case {"$ref": str(pointer)} if pointer in by_pointer:
                first = by_pointer[pointer]
                break
            case {"$ref": str(pointer)}:
                followed.append(pointer)
                option = resolve_pointer(schema, pointer)
            case {"anyOf": [dict(only)]}:
                option = only
            case dict():
                first = next(iter(_mapping(option, "properties")), None)
                break
            case _:
                break
    by_pointer.update(dict.fromkeys(followed, first))
    return first


def _mapping(node: JsonObject, keyword: str) -> Mapping[str, JsonValue]:
    found = node.get(keyword)
    return found if isinstance(found, dict) else {}


def _count_characters(values: list[JsonValue]) -> int:
    return sum(len(value) for value in values if isinstance(value, str))
