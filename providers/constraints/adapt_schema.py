"""Fits a client's schema to a vendor's rules, and returns whether the result promises less.

A schema may be narrowed: a value that fits the narrower schema also fits the client's. So every property may be
required and every object closed without a note about it. Keywords that the vendor refuses or ignores are removed and
described in the `description`; the response must then be checked against the client's own schema. A schema that has no
useful form at the vendor is not sent; an example is an open map if every object must be closed.

The time is linear in the text of the schema: each part is fitted once, references are followed and never copied, and
nothing recurses over the client's JSON.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import orjson

from providers.constraints.fit_keywords import fit_node
from providers.constraints.fit_references import (
    Unfittable,
    fit_references,
    has_cycle,
    is_finite,
    lift_root,
    needs_itself,
    reachable,
)
from providers.constraints.json_schema import DEFINITIONS, References, required_names
from providers.constraints.schema_rules import SchemaRules
from providers.json_types import JsonObject

MOST_CACHED_BYTES: Final = 8192
MOST_CACHED_SCHEMAS: Final = 256
"""The longest schema, in bytes of JSON, that is cached as fitted, and the most such schemas: 10 MB in all."""

MAX_PARTS: Final = 10_000
"""The most schemas within a schema that is fitted: twice the most properties that any vendor accepts."""


@dataclass(frozen=True, slots=True)
class FittedSchema:
    """A schema as it is sent. `schema` is `None` if the vendor has no useful form for the client's schema; `reason`
    says why. `weakened` is true if `schema` promises less than the client's schema, against which the response must
    then be checked."""

    schema: JsonObject | None
    weakened: bool
    reason: str = ""


_TOO_DEEP: Final = FittedSchema(None, True, "is nested too deeply")


def fit_schema(schema: JsonObject, rules: SchemaRules) -> FittedSchema:
    """Return the schema in a vendor's keywords; the client's object itself if nothing has to change."""
    try:
        written = orjson.dumps(schema)
    except orjson.JSONEncodeError:
        return _TOO_DEEP
    # Agents send the same tools with each request.
    fitted = _fit_short(written, rules) if len(written) <= MOST_CACHED_BYTES else _fit_written(written, rules)
    return FittedSchema(schema, False) if fitted is None else fitted


def _fit_written(written: bytes, rules: SchemaRules) -> FittedSchema | None:
    """Return a schema, given as JSON, in a vendor's keywords; `None` if nothing has to change."""
    try:
        own: JsonObject = orjson.loads(written)
        weakened = _fit_in_place(References(own), rules)
        if not weakened and orjson.dumps(own) == written:
            return None
    except Unfittable as problem:
        return FittedSchema(None, True, problem.reason)
    except (orjson.JSONEncodeError, orjson.JSONDecodeError):
        return _TOO_DEEP
    return FittedSchema(own, weakened)


_fit_short = lru_cache(maxsize=MOST_CACHED_SCHEMAS)(_fit_written)
"""Fits a short schema once for many requests that hold it. Its result is read-only."""


def _fit_in_place(references: References, rules: SchemaRules) -> bool:
    """Fit a schema in place, and return whether it promises less."""
    root, weakened = references.root, False
    if len(references.places) > MAX_PARTS:
        raise Unfittable(f"has more than {MAX_PARTS} parts")
    if rules.own_root_definitions or rules.object_root:
        lift_root(references)
        weakened = fit_references(references, rules)
    cyclic = has_cycle(references)
    if cyclic and (rules.recursion == "none" or (rules.recursion == "optional" and needs_itself(references))):
        raise Unfittable("refers to itself")
    for _, node in reachable(references):
        weakened = fit_node(references, node, rules, cyclic=cyclic) or weakened
    if rules.object_root and (root.get("type") != "object" or "anyOf" in root):
        raise Unfittable("must have an object without alternatives as its root")
    if cyclic and rules.all_required and not is_finite(references):
        raise Unfittable("needs itself without end once every property is required")
    _fit_limits(references, rules)
    if rules.own_root_definitions:
        _drop_unused(references)
    if rules.check is not None and (problem := rules.check(root)) is not None:
        raise Unfittable(problem)
    return weakened


def _fit_limits(references: References, rules: SchemaRules) -> None:
    if rules.most_unions is not None:
        _drop_null(references, rules.most_unions)
    if rules.most_optional is not None:
        _require_properties(references, rules.most_optional)
    properties = values = unions = 0
    for level, node in reachable(references):
        named, listed = node.get("properties"), node.get("enum")
        if isinstance(named, dict):
            properties += len(named)
            unions += sum(isinstance(each, dict) and _is_union(each) for each in named.values())
        values += len(listed) if isinstance(listed, list) else 0
        for amount, most, name in (
            (properties, rules.most_properties, "properties"),
            (values, rules.most_values, "enum values"),
            (unions, rules.most_unions, "properties of several types"),
            (level, rules.most_levels, "levels"),
        ):
            if most is not None and amount > most:
                raise Unfittable(f"has more than {most} {name}")


def _is_union(node: JsonObject) -> bool:
    return "anyOf" in node or isinstance(node.get("type"), list)


def count_limited(root: JsonObject) -> tuple[int, int]:
    """Return the number of optional properties, and the number of properties that have a union type."""
    optional = unions = 0
    for _, node in reachable(References(root)):
        named, required = node.get("properties"), required_names(node)
        for name, member in named.items() if isinstance(named, dict) else ():
            optional += name not in required
            unions += isinstance(member, dict) and _is_union(member)
    return optional, unions


def _drop_null(references: References, most: int) -> None:
    """Drop `null` from optional properties until at most `most` properties have a union type."""
    unions = [
        (member, name in required_names(node))
        for _, node in reachable(references)
        if isinstance(named := node.get("properties"), dict)
        for name, member in named.items()
        if isinstance(member, dict) and _is_union(member)
    ]
    for member, required in unions[most:] if len(unions) > most else ():
        options = member.get("anyOf")
        other = [each for each in options if each != {"type": "null"}] if isinstance(options, list) else []
        if not required and len(other) == 1 and isinstance(options, list) and len(options) == 2:
            del member["anyOf"]
            single = other[0]
            member.update(single if isinstance(single, dict) else {})


def _require_properties(references: References, most: int) -> None:
    """Require properties until at most `most` are optional. Properties that may be null are required first."""
    optional = [
        (not _may_be_null(member), node, name)
        for _, node in reachable(references)
        if isinstance(named := node.get("properties"), dict)
        for name, member in named.items()
        if name not in required_names(node)
    ]
    optional.sort(key=lambda each: each[0])
    for _, node, name in optional[: max(0, len(optional) - most)]:
        required = node.setdefault("required", [])
        if isinstance(required, list):
            required.append(name)


def _may_be_null(member: object) -> bool:
    if not isinstance(member, dict):
        return False
    options = member.get("anyOf")
    types = [member.get("type"), *[each.get("type") for each in options or [] if isinstance(each, dict)]]
    return "null" in types or any(isinstance(each, list) and "null" in each for each in types)


def _drop_unused(references: References) -> None:
    root = references.root
    used = {id(node) for _, node in reachable(references)}
    for keyword in DEFINITIONS:
        named = root.get(keyword)
        if isinstance(named, dict):
            for name in [name for name, node in named.items() if id(node) not in used]:
                del named[name]
            if not named:
                del root[keyword]
