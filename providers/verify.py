"""Whether an answer keeps the request's constraint, for engines that may ignore one in silence. Never repairs a text.

Only finished texts are to be asked about: one that was cut breaks its constraint without anybody's fault. A grammar
cannot be checked, nor can a structural tag.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache

import orjson

from providers.guided import Unenforceable, schema_in
from providers.guided_compile import Uncompilable, expression_check, schema_check
from providers.regex_linear import linear
from providers.regex_tree import parse, unsupported
from providers.unified import Guided, JsonObject, JsonValue, Params

Verifier = Callable[[str], str | None]
"""A text to why it breaks the constraint, in words that hold nothing of it; None when it keeps it."""

_MAX_CACHED = 65_536
"""Bytes of a schema that is worth keeping compiled."""


def verifier(params: Params) -> Verifier | None:
    """The check that the params ask for; None when they ask for nothing that can be checked.

    Raises Unenforceable where there should be one and none can be made.
    """
    guided = params.get("guided")
    if guided is not None:
        return _of_guided(guided)
    wanted = params.get("response_format")
    return None if wanted is None else _of_format(wanted)


def _of_guided(guided: Guided) -> Verifier | None:
    match guided.kind, guided.value:
        case "json", dict(schema):
            return _of_schema(schema)
        case "choice", tuple(choices):
            return _of_choice(frozenset(choices))
        case "regex", str(pattern):
            return _of_regex(pattern)
        case _:
            return None


def _of_format(wanted: JsonObject) -> Verifier | None:
    schema = schema_in(wanted)
    if schema is not None:
        return _of_schema(schema)
    return _WITHOUT_SCHEMA.get(str(wanted.get("type")))


def _of_choice(choices: frozenset[str]) -> Verifier:
    return lambda text: None if text in choices else "it is none of the choices"


@lru_cache(maxsize=256)
def _of_regex(pattern: str) -> Verifier:
    try:
        tree = parse(pattern)
        problem = unsupported(tree)
        if problem is not None:
            raise ValueError(problem)
        matches = expression_check(linear(tree))
    except ValueError as error:
        raise Unenforceable(f"the answer could not be checked, since the pattern {error}") from None
    return lambda text: None if matches(text) else "it does not match the pattern"


def _of_schema(schema: JsonObject) -> Verifier:
    written = orjson.dumps(schema, option=orjson.OPT_SORT_KEYS)
    return _cached(written) if len(written) <= _MAX_CACHED else _compiled(written)


def _compiled(written: bytes) -> Verifier:
    try:
        keeps = schema_check(orjson.loads(written))
    except Uncompilable as error:
        raise Unenforceable(f"the answer could not be checked, since the schema {error}") from None
    return _of_json(keeps, "it does not keep the schema")


_cached = lru_cache(maxsize=256)(_compiled)


def _of_json(keeps: Callable[[JsonValue], bool], otherwise: str) -> Verifier:
    def verify(text: str) -> str | None:
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError:
            return "it is not JSON"
        return None if keeps(value) else otherwise

    return verify


_WITHOUT_SCHEMA: Mapping[str, Verifier] = {
    "json_object": _of_json(lambda value: isinstance(value, dict), "it is not a JSON object"),
    "json_schema": _of_json(lambda value: True, ""),
}
