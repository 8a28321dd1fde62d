"""References of a schema that is being fitted: where they lead, whether they lead back, and what may stand beside them.

Nothing is copied out where a vendor follows references: a target that it cannot reach moves into the root's `$defs`.
Some models read none in the parameters of tools (gpt-oss and GLM 5.3 write nested arguments as strings then;
pydantic-ai 2.68.0), so that theirs are written out, as far as that stays small.
"""

from collections.abc import Iterator

import orjson

from providers.constraints.json_schema import (
    DEFINITIONS,
    REFERENCES,
    References,
    object_subschemas,
    required_names,
    subschemas,
)
from providers.constraints.schema_rules import ANNOTATIONS, SchemaRules
from providers.json_types import JsonObject, JsonValue

MAX_HOPS = 16
"""The longest chain of references before a part that is none."""

MAX_MOVED = 16
"""Targets outside `$defs` that are named there. Each is written twice."""

MAX_INLINED = 256 * 1024
"""The most bytes of a schema whose references are written out."""

MOST_PARTS = 10_000
"""The most parts of a schema whose references are followed to be written out."""

_DEFS = "#/$defs/"
_DEFINED = tuple(f".{keyword}." for keyword in DEFINITIONS)


class Unfittable(Exception):
    """The vendor has no useful form for a schema; `reason` continues "the schema"."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def below(references: References, node: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """Yield the parts of a schema that a value may be held against, with the way there; definitions by reference."""
    for path, child in object_subschemas(node, ""):
        if not path.startswith(_DEFINED):
            yield path, child
    for keyword, target in references.targets(node):
        if isinstance(target, dict):
            yield f".{keyword}", target


def reachable(references: References) -> Iterator[tuple[int, JsonObject]]:
    """Yield each part that is reached from the root once, with the levels of objects around it, before those below it:
    the caller may change it meanwhile. A definition counts its levels from its own root."""
    rest: list[tuple[int, JsonObject]] = [(1, references.root)]
    seen: set[int] = set()
    while rest:
        level, node = rest.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield level, node
        for path, child in reversed([*below(references, node)]):
            inner = 1 if path == ".$ref" else level + ("properties" in child)
            rest.append((inner, child))


def follow(references: References, node: JsonObject) -> JsonObject:
    """Return what a chain of references leads to. Raises Unfittable for a long one, and for one that leads nowhere."""
    for _ in range(MAX_HOPS):
        if "$ref" not in node:
            return node
        target = references.target(node["$ref"])
        if not isinstance(target, dict):
            break
        node = target
    raise Unfittable("has a reference that leads nowhere, or is too long")


def lift_root(references: References) -> None:
    """Put the target of a reference at the root in its place."""
    root = references.root
    if "$ref" not in root:
        return
    target = follow(references, root)
    del root["$ref"]
    for keyword, value in target.items():
        root.setdefault(keyword, value)


def fit_references(references: References, rules: SchemaRules) -> bool:
    """Let all references lead to the root's `$defs`, alone in their objects where the vendor demands it. Return whether
    the schema is weaker then."""
    if not rules.own_root_definitions:
        return False
    root, weakened = references.root, False
    nodes = [node for _, node in reachable(references)]
    # Before any is renamed, since the names are those of the client's text.
    targets = [(node, references.target(node["$ref"])) for node in nodes if "$ref" in node]
    if any(keyword in node for node in nodes for keyword in ("$dynamicRef", "$recursiveRef")):
        raise Unfittable("has references that depend on where they are followed from")
    names = _named(root)
    for node, target in targets:
        node["$ref"] = _reference(root, target, names)
        weakened = _set_apart(node, rules) or weakened
    return weakened


def _named(root: JsonObject) -> dict[int, str]:
    """Return the names of the root's definitions by their identity, moving those under `definitions` to `$defs`."""
    defs, old = root.get("$defs"), root.pop("definitions", None)
    merged: JsonObject = {**(defs if isinstance(defs, dict) else {})}
    for name, node in old.items() if isinstance(old, dict) else ():
        merged[_free(merged, name)] = node
    if merged:
        root["$defs"] = merged
    return {id(node): name for name, node in merged.items()}


def _free(taken: JsonObject, name: str) -> str:
    number = 1
    while name in taken:
        number += 1
        name = f"{name}_{number}"
    return name


def _reference(root: JsonObject, target: JsonValue, names: dict[int, str]) -> str:
    if target is root:
        return "#"
    if not isinstance(target, dict):
        raise Unfittable("has a reference that leads to no part of it")
    if id(target) not in names:
        if sum(name.startswith("part_") for name in names.values()) >= MAX_MOVED:
            raise Unfittable(f"has more than {MAX_MOVED} references to parts that are no definitions")
        defs = root.setdefault("$defs", {})
        if isinstance(defs, dict):
            names[id(target)] = name = _free(defs, f"part_{len(names)}")
            defs[name] = target
    escaped = names[id(target)].replace("~", "~0").replace("/", "~1").replace("%", "%25")
    return _DEFS + escaped


def _set_apart(node: JsonObject, rules: SchemaRules) -> bool:
    """Leave a reference alone in its object, and return whether that weakens the schema."""
    beside = [keyword for keyword in node if keyword not in ("$ref", *DEFINITIONS)]
    weaker = any(keyword not in ANNOTATIONS for keyword in beside)
    if rules.wrapped and "description" in beside:
        node["anyOf"] = [{"$ref": node.pop("$ref")}]
        return weaker
    for keyword in beside:
        del node[keyword]
    return weaker


