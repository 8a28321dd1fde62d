"""Where JSON Schemas hold schemas: each with its path, what references lead to, how far they spread. Never validates.

Keywords: the core and applicators of JSON Schema 2020-12, and what drafts 4 to 2019-09 had in their place. A path is
`$` for the root and then keywords, names and positions, as in `$.properties.a.anyOf[1]`; it is for people.
"""

from collections.abc import Iterator
from urllib.parse import unquote

from providers.regex_tree import Malformed, parse
from providers.unified import JsonObject, JsonValue

Place = tuple[str, JsonObject]
"""A schema's path, and the schema."""

REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
DEFINITIONS = ("$defs", "definitions")

_BY_NAME = frozenset({"properties", "patternProperties", *DEFINITIONS, "dependentSchemas", "dependencies"})
_DIRECTLY = frozenset(
    {"anyOf", "allOf", "oneOf", "not", "if", "then", "else", "prefixItems", "items", "additionalItems", "contains"}
    | {"additionalProperties", "propertyNames", "unevaluatedItems", "unevaluatedProperties", "contentSchema"}
)

MAX_SPREAD = 20_000
"""Schemas that a validator may come past for one value."""
_MAX_CHAIN = 200
_MAX_NAME = 64


def held(node: JsonObject, path: str) -> Iterator[tuple[str, JsonValue]]:
    """What stands right below a schema where schemas do, with its path: they may also be true or false."""
    for keyword, value in node.items():
        if keyword in _BY_NAME and isinstance(value, dict):
            for name, member in value.items():
                yield f"{path}.{keyword}.{_short(name)}", member
        elif keyword in _DIRECTLY and isinstance(value, list):
            for position, member in enumerate(value):
                yield f"{path}.{keyword}[{position}]", member
        elif keyword in _DIRECTLY:
            yield f"{path}.{keyword}", value


def below(node: JsonObject, path: str) -> Iterator[Place]:
    """Those of them that say something."""
    for at, member in held(node, path):
        if isinstance(member, dict):
            yield at, member


def _short(name: str) -> str:
    return name if len(name) <= _MAX_NAME else f"{name[:_MAX_NAME]}..."


def places(schema: JsonObject) -> Iterator[Place]:
    """The schema and all below it, in the order in which it is written."""
    rest: list[Place] = [("$", schema)]
    while rest:
        path, node = rest.pop()
        yield path, node
        rest.extend(reversed(list(below(node, path))))


def resolve(root: JsonObject, reference: JsonValue) -> JsonValue:
    """What a reference by JSON Pointer leads to within the schema; None for nothing, or for one of another form."""
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        return None
    found: JsonValue = root
    for step in unquote(reference).split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict):
            found = found.get(name)
        elif isinstance(found, list) and name.isdecimal() and int(name[:9]) < len(found):
            found = found[int(name[:9])]
        else:
            return None
    return found


def schema_problem(schema: JsonObject) -> str | None:
    """What makes a schema unusable to whoever only has its text, with the path; None when nothing does.

    References must lead to a schema within it: nothing is fetched, and no part has an address of its own that would
    turn the references below it elsewhere. Patterns must be regular expressions. The types of the keywords' values are
    not looked at.
    """
    reached = list(_reached(schema))
    anchors = {f"#{name}" for _, node in reached for name in _anchors(node)}
    for path, node in reached:
        problem = _reference_problem(schema, anchors, path, node) or _pattern_problem(path, node)
        if problem is not None:
            return problem
    return None


def _reached(schema: JsonObject) -> Iterator[Place]:
    """All that is written as a schema, and what references lead to beside that."""
    rest: list[Place] = [("$", schema)]
    seen: set[int] = set()
    while rest:
        path, node = rest.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield path, node
        targets = [(f"{path}.{keyword}", resolve(schema, node.get(keyword))) for keyword in REFERENCES]
        rest.extend((at, target) for at, target in targets if isinstance(target, dict))
        rest.extend(reversed(list(below(node, path))))


def _anchors(node: JsonObject) -> Iterator[str]:
    for keyword in ("$anchor", "$dynamicAnchor"):
        name = node.get(keyword)
        if isinstance(name, str):
            yield name
    address = node.get("$id")
    if isinstance(address, str) and address.startswith("#"):
        yield address[1:]


def _reference_problem(root: JsonObject, anchors: set[str], path: str, node: JsonObject) -> str | None:
    address = node.get("$id")
    if node is not root and isinstance(address, str) and not address.startswith("#"):
        return f"{path}.$id gives a part of the schema an address of its own"
    for keyword in REFERENCES:
        reference = node.get(keyword)
        if not isinstance(reference, str):
            continue
        if not reference.startswith("#"):
            return f"{path}.{keyword} refers to another document"
        if reference not in anchors and not isinstance(resolve(root, reference), dict | bool):
            return f"{path}.{keyword} leads nowhere within the schema"
    return None


def _pattern_problem(path: str, node: JsonObject) -> str | None:
    named = node.get("patternProperties")
    patterns = [(f"{path}.pattern", node.get("pattern"))]
    patterns += [(f"{path}.patternProperties", name) for name in (named if isinstance(named, dict) else ())]
    for at, pattern in patterns:
        if isinstance(pattern, str):
            try:
                parse(pattern)
            except Malformed as error:
                return f"{at} {error}"
    return None


def spread(schema: JsonObject) -> int:
    """How many schemas a validator may come past for one value, MAX_SPREAD + 1 for any number above it.

    References that double at each step reach billions from a page of text. Where one leads back, it ends: validators
    remember what they are about.
    """
    known: dict[int, int] = {}
    open_: set[int] = set()

    def count(node: JsonObject) -> int:
        if id(node) in open_:
            return 1
        if id(node) in known:
            return known[id(node)]
        if len(open_) > _MAX_CHAIN:
            return MAX_SPREAD + 1
        open_.add(id(node))
        targets = [resolve(schema, node.get(keyword)) for keyword in REFERENCES]
        held = [child for path, child in below(node, "") if not path.startswith(_DEFINED)]
        held += [target for target in targets if isinstance(target, dict)]
        total = 1
        for child in held:
            total = min(total + count(child), MAX_SPREAD + 1)
        open_.discard(id(node))
        known[id(node)] = total
        return total

    return count(schema)


_DEFINED = tuple(f".{keyword}." for keyword in DEFINITIONS)
