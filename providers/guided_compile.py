"""JSON Schemas and expressions as compiled checks: the one home of the library that makes them. Never fetches anything.

The library is loaded when the first check is made, since most processes never make one. It is only ever asked whether:
gathering its errors takes exponential time on schemas whose branches lead back to them.

Source: `jsonschema-rs` 0.60.3, tried in November 2026: it meets each place of a value once where a schema leads back to
itself, raises ValueError for what it cannot compile, and its meta-schema check fetches an unknown `$schema` unless told
which one is meant.
"""

from collections.abc import Callable

from providers.guided_schema import MAX_SPREAD, below, places, spread
from providers.unified import JsonObject, JsonValue

_LATEST, _DRAFT_7 = "https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema"
_DRAFTS = frozenset(
    {_LATEST, _DRAFT_7, "https://json-schema.org/draft/2019-09/schema"}
    | {f"http://json-schema.org/draft-0{number}/schema" for number in (4, 6)}
)
_PROGRAM_BYTES = 2 << 20
"""Of a compiled pattern; both compiling and matching grow with it."""
_BACKTRACKS = 10_000
"""Steps that a schema's pattern with look-around may take on one text."""


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
    """Whether a value keeps the schema. `format` is an annotation. Raises Uncompilable."""
    from jsonschema_rs import FancyRegexOptions, validator_for

    if spread(schema) > MAX_SPREAD:
        raise Uncompilable(f"spreads over more than {MAX_SPREAD} places once its references are followed")
    # Look-around needs the other engine, which is as fast for patterns without it.
    options = FancyRegexOptions(backtrack_limit=_BACKTRACKS, size_limit=_PROGRAM_BYTES)
    try:
        dated: JsonObject = {**schema, "$schema": _draft(schema)}
        validator = validator_for(dated, validate_formats=False, pattern_options=options, offline=True)
    except ValueError:
        raise Uncompilable("cannot be compiled") from None
    return validator.is_valid


def expression_check(expression: str) -> Callable[[str], bool]:
    """Whether a text matches an expression of Rust's syntax, in time linear in its length. Raises Uncompilable."""
    from jsonschema_rs import RegexOptions, validator_for

    schema: JsonObject = {"type": "string", "pattern": expression}
    try:
        validator = validator_for(schema, pattern_options=RegexOptions(size_limit=_PROGRAM_BYTES), offline=True)
    except ValueError:
        raise Uncompilable("is too large to be checked") from None
    return validator.is_valid
