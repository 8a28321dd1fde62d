"""Constraints on the generated text in every vendor's own form: `guided_*` and `response_format` to body members.

Never checks an answer, and never weakens a constraint: what a vendor cannot enforce is `Unenforceable`.

Sources: vLLM 0.9 to 0.33, SGLang 0.5.23, llama.cpp server, TGI, NVIDIA NIM 1.x, Fireworks "Structured outputs", OpenAI
"Structured outputs" strict rules; read in November 2026. That llama.cpp's completions honour `json_schema` and ignore
`response_format` was tried.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import orjson

from providers.guided_engines import FIREWORKS, LLAMACPP, SGLANG, TGI, Engine, engine_problem
from providers.guided_strict import strict_problem
from providers.regex_grammar import Unwritable, grammar, literal
from providers.regex_tree import Malformed, parse
from providers.unified import Guided, JsonObject, Operation

SCHEMA_NAME = "guided_json"
CHOICE_MEMBER = "choice"
SCHEMA_MODE = "json_object with a schema"


class Unenforceable(Exception):
    """The vendor has no way to hold the model to this constraint; `reason` is for the client."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Constraint:
    """Body members that make the vendor enforce a constraint. `unwrap` says that the answer is an object whose `choice`
    is the text; `emulated` that the vendor lacks the field itself."""

    members: JsonObject
    unwrap: bool = False
    emulated: bool = False


@dataclass(frozen=True, slots=True)
class Held:
    """What a style does with a kind of constraint: `detail` says by what means it is emulated, or why it is refused."""

    how: Literal["native", "emulated", "refused"]
    detail: str = ""


NATIVE = Held("native")
BY_ENUM = Held("emulated", "a JSON object with one enum member")
BY_REGEX = Held("emulated", "a regular expression")
BY_GRAMMAR = Held("emulated", "a grammar")


# The constraint in other words ----------------------------------------------------------------------------------------


def choice_schema(choices: Sequence[str]) -> JsonObject:
    """The object schema that stands for a choice where only JSON Schema can be enforced."""
    return {
        "type": "object",
        "properties": {CHOICE_MEMBER: {"type": "string", "enum": list(choices)}},
        "required": [CHOICE_MEMBER],
        "additionalProperties": False,
    }


def unwrap_choice(text: str) -> str:
    """The bare choice out of such an object. Raises ValueError when the text is none (a cut answer, a refusal)."""
    value = orjson.loads(text)
    choice = value.get(CHOICE_MEMBER) if isinstance(value, dict) else None
    if not isinstance(choice, str):
        raise ValueError("the answer holds no choice")
    return choice


def choice_regex(choices: Sequence[str]) -> str:
    """An alternation of the literals, longest first.

    Only characters that mean something are escaped: engines differ about a backslash before the others (to Rust's, an
    escaped angle bracket is a word's edge).
    """
    escaped = (_SPECIAL.sub(_escape, choice) for choice in sorted(choices, key=len, reverse=True))
    return f"({'|'.join(escaped)})"


_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$\n\r\t]")
_BY_LETTER: Mapping[str, str] = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _escape(match: re.Match[str]) -> str:
    found = match.group()
    return _BY_LETTER.get(found, f"\\{found}")


def choice_grammar(choices: Sequence[str]) -> str:
    """A GBNF alternation of the literals, as llama.cpp, Fireworks and xgrammar read it."""
    return "root ::= " + " | ".join(literal(choice) for choice in choices)


def regex_grammar(pattern: str) -> str:
    """The GBNF grammar of the texts that match from end to end. Raises Unenforceable."""
    try:
        return grammar(parse(pattern))
    except (Malformed, Unwritable) as error:
        raise Unenforceable(f"it has no regular expressions, and as a grammar the pattern {error}") from None


def json_schema_format(schema: JsonObject, *, strict: bool) -> JsonObject:
    """OpenAI's `response_format` for a schema."""
    return {"type": "json_schema", "json_schema": {"name": SCHEMA_NAME, "schema": schema, "strict": strict}}


# The ways of the styles -----------------------------------------------------------------------------------------------

