"""Generator of the smallest value that a JSON Schema allows.

Schemas that cannot be satisfied by construction (`not`, `if`, `contains`, endless references) are refused, so that a
response of the mock either fits its schema or is an error. The one exception is `oneOf`, which is read as `anyOf`.
Keywords: JSON Schema 2020-12.
"""

import math
from collections.abc import Callable, Mapping

import orjson

from providers.json_types import JsonObject, JsonValue
from providers.mock.errors import Unsupported
from providers.mock.regex import sample

MAX_DEPTH = 32
MAX_VALUES = 4096
MAX_WORK = 20_000
"""The maximum number of copied fields and written bytes for one value, because references multiply both."""

_REFUSED_KEYWORDS = frozenset(
    {"not", "if", "contains", "dependentRequired", "dependentSchemas", "propertyNames", "$dynamicRef"}
)
_FORMAT_EXAMPLES = {
    "date-time": "2024-01-01T00:00:00Z",
    "date": "2024-01-01",
    "time": "00:00:00Z",
    "duration": "P1D",
    "email": "someone@example.com",
    "hostname": "example.com",
    "uri": "https://example.com/",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uuid": "00000000-0000-4000-8000-000000000000",
}
_ANNOTATION_KEYWORDS = frozenset(
    {"title", "description", "default", "examples", "$comment", "$defs", "definitions", "$schema", "$id"}
)
_KEYWORD_TYPES = {
    "properties": "object",
    "required": "object",
    "items": "array",
    "prefixItems": "array",
    "minItems": "array",
    "minimum": "number",
    "exclusiveMinimum": "number",
    "maximum": "number",
    "multipleOf": "number",
}


def instance(schema: JsonValue) -> JsonValue:
    """Return a value with the required properties, the fewest items, and the first option of each choice. Raises
    Unsupported."""
    return _Maker(schema).make(schema, 0)


class _Maker:
    """Generates one value, and counts the work, because references can multiply it."""

    def __init__(self, root: JsonValue) -> None:
        self._root = root
        self._values_left = MAX_VALUES
        self._work_left = MAX_WORK

    def _spend(self, work: int) -> None:
        self._work_left -= work
        if self._work_left < 0:
            raise Unsupported("the schema needs a value that is too deep or too large")

    def _literal(self, value: JsonValue) -> JsonValue:
        """Return a value that is written in the schema itself."""
        self._spend(len(orjson.dumps(value)))
        return value

    def _merged(self, schema: JsonObject, keyword: str, part: JsonValue) -> JsonObject:
        self._spend(_size_of(schema) + _size_of(part))
        return _merged(schema, keyword, part)

    def make(self, schema: JsonValue, depth: int) -> JsonValue:
        self._values_left -= 1
        if depth > MAX_DEPTH or self._values_left < 0:
            raise Unsupported("the schema needs a value that is too deep or too large")
        if schema is True:
            return "text"
        if not isinstance(schema, dict):
            raise Unsupported("a schema in it is neither an object nor true")
        if refused := _REFUSED_KEYWORDS & schema.keys():
            raise Unsupported(f"the keyword '{min(refused)}' is not supported")
        if "const" in schema:
            return self._literal(schema["const"])
        if "enum" in schema:
            return self._literal(_first(schema["enum"], "enum"))
        narrower = self._resolved(schema)
        return self._typed(schema, depth) if narrower is None else self.make(narrower, depth + 1)

    def _resolved(self, schema: JsonObject) -> JsonObject | None:
        """Return the schema with one reference or combination resolved, or `None` if there is none."""
        if "$ref" in schema:
            return self._merged(schema, "$ref", self._resolve(schema["$ref"]))
        if "allOf" in schema:
            return self._all(schema)
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                return self._merged(schema, keyword, _first(schema[keyword], keyword))
        return None

    def _typed(self, schema: JsonObject, depth: int) -> JsonValue:
        kind = _type(schema)
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            return self._array(schema, depth)
        make = _SCALARS.get(kind) if isinstance(kind, str) else None
        if make is None:
            raise Unsupported(f"the type {kind!r} is not supported")
        scalar = make(schema)
        self._spend(len(scalar) if isinstance(scalar, str) else 1)
        return scalar

    def _resolve(self, reference: JsonValue) -> JsonValue:
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise Unsupported("only references within the schema are supported")
        schema_part = self._root
        for step in reference[1:].split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(schema_part, dict) or name not in schema_part:
                raise Unsupported(f"the reference '{reference}' leads nowhere")
            schema_part = schema_part[name]
        return schema_part

    def _all(self, schema: JsonObject) -> JsonObject:
        parts = schema["allOf"]
        if not isinstance(parts, list):
            raise Unsupported("'allOf' is not a list")
        merged = {name: value for name, value in schema.items() if name != "allOf"}
        for part in parts:
            if isinstance(part, dict) and "$ref" in part:
                part = self._merged(part, "$ref", self._resolve(part["$ref"]))
            merged = self._merged(merged, "allOf", part)
        return merged

    def _object(self, schema: JsonObject, depth: int) -> JsonObject:
        properties, required = schema.get("properties", {}), schema.get("required", [])
        if not isinstance(properties, dict) or not isinstance(required, list):
            raise Unsupported("'properties' is not an object or 'required' is not a list")
        self._spend(len(properties) + len(required))
        names = list(dict.fromkeys(name for name in required if isinstance(name, str)))
        if "patternProperties" in schema and not properties.keys() >= set(names):
            raise Unsupported("a required name that only 'patternProperties' can describe is not supported")
        minimum = _integer(schema, "minProperties")
        properties_left = set(names)
        names += [name for name in properties if name not in properties_left][: max(0, minimum - len(names))]
        self._spend(sum(map(len, names)))
        if len(names) < minimum:
            raise Unsupported("'minProperties' requires more properties than the schema names")
        other = schema.get("additionalProperties", True)
        return {name: self.make(properties.get(name, other), depth + 1) for name in names}

    def _array(self, schema: JsonObject, depth: int) -> list[JsonValue]:
        minimum = _integer(schema, "minItems")
        if schema.get("uniqueItems") is True and minimum > 1:
            raise Unsupported("'uniqueItems' with more than one item is not supported")
        prefix = schema.get("prefixItems", [])
        if not isinstance(prefix, list):
            raise Unsupported("'prefixItems' is not a list")
        if minimum > MAX_VALUES:
            raise Unsupported("'minItems' is too large")
        rest = schema.get("items", True)
        return [self.make(prefix[at] if at < len(prefix) else rest, depth + 1) for at in range(minimum)]


