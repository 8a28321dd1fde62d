"""Fits one part of a schema to a vendor's keywords, in place.

Keywords that have an equivalent are rewritten. Keywords that the vendor refuses or ignores are removed and named in the
part's description.
"""

from typing import Final

import orjson

from providers.constraints.engine_gaps import DEMANDS_NOTHING, unenforced
from providers.constraints.fit_references import Unfittable, follow
from providers.constraints.json_schema import DEFINITIONS, References, required_names, subschemas
from providers.constraints.schema_rules import ANNOTATIONS, ASSERTIONS, SchemaRules, takes_literal
from providers.json_types import JsonObject, JsonValue

MOST_NOTED_CHARACTERS: Final = 200
"""The most characters of one keyword's value that the description quotes."""

_MERGEABLE_KEYWORDS = frozenset({"properties", "required", "type", "additionalProperties", *ANNOTATIONS})
_TYPE_KEYWORDS = frozenset({"type", "anyOf", "allOf", "enum", "const", "$ref", "properties"})
_TYPE_NAMES: Final = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


def fit_node(references: References, node: JsonObject, rules: SchemaRules, *, cyclic: bool = False) -> bool:
    """Fit one part, and return whether it then promises less than before. Raises Unfittable.

    `cyclic` is true if a part of the schema refers to itself; then the targets of references are never copied.
    """
    part = _Part(references, node, rules, cyclic)
    for step in (
        part.rewrite_alternatives,
        part.merge,
        part.rewrite_literals,
        part.rewrite_positions,
        part.remove_texts,
        part.remove_ignored,
        part.close,
        part.require,
        part.remove_unknown,
        part.rewrite_booleans,
        part.check_type,
    ):
        step()
    part.write_notes()
    return part.weaker


