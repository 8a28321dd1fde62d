"""JSON Schemas that Gemini enforces, for `responseJsonSchema` and validated calls.

The vendor takes any schema and silently ignores keywords that it does not list, so these are refused. Keywords with an
equivalent are rewritten: the schema that is sent allows the same values.

Source: `google-genai` 3.4.0 `GenerateContentConfig.response_json_schema`; the API's `GenerationConfig` page, November
2026.
"""

from collections.abc import Iterator

import orjson

from providers.constraints.constraint_styles import Unenforceable
from providers.constraints.engine_gaps import Engine, engine_problem
from providers.constraints.json_schema import (
    DEFINITIONS,
    Place,
    object_subschemas,
    required_names,
    resolve_pointer,
    subschemas,
    walk_schemas,
)
from providers.json_types import JsonObject, JsonValue

_IGNORED = frozenset(
    {"not", "if", "then", "else", "contains", "minContains", "maxContains", "uniqueItems", "multipleOf"}
    | {"dependentRequired", "dependentSchemas", "dependencies", "pattern", "minLength", "maxLength"}
    | {"patternProperties", "propertyNames", "minProperties", "maxProperties", "additionalItems"}
    | {"unevaluatedProperties", "unevaluatedItems", "exclusiveMinimum", "exclusiveMaximum"}
    | {"$dynamicRef", "$recursiveRef"}
)
_NOTES = frozenset(
    {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "format", "propertyOrdering"}
)
_OLD, _NEW = "#/definitions/", "#/$defs/"

MAX_DEPTH = 200
"""Levels of nested schemas that are followed; surfaces accept far fewer."""


def native_schema(schema: JsonObject) -> JsonObject:
    """Return the schema in the vendor's keywords, the same object where nothing changes.

    Raises Unenforceable with the path of the first place that would not be enforced.
    """
    problem = engine_problem(_ENGINE, schema) or _recursion_problem(schema)
    if problem is not None:
        raise Unenforceable(f"it would not keep this schema: {problem}")
    if not _needs_rewording(schema):
        return schema
    # A copy, because the request's object serves the next attempt too.
    own: JsonObject = orjson.loads(orjson.dumps(schema))
    for _, node in [*walk_schemas(own)]:
        _reword(node)
    if "definitions" in own:
        own["$defs"] = own.pop("definitions")
    return own


def _needs_rewording(schema: JsonObject) -> bool:
    return any(not node.keys().isdisjoint(_REWORDED) for _, node in walk_schemas(schema))


_REWORDED = frozenset({"const", "allOf", "definitions", "$ref"})


def _reword(node: JsonObject) -> None:
    if "const" in node:
        node["enum"] = [node.pop("const")]
    if "allOf" in node:
        node["anyOf"] = node.pop("allOf")
    reference = node.get("$ref")
    if isinstance(reference, str):
        if reference.startswith(_OLD):
            node["$ref"] = _NEW + reference.removeprefix(_OLD)
        if not _NOTES.isdisjoint(node):
            # A reference must be alone in its object, so its annotations move to an object around it.
            node["anyOf"] = [{"$ref": node.pop("$ref")}]


def _references(root: JsonObject, node: JsonObject) -> str | None:
    if "$ref" not in node:
        return None
    beside = next(
        (keyword for keyword in node if not keyword.startswith("$") and keyword not in _NOTES | {*DEFINITIONS}), None
    )
    if beside is not None:
        return f".{beside} is not enforced beside $ref"
    reference = str(node["$ref"])
    named = reference.startswith((_OLD, _NEW)) and "/" not in reference.removeprefix(_OLD).removeprefix(_NEW)
    return None if named or reference == "#" else ".$ref may only lead to the definitions of the root"


def _definitions(root: JsonObject, node: JsonObject) -> str | None:
    if "definitions" in node and (node is not root or "$defs" in node):
        return ".definitions is only known at the root, and not beside $defs"
    return ".$defs is only known at the root" if "$defs" in node and node is not root else None


def _alternatives(root: JsonObject, node: JsonObject) -> str | None:
    parts = node.get("allOf")
    if isinstance(parts, list) and (len(parts) != 1 or "anyOf" in node):
        return ".allOf is only enforced with a single part, and without anyOf"
    return None


def _literals(root: JsonObject, node: JsonObject) -> str | None:
    if "const" in node and ("enum" in node or not _plain(node["const"])):
        return ".const may only be a string or a number, without enum"
    listed = node.get("enum")
    if isinstance(listed, list) and not all(map(_plain, listed)):
        return ".enum may only list strings and numbers"
    return None


def _plain(value: JsonValue) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _arrays(root: JsonObject, node: JsonObject) -> str | None:
    return ".items must be one schema" if isinstance(node.get("items"), list) else None


def _switches(root: JsonObject, node: JsonObject) -> str | None:
    at = next(
        (at for at, member in subschemas(node, "") if isinstance(member, bool) and not at.startswith(_MAY_SWITCH)), None
    )
    return None if at is None else f"{at} may not be true or false"


_MAY_SWITCH = tuple(f".{keyword}" for keyword in {"additionalProperties", *_IGNORED})
_ENGINE = Engine(_IGNORED, (_references, _definitions, _alternatives, _literals, _arrays, _switches))


def _recursion_problem(schema: JsonObject) -> str | None:
    """Return the problem of a schema that needs itself without end, None if there is none.

    Recursion must pass a property that may be left out: the vendor unrolls it a few times.
    """
    walk = _Cycles(schema)
    rest: list[Place] = [("$", schema)]
    visited: set[int] = set()
    while rest:
        path, node = rest.pop()
        if id(node) in visited:
            continue
        visited.add(id(node))
        if problem := walk.visit(path, node):
            return problem
        rest.extend(walk.optional)
        walk.optional.clear()
    return None


class _Cycles:
    """Follows the schemas that a value must satisfy; `optional` collects those from which a new walk begins."""

    __slots__ = ("_closed", "_open", "_root", "optional")

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._open: set[int] = set()
        self._closed: set[int] = set()
        self.optional: list[Place] = []

    def visit(self, path: str, node: JsonObject) -> str | None:
        """Return the problem with the path of a schema that leads back to itself, None if there is none."""
        if id(node) in self._open:
            return f"{path} leads back to itself through what is required"
        if id(node) in self._closed:
            return None
        if len(self._open) > MAX_DEPTH:
            return f"{path} is nested too deeply"
        self._open.add(id(node))
        for at, child, needed in _schemas_below(self._root, path, node):
            if not needed:
                self.optional.append((at, child))
            elif problem := self.visit(at, child):
                return problem
        self._open.discard(id(node))
        self._closed.add(id(node))
        return None


def _schemas_below(root: JsonObject, path: str, node: JsonObject) -> Iterator[tuple[str, JsonObject, bool]]:
    """Yield path, schema and whether it is required, for all schemas below one; definitions only by reference."""
    needed = required_names(node)
    properties = node.get("properties")
    for name, member in (properties if isinstance(properties, dict) else {}).items():
        if isinstance(member, dict):
            yield f"{path}.properties.{name}", member, name in needed
    elsewhere = tuple(f"{path}.{keyword}." for keyword in ("properties", *DEFINITIONS))
    for at, child in object_subschemas(node, path):
        if not at.startswith(elsewhere):
            yield at, child, True
    target = resolve_pointer(root, node.get("$ref"))
    if isinstance(target, dict):
        yield f"{path}.$ref", target, True
