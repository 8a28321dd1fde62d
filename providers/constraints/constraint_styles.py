"""Constraints on the generated text in each vendor's form: from `guided_*` and `response_format` to fields of the body.

A constraint is never weakened silently. If a vendor enforces only a part of a schema, that part is sent, with a note
that the response must be checked. A constraint that a vendor cannot enforce is `Unenforceable`.

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
    VALUE_KEY,
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

CHOICE_KEY = "choice"
SCHEMA_MODE = "json_object with a schema"


class Unenforceable(Exception):
    """The vendor cannot enforce this constraint. `reason` is for the client."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class ConstraintFields:
    """Fields of the body that make the vendor enforce a constraint.

    `unwrap` is true if the response is an object whose `choice` is the text. `emulated` is true if the vendor lacks the
    field itself. `unenforced` is true if the fields promise less than the constraint, so that the response must be
    checked. `in_prompt` is true if there are no fields, so that the prompt must describe the constraint.
    """

    fields: JsonObject
    unwrap: bool = False
    emulated: bool = False
    unenforced: bool = False
    in_prompt: bool = False


BY_ENUM = emulated("a JSON object with one enum property")
BY_REGEX = emulated("a regular expression")
BY_GRAMMAR = emulated("a grammar")
LOOSELY = emulated("the vendor reads the schema, and the response is checked")
BY_PROMPT = emulated("the prompt asks for it, and the response is checked")
IN_PROMPT_ONLY = ConstraintFields({}, emulated=True, unenforced=True, in_prompt=True)
"""For a constraint that the vendor cannot express: the prompt describes it, and the response is checked."""


# Conversions of a constraint ----------------------------------------------------------------------------------------


def choice_schema(choices: Sequence[str]) -> JsonObject:
    """Return the schema of an object whose property `choice` is one of the choices, for vendors that can only enforce
    JSON Schema."""
    return {
        "type": "object",
        "properties": {CHOICE_KEY: {"type": "string", "enum": list(choices)}},
        "required": [CHOICE_KEY],
        "additionalProperties": False,
    }


def unwrap_choice(text: str) -> str:
    """Return the choice in a response to `choice_schema`, or the JSON of the value in a response to `wrapped_schema`.
    Raises ValueError if there is none (a cut response, a refusal)."""
    value = orjson.loads(text)
    if isinstance(value, dict) and VALUE_KEY in value and CHOICE_KEY not in value:
        return orjson.dumps(value[VALUE_KEY]).decode()
    choice = value.get(CHOICE_KEY) if isinstance(value, dict) else None
    if not isinstance(choice, str):
        raise ValueError("the response holds no choice")
    return choice


def choice_regex(choices: Sequence[str]) -> str:
    """Return an alternation of the literals, the longest first.

    Only special characters are escaped. Engines differ about a backslash before other characters: to Rust's engine, an
    escaped angle bracket is a word boundary.
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
    """The form in which one kind of constraint is sent. `make` returns the fields of the body, or raises
    Unenforceable."""

    cell: Cell
    make: Make
    unwrap: bool = False

    def constraint(self, guided: Guided) -> ConstraintFields:
        """Return the fields for a constraint. Raises Unenforceable."""
        if self.cell == BY_PROMPT:
            return IN_PROMPT_ONLY
        return ConstraintFields(self.make(guided), self.unwrap, self.cell.emulated)


def refused_encoding(reason: str) -> Encoding:
    """Return the encoding of constraints that the vendor cannot enforce."""

    def make(guided: Guided) -> JsonObject:
        raise Unenforceable(reason)

    return Encoding(refused(reason), make)


BY_PROMPT_ALONE = Encoding(BY_PROMPT, lambda guided: {})
"""The encoding of a constraint that the prompt describes and that is checked in the response."""


def body_field(*path: str) -> Encoding:
    """Return the encoding that sends the value unchanged in the field at a path."""

    def make(guided: Guided) -> JsonObject:
        fields: JsonObject = {path[-1]: list(guided.value) if isinstance(guided.value, tuple) else guided.value}
        for name in reversed(path[:-1]):
            fields = {name: fields}
        return fields

    return Encoding(NATIVE, make)


SCHEMA_FORMAT = Encoding(NATIVE, lambda guided: {"response_format": json_schema_format(guided.schema, strict=True)})
SCHEMA_ONLY = refused_encoding("it can only be held to a JSON Schema")


@dataclass(frozen=True, slots=True)
class ConstraintStyle:
    """How the vendors of one kind enforce constraints on one endpoint.

    `passes` are the types of `response_format` that are sent unchanged. `SCHEMA_MODE` is Fireworks' JSON mode with a
    schema.

    `json_mode` holds the fields of the body for the plain JSON mode, if that is not in `passes`. Without `json_mode`,
    the plain JSON mode is sent as a schema that accepts any object if `object_by_schema`, and requested by the prompt
    if `object_in_text`.

    `rules` are the vendor's rules for schemas in every field; without `rules`, the rules of `engine` apply. `loosely`
    makes the fields for a schema that cannot be changed to obey the rules; if `loosely` is `None`, the prompt describes
    the schema. If `loose_unless_strict`, a format without `strict: true` is sent unchanged. If `best_effort`, the
    vendor reads a schema but does not enforce it. If `wraps`, the schema of a value that is no object is sent as the
    schema of an object's property, and the names of formats must be OpenAI's.
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
        """Return the encoding of a type of `response_format`; `None` if it is sent unchanged."""
        if kind in self.passes:
            return None
        if kind == "json_object" and self.json_mode is not None:
            return Encoding(NATIVE, lambda guided: self.json_mode or {})
        if kind == "json_object" and self.object_in_text:
            return BY_PROMPT_ALONE
        if kind == "json_object" and not self.object_by_schema and not self.json.cell.refused:
            return refused_encoding("it has no JSON mode without a schema")
        if kind in ("json_object", "json_schema", SCHEMA_MODE):
            return self.json
        return self.grammar if kind == "grammar" else refused_encoding(f"it has no response_format of type {kind!r}")