class _Part:
    """One part of a schema while it is fitted. `notes` are the texts that are appended to its description."""

    __slots__ = ("cyclic", "node", "notes", "references", "rules", "weaker")

    def __init__(self, references: References, node: JsonObject, rules: SchemaRules, cyclic: bool) -> None:
        self.references, self.node, self.rules, self.cyclic = references, node, rules, cyclic
        self.notes: list[str] = []
        self.weaker = False

    def remove(self, keyword: str) -> None:
        """Remove a keyword. If a value can violate the keyword, note the keyword for the description, and note that the
        response must be checked."""
        value = self.node.pop(keyword)
        if keyword in ASSERTIONS and value != DEMANDS_NOTHING.get(keyword):
            self.weaker = True
            self.note(keyword, value)

    def note(self, keyword: str, value: JsonValue) -> None:
        """Note a keyword for the description."""
        self.notes.append(f"{keyword}: {orjson.dumps(value).decode()[:MOST_NOTED_CHARACTERS]}")

    def write_notes(self) -> None:
        """Append the notes to the description."""
        if self.notes:
            own = self.node.get("description")
            words = f"({'; '.join(self.notes)})"
            self.node["description"] = f"{own} {words}" if isinstance(own, str) and own else words

    def rewrite_alternatives(self) -> None:
        """Write `oneOf` as `anyOf`. Both mean the same if no value fits two of the alternatives."""
        node = self.node
        parts = node.get("oneOf")
        if self.rules.takes("oneOf") or not isinstance(parts, list) or "anyOf" in node:
            return
        del node["oneOf"]
        node["anyOf"] = parts
        self.weaker = self.weaker or not _are_exclusive(self.references, parts)

    def merge(self) -> None:
        """Replace `allOf` by its parts if they describe one object."""
        node, parts = self.node, self.node.get("allOf")
        if not isinstance(parts, list):
            return
        refers = any(isinstance(part, dict) and "$ref" in part for part in parts)
        if self.rules.takes("allOf") and not (refers and self.rules.own_root_definitions):
            return
        if self.rules.keywords is None:
            return
        if len(parts) == 1 and isinstance(parts[0], dict) and node.keys() - ANNOTATIONS == {"allOf"}:
            del node["allOf"]
            self._replace_by_part(parts[0])
            return
        own = {key: value for key, value in node.items() if key != "allOf"}
        merged = None if refers and self.cyclic else _merged_object(self.references, [own, *parts])
        if merged is None:
            self.remove("allOf")
        else:
            node.clear()
            node.update(merged)

    def _replace_by_part(self, part: JsonObject) -> None:
        node = self.node
        if "$ref" not in part:
            for keyword, value in part.items():
                node.setdefault(keyword, value)
        elif self.rules.wrapped and "description" in node:
            node["anyOf"] = [part]
        else:
            node.clear()
            node.update(part)

    def rewrite_literals(self) -> None:
        """Write `const` as `enum` if the vendor does not know `const`. Remove an `enum` with values that may not be
        listed."""
        node, rules = self.node, self.rules
        if "const" in node and not (rules.takes("const") and takes_literal(rules.literals, node["const"])):
            if "enum" in node:
                self.remove("const")
            else:
                node["enum"] = [node.pop("const")]
        listed = node.get("enum")
        if not isinstance(listed, list):
            return
        if rules.typed or rules.literals != "any":
            self._set_type_of_values(listed)
        if not all(takes_literal(rules.literals, value) for value in listed):
            self.remove("enum")

    def _set_type_of_values(self, listed: list[JsonValue]) -> None:
        types = list(dict.fromkeys(_TYPE_NAMES[type(value)] for value in listed if type(value) in _TYPE_NAMES))
        if "type" not in self.node and types and all(type(value) in _TYPE_NAMES for value in listed):
            self.node["type"] = types[0] if len(types) == 1 else [*types]

    def rewrite_positions(self) -> None:
        """Write the positions of a tuple as one schema for all of them if the vendor cannot distinguish positions."""
        node, rules = self.node, self.rules
        keyword = "items" if isinstance(node.get("items"), list) else "prefixItems"
        listed = node.get(keyword)
        if rules.keywords is not None and isinstance(listed, list):
            if keyword == "items" and rules.takes("prefixItems"):
                node["prefixItems"] = node.pop("items")
            elif not rules.takes("prefixItems"):
                self.remove(keyword)
                distinct = list({orjson.dumps(part): part for part in listed}.values())
                last = node.get("items")
                if isinstance(last, dict):
                    distinct.append(last)
                node["items"] = distinct[0] if len(distinct) == 1 else {"anyOf": distinct}
        least = node.get("minItems")
        if rules.most_items is not None and isinstance(least, int) and least > rules.most_items:
            self.remove("minItems")
            node["minItems"] = rules.most_items

    def remove_texts(self) -> None:
        """Remove patterns and formats that the vendor does not know. A format is an annotation."""
        node, rules = self.node, self.rules
        pattern, form = node.get("pattern"), node.get("format")
        if isinstance(pattern, str) and rules.takes("pattern") and not rules.patterns(pattern):
            self.remove("pattern")
        if isinstance(form, str) and (
            not rules.takes("format") or (rules.formats is not None and form not in rules.formats)
        ):
            self.note("format", node.pop("format"))

    def remove_ignored(self) -> None:
        """Remove keywords that an engine ignores in this part."""
        if self.rules.engine is not None:
            for keyword in unenforced(self.rules.engine, self.references.root, self.node):
                self.remove(keyword)

    def close(self) -> None:
        """Close an object with properties. Raises Unfittable for a map, which would be empty."""
        node = self.node
        if not self.rules.closed or not _is_object(node):
            return
        properties = node.get("properties")
        named = properties if isinstance(properties, dict) else {}
        if node.get("additionalProperties") is not False:
            if "properties" not in node:
                raise Unfittable("has an object with any properties")
            node["additionalProperties"] = False
        if any(name not in named for name in required_names(node)):
            raise Unfittable("requires a property that it does not describe")

    def require(self) -> None:
        """Require every property, or at least one property, as the vendor demands."""
        node, rules = self.node, self.rules
        properties = node.get("properties")
        if not isinstance(properties, dict) or not _is_object(node):
            return
        if rules.all_required:
            for name in properties.keys() - required_names(node):
                _note_default(properties[name])
        given = required_names(node)
        if (rules.all_required and given != properties.keys()) or (rules.some_required and properties and not given):
            node["required"] = [*properties]

    def remove_unknown(self) -> None:
        """Remove keywords that the vendor does not know."""
        if self.rules.keywords is None:
            return
        for keyword in [keyword for keyword in self.node if keyword not in self.rules.keywords]:
            if not (keyword in DEFINITIONS and self.rules.takes("$defs")):
                self.remove(keyword)

    def rewrite_booleans(self) -> None:
        """Write a part that accepts every value as an empty schema."""
        if self.rules.typed or not self.rules.own_root_definitions:
            return
        for holder in (self.node, self.node.get("properties")):
            for name in [*holder] if isinstance(holder, dict) else ():
                inside = holder is not self.node or name == "items"
                if isinstance(holder, dict) and inside and holder[name] is True:
                    holder[name] = {}
        options = self.node.get("anyOf")
        if isinstance(options, list):
            self.node["anyOf"] = [{} if each is True else each for each in options]
        if any(part is False and at != ".additionalProperties" for at, part in subschemas(self.node, "")):
            raise Unfittable("has a part that accepts no value")

    def check_type(self) -> None:
        """Raise Unfittable if the vendor demands a type and there is none."""
        node = self.node
        if not self.rules.typed:
            return
        types = node.get("type")
        listed = types if isinstance(types, list) else [types]
        if node.keys().isdisjoint(_TYPE_KEYWORDS) or ("array" in listed and not isinstance(node.get("items"), dict)):
            raise Unfittable("has a part that may be anything")
        if any(isinstance(part, bool) and at != ".additionalProperties" for at, part in subschemas(node, "")):
            raise Unfittable("has a part that may be anything")