Make = Callable[[Guided], JsonObject]


@dataclass(frozen=True, slots=True)
class Way:
    """How one kind of constraint is said to a vendor: `make` gives the members, or raises Unenforceable."""

    held: Held
    make: Make
    unwrap: bool = False

    def constraint(self, guided: Guided) -> Constraint:
        """The members for a constraint. Raises Unenforceable."""
        return Constraint(self.make(guided), self.unwrap, self.held.how == "emulated")


def _refused(reason: str) -> Way:
    def make(guided: Guided) -> JsonObject:
        raise Unenforceable(reason)

    return Way(Held("refused", reason), make)


def _member(*path: str) -> Way:
    """The value as it is, in a member that lies at this path."""

    def make(guided: Guided) -> JsonObject:
        members: JsonObject = {path[-1]: list(guided.value) if isinstance(guided.value, tuple) else guided.value}
        for name in reversed(path[:-1]):
            members = {name: members}
        return members

    return Way(NATIVE, make)


def _format(make: Make, held: Held = NATIVE, *, unwrap: bool = False) -> Way:
    """A `response_format`."""
    return Way(held, lambda guided: {"response_format": make(guided)}, unwrap)


def _schema_of(guided: Guided) -> JsonObject:
    if not isinstance(guided.value, dict):
        raise TypeError(f"{guided.field} carries no schema")
    return guided.value


def _choices_of(guided: Guided) -> tuple[str, ...]:
    if not isinstance(guided.value, tuple):
        raise TypeError(f"{guided.field} carries no choices")
    return guided.value


def _wrapped(guided: Guided) -> JsonObject:
    return choice_schema(_choices_of(guided))


def _strictly(schema: JsonObject) -> JsonObject:
    problem = strict_problem(schema)
    if problem is not None:
        raise Unenforceable(f"its strict mode refuses this schema: {problem}")
    return json_schema_format(schema, strict=True)


def _any_version(kind: str) -> Way:
    """Both spellings: vLLM before 0.11 ignores the new one and from 0.12 the old one, in silence."""
    old, new = _member(f"guided_{kind}"), _member("structured_outputs", kind)
    return Way(NATIVE, lambda guided: {**new.make(guided), **old.make(guided)})


_SCHEMA_FORMAT = _format(lambda guided: json_schema_format(_schema_of(guided), strict=True))
_ENUM = _format(lambda guided: json_schema_format(_wrapped(guided), strict=True), BY_ENUM, unwrap=True)
_STRICT_SCHEMA = _format(lambda guided: _strictly(_schema_of(guided)))
# Strict mode bounds how many words an enum may have.
_STRICT_ENUM = _format(lambda guided: _strictly(_wrapped(guided)), BY_ENUM, unwrap=True)
_SCHEMA_ONLY = _refused("it can only be held to a JSON Schema")


@dataclass(frozen=True, slots=True)
class Style:
    """How one kind of vendor is held to a constraint on one endpoint.

    `passes` are the types of `response_format` that go through as they are; `SCHEMA_MODE` stands for Fireworks' JSON
    mode with a schema. `object_by_schema` says that the plain JSON mode, where it does not pass, is said by the schema
    of any object. `engine` is the converter whose gaps a schema must keep out of, whichever way it goes.
    """

    json: Way
    regex: Way
    choice: Way
    grammar: Way
    passes: frozenset[str] = frozenset()
    object_by_schema: bool = False
    engine: Engine | None = None

    def guided(self, kind: str) -> Way:
        """The way of a `guided_*` field."""
        ways = {"json": self.json, "regex": self.regex, "choice": self.choice, "grammar": self.grammar}
        return ways[kind]

    def form(self, kind: str) -> Way | None:
        """The way of a type of `response_format`; None where it passes as it is."""
        if kind in self.passes:
            return None
        if kind == "json_object" and not self.object_by_schema and self.json.held.how != "refused":
            return _refused("it has no JSON mode without a schema")
        if kind in ("json_object", "json_schema", SCHEMA_MODE):
            return self.json
        return self.grammar if kind == "grammar" else _refused(f"it has no response_format of type {kind!r}")


