"""Compiles JSON Schemas and regular expressions into checks of responses.

Compiling and checking a client's schema may take any time, memory and stack. Both must therefore run in a process that
can be killed (`proxy.off_loop.answer_check_pool`). Only `first_invalid_keyword` is linear in the schema. The library is
loaded at its first use, since most processes never need it. It only returns whether a value is valid: collecting its
errors takes exponential time on schemas whose branches lead back to them.

Source: `jsonschema-rs` 0.60.3, tried in November 2026. It visits each part of a value once if a schema leads back to
itself, and raises ValueError for a schema that it cannot compile. Its meta-schema check fetches an unknown `$schema`
unless the draft is given.
"""

from collections.abc import Callable

from providers.constraints.complexity_limits import BACKTRACKS, MAX_ANSWER_DEPTH, MAX_SPREAD, PROGRAM_BYTES
from providers.constraints.json_schema import count_evaluations, object_subschemas, patterns, walk_schemas
from providers.json_types import JsonObject, JsonValue, nests_deeper

_LATEST, _DRAFT_7 = "https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema"
_DRAFTS = frozenset(
    {_LATEST, _DRAFT_7, "https://json-schema.org/draft/2019-09/schema"}
    | {f"http://json-schema.org/draft-0{number}/schema" for number in (4, 6)}
)


class Uncompilable(ValueError):
    """The error for a schema or pattern for which no check can be made. The message is the rest of a sentence that
    begins with the name of the schema or pattern."""


def first_invalid_keyword(schema: JsonObject) -> str | None:
    """Return the path of the first keyword whose value JSON Schema does not allow; `None` for a valid schema."""
    if not isinstance(schema.get("$schema", ""), str):
        return "$.$schema"
    draft = _draft(schema)
    return None if _is_valid_schema(schema, draft) else _first_invalid_part(schema, draft)


def _draft(schema: JsonObject) -> str:
    """Return the draft that `$schema` names. Most schemas name none; then a list of `items` indicates an older
    draft."""
    declared = str(schema.get("$schema", "")).removesuffix("#")
    if declared in _DRAFTS:
        return declared
    listed = any(isinstance(node.get("items"), list) for _, node in walk_schemas(schema))
    return _DRAFT_7 if listed else _LATEST


def _is_valid_schema(schema: JsonObject, draft: str) -> bool:
    from jsonschema_rs import meta

    return meta.is_valid({**schema, "$schema": draft})


def _first_invalid_part(schema: JsonObject, draft: str) -> str:
    path, node = "$", schema
    while True:
        inner = next((place for place in object_subschemas(node, path) if not _is_valid_schema(place[1], draft)), None)
        if inner is None:
            break
        path, node = inner
    alone = ((name, {name: value}) for name, value in node.items() if name != "$schema")
    keyword = next((name for name, part in alone if not _is_valid_schema(part, draft)), None)
    return path if keyword is None else f"{path}.{keyword}"


def schema_check(schema: JsonObject) -> Callable[[JsonValue], bool]:
    """Return a check whether a value fits the schema. A value that is nested deeper than MAX_ANSWER_DEPTH does not fit.
    `format` is an annotation. Raises Uncompilable."""
    if count_evaluations(schema) > MAX_SPREAD:
        raise Uncompilable(f"spreads over more than {MAX_SPREAD} parts once its references are followed")
    is_valid = _validator({**schema, "$schema": _draft(schema)})
    if is_valid is None:
        raise Uncompilable(_uncompilable_pattern(schema) or "cannot be compiled")
    return lambda value: not nests_deeper(value, MAX_ANSWER_DEPTH) and is_valid(value)


def _validator(schema: JsonObject) -> Callable[[JsonValue], bool] | None:
    """Return the library's check; `None` for a schema that it cannot compile."""
    from jsonschema_rs import FancyRegexOptions, validator_for

    # Look-around needs the other engine, which is as fast for patterns without it.
    options = FancyRegexOptions(backtrack_limit=BACKTRACKS, size_limit=PROGRAM_BYTES)
    try:
        return validator_for(schema, validate_formats=False, pattern_options=options, offline=True).is_valid
    except ValueError:
        return None


def _uncompilable_pattern(schema: JsonObject) -> str | None:
    """Return a problem text for the first pattern of a schema that does not compile by itself. The text is the rest of
    a sentence that begins with "the schema"."""
    found = (
        at for path, node in walk_schemas(schema) for at, pattern in patterns(path, node) if _cannot_compile(pattern)
    )
    at = next(found, None)
    return None if at is None else f"cannot be compiled: {at} is too large, or has a syntax that is not known here"


def _cannot_compile(pattern: str) -> bool:
    return _validator({"pattern": pattern}) is None


def expression_check(expression: str) -> Callable[[str], bool]:
    """Return a check whether a text matches an expression in Rust's syntax. The check takes time linear in the text's
    length. Raises Uncompilable."""
    from jsonschema_rs import RegexOptions, validator_for

    schema: JsonObject = {"type": "string", "pattern": expression}
    try:
        validator = validator_for(schema, pattern_options=RegexOptions(size_limit=PROGRAM_BYTES), offline=True)
    except ValueError:
        raise Uncompilable("is too large to be checked") from None
    return validator.is_valid
