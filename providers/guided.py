"""Constraints on the generated text in every vendor's own form: `guided_*` and `response_format` to body members.

Never checks an answer, and never weakens a constraint: what a vendor cannot enforce is `Unenforceable`.

Sources: vLLM 0.9 to 0.33, SGLang 0.5.23, llama.cpp server, TGI, Fireworks "Structured outputs", OpenAI "Structured outputs"
strict rules; read in November 2026.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import orjson

from providers.unified import Guided, JsonObject, JsonValue, Operation

SCHEMA_NAME = "guided_json"
CHOICE_MEMBER = "choice"


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


Maker = Callable[[Guided, Operation], Constraint]


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
    """An alternation of the literals, longest first; only ASCII punctuation is escaped, which every engine reads."""
    escaped = (re.sub(r"([^\w\s]|_)", _escape, choice) for choice in sorted(choices, key=len, reverse=True))
    return f"({'|'.join(escaped)})"


def _escape(match: re.Match[str]) -> str:
    found = match.group()
    return f"\\{found}" if found.isascii() and found != "_" else found


def choice_grammar(choices: Sequence[str]) -> str:
    """A GBNF alternation of the literals, as llama.cpp, Fireworks and xgrammar read it."""
    return "root ::= " + " | ".join(_literal(choice) for choice in choices)


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t") + '"'


def json_schema_format(schema: JsonObject, *, strict: bool) -> JsonObject:
    """OpenAI's `response_format` for a schema."""
    return {"type": "json_schema", "json_schema": {"name": SCHEMA_NAME, "schema": schema, "strict": strict}}


_STRICT_REFUSED = (
    "allOf",
    "not",
    "dependentRequired",
    "dependentSchemas",
    "if",
    "then",
    "else",
    "oneOf",
    "patternProperties",
)


def strict_problem(schema: JsonObject) -> str | None:
    """Why OpenAI's strict mode would refuse a schema, naming the path; None when it would not.

    Root must be an object and no anyOf; every object closed with all its properties required; no composition besides anyOf.
    """
    if schema.get("type") != "object" or "anyOf" in schema:
        return "the root of the schema must have type object and no anyOf"
    for path, node in _schemas(schema, "$"):
        for word in _STRICT_REFUSED:
            if word in node:
                return f"{path}.{word} cannot be enforced"
        if node.get("type") == "object" or "properties" in node:
            properties = node.get("properties")
            names = set(properties) if isinstance(properties, dict) else set()
            required = node.get("required")
            listed = {name for name in required if isinstance(name, str)} if isinstance(required, list) else set()
            if node.get("additionalProperties") is not False:
                return f"{path} must set additionalProperties to false"
            if missing := sorted(names - listed):
                return f"{path}.required must list {missing[0]!r}"
    return None


def _schemas(node: JsonObject, path: str) -> Iterator[tuple[str, JsonObject]]:
    yield path, node
    for key in ("properties", "$defs", "definitions"):
        members = node.get(key)
        if isinstance(members, dict):
            for name, member in members.items():
                if isinstance(member, dict):
                    yield from _schemas(member, f"{path}.{key}.{name}")
    for key in ("items", "additionalProperties"):
        member = node.get(key)
        if isinstance(member, dict):
            yield from _schemas(member, f"{path}.{key}")
    options = node.get("anyOf")
    if isinstance(options, list):
        for index, member in enumerate(options):
            if isinstance(member, dict):
                yield from _schemas(member, f"{path}.anyOf[{index}]")


def _schema_of(guided: Guided) -> JsonObject:
    if not isinstance(guided.value, dict):
        raise TypeError(f"{guided.field} carries no schema")
    return guided.value


def _choices_of(guided: Guided) -> tuple[str, ...]:
    if not isinstance(guided.value, tuple):
        raise TypeError(f"{guided.field} carries no choices")
    return guided.value


def _plain(guided: Guided) -> JsonValue:
    return list(guided.value) if isinstance(guided.value, tuple) else guided.value


def _guided(guided: Guided, operation: Operation) -> Constraint:
    return Constraint({guided.field: _plain(guided)})


def _structured_outputs(guided: Guided, operation: Operation) -> Constraint:
    return Constraint({"structured_outputs": {guided.kind: _plain(guided)}})


def _vllm(guided: Guided, operation: Operation) -> Constraint:
    """Any version: `response_format` for a schema (0.6 and later, both routes); both spellings for the rest, since
    versions before 0.11 ignore the new one and versions from 0.12 ignore the old one, in silence."""
    if guided.kind == "json":
        return Constraint({"response_format": json_schema_format(_schema_of(guided), strict=True)})
    value = _plain(guided)
    return Constraint({"structured_outputs": {guided.kind: value}, guided.field: value})


def _sglang(guided: Guided, operation: Operation) -> Constraint:
    match guided.kind:
        case "json" if operation is Operation.CHAT:
            return Constraint({"response_format": json_schema_format(_schema_of(guided), strict=True)})
        case "json":
            return Constraint({"json_schema": orjson.dumps(_schema_of(guided)).decode()})
        case "regex":
            return Constraint({"regex": guided.value_text})
        case "choice":
            return Constraint({"regex": choice_regex(_choices_of(guided))}, emulated=True)
        case "grammar":
            return Constraint({"ebnf": guided.value_text})