PROMPT_ONLY_STYLE = ConstraintStyle(BY_PROMPT_ALONE, SCHEMA_ONLY, BY_PROMPT_ALONE, SCHEMA_ONLY, object_in_text=True)
"""The style of models that enforce no constraint, but follow a prompt that describes it well enough."""

_ANY_OBJECT: JsonObject = {"type": "object"}


def style_by_kind(encoding: Callable[[GuidedKind], Encoding]) -> ConstraintStyle:
    """Return the style in which `encoding` gives the encoding of each kind of constraint."""
    return ConstraintStyle(encoding("json"), encoding("regex"), encoding("choice"), encoding("grammar"))


FORMAT_KINDS = ("json_object", "json_schema", "grammar", "structural_tag")


def constraint_cells(style: ConstraintStyle) -> Mapping[str, Cell]:
    """Return how each kind of constraint is treated, by the name of its feature.

    `constraint_fields` reads the same encodings. It refuses the constraints that are refused here; of the others it
    refuses only invalid values. A JSON mode with a schema counts as `json_schema`.
    """
    cells = {f"guided_{kind}": style.guided(kind).cell for kind in get_args(GuidedKind)}
    for kind in FORMAT_KINDS:
        encoding = style.form(kind)
        cells[f"response_format.{kind}"] = NATIVE if encoding is None else encoding.cell
    return cells


def constraint_fields(style: ConstraintStyle, value: object) -> ConstraintFields:
    """Return the fields of the body that enforce a `guided_*` field or a `response_format`. Raises Unenforceable."""
    match value:
        case Guided(kind="json"):
            return _schema_fields(style, value.schema)
        case Guided():
            made = style.guided(value.kind).constraint(value)
            return replace(made, unenforced=True) if style.best_effort else made
        case {"type": "text"}:
            return ConstraintFields({})
        case dict():
            return _format_fields(style, value)
        case _:
            raise TypeError(f"a constraint cannot be of type {type(value).__name__}")


def _schema_fields(style: ConstraintStyle, schema: JsonObject) -> ConstraintFields:
    """Return the fields for a schema, or for the part of it that the vendor accepts."""
    if style.wraps:
        schema = with_root_type(schema)
    fitted = None if style.json.cell.refused else _fitted(style, schema)
    if style.wraps and not is_object(schema) and (made := _wrapped_fields(style, schema)) is not None:
        return made
    if fitted is None:
        made = style.json.constraint(Guided("json", schema))
        return replace(made, unenforced=True) if style.best_effort else made
    if fitted.schema is not None:
        return replace(style.json.constraint(Guided("json", fitted.schema)), unenforced=fitted.weakened)
    return _fields_without_form(style, schema)


def _wrapped_fields(style: ConstraintStyle, schema: JsonObject) -> ConstraintFields | None:
    """Return the fields for a schema of non-objects or alternatives; `None` if the vendor has no form for it."""
    wrapped = wrapped_schema(schema)
    fitted = None if wrapped is None else _fitted(style, wrapped)
    if fitted is None or fitted.schema is None:
        return None
    fields = style.json.make(Guided("json", fitted.schema))
    return ConstraintFields(fields, unwrap=True, emulated=True, unenforced=fitted.weakened)