_FORMATS = frozenset({"json_object", "json_schema"})
_VLLM_FORMATS = _FORMATS | {"structural_tag"}
_FIREWORKS_FORMATS = _FORMATS | {"grammar", SCHEMA_MODE}
_ANY_OBJECT: JsonObject = {"type": "object"}

Endpoints = Mapping[Operation, Style]


def _nothing(reason: str) -> Style:
    refused = _refused(reason)
    return Style(refused, refused, refused, refused)


def _on_both(style: Style) -> Endpoints:
    return dict.fromkeys(Operation, style)


def _by_kind(way: Callable[[str], Way]) -> Style:
    return Style(way("json"), way("regex"), way("choice"), way("grammar"))


_SGLANG = Style(
    _SCHEMA_FORMAT,
    _member("regex"),
    Way(BY_REGEX, lambda guided: {"regex": choice_regex(_choices_of(guided))}),
    _member("ebnf"),
    _VLLM_FORMATS,
    engine=SGLANG,
)
_SGLANG_TEXT = replace(
    _SGLANG,
    json=Way(NATIVE, lambda guided: {"json_schema": orjson.dumps(_schema_of(guided)).decode()}),
    passes=frozenset(),
    object_by_schema=True,
)
_LLAMACPP_TEXT = Style(
    Way(NATIVE, lambda guided: {"json_schema": _schema_of(guided)}),
    Way(BY_GRAMMAR, lambda guided: {"grammar": regex_grammar(guided.value_text)}),
    Way(BY_GRAMMAR, lambda guided: {"grammar": choice_grammar(_choices_of(guided))}),
    _member("grammar"),
    object_by_schema=True,
    engine=LLAMACPP,
)
_FIREWORKS = Style(
    _format(lambda guided: {"type": "json_schema", "json_schema": {"name": SCHEMA_NAME, "schema": _schema_of(guided)}}),
    _format(lambda guided: {"type": "grammar", "grammar": regex_grammar(guided.value_text)}, BY_GRAMMAR),
    _format(lambda guided: {"type": "grammar", "grammar": choice_grammar(_choices_of(guided))}, BY_GRAMMAR),
    _format(lambda guided: {"type": "grammar", "grammar": guided.value_text}),
    _FIREWORKS_FORMATS,
    engine=FIREWORKS,
)
_TGI = Style(
    _format(lambda guided: {"type": "json", "value": _schema_of(guided)}),
    _format(lambda guided: {"type": "regex", "value": guided.value_text}),
    _format(lambda guided: {"type": "regex", "value": choice_regex(_choices_of(guided))}, BY_REGEX),
    _refused("it has no grammars"),
    engine=TGI,
)
_SCHEMAS = Style(_SCHEMA_FORMAT, _SCHEMA_ONLY, _ENUM, _SCHEMA_ONLY, _FORMATS)
_SCHEMAS_BY_MODE = Style(
    _format(lambda guided: {"type": "json_object", "schema": _schema_of(guided)}),
    _SCHEMA_ONLY,
    _format(lambda guided: {"type": "json_object", "schema": _wrapped(guided)}, BY_ENUM, unwrap=True),
    _SCHEMA_ONLY,
    frozenset({"json_object", SCHEMA_MODE}),
)
_SCHEMAS_ALONE = replace(_SCHEMAS, passes=frozenset({"json_schema"}), object_by_schema=True)
_OPENAI = Style(_STRICT_SCHEMA, _SCHEMA_ONLY, _STRICT_ENUM, _SCHEMA_ONLY, _FORMATS)

