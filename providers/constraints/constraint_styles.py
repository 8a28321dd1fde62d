"""Constraints on the generated text in each vendor's form: from `guided_*` and `response_format` to body members.

A constraint is never weakened in silence: a schema of which a vendor enforces a part is sent as that part, with a note
that the answer must be checked; a constraint that a vendor cannot enforce is `Unenforceable`.

Sources: vLLM 0.9 to 0.33, SGLang 0.5.23, llama.cpp server, TGI, NVIDIA NIM 1.x, Fireworks "Structured outputs", OpenAI
"Structured outputs" strict rules; read in November 2026. That llama.cpp's completions honour `json_schema` and ignore
`response_format` was found by trial.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

import orjson

from providers.capabilities import NATIVE, Cell, emulated, refused
from providers.constraints.adapt_schema import FittedSchema, fit_schema
from providers.constraints.engine_gaps import Engine
from providers.constraints.object_root import (
    SCHEMA_NAME,
    VALUE_MEMBER,
    fitting_name,
    is_object,
    with_root_type,
    wrapped_schema,
)
from providers.constraints.regex_parse import MalformedPattern, parse
from providers.constraints.regex_to_gbnf import Unwritable, gbnf_literal, to_gbnf
from providers.constraints.schema_rules import SchemaRules, rules_of
from providers.json_types import JsonObject
from providers.unified_request import Guided, GuidedKind

CHOICE_MEMBER = "choice"
SCHEMA_MODE = "json_object with a schema"


class Unenforceable(Exception):
    """The vendor cannot enforce this constraint; `reason` is for the client."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class ConstraintMembers:
    """Body members that make the vendor enforce a constraint. `unwrap` says that the answer is an object whose `choice`
    is the text; `emulated` that the vendor lacks the field itself; `unheld` that the members promise less than the
    constraint, so that the answer must be checked; `in_text` that there are none, and the prompt has to tell it."""

    members: JsonObject
    unwrap: bool = False
    emulated: bool = False
    unheld: bool = False
    in_text: bool = False


BY_ENUM = emulated("a JSON object with one enum member")
BY_REGEX = emulated("a regular expression")
BY_GRAMMAR = emulated("a grammar")
LOOSELY = emulated("the vendor reads the schema, and the answer is checked")
IN_TEXT = emulated("the prompt asks for it, and the answer is checked")
TOLD = ConstraintMembers({}, emulated=True, unheld=True, in_text=True)
"""A constraint that the vendor has no form for: the prompt tells it, and the answer is checked."""


# Conversions of a constraint ----------------------------------------------------------------------------------------


def choice_schema(choices: Sequence[str]) -> JsonObject:
    """Return the object schema for a choice, where only JSON Schema can be enforced."""
    return {
        "type": "object",
        "properties": {CHOICE_MEMBER: {"type": "string", "enum": list(choices)}},
        "required": [CHOICE_MEMBER],
        "additionalProperties": False,
    }


def unwrap_choice(text: str) -> str:
    """Return the choice in a response to `choice_schema`, or the JSON of the value in one to `wrapped_schema`. Raises
    ValueError if there is none (a cut response, a refusal)."""
    value = orjson.loads(text)
    if isinstance(value, dict) and VALUE_MEMBER in value and CHOICE_MEMBER not in value:
        return orjson.dumps(value[VALUE_MEMBER]).decode()
    choice = value.get(CHOICE_MEMBER) if isinstance(value, dict) else None
    if not isinstance(choice, str):
        raise ValueError("the answer holds no choice")
    return choice


def choice_regex(choices: Sequence[str]) -> str:
    """Return an alternation of the literals, longest first.

    Only special characters are escaped: engines differ about a backslash before others (to Rust's, an escaped angle
    bracket is a word boundary).
    """
    escaped = (_SPECIAL.sub(_escape, choice) for choice in sorted(choices, key=len, reverse=True))
    return f"({'|'.join(escaped)})"


_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$\n\r\t]")
_BY_LETTER: Mapping[str, str] = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _escape(match: re.Match[str]) -> str:
    found = match.group()
    return _BY_LETTER.get(found, f"\\{found}")