def _fitted(style: ConstraintStyle, schema: JsonObject) -> FittedSchema | None:
    rules = rules_of(style.engine) if style.rules is None and style.engine is not None else style.rules
    return None if rules is None else fit_schema(schema, rules)


def _fields_without_form(style: ConstraintStyle, schema: JsonObject) -> ConstraintFields:
    """Return the fields for a schema that cannot be changed to obey the vendor's rules."""
    if style.loosely is None or schema.get("type") != "object":
        return IN_PROMPT_ONLY
    return ConstraintFields(style.loosely(Guided("json", schema)), unenforced=True)


def _format_fields(style: ConstraintStyle, value: JsonObject) -> ConstraintFields:
    kind, schema = str(value.get("type")), schema_in(value)
    if schema is not None:
        kind = SCHEMA_MODE if kind == "json_object" else kind
    encoding = style.form(kind)
    if style.best_effort and kind == "json_schema" and schema is not None:
        return _as_sent(style, value, schema)
    if encoding is None:
        return ConstraintFields({"response_format": value}) if schema is None else _as_sent(style, value, schema)
    if kind == "grammar":
        return encoding.constraint(Guided("grammar", str(value.get("grammar"))))
    if kind == "json_schema" and schema is None and not encoding.cell.refused:
        raise Unenforceable("it has no JSON mode without a schema")
    if encoding is style.json and schema is not None:
        return _schema_fields(style, described_schema(value) or schema)
    return encoding.constraint(Guided("json", _ANY_OBJECT if schema is None else schema))


def _as_sent(style: ConstraintStyle, value: JsonObject, schema: JsonObject) -> ConstraintFields:
    """Return a `response_format` with a schema in the vendor's form; the same object if nothing changes."""
    named = value.get("json_schema")
    strict = isinstance(named, dict) and bool(named.get("strict"))
    if style.best_effort and strict and isinstance(named, dict):
        loose: JsonObject = {**value, "json_schema": {**named, "strict": False}}
        return ConstraintFields({"response_format": loose}, emulated=True, unenforced=True)
    if style.wraps and not is_object(schema):
        # "schema must be a JSON Schema of 'type: "object"', got 'type: "array"'", strict or not.
        return _wrapped_fields(style, schema) or _fields_without_form(style, schema)
    if style.wraps and isinstance(named, dict):
        name, typed = fitting_name(named.get("name")), with_root_type(schema)
        if name != named.get("name") or typed is not schema:
            schema, named = typed, {**named, "name": name, "schema": typed}
            value = {**value, "json_schema": named}
    fitted = None if style.loose_unless_strict and not strict else _fitted(style, schema)
    if fitted is None or fitted.schema is schema:
        return ConstraintFields({"response_format": value})
    if fitted.schema is None:
        return _fields_without_form(style, schema)
    put: JsonObject = {**value, "schema": fitted.schema}
    if isinstance(named, dict):
        put = {**value, "json_schema": {**named, "schema": fitted.schema}}
    return ConstraintFields({"response_format": put}, unenforced=fitted.weakened)


def field_of(value: object) -> str:
    """Return the request's field that holds a constraint."""
    return value.field if isinstance(value, Guided) else "response_format"


def described_schema(value: object) -> JsonObject | None:
    """Return the schema of a `response_format` with the description that OpenAI's form has beside it, for vendors'
    forms and prompts that have no separate field for the description. Return the same object if there is no
    description, or if the schema has its own."""
    schema, named = schema_in(value), value.get("json_schema") if isinstance(value, dict) else None
    description = named.get("description") if isinstance(named, dict) else None
    if (
        schema is None
        or not isinstance(description, str)
        or not description.strip()
        or not schema.keys().isdisjoint(_WITHOUT_DESCRIPTION)
    ):
        return schema
    return {**schema, "description": description}


_WITHOUT_DESCRIPTION = frozenset({"description", "$ref"})
"""Keywords at the root of a schema beside which no description is added."""


def schema_in(value: object) -> JsonObject | None:
    """Return the schema of a `response_format`, in OpenAI's form or in Fireworks'; `None` if it has none."""
    match value:
        case {"type": "json_schema", "json_schema": {"schema": dict(schema)}}:
            return schema
        case {"type": "json_object", "schema": dict(schema)}:
            return schema
        case _:
            return None
