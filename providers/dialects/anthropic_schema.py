"""Which JSON Schemas Anthropic compiles into a grammar, for `output_config.format` and strict tools.

Never rewrites a schema: a weaker one would be answered with values that the client's own schema refuses.

Sources: "Structured outputs" page, November 2026; `anthropic` 2.12.0 `lib/_parse/_transform.py`, which moves everything
that is not listed here into descriptions.
"""

import re
from collections.abc import Iterator

from providers.unified import JsonObject, JsonValue

_NOTES = frozenset(
    {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"}
    | {"$schema", "$id", "$comment", "$defs", "definitions"}
)
_KEYWORDS = _NOTES | {"type", "properties", "required", "additionalProperties", "items", "minItems"}
_KEYWORDS |= {"anyOf", "allOf", "enum", "const", "$ref", "pattern", "format"}
_FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"},
)
_HARD_PATTERN = re.compile(r"\(\?[=!<]|\\[bB1-9]")

MAX_DEPTH = 64
"""Levels that are looked into, references followed; the vendor's own limit is not published."""

Found = tuple[str, JsonObject]


def schema_problem(schema: JsonValue) -> str | None:
    """Why the vendor cannot enforce a schema, with the path of the first place at fault; None when it can."""
    if not isinstance(schema, dict):
        return "the schema is not an object"
    if schema.get("type") != "object" and "$ref" not in schema:
        return "the root of the schema must have the type 'object'"
    for path, node in _walk(schema, "$"):
        if problem := _node_problem(node):
            return f"{path}{problem}"
    return _reference_problem(schema)


def _node_problem(node: JsonObject) -> str | None:
    """What is wrong at one place, to be read right after its path."""
    for keyword in node:
        if keyword not in _KEYWORDS:
            return f".{keyword} is not supported"
    if ("properties" in node or _is_object(node)) and node.get("additionalProperties") is not False:
        return " must set 'additionalProperties' to false"
    if not node.keys() & {"type", "anyOf", "allOf", "enum", "const", "$ref", "properties"}:
        return " must say a type"
    return _value_problem(node) or _literal_problem(node)


def _value_problem(node: JsonObject) -> str | None:
    if node.get("minItems", 0) not in (0, 1):
        return ".minItems may only be 0 or 1"
    form, pattern = node.get("format"), node.get("pattern")
    if isinstance(form, str) and form not in _FORMATS:
        return f".format '{form}' is not supported"
    if isinstance(pattern, str) and _HARD_PATTERN.search(pattern):
        return ".pattern uses what is not supported (look-around, word boundaries or back references)"
    return None


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


def _walk(node: JsonObject, path: str) -> Iterator[Found]:
    """Every schema below `node`, itself first, with its path."""
    rest: list[Found] = [(path, node)]
    while rest:
        at, found = rest.pop()
        yield at, found
        rest.extend(reversed(list(_below(found, at))))


def _below(node: JsonObject, path: str) -> Iterator[Found]:
    for keyword in ("properties", "$defs", "definitions"):
        members = node.get(keyword)
        if isinstance(members, dict):
            for name, member in members.items():
                if isinstance(member, dict):
                    yield f"{path}.{keyword}.{name}", member
    for keyword in ("anyOf", "allOf"):
        options = node.get(keyword)
        if isinstance(options, list):
            for position, option in enumerate(options):
                if isinstance(option, dict):
                    yield f"{path}.{keyword}[{position}]", option
    items = node.get("items")
    if isinstance(items, dict):
        yield f"{path}.items", items


def _reference_problem(root: JsonObject) -> str | None:
    """References must stay within the schema, lead somewhere, and never lead back to where they stand."""
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
        for below, child in _reachable(root, node, path):
            problem = f"{below} leads nowhere within the schema" if child is None else visit(child, below)
            if problem:
                return problem
        open_.discard(id(node))
        closed.add(id(node))
        return None

    return visit(root, "$")


def _reachable(root: JsonObject, node: JsonObject, path: str) -> Iterator[tuple[str, JsonObject | None]]:
    for below, child in _below(node, path):
        # Definitions are reached by reference only: one that nothing uses cannot recurse.
        if not below.startswith((f"{path}.$defs.", f"{path}.definitions.")):
            yield below, child
    if "$ref" in node:
        yield f"{path}.$ref", _resolve(root, node["$ref"])


def _resolve(root: JsonObject, reference: JsonValue) -> JsonObject | None:
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    found: JsonValue = root
    for step in reference[1:].split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else None