def choice_grammar(choices: Sequence[str]) -> str:
    """Return a GBNF alternation of the literals, as llama.cpp, Fireworks and xgrammar read it."""
    return "root ::= " + " | ".join(gbnf_literal(choice) for choice in choices)


def regex_grammar(pattern: str) -> str:
    """Return the GBNF grammar of the texts that match from end to end. Raises Unenforceable."""
    try:
        return to_gbnf(parse(pattern))
    except (MalformedPattern, Unwritable) as error:
        raise Unenforceable(f"it has no regular expressions, and as a grammar the pattern {error}") from None


def json_schema_format(schema: JsonObject, *, strict: bool) -> JsonObject:
    """Return OpenAI's `response_format` for a schema."""
    return {"type": "json_schema", "json_schema": {"name": SCHEMA_NAME, "schema": schema, "strict": strict}}


# Encodings ----------------------------------------------------------------------------------------------------------

Make = Callable[[Guided], JsonObject]


@dataclass(frozen=True, slots=True)
class Encoding:
    """How one kind of constraint is sent: `make` returns the body members, or raises Unenforceable."""

    cell: Cell
    make: Make
    unwrap: bool = False

    def constraint(self, guided: Guided) -> ConstraintMembers:
        """Return the members for a constraint. Raises Unenforceable."""
        if self.cell == IN_TEXT:
            return TOLD
        return ConstraintMembers(self.make(guided), self.unwrap, self.cell.emulated)


def refused_encoding(reason: str) -> Encoding:
    """Return the encoding of constraints that the vendor cannot enforce."""

    def make(guided: Guided) -> JsonObject:
        raise Unenforceable(reason)

    return Encoding(refused(reason), make)


TOLD_IN_PROMPT = Encoding(IN_TEXT, lambda guided: {})
"""The encoding of a constraint that is told in the prompt and checked in the answer."""


def member(*path: str) -> Encoding:
    """Return the encoding that sends the value unchanged in the member at a path."""

    def make(guided: Guided) -> JsonObject:
        members: JsonObject = {path[-1]: list(guided.value) if isinstance(guided.value, tuple) else guided.value}
        for name in reversed(path[:-1]):
            members = {name: members}
        return members

    return Encoding(NATIVE, make)


SCHEMA_FORMAT = Encoding(NATIVE, lambda guided: {"response_format": json_schema_format(guided.schema, strict=True)})
SCHEMA_ONLY = refused_encoding("it can only be held to a JSON Schema")


@dataclass(frozen=True, slots=True)
class ConstraintStyle:
    """How the vendors of one kind enforce constraints on one endpoint.

    `passes` are the types of `response_format` that are sent unchanged; `SCHEMA_MODE` is Fireworks' JSON mode with a
    schema. `json_mode` holds the body members of the plain JSON mode where it is not in `passes`; without them,
    `object_by_schema` says that it is sent as the schema of any object, and `object_in_text` that the prompt asks for
    it. `rules` are what its schemas may hold, however they are sent (`engine` alone: those of the converter);
    `loosely` makes the members for a schema that has no form by the rules, and is None where the prompt tells it.
    `loose_unless_strict` says that a format without `strict: true` is sent unchanged, `best_effort` that the vendor
    reads a schema and is not held to it. `wraps` says that a value which is no object goes as the property of one, and
    that the names of formats are OpenAI's.
    """

    json: Encoding
    regex: Encoding
    choice: Encoding
    grammar: Encoding
    passes: frozenset[str] = frozenset()
    json_mode: JsonObject | None = None
    object_by_schema: bool = False
    object_in_text: bool = False
    engine: Engine | None = None
    rules: SchemaRules | None = None
    loosely: Make | None = None
    loose_unless_strict: bool = False
    best_effort: bool = False
    wraps: bool = False

    def guided(self, kind: GuidedKind) -> Encoding:
        """Return the encoding of a `guided_*` field."""
        encodings: Mapping[GuidedKind, Encoding] = {
            "json": self.json,
            "regex": self.regex,
            "choice": self.choice,
            "grammar": self.grammar,
        }
        return encodings[kind]

    def form(self, kind: str) -> Encoding | None:
        """Return the encoding of a type of `response_format`; None where it is sent unchanged."""
        if kind in self.passes:
            return None
        if kind == "json_object" and self.json_mode is not None:
            return Encoding(NATIVE, lambda guided: self.json_mode or {})
        if kind == "json_object" and self.object_in_text:
            return TOLD_IN_PROMPT
        if kind == "json_object" and not self.object_by_schema and not self.json.cell.refused:
            return refused_encoding("it has no JSON mode without a schema")
        if kind in ("json_object", "json_schema", SCHEMA_MODE):
            return self.json
        return self.grammar if kind == "grammar" else refused_encoding(f"it has no response_format of type {kind!r}")


