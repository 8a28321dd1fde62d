"""Constraints on the generated text in every vendor's own form: `guided_*` and `response_format` to body members.

Never checks an answer, and never weakens a constraint: what a vendor cannot enforce is `Unenforceable`.

Sources: vLLM 0.9 to 0.33, SGLang 0.5.23, llama.cpp server, TGI, Fireworks "Structured outputs", OpenAI "Structured
outputs" strict rules; read in November 2026. That llama.cpp's completions honour `json_schema` and ignore
`response_format` was tried.
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
    return "root ::= " + " | ".join(_literal(choice) for choice in choices)


def _literal(text: str) -> str:
    return '"' + re.sub(r'[\\"\n\r\t]', _escape, text) + '"'


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

    The root must be an object and no anyOf; every object closed, with all its properties required; no composition
    besides anyOf.
    """
    if schema.get("type") != "object" or "anyOf" in schema:
        return "the root of the schema must have type object and no anyOf"
    return next((problem for path, node in _schemas(schema, "$") if (problem := _node_problem(path, node))), None)


def _node_problem(path: str, node: JsonObject) -> str | None:
    word = next((word for word in _STRICT_REFUSED if word in node), None)
    if word is not None:
        return f"{path}.{word} cannot be enforced"
    types = node.get("type")
    if types != "object" and not (isinstance(types, list) and "object" in types) and "properties" not in node:
        return None
    if node.get("additionalProperties") is not False:
        return f"{path} must set additionalProperties to false"
    properties, required = node.get("properties"), node.get("required")
    listed = required if isinstance(required, list) else []
    missing = next((name for name in properties if name not in listed), None) if isinstance(properties, dict) else None
    return None if missing is None else f"{path}.required must list {missing!r}"


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
        return _format(json_schema_format(_schema_of(guided), strict=True))
    value = _plain(guided)
    return Constraint({"structured_outputs": {guided.kind: value}, guided.field: value})


def _sglang(guided: Guided, operation: Operation) -> Constraint:
    match guided.kind:
        case "json" if operation is Operation.CHAT:
            return _format(json_schema_format(_schema_of(guided), strict=True))
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
            named: JsonObject = {"name": SCHEMA_NAME, "schema": _schema_of(guided)}
            return _format({"type": "json_schema", "json_schema": named})
        case "choice":
            return _format({"type": "grammar", "grammar": choice_grammar(_choices_of(guided))}, emulated=True)
        case "grammar":
            return _format({"type": "grammar", "grammar": guided.value_text})
        case "regex":
            raise Unenforceable("it has no regular expressions")


def _tgi(guided: Guided, operation: Operation) -> Constraint:
    if operation is Operation.COMPLETIONS:
        raise Unenforceable("its completions route ignores constraints; ask by chat")
    match guided.kind:
        case "json":
            return _format({"type": "json", "value": _schema_of(guided)})
        case "regex":
            return _format({"type": "regex", "value": guided.value_text})
        case "choice":
            return _format({"type": "regex", "value": choice_regex(_choices_of(guided))}, emulated=True)
        case "grammar":
            raise Unenforceable("it has no grammars")


def _openai(guided: Guided, operation: Operation) -> Constraint:
    """OpenAI's strict subset of JSON Schema, on chat."""
    if operation is Operation.COMPLETIONS:
        raise Unenforceable("its completions endpoint has no structured output")
    if guided.kind == "json" and (problem := strict_problem(_schema_of(guided))):
        raise Unenforceable(f"its strict mode refuses this schema: {problem}")
    return _any_schema(guided, operation)


def _any_schema(guided: Guided, operation: Operation) -> Constraint:
    """Vendors that compile any schema, not only OpenAI's strict subset, wherever their row takes constraints."""
    match guided.kind:
        case "json":
            return _format(json_schema_format(_schema_of(guided), strict=True))
        case "choice":
            schema = choice_schema(_choices_of(guided))
            return _format(json_schema_format(schema, strict=True), unwrap=True, emulated=True)
        case "regex" | "grammar":
            raise Unenforceable("it can only be held to a JSON Schema")


def _none(guided: Guided, operation: Operation) -> Constraint:
    raise Unenforceable("it cannot be held to a constraint")


def _format(value: JsonObject, *, unwrap: bool = False, emulated: bool = False) -> Constraint:
    return Constraint({"response_format": value}, unwrap, emulated)


@dataclass(frozen=True, slots=True)
class Style:
    """How one kind of vendor is held to a constraint.

    `guided` makes the members for a `guided_*` field. `chat` and `completions` are the types of `response_format` that
    pass as they are on that route; `SCHEMA_MODE` stands for Fireworks' JSON mode with a schema. `object_by_schema` says
    that the plain JSON mode, where it does not pass, is said by the schema of any object.
    """

    guided: Maker
    chat: frozenset[str] = frozenset()
    completions: frozenset[str] = frozenset()
    object_by_schema: bool = False


SCHEMA_MODE = "json_object with a schema"
_FORMATS = frozenset({"json_object", "json_schema"})
_VLLM_FORMATS = _FORMATS | {"structural_tag"}
_FIREWORKS_FORMATS = _FORMATS | {"grammar", SCHEMA_MODE}
_ANY_OBJECT: JsonObject = {"type": "object"}

STYLES: Mapping[str, Style] = {
    "guided": Style(_guided, _VLLM_FORMATS, _VLLM_FORMATS),
    "structured_outputs": Style(_structured_outputs, _VLLM_FORMATS, _VLLM_FORMATS),
    "vllm_both": Style(_vllm, _VLLM_FORMATS, _VLLM_FORMATS),
    "sglang": Style(_sglang, _VLLM_FORMATS, object_by_schema=True),
    "llamacpp": Style(_llamacpp, _FORMATS | {SCHEMA_MODE}, object_by_schema=True),
    "fireworks": Style(_fireworks, _FIREWORKS_FORMATS, _FIREWORKS_FORMATS),
    "tgi": Style(_tgi),
    "openai": Style(_openai, _FORMATS),
    "json_schema": Style(_any_schema, _FORMATS, _FORMATS),
    "schema_only": Style(_any_schema, frozenset({"json_schema"}), frozenset({"json_schema"}), object_by_schema=True),
    "json_object_only": Style(_none, frozenset({"json_object"}), frozenset({"json_object"})),
    "none": Style(_none),
}
"""What a profile's `structured` may say."""


def constrain(style: str, guided: Guided, operation: Operation) -> Constraint:
    """Body members that hold the vendor to the constraint. Raises Unenforceable."""
    return STYLES[style].guided(guided, operation)


def format_members(style: str, value: JsonObject, operation: Operation) -> Constraint:
    """`response_format` in the vendor's form. Raises Unenforceable."""
    kind = str(value.get("type"))
    if kind == "text":
        return Constraint({})
    schema = value.get("schema")
    if kind == "json_object" and isinstance(schema, dict):
        kind = SCHEMA_MODE
    row = STYLES[style]
    if kind in (row.chat if operation is Operation.CHAT else row.completions):
        return _format(value)
    if kind == "json_object" and row.object_by_schema:
        schema = _ANY_OBJECT
    elif kind == "json_schema":
        named = value.get("json_schema")
        schema = named.get("schema") if isinstance(named, dict) else None
    if isinstance(schema, dict):
        return row.guided(Guided("json", schema), operation)
    if kind == "grammar":
        return row.guided(Guided("grammar", str(value.get("grammar"))), operation)
    raise Unenforceable(f"it has no response_format of type {kind!r} here")
