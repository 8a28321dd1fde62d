"""Checks answers against the request's constraint, for engines that may ignore one without an error.

Only finished texts are checked: one that was cut breaks its constraint without any fault. A grammar cannot be checked,
nor can a structural tag.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import orjson

from providers.completion import Chunk
from providers.constraints.compiled_checks import Uncompilable, expression_check, schema_check
from providers.constraints.constraint_styles import Unenforceable, schema_in
from providers.constraints.regex_parse import MalformedPattern, find_unsupported, parse
from providers.constraints.regex_to_rust import to_rust
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import Guided, Params

Verifier = Callable[[str], str | None]
"""From a text to the reason why it breaks the constraint, which quotes nothing of the text; None when it keeps it."""

MAX_CHECKED: Final = 1 << 20
"""The most bytes of a schema that answers are checked against."""

_BRIEF: Final = 64 * 1024
"""Characters of a JSON text that is parsed in a millisecond or two, whatever it holds."""

_WORD, _NO_JSON, _NO_OBJECT = "it is none of the choices", "it is not JSON", "it is not a JSON object"
_NO_FIT, _NO_MATCH = "it does not keep the schema", "it does not match the pattern"


class CheckKind(StrEnum):
    """The kind of constraint that a text is checked against."""

    CHOICE = "choice"
    JSON = "json"
    OBJECT = "object"
    SCHEMA = "schema"
    PATTERN = "pattern"


@dataclass(frozen=True, slots=True)
class AnswerCheck:
    """The constraint on the text of each choice. `field` is the request's field, `written` the schema as JSON or the
    pattern, in UTF-8, and `choices` the allowed texts. `fenced` says that the text may stand in a Markdown fence, which
    is no part of it."""

    field: str
    kind: CheckKind
    written: bytes = b""
    choices: frozenset[str] = frozenset()
    fenced: bool = False

    @property
    def compiled(self) -> bool:
        """Whether the check must be compiled first, whose cost the text alone does not bound."""
        return self.kind in (CheckKind.SCHEMA, CheckKind.PATTERN)

    def brief(self, text: str) -> bool:
        """Return whether checking this text takes a millisecond or two at most."""
        return self.kind is CheckKind.CHOICE or not (self.compiled or len(text) > _BRIEF)


def required_check(params: Params) -> AnswerCheck | None:
    """Return the check that the parameters require; None when nothing in them can be checked.

    Raises Unenforceable where a check is required and can be seen to be impossible; `compile_check` raises it for what
    only compiling shows.
    """
    guided = params.get("guided")
    if guided is not None:
        return _of_guided(guided)
    wanted = params.get("response_format")
    return None if wanted is None else _of_format(wanted)


def _of_guided(guided: Guided) -> AnswerCheck | None:
    match guided.kind, guided.value:
        case "json", dict(schema):
            return schema_answer_check(guided.field, schema)
        case "choice", tuple(choices):
            return AnswerCheck(guided.field, CheckKind.CHOICE, choices=frozenset(choices))
        case "regex", str(pattern):
            return _of_pattern(guided.field, pattern)
        case _:
            return None


def _of_format(wanted: JsonObject) -> AnswerCheck | None:
    schema = schema_in(wanted)
    if schema is not None:
        return schema_answer_check("response_format", schema)
    kind = _WITHOUT_SCHEMA.get(str(wanted.get("type")))
    return None if kind is None else AnswerCheck("response_format", kind)


_WITHOUT_SCHEMA: Mapping[str, CheckKind] = {"json_object": CheckKind.OBJECT, "json_schema": CheckKind.JSON}


def schema_answer_check(field: str, schema: JsonObject) -> AnswerCheck:
    """Return the check of a text against a schema. Raises Unenforceable for one that is too large."""
    written = orjson.dumps(schema, option=orjson.OPT_SORT_KEYS)
    if len(written) > MAX_CHECKED:
        raise Unenforceable(f"the answer could not be checked, since the schema is larger than {MAX_CHECKED} bytes")
    return AnswerCheck(field, CheckKind.SCHEMA, written)


def _of_pattern(field: str, pattern: str) -> AnswerCheck:
    try:
        problem = find_unsupported(parse(pattern))
    except MalformedPattern as error:
        problem = str(error)
    if problem is not None:
        raise Unenforceable(f"the answer could not be checked, since the pattern {problem}")
    return AnswerCheck(field, CheckKind.PATTERN, pattern.encode())


def compile_check(check: AnswerCheck) -> Verifier:
    """Compile a check. For a schema or a pattern, compiling it and calling the result may take any time and memory.
    Raises Unenforceable."""
    match check.kind:
        case CheckKind.CHOICE:
            return lambda text: None if text in check.choices else _WORD
        case CheckKind.JSON:
            return _of_json(lambda value: True, "")
        case CheckKind.OBJECT:
            return _of_json(lambda value: isinstance(value, dict), _NO_OBJECT)
        case CheckKind.SCHEMA:
            return _schema_verifier(check.written)
        case CheckKind.PATTERN:
            return _pattern_verifier(check.written.decode())


def _schema_verifier(written: bytes) -> Verifier:
    try:
        keeps = schema_check(orjson.loads(written))
    except Uncompilable as error:
        raise Unenforceable(f"the answer could not be checked, since the schema {error}") from None
    return _of_json(keeps, _NO_FIT)


def _pattern_verifier(pattern: str) -> Verifier:
    try:
        matches = expression_check(to_rust(parse(pattern)))
    except ValueError as error:
        raise Unenforceable(f"the answer could not be checked, since the pattern {error}") from None
    return lambda text: None if matches(text) else _NO_MATCH


def _of_json(keeps: Callable[[JsonValue], bool], otherwise: str) -> Verifier:
    def verify(text: str) -> str | None:
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError:
            return _NO_JSON
        return None if keeps(value) else otherwise

    return verify


class FinishedTexts:
    """Collects the texts of an answer's choices from chunks."""

    __slots__ = ("_exempt", "_texts")

    def __init__(self) -> None:
        self._texts: dict[int, list[str]] = {}
        self._exempt: set[int] = set()

    def add(self, chunk: Chunk) -> str | None:
        """Return the whole text of a choice that ends with this chunk and must keep the constraint, otherwise None: a
        text that was cut, refused or filtered need not, nor one beside calls of tools, with which some vendors end by
        `stop` too."""
        texts = self._texts.setdefault(chunk.index, [])
        texts.append(chunk.text)
        if chunk.refusal is not None or chunk.tool_calls:
            self._exempt.add(chunk.index)
        cut = chunk.finish_reason != "stop" or isinstance(chunk.matched_stop, str)
        return None if cut or chunk.index in self._exempt else "".join(texts)
