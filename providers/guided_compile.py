"""JSON Schemas and expressions as compiled checks: the one home of the library that makes them. Never fetches anything.

Compiling and checking what a client wrote may take any time, memory and stack, so both belong into a process that can
be ended (`proxy.answer_checks`); only `misfit` is linear in the schema. The library is loaded when it is first needed,
since most processes never need it. It is only called for a yes or no: gathering its errors takes exponential time on
schemas whose branches lead back to them.

Source: `jsonschema-rs` 0.60.3, tried in November 2026: it meets each place of a value once where a schema leads back to
itself, raises ValueError for what it cannot compile, and its meta-schema check fetches an unknown `$schema` unless told
which one is meant.
"""

from collections.abc import Callable

from providers.constraint_budget import BACKTRACKS, MAX_ANSWER_DEPTH, MAX_SPREAD, PROGRAM_BYTES
from providers.guided_schema import below, patterns, places, spread
from providers.unified import JsonObject, JsonValue

_LATEST, _DRAFT_7 = "https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema"
_DRAFTS = frozenset(
    {_LATEST, _DRAFT_7, "https://json-schema.org/draft/2019-09/schema"}
    | {f"http://json-schema.org/draft-0{number}/schema" for number in (4, 6)}
)


class Uncompilable(ValueError):
    """No check can be made; the message continues the name of what it was to be made of."""


def misfit(schema: JsonObject) -> str | None:
    """The path of the first keyword whose value JSON Schema does not allow; None for a valid schema."""
    if not isinstance(schema.get("$schema", ""), str):
        return "$.$schema"
    draft = _draft(schema)
    return None if _fits(schema, draft) else _first_misfit(schema, draft)


def _draft(schema: JsonObject) -> str:
    """The draft that `$schema` names. Most schemas name none; a list of `items` then tells that it is an older one."""
    declared = str(schema.get("$schema", "")).removesuffix("#")
    if declared in _DRAFTS:
        return declared
    listed = any(isinstance(node.get("items"), list) for _, node in places(schema))
    return _DRAFT_7 if listed else _LATEST


def _fits(schema: JsonObject, draft: str) -> bool:
    from jsonschema_rs import meta

    return meta.is_valid({**schema, "$schema": draft})


def _first_misfit(schema: JsonObject, draft: str) -> str:
    path, node = "$", schema
    while True:
        inner = next((place for place in below(node, path) if not _fits(place[1], draft)), None)
        if inner is None:
            break
        path, node = inner
    alone = ((name, {name: value}) for name, value in node.items() if name != "$schema")
    keyword = next((name for name, part in alone if not _fits(part, draft)), None)
    return path if keyword is None else f"{path}.{keyword}"


def schema_check(schema: JsonObject) -> Callable[[JsonValue], bool]:
    """Whether a value keeps the schema; one nested deeper than MAX_ANSWER_DEPTH does not. `format` is an annotation.
    Raises Uncompilable."""
    if spread(schema) > MAX_SPREAD:
        raise Uncompilable(f"spreads over more than {MAX_SPREAD} places once its references are followed")
    is_valid = _validator({**schema, "$schema": _draft(schema)})
    if is_valid is None:
        raise Uncompilable(_uncompilable_pattern(schema) or "cannot be compiled")
    return lambda value: not _deeper(value, MAX_ANSWER_DEPTH) and is_valid(value)


def _validator(schema: JsonObject) -> Callable[[JsonValue], bool] | None:
    """The library's check; None for what it does not compile."""
    from jsonschema_rs import FancyRegexOptions, validator_for

    # Look-around needs the other engine, which is as fast for patterns without it.
    options = FancyRegexOptions(backtrack_limit=BACKTRACKS, size_limit=PROGRAM_BYTES)
    try:
        return validator_for(schema, validate_formats=False, pattern_options=options, offline=True).is_valid
    except ValueError:
        return None


def _uncompilable_pattern(schema: JsonObject) -> str | None:
    """The first pattern of a schema that is not compiled by itself, in words that continue "the schema"."""
    found = (at for path, node in places(schema) for at, pattern in patterns(path, node) if _validator_lacks(pattern))
    at = next(found, None)
    return None if at is None else f"cannot be compiled: {at} is too large, or of a syntax that is not known here"


def _validator_lacks(pattern: str) -> bool:
    return _validator({"pattern": pattern}) is None


def _deeper(value: JsonValue, most: int) -> bool:
    """Whether a value has more than `most` levels of objects and lists."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(most):
        level = [
            child
            for holder in level
            for child in (holder.values() if isinstance(holder, dict) else holder)
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return bool(level)


def expression_check(expression: str) -> Callable[[str], bool]:
    """Whether a text matches an expression of Rust's syntax, in time linear in its length. Raises Uncompilable."""
    from jsonschema_rs import RegexOptions, validator_for

    schema: JsonObject = {"type": "string", "pattern": expression}
    try:
        validator = validator_for(schema, pattern_options=RegexOptions(size_limit=PROGRAM_BYTES), offline=True)
    except ValueError:
        raise Uncompilable("is too large to be checked") from None
    return validator.is_valid