def _merged(schema: JsonObject, keyword: str, part: JsonValue) -> JsonObject:
    """Return `schema` without `keyword`, narrowed by `part`. Raises Unsupported if the two contradict each other."""
    if part is True:
        part = {}
    if not isinstance(part, dict):
        raise Unsupported(f"a schema below '{keyword}' is not an object")
    merged = {name: member for name, member in schema.items() if name != keyword}
    for name, member in part.items():
        known = merged.get(name)
        if name not in merged or name in _ANNOTATION_KEYWORDS:
            merged[name] = member
        elif name == "properties" and isinstance(known, dict) and isinstance(member, dict):
            for shared in known.keys() & member.keys():
                if known[shared] != member[shared]:
                    raise Unsupported(f"two schemas for the property '{shared}' are not supported")
            merged[name] = {**known, **member}
        elif name == "required" and isinstance(known, list) and isinstance(member, list):
            merged[name] = _joined_names(known, member)
        elif known != member:
            raise Unsupported(f"two values of '{name}' in one schema are not supported")
    return merged


def _joined_names(known: list[JsonValue], more: list[JsonValue]) -> list[JsonValue]:
    """Return the names of both lists, once each and in order. Items that are not strings are left out, because
    `required` ignores them."""
    return [*dict.fromkeys(name for name in (*known, *more) if isinstance(name, str))]


def _size_of(schema: JsonValue) -> int:
    """Return the number of fields to copy or compare, including the fields one level below."""
    if not isinstance(schema, dict):
        return 1
    return len(schema) + sum(len(value) for value in schema.values() if isinstance(value, dict | list | str))


def _first(options: JsonValue, keyword: str) -> JsonValue:
    if not isinstance(options, list) or not options:
        raise Unsupported(f"'{keyword}' is not a list of at least one")
    return options[0]


def _type(schema: JsonObject) -> JsonValue:
    kind = schema.get("type")
    if isinstance(kind, list):
        return _first(kind, "type")
    if kind is not None:
        return kind
    return next((implied for keyword, implied in _KEYWORD_TYPES.items() if keyword in schema), "string")


def _integer(schema: Mapping[str, JsonValue], keyword: str) -> int:
    value = schema.get(keyword, 0)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise Unsupported(f"'{keyword}' is not a whole number")
    return value


def _string(schema: JsonObject) -> str:
    pattern, form = schema.get("pattern"), schema.get("format")
    minimum, maximum = _integer(schema, "minLength"), schema.get("maxLength")
    if isinstance(pattern, str):
        text = sample(pattern)
    elif isinstance(form, str) and form in _FORMAT_EXAMPLES:
        text = _FORMAT_EXAMPLES[form]
    elif minimum > MAX_VALUES:
        raise Unsupported("'minLength' is too large")
    else:
        text = "text".ljust(minimum, "x")[: maximum if isinstance(maximum, int) and maximum >= 0 else None]
    if len(text) < minimum or (isinstance(maximum, int) and len(text) > maximum):
        raise Unsupported("no simple text has the required length")
    return text


def _number(schema: JsonObject, step: int) -> int | float:
    """Return 0 if it is allowed, else the first multiple from the lower bound. `step` is 1 for whole numbers."""
    low, high = _bound(schema, "minimum", -math.inf), _bound(schema, "maximum", math.inf)
    above, below = _bound(schema, "exclusiveMinimum", -math.inf), _bound(schema, "exclusiveMaximum", math.inf)
    unit = _bound(schema, "multipleOf", step)
    if unit < 0 or (step and (unit < 1 or unit % 1)):
        raise Unsupported("such a 'multipleOf' is not supported")
    candidates = [0.0]
    for edge in (max(low, above), min(high, below)):
        if math.isfinite(edge):
            base = math.floor(edge / unit) * unit if unit else edge
            candidates += [base, base + (unit or 1), base - (unit or 1)]
    lower, upper = max(low, above), min(high, below)
    if not unit and math.isfinite(lower) and math.isfinite(upper):
        candidates.append((lower + upper) / 2)
    for value in candidates:
        if low <= value <= high and above < value < below:
            return int(value) if float(value).is_integer() else value
    raise Unsupported("no simple number lies between the bounds")


def _bound(schema: JsonObject, keyword: str, default: float) -> float:
    value = schema.get(keyword, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unsupported(f"'{keyword}' is not a number")
    return value


_SCALARS: Mapping[str, Callable[[JsonObject], JsonValue]] = {
    "string": _string,
    "integer": lambda schema: _number(schema, 1),
    "number": lambda schema: _number(schema, 0),
    "boolean": lambda schema: True,
    "null": lambda schema: None,
}