def _llamacpp(guided: Guided, operation: Operation) -> Constraint:
    match guided.kind:
        case "json":
            return Constraint({"json_schema": _schema_of(guided)})
        case "choice":
            return Constraint({"grammar": choice_grammar(_choices_of(guided))}, emulated=True)
        case "grammar":
            return Constraint({"grammar": guided.value_text})
        case "regex":
            raise Unenforceable("it has no regular expressions")


def _fireworks(guided: Guided, operation: Operation) -> Constraint:
    match guided.kind:
        case "json":
            schema = {"type": "json_schema", "json_schema": {"name": SCHEMA_NAME, "schema": _schema_of(guided)}}
            return Constraint({"response_format": schema})
        case "choice":
            grammar = choice_grammar(_choices_of(guided))
            return Constraint({"response_format": {"type": "grammar", "grammar": grammar}}, emulated=True)
        case "grammar":
            return Constraint({"response_format": {"type": "grammar", "grammar": guided.value_text}})
        case "regex":
            raise Unenforceable("it has no regular expressions")


def _tgi(guided: Guided, operation: Operation) -> Constraint:
    if operation is Operation.COMPLETIONS:
        raise Unenforceable("its completions route ignores constraints; ask by chat")
    match guided.kind:
        case "json":
            return Constraint({"response_format": {"type": "json", "value": _schema_of(guided)}})
        case "regex":
            return Constraint({"response_format": {"type": "regex", "value": guided.value_text}})
        case "choice":
            value = choice_regex(_choices_of(guided))
            return Constraint({"response_format": {"type": "regex", "value": value}}, emulated=True)
        case "grammar":
            raise Unenforceable("it has no grammars")


def _openai(guided: Guided, operation: Operation) -> Constraint:
    if operation is Operation.COMPLETIONS:
        raise Unenforceable("its completions endpoint has no structured output")
    match guided.kind:
        case "json":
            schema = _schema_of(guided)
            if problem := strict_problem(schema):
                raise Unenforceable(f"its strict mode refuses this schema: {problem}")
            return Constraint({"response_format": json_schema_format(schema, strict=True)})
        case "choice":
            schema = choice_schema(_choices_of(guided))
            return Constraint({"response_format": json_schema_format(schema, strict=True)}, unwrap=True, emulated=True)
        case "regex" | "grammar":
            raise Unenforceable("it can only be held to a JSON Schema")


def _schema_on_chat(guided: Guided, operation: Operation) -> Constraint:
    """Vendors that compile any schema (not only OpenAI's strict subset), on chat."""
    if operation is Operation.CHAT and guided.kind == "json":
        return Constraint({"response_format": json_schema_format(_schema_of(guided), strict=True)})
    return _openai(guided, operation)


def _none(guided: Guided, operation: Operation) -> Constraint:
    raise Unenforceable("it cannot be held to a constraint")


STYLES: Mapping[str, Maker] = {
    "guided": _guided,
    "structured_outputs": _structured_outputs,
    "vllm_both": _vllm,
    "sglang": _sglang,
    "llamacpp": _llamacpp,
    "fireworks": _fireworks,
    "tgi": _tgi,
    "openai": _openai,
    "json_schema": _schema_on_chat,
    "json_object_only": _none,
    "none": _none,
}
"""What a profile's `structured` may say."""


def constrain(style: str, guided: Guided, operation: Operation) -> Constraint:
    """Body members that hold the vendor to the constraint. Raises Unenforceable."""
    return STYLES[style](guided, operation)


_OBJECT_FORMATS = frozenset({"json_object", "json_schema", "grammar", "text"})


def format_members(style: str, value: JsonObject, operation: Operation) -> Constraint:
    """`response_format` in the vendor's form. Raises Unenforceable.

    Fireworks' `json_object` with a `schema` becomes a schema elsewhere, its `grammar` a grammar.
    """
    kind = value.get("type")
    if kind == "text":
        return Constraint({})
    if kind == "grammar":
        return constrain(style, Guided("grammar", str(value.get("grammar"))), operation)
    schema = _format_schema(value)
    if style == "fireworks" or (schema is not None and operation is Operation.CHAT and style in _PASSES_FORMAT):
        return Constraint({"response_format": value if kind == "json_schema" else _as_schema_format(schema, value)})
    if schema is not None:
        return constrain(style, Guided("json", schema), operation)
    return _object_format(style, operation)


_PASSES_FORMAT = frozenset({"openai", "json_schema", "vllm_both", "structured_outputs", "guided", "sglang", "llamacpp"})
_NO_OBJECT_FORMAT = frozenset({"none", "tgi"})


def _object_format(style: str, operation: Operation) -> Constraint:
    vllm = style in ("vllm_both", "structured_outputs", "guided")
    if style in _NO_OBJECT_FORMAT or (operation is Operation.COMPLETIONS and not vllm):
        raise Unenforceable("it has no JSON mode here")
    return Constraint({"response_format": {"type": "json_object"}})


def _format_schema(value: JsonObject) -> JsonObject | None:
    inner = value.get("json_schema")
    schema = inner.get("schema") if isinstance(inner, dict) else value.get("schema")
    if isinstance(schema, str):
        schema = orjson.loads(schema)
    return schema if isinstance(schema, dict) else None


def _as_schema_format(schema: JsonObject | None, value: JsonObject) -> JsonObject:
    return value if schema is None else json_schema_format(schema, strict=True)
