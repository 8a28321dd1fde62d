"""References of a schema that is being fitted: their targets, cycles, and keywords beside them.

Nothing is copied if a vendor follows references: a target that the vendor cannot reach moves into the root's `$defs`.
Some models read no references in the parameters of tools (gpt-oss and GLM 5.3 then write nested arguments as strings;
pydantic-ai 2.68.0). For them references are replaced by their targets, as long as the result stays small.
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
"""The longest chain of references before a part that is no reference."""

MAX_MOVED = 16
"""The most targets outside `$defs` that get a name there. Each of these targets is written twice."""

MAX_INLINED = 256 * 1024
"""The most bytes of a schema whose references are replaced by their targets."""

MOST_PARTS = 10_000
"""The most parts of a schema whose references are replaced by their targets."""

_DEFS = "#/$defs/"
_DEFINED = tuple(f".{keyword}." for keyword in DEFINITIONS)


class Unfittable(Exception):
    """The vendor has no useful form for a schema. `reason` is the rest of a sentence that begins with "the schema"."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def child_parts(references: References, node: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """Yield the parts of a schema that a value may be checked against, with their relative paths. Definitions are only
    yielded through references."""
    for path, child in object_subschemas(node, ""):
        if not path.startswith(_DEFINED):
            yield path, child
    for keyword, target in references.targets(node):
        if isinstance(target, dict):
            yield f".{keyword}", target


def reachable(references: References) -> Iterator[tuple[int, JsonObject]]:
    """Yield each part that is reached from the root once, with the number of levels of objects around it. A part comes
    before the parts below it, so the caller may change it meanwhile. A definition counts its levels from its own
    root."""
    rest: list[tuple[int, JsonObject]] = [(1, references.root)]
    seen: set[int] = set()
    while rest:
        level, node = rest.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield level, node
        for path, child in reversed([*child_parts(references, node)]):
            inner = 1 if path == ".$ref" else level + ("properties" in child)
            rest.append((inner, child))


def follow(references: References, node: JsonObject) -> JsonObject:
    """Return the end of a chain of references. Raises Unfittable for a long chain, and for one whose target is
    missing."""
    for _ in range(MAX_HOPS):
        if "$ref" not in node:
            return node
        target = references.target(node["$ref"])
        if not isinstance(target, dict):
            break
        node = target
    raise Unfittable("has a reference that leads nowhere, or is too long")


def lift_root(references: References) -> None:
    """Replace a reference at the root by its target."""
    root = references.root
    if "$ref" not in root:
        return
    target = follow(references, root)
    del root["$ref"]
    for keyword, value in target.items():
        root.setdefault(keyword, value)


def fit_references(references: References, rules: SchemaRules) -> bool:
    """Make all references point to the root's `$defs`, and remove the keywords beside them if the vendor demands it.
    Return whether the schema then promises less."""
    if not rules.own_root_definitions:
        return False
    root, weakened = references.root, False
    nodes = [node for _, node in reachable(references)]
    # The targets are found before any definition is renamed, because references contain the names in the client's text.
    targets = [(node, references.target(node["$ref"])) for node in nodes if "$ref" in node]
    if any(keyword in node for node in nodes for keyword in ("$dynamicRef", "$recursiveRef")):
        raise Unfittable("has references whose target depends on the place of the reference")
    names = _named_definitions(root)
    for node, target in targets:
        node["$ref"] = _reference(root, target, names)
        weakened = _remove_siblings(node, rules) or weakened
    return weakened


def _named_definitions(root: JsonObject) -> dict[int, str]:
    """Return the names of the root's definitions by their identity. Move the definitions under `definitions` to
    `$defs`."""
    defs, old = root.get("$defs"), root.pop("definitions", None)
    merged: JsonObject = {**(defs if isinstance(defs, dict) else {})}
    for name, node in old.items() if isinstance(old, dict) else ():
        merged[_free_name(merged, name)] = node
    if merged:
        root["$defs"] = merged
    return {id(node): name for name, node in merged.items()}


def _free_name(taken: JsonObject, name: str) -> str:
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
            names[id(target)] = name = _free_name(defs, f"part_{len(names)}")
            defs[name] = target
    escaped = names[id(target)].replace("~", "~0").replace("/", "~1").replace("%", "%25")
    return _DEFS + escaped


def _remove_siblings(node: JsonObject, rules: SchemaRules) -> bool:
    """Remove the keywords beside a reference, and return whether that weakens the schema."""
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
    """Return whether a part leads back to itself through required properties only."""
    return _leads_back(references, optional_ends=True)


def _leads_back(references: References, *, optional_ends: bool) -> bool:
    open_parts: set[int] = set()
    done: set[int] = set()
    starts = [references.root]
    while starts:
        rest: list[tuple[JsonObject, bool]] = [(starts.pop(), False)]
        while rest:
            node, left = rest.pop()
            if left:
                open_parts.discard(id(node))
                done.add(id(node))
                continue
            if id(node) in done:
                continue
            if id(node) in open_parts:
                return True
            open_parts.add(id(node))
            rest.append((node, True))
            needed = required_names(node)
            for path, child in child_parts(references, node):
                if optional_ends and path.startswith(".properties.") and not _is_needed(path, needed):
                    starts.append(child)
                elif id(child) in open_parts:
                    return True
                else:
                    rest.append((child, False))
    return False


def _is_needed(path: str, needed: set[str]) -> bool:
    return path.removeprefix(".properties.") in needed


def is_finite(references: References) -> bool:
    """Return whether a value of finite depth can fit a schema. Alternatives end the recursion, and so does an empty
    array."""
    nodes = [node for _, node in reachable(references)]
    finite: set[int] = set()
    for _ in range(MAX_HOPS):
        before = len(finite)
        for node in reversed(nodes):
            if id(node) not in finite and _has_finite_value(references, node, finite):
                finite.add(id(node))
        if id(references.root) in finite:
            return True
        if len(finite) == before:
            return False
    return False


def _has_finite_value(references: References, node: JsonObject, finite: set[int]) -> bool:
    options = node.get("anyOf")
    if isinstance(options, list):
        return any(not isinstance(each, dict) or id(each) in finite for each in options)
    arrays = not node.get("minItems")
    for path, child in child_parts(references, node):
        if not (arrays and path == ".items") and id(child) not in finite:
            return False
    return True


# References written out ----------------------------------------------------------------------------------------------


def inline_definitions(schema: JsonObject) -> JsonObject | None:
    """Return the schema with its references replaced by their targets, and without definitions; the client's object
    itself if it has none.

    Return `None` if that is not possible: a part refers to itself or to a missing target, or the result would be larger
    than MAX_INLINED. The time is linear in the text of the schema: equal parts of the result are one object.
    """
    try:
        written = orjson.dumps(schema)
        own: JsonObject = orjson.loads(written)
        references = References(own)
        if not any(keyword in node for _, node in references.places for keyword in (*REFERENCES, *DEFINITIONS)):
            return schema
        fits = len(written) <= MAX_INLINED and len(references.places) <= MOST_PARTS and not has_cycle(references)
        # The result may be nested more deeply than can be written.
        return own if fits and _inline_all(references) and len(orjson.dumps(own)) <= MAX_INLINED else None
    except (orjson.JSONEncodeError, orjson.JSONDecodeError):
        return None


def _inline_all(references: References) -> bool:
    """Replace references by their targets in place, and return whether all fit within the bound."""
    # All references are resolved before any is replaced, since the pointers refer to the client's text.
    nodes = list(_parts_first(references))
    targets = {id(node): references.target(node["$ref"]) for node in nodes if "$ref" in node}
    dynamic = any("$dynamicRef" in node or "$recursiveRef" in node for node in nodes)
    if dynamic or not all(isinstance(target, dict) for target in targets.values()):
        return False
    sizes: dict[int, int] = {}
    for node in nodes:
        target = targets.get(id(node))
        beside = {keyword: value for keyword, value in node.items() if keyword not in _REPLACED_KEYWORDS}
        node.clear()
        node.update(_with_target(target, beside) if isinstance(target, dict) else beside)
        below_it = sum([sizes.get(id(child), 0) for _, child in object_subschemas(node, "")])
        sizes[id(node)] = _own_size(node) + below_it
        if sizes[id(node)] > MAX_INLINED:
            return False
    return True


_REPLACED_KEYWORDS = frozenset({"$ref", "$anchor", *DEFINITIONS})


def _with_target(target: JsonObject, beside: JsonObject) -> JsonObject:
    """Return the target of a reference together with the keywords beside the reference, both of which apply."""
    demands = beside.keys() - ANNOTATIONS
    return {**target, **beside} if demands.isdisjoint(target) else {**beside, "allOf": [target]}


def _own_size(node: JsonObject) -> int:
    """Return the bytes of a part without the parts below it."""
    holders = {path[1:].partition(".")[0].partition("[")[0] for path, _ in subschemas(node, "")}
    # The size of a name includes the quotes and the signs around it.
    return sum(
        len(keyword) + (_names_size(value) if keyword in holders else len(orjson.dumps(value))) + 6
        for keyword, value in node.items()
    )


def _names_size(holder: JsonValue) -> int:
    return sum([len(name.encode()) + 6 for name in holder]) if isinstance(holder, dict) else 2


def _parts_first(references: References) -> Iterator[JsonObject]:
    """Yield each part that is reached from the root once, after all parts that are reached from it."""
    done: set[int] = set()
    rest: list[tuple[JsonObject, bool]] = [(references.root, False)]
    while rest:
        node, left = rest.pop()
        if left:
            yield node
        elif id(node) not in done:
            done.add(id(node))
            rest.append((node, True))
            rest.extend((child, False) for _, child in child_parts(references, node))
