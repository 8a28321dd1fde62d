"""Checks responses against the request's constraint, for engines that may ignore a constraint without an error.

Only finished texts are checked: a text that was cut off may break its constraint although the engine enforces it.
Grammars and structural tags cannot be checked.
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
"""A function that returns the reason why a text breaks the constraint, or `None` if the text satisfies the constraint.
The reason does not quote the text."""

MAX_CHECKED: Final = 1 << 20
"""The largest size in bytes of a schema that responses are checked against."""

_MAX_BRIEF_CHARACTERS: Final = 64 * 1024
"""The most characters that a JSON text may have if parsing it is to take at most one or two milliseconds, whatever its
content."""

_NOT_A_CHOICE, _NOT_JSON, _NOT_AN_OBJECT = "it is none of the choices", "it is not JSON", "it is not a JSON object"
_BREAKS_SCHEMA, _BREAKS_PATTERN = "it does not satisfy the schema", "it does not match the pattern"


class CheckKind(StrEnum):
    """The kind of constraint that a text is checked against."""

    CHOICE = "choice"
    JSON = "json"
    OBJECT = "object"
    SCHEMA = "schema"
    PATTERN = "pattern"


@dataclass(frozen=True, slots=True)
class AnswerCheck:
    """The constraint on the text of each choice. `field` is the name of the request's field, `written` is the schema as
    JSON or the pattern, in UTF-8, and `choices` are the allowed texts. `fenced` is true if the text may stand in a
    Markdown fence, which is not part of the checked text."""

    field: str
    kind: CheckKind
    written: bytes = b""
    choices: frozenset[str] = frozenset()
    fenced: bool = False

    @property
    def compiled(self) -> bool:
        """Whether the check must be compiled first. The cost of such a check does not depend on the text alone."""
        return self.kind in (CheckKind.SCHEMA, CheckKind.PATTERN)

    def brief(self, text: str) -> bool:
        """Return whether checking this text takes at most one or two milliseconds."""
        return self.kind is CheckKind.CHOICE or not (self.compiled or len(text) > _MAX_BRIEF_CHARACTERS)


def required_check(params: Params) -> AnswerCheck | None:
    """Return the check that the params require; `None` if they hold no constraint that can be checked. Raises
    Unenforceable if a required check is known to be impossible.

    For faults that only compiling shows, `compile_check` raises Unenforceable.
    """
    guided = params.get("guided")
    if guided is not None:
        return _check_of_guided(guided)
    wanted = params.get("response_format")
    return None if wanted is None else _check_of_format(wanted)


def _check_of_guided(guided: Guided) -> AnswerCheck | None:
    match guided.kind, guided.value:
        case "json", dict(schema):
            return schema_answer_check(guided.field, schema)
        case "choice", tuple(choices):
            return AnswerCheck(guided.field, CheckKind.CHOICE, choices=frozenset(choices))
        case "regex", str(pattern):
            return _check_of_pattern(guided.field, pattern)
        case _:
            return None


def _check_of_format(wanted: JsonObject) -> AnswerCheck | None:
    schema = schema_in(wanted)
    if schema is not None:
        return schema_answer_check("response_format", schema)
    kind = _WITHOUT_SCHEMA.get(str(wanted.get("type")))
    return None if kind is None else AnswerCheck("response_format", kind)


_WITHOUT_SCHEMA: Mapping[str, CheckKind] = {"json_object": CheckKind.OBJECT, "json_schema": CheckKind.JSON}


def schema_answer_check(field: str, schema: JsonObject) -> AnswerCheck:
    """Return the check of a text against a schema. Raises Unenforceable for a schema that is too large."""
    written = orjson.dumps(schema, option=orjson.OPT_SORT_KEYS)
    if len(written) > MAX_CHECKED:
        raise Unenforceable(f"the response could not be checked, since the schema is larger than {MAX_CHECKED} bytes")
    return AnswerCheck(field, CheckKind.SCHEMA, written)


def _check_of_pattern(field: str, pattern: str) -> AnswerCheck:
    try:
        problem = find_unsupported(parse(pattern))
    except MalformedPattern as error:
        problem = str(error)
    if problem is not None:
        raise Unenforceable(f"the response could not be checked, since the pattern {problem}")
    return AnswerCheck(field, CheckKind.PATTERN, pattern.encode())


def compile_check(check: AnswerCheck) -> Verifier:
    """Compile a check. For a schema or a pattern, both compiling it and calling the returned function may take any
    amount of time and memory. Raises Unenforceable for a schema or pattern that cannot be compiled."""
    match check.kind:
        case CheckKind.CHOICE:
            return lambda text: None if text in check.choices else _NOT_A_CHOICE
        case CheckKind.JSON:
            return _json_verifier(lambda value: True, "")
        case CheckKind.OBJECT:
            return _json_verifier(lambda value: isinstance(value, dict), _NOT_AN_OBJECT)
        case CheckKind.SCHEMA:
            return _schema_verifier(check.written)
        case CheckKind.PATTERN:
            return _pattern_verifier(check.written.decode())


def _schema_verifier(written: bytes) -> Verifier:
    try:
        keeps = schema_check(orjson.loads(written))
    except Uncompilable as error:
        raise Unenforceable(f"the response could not be checked, since the schema {error}") from None
    return _json_verifier(keeps, _BREAKS_SCHEMA)


def _pattern_verifier(pattern: str) -> Verifier:
    try:
        matches = expression_check(to_rust(parse(pattern)))
    except ValueError as error:
        raise Unenforceable(f"the response could not be checked, since the pattern {error}") from None
    return lambda text: None if matches(text) else _BREAKS_PATTERN


def _json_verifier(keeps: Callable[[JsonValue], bool], otherwise: str) -> Verifier:
    def verify(text: str) -> str | None:
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError:
            return _NOT_JSON
        return None if keeps(value) else otherwise

    return verify


class FinishedTexts:
    """Collects the texts of a response's choices from chunks."""

    __slots__ = ("_exempt", "_texts")

    def __init__(self) -> None:
        self._texts: dict[int, list[str]] = {}
        self._exempt: set[int] = set()

    def add(self, chunk: Chunk) -> str | None:
        """Return the complete text of a choice that ends with this chunk and must satisfy the constraint; otherwise
        `None`. A text that was cut off, refused or filtered need not satisfy the constraint. A text beside tool calls
        need not satisfy it either; some vendors end such a choice with the finish reason `stop`."""
        texts = self._texts.setdefault(chunk.index, [])
        texts.append(chunk.text)
        if chunk.refusal is not None or chunk.tool_calls:
            self._exempt.add(chunk.index)
        cut = chunk.finish_reason != "stop" or isinstance(chunk.matched_stop, str)
        return None if cut or chunk.index in self._exempt else "".join(texts)
