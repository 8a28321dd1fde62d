"""Constraints and responses that cost a native validator or a regex engine more than a request may. Pure values."""

from collections.abc import Mapping

import orjson

from providers.emulation.check_answer import AnswerCheck, CheckKind
from providers.json_types import JsonObject, JsonValue


def check_of(schema: JsonObject) -> AnswerCheck:
    """Return the check of a schema, without a surface's validation of the schema."""
    return AnswerCheck("guided_json", CheckKind.SCHEMA, orjson.dumps(schema))


def steps(count: int, keyword: str, times: int = 1) -> JsonObject:
    """Return a chain of named definitions. Each applies the next one `times` times, and the last is an array of the
    first.
    """
    links: JsonObject = {}
    for at in range(count):
        following: JsonValue = {"$ref": f"#a{at + 1}"}
        links[f"d{at}"] = {"$anchor": f"a{at}", keyword: following if keyword == "not" else [following] * times}
    end: JsonObject = {"$anchor": f"a{count}", "type": "array", "items": {"$ref": "#a0"}}
    return {"$ref": "#a0", "$defs": {**links, "end": end}}


def nested(depth: int) -> str:
    """Return nested empty arrays."""
    return "[" * depth + "]" * depth


def unevaluated(levels: int) -> JsonObject:
    """Return a schema in which each level evaluates the level below again to find unevaluated properties."""
    named: JsonObject = {"d0": {"properties": {"x": {"type": "integer"}}, "unevaluatedProperties": False}}
    for at in range(levels):
        below: JsonObject = {"$ref": f"#/$defs/d{at}"}
        part: JsonObject = {"properties": {f"x{at}": {"type": "integer"}}}
        named[f"d{at + 1}"] = {"anyOf": [below, {"allOf": [below, part]}], "unevaluatedProperties": False}
    return {"$ref": f"#/$defs/d{levels}", "$defs": named}


_BACKTRACKING: JsonObject = {"items": {"not": {"pattern": r"^(?=(a+)+$)(a+)+b|^(a+)+(?=b)"}}}
_LOOK_AROUNDS: JsonObject = {"items": {"not": {"pattern": "(?=a)(a|aa)+$"}}}
"""The look-ahead runs at every position, and the match reads on to the end."""

COSTLY: Mapping[str, tuple[AnswerCheck, str]] = {
    "references that double by name": (check_of(steps(60, "allOf", 2)), "[]"),
    "a chain on the native stack": (check_of(steps(1000, "anyOf")), nested(200)),
    "a chain of negations and a deep answer": (check_of(steps(95, "not")), nested(900)),
    "the longest chain and the deepest answer": (check_of(steps(98, "anyOf")), nested(200)),
    "two hundred large automata": (
        check_of({"properties": {f"p{at}": {"pattern": f".{{2000}}{at}"} for at in range(200)}}),
        "{}",
    ),
    "look-around over many leaves": (
        check_of(_BACKTRACKING),
        orjson.dumps(["a" * 100 + "!"] * 20_000).decode(),
    ),
    "look-around over long leaves": (check_of(_LOOK_AROUNDS), orjson.dumps(["a" * 8_000 + "!"] * 200).decode()),
    "properties that are evaluated again at every level": (check_of(unevaluated(14)), '{"x": 1, "y": 2}'),
    "unique items of a long list": (
        check_of({"uniqueItems": True}),
        orjson.dumps([{"a": at} for at in range(60_000)]).decode(),
    ),
    "a pattern of nested counts": (AnswerCheck("guided_regex", CheckKind.PATTERN, b"((a{90}){90}){90}"), "a" * 1000),
    "a text of many megabytes": (check_of({"items": {"type": "integer"}}), "[" + "1," * 1_000_000 + "1]"),
}
"""By name: the check to compile, and the response to test. Each has to end: by a refusal, by a result, or by the end of
the process that works on it.
"""
