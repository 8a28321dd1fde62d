"""Walks JSON Schemas: the schemas in them, the targets of references, and the cost of evaluating them.

Keywords: the core and applicators of JSON Schema 2020-12, and their predecessors in drafts 4 to 2019-09. A path is `$`
for the root and then keywords, names and positions, as in `$.properties.a.anyOf[1]`. Paths are only shown to people, in
messages.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeGuard
from urllib.parse import unquote

from providers.constraints.complexity_limits import MAX_CHAIN, MAX_SCHEMAS, MAX_SPREAD, Budget, OverBudget
from providers.constraints.regex_parse import MalformedPattern, PatternReader
from providers.json_types import JsonObject, JsonValue

LocatedSchema = tuple[str, JsonObject]
"""A schema's path, and the schema."""

REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
DEFINITIONS = ("$defs", "definitions")

_NAMED_SCHEMAS = frozenset({"properties", "patternProperties", *DEFINITIONS, "dependentSchemas", "dependencies"})
_UNNAMED_SCHEMAS = frozenset(
    {"anyOf", "allOf", "oneOf", "not", "if", "then", "else", "prefixItems", "items", "additionalItems", "contains"}
    | {"additionalProperties", "propertyNames", "unevaluatedItems", "unevaluatedProperties", "contentSchema"}
)

_MAX_NAME = 64


def subschemas(node: JsonObject, path: str) -> Iterator[tuple[str, JsonValue]]:
    """Yield the schemas directly below a schema, including booleans, with their paths."""
    for keyword, value in node.items():
        if keyword in _NAMED_SCHEMAS and isinstance(value, dict):
            for name, member in value.items():
                yield f"{path}.{keyword}.{_shortened(name)}", member
        elif keyword in _UNNAMED_SCHEMAS and isinstance(value, list):
            for position, member in enumerate(value):
                yield f"{path}.{keyword}[{position}]", member
        elif keyword in _UNNAMED_SCHEMAS:
            yield f"{path}.{keyword}", value


def object_subschemas(node: JsonObject, path: str) -> Iterator[LocatedSchema]:
    """Yield the schemas directly below a schema that are objects."""
    for at, member in subschemas(node, path):
        if isinstance(member, dict):
            yield at, member


def required_names(node: JsonObject) -> set[str]:
    """Return the property names that a schema lists in `required`."""
    names = node.get("required")
    return {name for name in names if isinstance(name, str)} if isinstance(names, list) else set()


def _shortened(name: str) -> str:
    return name if len(name) <= _MAX_NAME else f"{name[:_MAX_NAME]}..."


def walk_schemas(schema: JsonObject) -> Iterator[LocatedSchema]:
    """Yield the schema and all schemas below it, in the order in which they are written."""
    rest: list[LocatedSchema] = [("$", schema)]
    while rest:
        path, node = rest.pop()
        yield path, node
        rest.extend(reversed(list(object_subschemas(node, path))))


def is_pointer(reference: JsonValue) -> TypeGuard[str]:
    """Return whether a reference is a JSON Pointer within the schema."""
    return isinstance(reference, str) and (reference == "#" or reference.startswith("#/"))


def resolve_pointer(root: JsonObject, reference: JsonValue) -> JsonValue:
    """Return the target of a JSON Pointer within the schema; `None` if the target is missing, or for a reference of
    another form."""
    if not is_pointer(reference):
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


class References:
    """The targets of one schema's references: JSON Pointers, and the names given by `$anchor`, `$dynamicAnchor` and,
    before draft 2019-09, `$id: "#name"`.

    `$dynamicRef` and `$recursiveRef` have the target that a `$ref` with the same text would have: a schema without
    parts that have an `$id` of their own has a single scope. If a name is given twice, the last part with the name
    counts.
    """

    __slots__ = ("_anchors", "places", "repeated", "root")

    def __init__(self, root: JsonObject) -> None:
        self.root = root
        self.places = tuple(_written_or_pointed_to(root))
        """Every schema once: schemas in the places of schemas, and parts elsewhere that a JSON Pointer leads to."""
        self.repeated: str | None = None
        """The path of the first part whose name an earlier part has."""
        self._anchors: dict[str, JsonObject] = {}
        for path, node in self.places:
            for name in _anchor_names(node):
                if name in self._anchors and self.repeated is None:
                    self.repeated = path
                self._anchors[name] = node

    def target(self, reference: JsonValue) -> JsonValue:
        """Return the target of a reference; `None` if it is missing, and for a reference to another document."""
        if isinstance(reference, str) and (named := self._anchors.get(reference)) is not None:
            return named
        return resolve_pointer(self.root, reference)

    def targets(self, node: JsonObject) -> Iterator[tuple[str, JsonValue]]:
        """Yield the keyword and the target of each reference in a schema."""
        for keyword in REFERENCES:
            if keyword in node:
                yield keyword, self.target(node[keyword])


def _anchor_names(node: JsonObject) -> Iterator[str]:
    """Yield the names that a schema gives itself, in the form in which references to them are written."""
    for keyword in ("$anchor", "$dynamicAnchor"):
        name = node.get(keyword)
        if isinstance(name, str):
            yield f"#{name}"
    address = node.get("$id")
    if isinstance(address, str) and address.startswith("#"):
        yield address


