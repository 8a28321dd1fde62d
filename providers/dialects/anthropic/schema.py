"""Check of which JSON Schemas Anthropic compiles into a grammar, for `output_config.format` and strict tools.

Schemas are not rewritten: a weaker one would be answered with values that the client's own schema refuses.

Sources: "Structured outputs" page with its limits, November 2026; `anthropic` 2.12.0 `lib/_parse/_transform.py`, which
moves everything that is not listed here into descriptions.
"""

from collections.abc import Iterator

from providers.constraints.constraint_styles import Unenforceable
from providers.constraints.json_schema import (
    DEFINITIONS,
    object_subschemas,
    required_names,
    resolve_pointer,
    subschemas,
    walk_schemas,
)
from providers.constraints.regex_parse import MalformedPattern, find_unsupported, parse
from providers.json_types import JsonObject, JsonValue

_NOTES = frozenset(
    {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"}
    | {"$schema", "$id", "$comment", "$defs", "definitions"}
)
_KEYWORDS = _NOTES | {"type", "properties", "required", "additionalProperties", "items", "minItems"}
_KEYWORDS |= {"anyOf", "allOf", "enum", "const", "$ref", "pattern", "format"}
_FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"},
)

MAX_OPTIONAL = 24
"""Properties that a schema may leave out of `required`, in all its objects together."""
MAX_UNIONS = 16
"""Properties with `anyOf` or several types, in all objects of a schema together."""
MAX_DEPTH = 64
"""Levels that are checked, references followed; the vendor's own limit is not published."""


def enforceable_schema(schema: JsonObject) -> JsonObject:
    """Return the schema. Raises Unenforceable for one that the vendor's strict mode refuses or would not enforce."""
    if problem := schema_problem(schema):
        raise Unenforceable(f"it cannot enforce this schema: {problem}")
    return schema


def schema_problem(schema: JsonValue) -> str | None:
    """Return why the vendor cannot enforce a schema, with the path of the first place at fault; None when it can."""
    if not isinstance(schema, dict):
        return "the schema is not an object"
    referred = resolve_pointer(schema, schema.get("$ref"))
    root = referred if isinstance(referred, dict) and "type" not in schema else schema
    if root.get("type") != "object" and "$ref" not in root:
        return "the root of the schema must have the type 'object'"
    for path, node in walk_schemas(schema):
        if problem := _node_problem(node):
            return f"{path}{problem}"
    return _reference_problem(schema) or _size_problem(schema)


def _node_problem(node: JsonObject) -> str | None:
    """Return the problem of one place, to be read right after its path; None without one."""
    for keyword in node:
        if keyword not in _KEYWORDS:
            return f".{keyword} is not supported"
    if ("properties" in node or _is_object(node)) and node.get("additionalProperties") is not False:
        return " must set 'additionalProperties' to false"
    if not node.keys() & {"type", "anyOf", "allOf", "enum", "const", "$ref", "properties"}:
        return " must say a type"
    for at, member in subschemas(node, ""):
        if not isinstance(member, dict) and at != ".additionalProperties":
            return f"{at} must say a type"
    return _value_problem(node) or _literal_problem(node)


def _value_problem(node: JsonObject) -> str | None:
    if node.get("minItems", 0) not in (0, 1):
        return ".minItems may only be 0 or 1"
    if isinstance(node.get("items"), list):
        return ".items may only be one schema"
    form, pattern = node.get("format"), node.get("pattern")
    if isinstance(form, str) and form not in _FORMATS:
        return f".format '{form}' is not supported"
    return _pattern_problem(pattern) if isinstance(pattern, str) else None


def _pattern_problem(pattern: str) -> str | None:
    try:
        problem = find_unsupported(parse(pattern))
    except MalformedPattern as error:
        problem = str(error)
    return None if problem is None else f".pattern {problem}, which is not supported"


def _is_object(node: JsonObject) -> bool:
    kind = node.get("type")
    return kind == "object" or (isinstance(kind, list) and "object" in kind)


def _literal_problem(node: JsonObject) -> str | None:
    literals = node.get("enum", [])
    if not isinstance(literals, list) or any(isinstance(literal, dict | list) for literal in literals):
        return ".enum may only list plain values"
    if isinstance(node.get("const"), dict | list):
        return ".const may only be a plain value"
    parts = node.get("allOf", [])
    if isinstance(parts, list) and any(isinstance(part, dict) and "$ref" in part for part in parts):
        return ".allOf may not hold references"
    return None


def _size_problem(schema: JsonObject) -> str | None:
    optional = unions = 0
    for path, node in walk_schemas(schema):
        properties, required = node.get("properties"), required_names(node)
        if not isinstance(properties, dict):
            continue
        optional += sum(name not in required for name in properties)
        unions += sum(isinstance(member, dict) and _is_union(member) for member in properties.values())
        for amount, most, what in ((optional, MAX_OPTIONAL, "optional"), (unions, MAX_UNIONS, "of several types")):
            if amount > most:
                return f"{path}.properties brings the schema to more than {most} properties that are {what}"
    return None


def _is_union(node: JsonObject) -> bool:
    return "anyOf" in node or isinstance(node.get("type"), list)


def _reference_problem(root: JsonObject) -> str | None:
    """Return the first reference that leads out of the schema, nowhere, or back to itself, as a problem."""
    closed: set[int] = set()
    open_: set[int] = set()

    def visit(node: JsonObject, path: str) -> str | None:
        if id(node) in open_:
            return f"{path} refers to itself, and recursion is not supported"
        if id(node) in closed:
            return None
        if len(open_) >= MAX_DEPTH:
            return f"{path} is nested too deeply"
        open_.add(id(node))
        for at, child in _reachable(root, node, path):
            problem = f"{at} leads nowhere within the schema" if child is None else visit(child, at)
            if problem:
                return problem
        open_.discard(id(node))
        closed.add(id(node))
        return None

    return visit(root, "$")


def _reachable(root: JsonObject, node: JsonObject, path: str) -> Iterator[tuple[str, JsonObject | None]]:
    # Definitions are reached by reference only: one that nothing uses cannot recurse.
    definitions = tuple(f"{path}.{keyword}." for keyword in DEFINITIONS)
    for at, child in object_subschemas(node, path):
        if not at.startswith(definitions):
            yield at, child
    if "$ref" in node:
        target = resolve_pointer(root, node["$ref"])
        yield f"{path}.$ref", target if isinstance(target, dict) else None
