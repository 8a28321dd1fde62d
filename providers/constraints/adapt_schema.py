"""Fits a client's schema into what a vendor takes, and tells whether it then promises less.

A schema may be narrowed: what keeps the narrower one keeps the client's too, so that every property may be required
and every object closed without a word about it in the answer. What a vendor refuses or ignores is taken out and told
in the `description`; the answer must then be held against the client's own schema. A schema that has no useful form
there (an open map, for one, where every object must be closed) is not sent.

Linear in the text of the schema: each place is fitted once, references are followed and never copied out, and there is
no recursion over what a client wrote.
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

LONGEST_CACHED: Final = 8192
MOST_CACHED: Final = 256
"""The longest schema, in bytes of JSON, that is cached as fitted, and the most of them: 10 MB at most."""

MAX_PARTS: Final = 10_000
"""The most schemas within a schema that is fitted: twice as many properties as any vendor takes."""


@dataclass(frozen=True, slots=True)
class FittedSchema:
    """A schema as it is sent: None where the vendor has no form for it, for `reason`. `weakened` says that it promises
    less than the client's, against which the answer must be checked."""

    schema: JsonObject | None
    weakened: bool
    reason: str = ""


_TOO_DEEP: Final = FittedSchema(None, True, "is nested too deeply")


def fit_schema(schema: JsonObject, rules: SchemaRules) -> FittedSchema:
    """Return the schema in a vendor's keywords; the client's object itself where nothing has to change."""
    try:
        written = orjson.dumps(schema)
    except orjson.JSONEncodeError:
        return _TOO_DEEP
    # Agents send the same tools with each request.
    fitted = _fit_short(written, rules) if len(written) <= LONGEST_CACHED else _fit_written(written, rules)
    return FittedSchema(schema, False) if fitted is None else fitted


def _fit_written(written: bytes, rules: SchemaRules) -> FittedSchema | None:
    """Return a schema, which is given as JSON, in a vendor's keywords; `None` if nothing has to change."""
    try:
        own: JsonObject = orjson.loads(written)
        weakened = _fitted(References(own), rules)
        if not weakened and orjson.dumps(own) == written:
            return None
    except Unfittable as problem:
        return FittedSchema(None, True, problem.reason)
    except (orjson.JSONEncodeError, orjson.JSONDecodeError):
        return _TOO_DEEP
    return FittedSchema(own, weakened)


_fit_short = lru_cache(maxsize=MOST_CACHED)(_fit_written)
"""Fits a short schema, once for many requests that hold it: what it returns is read-only."""


def _fitted(references: References, rules: SchemaRules) -> bool:
    """Fit a schema in place, and return whether it is weaker."""
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
        _leave_null_out(references, rules.most_unions)
    if rules.most_optional is not None:
        _require_most(references, rules.most_optional)
    properties = values = unions = 0
    for level, node in reachable(references):
        named, listed = node.get("properties"), node.get("enum")
        if isinstance(named, dict):
            properties += len(named)
            unions += sum(isinstance(each, dict) and _is_union(each) for each in named.values())
        values += len(listed) if isinstance(listed, list) else 0
        for amount, most, what in (
            (properties, rules.most_properties, "properties"),
            (values, rules.most_values, "enum values"),
            (unions, rules.most_unions, "properties of several types"),
            (level, rules.most_levels, "levels"),
        ):
            if most is not None and amount > most:
                raise Unfittable(f"has more than {most} {what}")


def _is_union(node: JsonObject) -> bool:
    return "anyOf" in node or isinstance(node.get("type"), list)


def count_limited(root: JsonObject) -> tuple[int, int]:
    """Return how many properties may be absent, and how many have several types."""
    optional = unions = 0
    for _, node in reachable(References(root)):
        named, required = node.get("properties"), required_names(node)
        for name, member in named.items() if isinstance(named, dict) else ():
            optional += name not in required
            unions += isinstance(member, dict) and _is_union(member)
    return optional, unions


def _leave_null_out(references: References, most: int) -> None:
    """Let properties that may be absent be null no more, until no more than `most` have several types."""
    unions = [
        (member, name in required_names(node))
        for _, node in reachable(references)
        if isinstance(named := node.get("properties"), dict)
        for name, member in named.items()
        if isinstance(member, dict) and _is_union(member)
    ]
    for member, needed in unions[most:] if len(unions) > most else ():
        options = member.get("anyOf")
        other = [each for each in options if each != {"type": "null"}] if isinstance(options, list) else []
        if not needed and len(other) == 1 and isinstance(options, list) and len(options) == 2:
            del member["anyOf"]
            single = other[0]
            member.update(single if isinstance(single, dict) else {})


def _require_most(references: References, most: int) -> None:
    """Require properties until no more than `most` may be absent, first those that may be null instead."""
    absent = [
        (not _may_be_null(member), node, name)
        for _, node in reachable(references)
        if isinstance(named := node.get("properties"), dict)
        for name, member in named.items()
        if name not in required_names(node)
    ]
    absent.sort(key=lambda each: each[0])
    for _, node, name in absent[: max(0, len(absent) - most)]:
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