TOLD_STYLE = ConstraintStyle(TOLD_IN_PROMPT, SCHEMA_ONLY, TOLD_IN_PROMPT, SCHEMA_ONLY, object_in_text=True)
"""The style of models that cannot be held to a constraint, and follow instructions well enough to be told it."""

_ANY_OBJECT: JsonObject = {"type": "object"}


def style_by_kind(encoding: Callable[[GuidedKind], Encoding]) -> ConstraintStyle:
    """Return the style that has an encoding for each kind of constraint."""
    return ConstraintStyle(encoding("json"), encoding("regex"), encoding("choice"), encoding("grammar"))


FORMAT_KINDS = ("json_object", "json_schema", "grammar", "structural_tag")


def constraint_cells(style: ConstraintStyle) -> Mapping[str, Cell]:
    """Return how each kind of constraint is treated, by the name of its feature.

    `constraint_members` reads the same table: it refuses what is refused here, and beyond that only values that are
    invalid themselves. A JSON mode with a schema counts as `json_schema`.
    """
    cells = {f"guided_{kind}": style.guided(kind).cell for kind in get_args(GuidedKind)}
    for kind in FORMAT_KINDS:
        encoding = style.form(kind)
        cells[f"response_format.{kind}"] = NATIVE if encoding is None else encoding.cell
    return cells


def constraint_members(style: ConstraintStyle, value: object) -> ConstraintMembers:
    """Return the body members that enforce a `guided_*` field or a `response_format`. Raises Unenforceable."""
    match value:
        case Guided(kind="json"):
            return _schema_members(style, value.schema)
        case Guided():
            made = style.guided(value.kind).constraint(value)
            return replace(made, unheld=True) if style.best_effort else made
        case {"type": "text"}:
            return ConstraintMembers({})
        case dict():
            return _format_members(style, value)
        case _:
            raise TypeError(f"a constraint is no {type(value).__name__}")


def _schema_members(style: ConstraintStyle, schema: JsonObject) -> ConstraintMembers:
    """Return the members for a schema, or for what the vendor takes of it."""
    if style.wraps:
        schema = with_root_type(schema)
    fitted = None if style.json.cell.refused else _fitted(style, schema)
    if style.wraps and not is_object(schema) and (made := _wrapped_members(style, schema)) is not None:
        return made
    if fitted is None:
        made = style.json.constraint(Guided("json", schema))
        return replace(made, unheld=True) if style.best_effort else made
    if fitted.schema is not None:
        return replace(style.json.constraint(Guided("json", fitted.schema)), unheld=fitted.weakened)
    return _unfitted(style, schema)


def _wrapped_members(style: ConstraintStyle, schema: JsonObject) -> ConstraintMembers | None:
    """Return the members for a schema of values that are no objects, or of alternatives; `None` if it has no form."""
    wrapped = wrapped_schema(schema)
    fitted = None if wrapped is None else _fitted(style, wrapped)
    if fitted is None or fitted.schema is None:
        return None
    members = style.json.make(Guided("json", fitted.schema))
    return ConstraintMembers(members, unwrap=True, emulated=True, unheld=fitted.weakened)