# Schemas that lead back to themselves --------------------------------------------------------------------------------


def has_cycle(references: References) -> bool:
    """Return whether a part is reached from itself."""
    return _leads_back(references, optional_ends=False)


def needs_itself(references: References) -> bool:
    """Return whether a part leads back to itself by what every value must have: no property that may be absent."""
    return _leads_back(references, optional_ends=True)


def _leads_back(references: References, *, optional_ends: bool) -> bool:
    begun: set[int] = set()
    done: set[int] = set()
    starts = [references.root]
    while starts:
        rest: list[tuple[JsonObject, bool]] = [(starts.pop(), False)]
        while rest:
            node, left = rest.pop()
            if left:
                begun.discard(id(node))
                done.add(id(node))
                continue
            if id(node) in done:
                continue
            if id(node) in begun:
                return True
            begun.add(id(node))
            rest.append((node, True))
            needed = required_names(node)
            for path, child in below(references, node):
                if optional_ends and path.startswith(".properties.") and not _names(path, needed):
                    starts.append(child)
                elif id(child) in begun:
                    return True
                else:
                    rest.append((child, False))
    return False


def _names(path: str, needed: set[str]) -> bool:
    return path.removeprefix(".properties.") in needed


def is_finite(references: References) -> bool:
    """Return whether a value of finite depth can keep a schema: alternatives end it, and so does an empty array."""
    nodes = [node for _, node in reachable(references)]
    finite: set[int] = set()
    for _ in range(MAX_HOPS):
        before = len(finite)
        for node in reversed(nodes):
            if id(node) not in finite and _ends(references, node, finite):
                finite.add(id(node))
        if id(references.root) in finite:
            return True
        if len(finite) == before:
            return False
    return False


def _ends(references: References, node: JsonObject, finite: set[int]) -> bool:
    options = node.get("anyOf")
    if isinstance(options, list):
        return any(not isinstance(each, dict) or id(each) in finite for each in options)
    arrays = not node.get("minItems")
    for path, child in below(references, node):
        if not (arrays and path == ".items") and id(child) not in finite:
            return False
    return True


# References written out ----------------------------------------------------------------------------------------------


def inline_definitions(schema: JsonObject) -> JsonObject | None:
    """Return the schema with what its references lead to in their places, and without definitions; the client's object
    itself where it has none.

    None where that cannot be: a part refers to itself or to nothing, or the result would be larger than MAX_INLINED.
    Linear in the text of the schema: equal parts of the result are one object.
    """
    try:
        written = orjson.dumps(schema)
        own: JsonObject = orjson.loads(written)
        references = References(own)
        if not any(keyword in node for _, node in references.places for keyword in (*REFERENCES, *DEFINITIONS)):
            return schema
        fits = len(written) <= MAX_INLINED and len(references.places) <= MOST_PARTS and not has_cycle(references)
        # The result may be nested more deeply than can be written.
        return own if fits and _write_out(references) and len(orjson.dumps(own)) <= MAX_INLINED else None
    except (orjson.JSONEncodeError, orjson.JSONDecodeError):
        return None


def _write_out(references: References) -> bool:
    """Write references out in place, and return whether all could be within the bound."""
    # All are followed before any is written out, since pointers are those of the client's text.
    nodes = list(_parts_first(references))
    targets = {id(node): references.target(node["$ref"]) for node in nodes if "$ref" in node}
    dynamic = any("$dynamicRef" in node or "$recursiveRef" in node for node in nodes)
    if dynamic or not all(isinstance(target, dict) for target in targets.values()):
        return False
    sizes: dict[int, int] = {}
    for node in nodes:
        target = targets.get(id(node))
        beside = {keyword: value for keyword, value in node.items() if keyword not in _LEFT_OUT}
        node.clear()
        node.update(_with_target(target, beside) if isinstance(target, dict) else beside)
        below_it = sum([sizes.get(id(child), 0) for _, child in object_subschemas(node, "")])
        sizes[id(node)] = _own_size(node) + below_it
        if sizes[id(node)] > MAX_INLINED:
            return False
    return True


_LEFT_OUT = frozenset({"$ref", "$anchor", *DEFINITIONS})


def _with_target(target: JsonObject, beside: JsonObject) -> JsonObject:
    """Return the target of a reference with what stands beside that; both hold."""
    demands = beside.keys() - ANNOTATIONS
    return {**target, **beside} if demands.isdisjoint(target) else {**beside, "allOf": [target]}


def _own_size(node: JsonObject) -> int:
    """Return the bytes of a part without those of the parts below it."""
    holders = {path[1:].partition(".")[0].partition("[")[0] for path, _ in subschemas(node, "")}
    # A name is counted with the signs around it.
    return sum(
        len(keyword) + (_names_size(value) if keyword in holders else len(orjson.dumps(value))) + 6
        for keyword, value in node.items()
    )


def _names_size(holder: JsonValue) -> int:
    return sum([len(name.encode()) + 6 for name in holder]) if isinstance(holder, dict) else 2


def _parts_first(references: References) -> Iterator[JsonObject]:
    """Yield each part that is reached from the root once, behind all that are reached from it."""
    done: set[int] = set()
    rest: list[tuple[JsonObject, bool]] = [(references.root, False)]
    while rest:
        node, left = rest.pop()
        if left:
            yield node
        elif id(node) not in done:
            done.add(id(node))
            rest.append((node, True))
            rest.extend((child, False) for _, child in below(references, node))