STYLES: Mapping[str, Endpoints] = {
    "guided": _on_both(replace(_by_kind(lambda kind: _member(f"guided_{kind}")), passes=_VLLM_FORMATS)),
    "structured_outputs": _on_both(
        replace(_by_kind(lambda kind: _member("structured_outputs", kind)), passes=_VLLM_FORMATS)
    ),
    "vllm_both": _on_both(replace(_by_kind(_any_version), json=_SCHEMA_FORMAT, passes=_VLLM_FORMATS)),
    "nvext": _on_both(replace(_by_kind(lambda kind: _member("nvext", f"guided_{kind}")), object_by_schema=True)),
    "sglang": {Operation.CHAT: _SGLANG, Operation.COMPLETIONS: _SGLANG_TEXT},
    "llamacpp": {
        Operation.CHAT: replace(_LLAMACPP_TEXT, passes=_FORMATS | {SCHEMA_MODE}),
        Operation.COMPLETIONS: _LLAMACPP_TEXT,
    },
    "ollama": _on_both(replace(_SCHEMAS, engine=LLAMACPP)),
    "fireworks": _on_both(_FIREWORKS),
    "tgi": {
        Operation.CHAT: _TGI,
        Operation.COMPLETIONS: _nothing("its completions route ignores constraints; ask by chat"),
    },
    "openai": {
        Operation.CHAT: _OPENAI,
        Operation.COMPLETIONS: _nothing("its completions endpoint has no structured output"),
    },
    "json_schema": _on_both(_SCHEMAS),
    "schema_only": _on_both(_SCHEMAS_ALONE),
    "schema_in_mode": _on_both(_SCHEMAS_BY_MODE),
    "localai": _on_both(replace(_LLAMACPP_TEXT, json=_SCHEMA_FORMAT, passes=_FORMATS)),
    "json_object_only": _on_both(
        replace(_nothing("it has a JSON mode only, without schemas"), passes=frozenset({"json_object"}))
    ),
    "none": _on_both(_nothing("it cannot be held to a constraint")),
}
"""What a profile's `structured` may say. `json_schema` stands for the vendors that compile any schema and not only
OpenAI's strict subset, wherever their row takes constraints."""

GUIDED_KINDS = ("json", "regex", "choice", "grammar")
FORMAT_KINDS = ("json_object", "json_schema", "grammar", "structural_tag")


def support(style: str, operation: Operation) -> Mapping[str, Held]:
    """What becomes of each kind of constraint, by the field's name with the type of a `response_format` behind a dot.

    `constrain` and `format_members` read the same table: they refuse what is refused here, and beyond that only values
    that are at fault themselves. A JSON mode with a schema counts as `json_schema`.
    """
    row = STYLES[style][operation]
    held = {f"guided_{kind}": row.guided(kind).held for kind in GUIDED_KINDS}
    for kind in FORMAT_KINDS:
        way = row.form(kind)
        held[f"response_format.{kind}"] = NATIVE if way is None else way.held
    return held


def constrain(style: str, guided: Guided, operation: Operation) -> Constraint:
    """Body members that hold the vendor to the constraint. Raises Unenforceable."""
    row = STYLES[style][operation]
    made = row.guided(guided.kind).constraint(guided)
    if guided.kind == "json":
        _check(row, _schema_of(guided))
    return made


def format_members(style: str, value: JsonObject, operation: Operation) -> Constraint:
    """`response_format` in the vendor's form. Raises Unenforceable."""
    kind = str(value.get("type"))
    if kind == "text":
        return Constraint({})
    row = STYLES[style][operation]
    schema = schema_in(value)
    if schema is not None:
        _check(row, schema)
        kind = SCHEMA_MODE if kind == "json_object" else kind
    way = row.form(kind)
    if way is None:
        return Constraint({"response_format": value})
    if kind == "grammar":
        return way.constraint(Guided("grammar", str(value.get("grammar"))))
    if kind == "json_schema" and schema is None and way.held.how != "refused":
        raise Unenforceable("it has no JSON mode without a schema")
    return way.constraint(Guided("json", _ANY_OBJECT if schema is None else schema))


def schema_in(value: JsonObject) -> JsonObject | None:
    """The schema of a `response_format`, in OpenAI's place or in Fireworks'."""
    match value:
        case {"type": "json_schema", "json_schema": {"schema": dict(schema)}}:
            return schema
        case {"type": "json_object", "schema": dict(schema)}:
            return schema
        case _:
            return None


def _check(row: Style, schema: JsonObject) -> None:
    problem = None if row.engine is None else engine_problem(row.engine, schema)
    if problem is not None:
        raise Unenforceable(f"it would not keep this schema: {problem}")
