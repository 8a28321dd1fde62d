"""Finds the keywords of a schema that the converters of open engines ignore, so that the schema's description names
them and the response is checked.

The converters turn a schema into a grammar, and drop without an error the keywords that a grammar cannot express; a
response with status 200 may then break the schema. All of them read `oneOf` as `anyOf`, which is not detected here.
`format` is an annotation, as in the standard. Builds with another converter may accept more.

Sources: llama.cpp `common/json-schema-to-grammar.cpp` and `grammars/README.md`; the list of keywords that vLLM keeps
from xgrammar, which SGLang uses; outlines-core `src/json_schema`, which TGI uses; Fireworks "Structured outputs". Read
in November 2026.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from providers.constraints.json_schema import DEFINITIONS, resolve_pointer
from providers.constraints.regex_parse import MalformedPattern, find_unsupported, parse
from providers.json_types import JsonObject, JsonValue

Check = Callable[[JsonObject, JsonObject], str | None]
"""Takes the root of a schema and a part of the schema. Returns the part's problem as text that begins with the keyword
at fault and follows the part's path in a message; `None` if there is no problem."""

_INEXPRESSIBLE_KEYWORDS = frozenset(
    {"not", "if", "then", "else", "contains", "minContains", "maxContains", "uniqueItems", "multipleOf"}
    | {"dependentRequired", "dependentSchemas", "dependencies"}
)
_NAME_KEYWORDS = frozenset({"patternProperties", "propertyNames", "minProperties", "maxProperties"})
_REMAINDER_KEYWORDS = frozenset({"unevaluatedProperties", "unevaluatedItems", "additionalItems"})
_BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
_LENGTHS = frozenset({"minLength", "maxLength"})
_SIZES = frozenset({"minItems", "maxItems"})
_ANNOTATION_KEYWORDS = frozenset(
    {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "type"}
    | {"$schema", "$id", "$comment", "$anchor", *DEFINITIONS}
)
DEMANDS_NOTHING: dict[str, JsonValue] = {
    "uniqueItems": False,
    "minProperties": 0,
    "minLength": 0,
    "minItems": 0,
    "unevaluatedProperties": True,
    "unevaluatedItems": True,
    "additionalItems": True,
    "propertyNames": True,
}


_MAX_HOPS = 16
"""The longest chain of references. A longer chain counts as one whose target is missing."""


@dataclass(frozen=True, slots=True)
class Engine:
    """A converter: the keywords that it always ignores, and checks for keywords that it ignores under a condition."""

    ignored: frozenset[str]
    checks: tuple[Check, ...] = ()


def unenforced(engine: Engine, root: JsonObject, node: JsonObject) -> list[str]:
    """Return the keywords of one part of a schema that the engine would not enforce."""
    found = {keyword: None for keyword in node if keyword in engine.ignored and _demands(node, keyword)}
    rest = {keyword: value for keyword, value in node.items() if keyword not in found}
    for check in engine.checks:
        # A check names the first keyword at fault.
        while problem := check(root, rest):
            keyword = next((name for name in rest if problem.startswith((f".{name} ", f".{name}["))), None)
            if keyword is None:
                break
            found[keyword] = None
            del rest[keyword]
    return [*found]


def _demands(node: JsonObject, keyword: str) -> bool:
    return node[keyword] != DEMANDS_NOTHING.get(keyword)


def _is_only_type(node: JsonObject, kind: str) -> bool:
    """Return whether the schema's `type` is `kind`, or `kind` and null."""
    types = node.get("type")
    listed = types if isinstance(types, list) else [types]
    return kind in listed and all(name in (kind, "null") for name in listed)


def _unsupported_pattern(root: JsonObject, node: JsonObject) -> str | None:
    pattern = node.get("pattern")
    if not isinstance(pattern, str):
        return None
    try:
        problem = find_unsupported(parse(pattern))
    except MalformedPattern as error:
        problem = str(error)
    return None if problem is None else f".pattern is not enforced: it {problem}"


# llama.cpp takes the first keyword that it knows, in an order of its own, and ignores the keywords beside it.


def _unanchored_pattern(root: JsonObject, node: JsonObject) -> str | None:
    pattern = node.get("pattern")
    if isinstance(pattern, str) and not (pattern.startswith("^") and pattern.endswith("$")):
        return ".pattern is only enforced if it begins with '^' and ends with '$'"
    return None