def _written_or_pointed_to(root: JsonObject) -> Iterator[LocatedSchema]:
    """Yield the schemas of `References.places`. Stop after one more than the budget allows, which is enough to see that
    there are too many."""
    rest: list[LocatedSchema] = [("$", root)]
    seen: set[int] = set()
    while rest and len(seen) <= MAX_SCHEMAS:
        path, node = rest.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield path, node
        for keyword in REFERENCES:
            if keyword in node and isinstance(target := resolve_pointer(root, node[keyword]), dict):
                rest.append((f"{path}.{keyword}", target))
        rest.extend(reversed(list(object_subschemas(node, path))))


def schema_problem(schema: JsonObject) -> str | None:
    """Return the reason why a schema cannot be used by a reader that only has its text, with the path; `None` if there
    is none.

    References must lead to a schema within it: nothing is fetched, and no part has an `$id` of its own that would
    change the references below it. Patterns must be regular expressions. The cost must stay within the budget of one
    constraint. The types of the keywords' values are not checked.
    """
    budget = Budget()
    reader = PatternReader(budget)
    references = References(schema)
    if references.repeated is not None:
        return f"{references.repeated} has the same name as another part"
    for path, node in references.places:
        try:
            budget.count_schema()
        except OverBudget as error:
            return f"{path} {error}"
        problem = _reference_problem(references, path, node) or _pattern_problem(path, node, reader)
        if problem is not None:
            return problem
    if longest_chain(references) > MAX_CHAIN:
        return f"it applies more than {MAX_CHAIN} schemas in a row to one value"
    return None


def _reference_problem(references: References, path: str, node: JsonObject) -> str | None:
    address = node.get("$id")
    if node is not references.root and isinstance(address, str) and not address.startswith("#"):
        return f"{path}.$id gives a part of the schema an address of its own"
    for keyword in REFERENCES:
        reference = node.get(keyword)
        if not isinstance(reference, str):
            continue
        if not reference.startswith("#"):
            return f"{path}.{keyword} refers to another document"
        if not isinstance(references.target(reference), dict | bool):
            return f"{path}.{keyword} leads nowhere within the schema"
    return None


def patterns(path: str, node: JsonObject) -> Iterator[tuple[str, str]]:
    """Yield the regular expressions of one schema, each with its path."""
    pattern = node.get("pattern")
    if isinstance(pattern, str):
        yield f"{path}.pattern", pattern
    named = node.get("patternProperties")
    for name in named if isinstance(named, dict) else ():
        yield f"{path}.patternProperties", name


def _pattern_problem(path: str, node: JsonObject, reader: PatternReader) -> str | None:
    for at, pattern in patterns(path, node):
        try:
            reader.parse(pattern)
        except MalformedPattern as error:
            return f"{at} {error}"
    return None


# How much a validator may have to do ----------------------------------------------------------------------------------

_SAME_VALUE = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"})
"""Keywords whose schemas apply to the value itself, not to a part of it."""
_DEFINED = tuple(f".{keyword}." for keyword in DEFINITIONS)


def count_evaluations(schema: JsonObject) -> int:
    """Return how many schemas a validator may evaluate for one value; MAX_SPREAD + 1 for any number above MAX_SPREAD.

    References that double the evaluations at each step reach billions of evaluations from a page of text. A reference
    that leads back to its start is not followed again: a validator evaluates each schema once for a value.
    """
    return _folded(References(schema), lambda totals: min(1 + sum([total for _, total in totals]), MAX_SPREAD + 1))


def longest_chain(references: References) -> int:
    """Return the length of the longest chain of schemas that apply to one value. A chain ends if it leads back to one
    of its own schemas."""
    deepest = 0

    def longest(parts: Sequence[tuple[bool, int]]) -> int:
        nonlocal deepest
        own = 1 + max((length for same, length in parts if same), default=0)
        deepest = max(deepest, own)
        return own

    _folded(references, longest)
    return deepest


def _folded(references: References, combine: Callable[[Sequence[tuple[bool, int]]], int]) -> int:
    """Combine the figures of a schema's parts into the schema's own figure. Each part's figure comes with whether the
    part applies to the same value. Definitions count only through references. The time is linear in the text: each
    schema is combined once, without recursion."""
    known: dict[int, int] = {}
    begun: set[int] = set()
    rest: list[tuple[JsonObject, list[tuple[bool, JsonObject]] | None]] = [(references.root, None)]
    while rest:
        node, parts = rest.pop()
        if parts is not None:
            known[id(node)] = combine([(same, known.get(id(part), 1)) for same, part in parts])
        elif id(node) not in begun:
            begun.add(id(node))
            parts = list(_parts(references, node))
            rest.append((node, parts))
            rest.extend((part, None) for _, part in parts)
    return known[id(references.root)]


def _parts(references: References, node: JsonObject) -> Iterator[tuple[bool, JsonObject]]:
    for path, child in object_subschemas(node, ""):
        if not path.startswith(_DEFINED):
            yield path[1:].partition(".")[0].partition("[")[0] in _SAME_VALUE, child
    for _, target in references.targets(node):
        if isinstance(target, dict):
            yield True, target