def _note_default(member: JsonValue) -> None:
    """Add the default of a property that becomes required to its description."""
    if isinstance(member, dict) and "default" in member and "$ref" not in member:
        words = f"(default: {orjson.dumps(member['default']).decode()[:MOST_NOTED_CHARACTERS]})"
        own = member.get("description")
        member["description"] = f"{own} {words}" if isinstance(own, str) and own else words


def _is_object(node: JsonObject) -> bool:
    types = node.get("type")
    return types == "object" or (isinstance(types, list) and "object" in types) or "properties" in node


def _merged_object(references: References, parts: list[JsonValue]) -> JsonObject | None:
    """Return the one object that several parts describe together; `None` if they describe more than objects."""
    made: JsonObject = {}
    properties: JsonObject = {}
    required: dict[str, None] = {}
    for part in parts:
        if not isinstance(part, dict):
            return None
        part = follow(references, part)
        named = part.get("properties", {})
        if (
            part.keys() - _MERGEABLE_KEYWORDS - {*DEFINITIONS}
            or not isinstance(named, dict)
            or properties.keys() & named.keys()
        ):
            return None
        if part.get("additionalProperties", True) is not True or part.get("type", "object") != "object":
            return None
        properties.update(named)
        required.update(dict.fromkeys(sorted(required_names(part))))
        made.update({key: value for key, value in part.items() if key in ANNOTATIONS and key not in made})
    own = parts[0]
    kept = {key: value for key, value in own.items() if key in DEFINITIONS} if isinstance(own, dict) else {}
    return {**made, **kept, "type": "object", "properties": properties, "required": [*required]}


def _are_exclusive(references: References, parts: list[JsonValue]) -> bool:
    """Return whether no value fits two alternatives, since a property that all of them require differs in each."""
    objects = [follow(references, part) for part in parts if isinstance(part, dict)]
    if len(objects) != len(parts) or not objects:
        return False
    shared = set.intersection(*[required_names(each) for each in objects])
    return any(_are_distinct([_only_text_of(each, name) for each in objects]) for name in sorted(shared))


def _are_distinct(literals: list[str | None]) -> bool:
    return None not in literals and len(set(literals)) == len(literals)


def _only_text_of(node: JsonObject, name: str) -> str | None:
    """Return the only text that a property may have; `None` if it may have other values."""
    properties = node.get("properties")
    member = properties.get(name) if isinstance(properties, dict) else None
    if not isinstance(member, dict):
        return None
    listed = member.get("enum", [member.get("const")])
    single = listed[0] if isinstance(listed, list) and len(listed) == 1 else None
    return single if isinstance(single, str) else None