def _ignored_lengths(root: JsonObject, node: JsonObject) -> str | None:
    beside = "pattern" in node or "format" in node
    return _unless(
        node, _LENGTHS, _is_only_type(node, "string") and not beside, "type string, without pattern or format"
    )


def _ignored_bounds(root: JsonObject, node: JsonObject) -> str | None:
    bounds = [node[keyword] for keyword in _BOUNDS & node.keys()]
    whole = all(isinstance(bound, int) and not isinstance(bound, bool) for bound in bounds)
    both = {"minimum", "exclusiveMinimum"} <= node.keys() or {"maximum", "exclusiveMaximum"} <= node.keys()
    enforced = _is_only_type(node, "integer") and whole and not both
    return _unless(node, _BOUNDS, enforced, "type integer, and a single whole number for each end")


def _ignored_sizes(root: JsonObject, node: JsonObject) -> str | None:
    prefix, items = node.get("prefixItems"), node.get("items")
    tuple_ = prefix if isinstance(prefix, list) else items
    if isinstance(tuple_, list):
        if isinstance(prefix, list) and "items" in node:
            return ".items is not enforced beside prefixItems"
        # Every position is then filled, so sizes that require the same number are enforced.
        same = all(node[keyword] == len(tuple_) for keyword in _SIZES & node.keys())
        return _unless(node, _SIZES, same, "the number of positions")
    return _unless(node, _SIZES, isinstance(items, dict), "items that are a schema")


def _ignored_required(root: JsonObject, node: JsonObject) -> str | None:
    required, properties = node.get("required"), node.get("properties")
    names = properties if isinstance(properties, dict) else {}
    missing = next((name for name in required if name not in names), None) if isinstance(required, list) else None
    return None if missing is None else f".required is only enforced for properties, and {missing!r} is not a property"


def _unless(node: JsonObject, keywords: frozenset[str], enforced: bool, condition: str) -> str | None:
    keyword = next((word for word in node if word in keywords and _demands(node, word)), None)
    return None if enforced or keyword is None else f".{keyword} is only enforced with {condition}"


def _ignored_siblings(root: JsonObject, node: JsonObject) -> str | None:
    for leading in ("$ref", "oneOf", "anyOf"):
        if leading in node:
            beside = next(
                (keyword for keyword in node if keyword not in _ANNOTATION_KEYWORDS and keyword != leading), None
            )
            return None if beside is None else f".{beside} is not enforced beside {leading}"
    return None


def _ignored_all_of(root: JsonObject, node: JsonObject) -> str | None:
    parts = node.get("allOf")
    if not isinstance(parts, list):
        return None
    alone = "properties" not in node and node.get("additionalProperties", True) is True
    mergeable = alone and node.get("type", "object") == "object"
    if mergeable and all(isinstance(part, dict) and _mergeable(root, part) for part in parts):
        return None
    return ".allOf is only enforced with parts that have properties or an enum, and nothing beside them"


def _mergeable(root: JsonObject, part: JsonObject) -> bool:
    return any("properties" in target or "enum" in target for target in _chain(root, part))


def _chain(root: JsonObject, node: JsonObject) -> Iterator[JsonObject]:
    """Yield the schema and the targets of its references one after the other. At most `_MAX_HOPS` are followed, since
    every part of an `allOf` may begin the same long chain."""
    found: JsonValue = node
    for _ in range(_MAX_HOPS):
        if not isinstance(found, dict):
            return
        yield found
        found = resolve_pointer(root, found.get("$ref"))


LLAMACPP = Engine(
    _INEXPRESSIBLE_KEYWORDS | _NAME_KEYWORDS | _REMAINDER_KEYWORDS,
    (
        _unsupported_pattern,
        _unanchored_pattern,
        _ignored_lengths,
        _ignored_bounds,
        _ignored_sizes,
        _ignored_required,
        _ignored_siblings,
        _ignored_all_of,
    ),
)
SGLANG = Engine(_INEXPRESSIBLE_KEYWORDS)
TGI = Engine(_INEXPRESSIBLE_KEYWORDS | _NAME_KEYWORDS | _REMAINDER_KEYWORDS | _BOUNDS)
FIREWORKS = Engine(
    _INEXPRESSIBLE_KEYWORDS | _NAME_KEYWORDS | _BOUNDS | {"unevaluatedItems", "additionalItems", "prefixItems"},
    (_unsupported_pattern,),
)