def _fitted(style: ConstraintStyle, schema: JsonObject) -> FittedSchema | None:
    rules = rules_of(style.engine) if style.rules is None and style.engine is not None else style.rules
    return None if rules is None else fit_schema(schema, rules)


def _unfitted(style: ConstraintStyle, schema: JsonObject) -> ConstraintMembers:
    """Return the members for a schema that has no form by the vendor's rules."""
    if style.loosely is None or schema.get("type") != "object":
        return TOLD
    return ConstraintMembers(style.loosely(Guided("json", schema)), unheld=True)


def _format_members(style: ConstraintStyle, value: JsonObject) -> ConstraintMembers:
    kind, schema = str(value.get("type")), schema_in(value)
    if schema is not None:
        kind = SCHEMA_MODE if kind == "json_object" else kind
    encoding = style.form(kind)
    if style.best_effort and kind == "json_schema" and schema is not None:
        return _passed(style, value, schema)
    if encoding is None:
        return ConstraintMembers({"response_format": value}) if schema is None else _passed(style, value, schema)
    if kind == "grammar":
        return encoding.constraint(Guided("grammar", str(value.get("grammar"))))
    if kind == "json_schema" and schema is None and not encoding.cell.refused:
        raise Unenforceable("it has no JSON mode without a schema")
    if encoding is style.json and schema is not None:
        return _schema_members(style, described_schema(value) or schema)
    return encoding.constraint(Guided("json", _ANY_OBJECT if schema is None else schema))


def _passed(style: ConstraintStyle, value: JsonObject, schema: JsonObject) -> ConstraintMembers:
    """Return a `response_format` with a schema as the vendor takes it, the same object where nothing changes."""
    named = value.get("json_schema")
    strict = isinstance(named, dict) and bool(named.get("strict"))
    if style.best_effort and strict and isinstance(named, dict):
        loose: JsonObject = {**value, "json_schema": {**named, "strict": False}}
        return ConstraintMembers({"response_format": loose}, emulated=True, unheld=True)
    if style.wraps and not is_object(schema):
        # "schema must be a JSON Schema of 'type: "object"', got 'type: "array"'", strict or not.
        return _wrapped_members(style, schema) or _unfitted(style, schema)
    if style.wraps and isinstance(named, dict):
        name, typed = fitting_name(named.get("name")), with_root_type(schema)
        if name != named.get("name") or typed is not schema:
            schema, named = typed, {**named, "name": name, "schema": typed}
            value = {**value, "json_schema": named}
    fitted = None if style.loose_unless_strict and not strict else _fitted(style, schema)
    if fitted is None or fitted.schema is schema:
        return ConstraintMembers({"response_format": value})
    if fitted.schema is None:
        return _unfitted(style, schema)
    put: JsonObject = {**value, "schema": fitted.schema}
    if isinstance(named, dict):
        put = {**value, "json_schema": {**named, "schema": fitted.schema}}
    return ConstraintMembers({"response_format": put}, unheld=fitted.weakened)


def field_of(value: object) -> str:
    """Return the request's field that holds a constraint."""
    return value.field if isinstance(value, Guided) else "response_format"


def described_schema(value: object) -> JsonObject | None:
    """Return the schema of a `response_format` with the description that OpenAI's form has beside it, for forms and
    prompts without such a place; the same object if there is none, or if the schema has its own."""
    schema, named = schema_in(value), value.get("json_schema") if isinstance(value, dict) else None
    said = named.get("description") if isinstance(named, dict) else None
    if schema is None or not isinstance(said, str) or not said.strip() or not schema.keys().isdisjoint(_UNDESCRIBED):
        return schema
    return {**schema, "description": said}


_UNDESCRIBED = frozenset({"description", "$ref"})
"""Keywords at the root of a schema beside which no description is put."""


def schema_in(value: object) -> JsonObject | None:
    """Return the schema of a `response_format`, in OpenAI's place or in Fireworks'."""
    match value:
        case {"type": "json_schema", "json_schema": {"schema": dict(schema)}}:
            return schema
        case {"type": "json_object", "schema": dict(schema)}:
            return schema
        case _:
            return None
