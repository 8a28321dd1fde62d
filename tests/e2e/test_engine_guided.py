"""The fields that are sent to llama.cpp for each kind of constraint bind a real engine, whose own text would be
noise."""

import re
from collections.abc import AsyncIterator, Mapping
from typing import cast

import aiohttp
import jsonschema
import orjson
import pytest

from providers.adaptation.forced_calls import hold_to_call
from providers.adaptation.tool_calls_of_text import CallReader
from providers.capabilities import NATIVE, Capabilities
from providers.completion import Chunk
from providers.constraints.constraint_styles import constraint_fields
from providers.constraints.style_table import STYLES
from providers.emulation.check_answer import compile_check, required_check
from providers.json_types import JsonObject
from providers.unified_request import ChatPrompt, Guided, Operation, Params, UnifiedRequest
from tests.e2e.kit import text_of
from tests.support.engine import Engine, client_of
from tests.support.looped import looped

pytestmark = pytest.mark.engine

ASKED: Mapping[Operation, tuple[str, JsonObject]] = {
    Operation.COMPLETIONS: ("/v1/completions", {"prompt": "The quick"}),
    Operation.CHAT: ("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}]}),
}
SEEDS = range(4)
SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 40},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 3},
        "code": {"type": "string", "pattern": "^[A-Z]{2}[0-9]{1,3}$"},
        "next": {"anyOf": [{"$ref": "#/$defs/leaf"}, {"type": "null"}]},
    },
    "required": ["size", "tags", "code", "next"],
    "additionalProperties": False,
    "$defs": {"leaf": {"type": "object", "properties": {"end": {"const": True}}, "required": ["end"]}},
}


@pytest.fixture
async def http(engine: Engine) -> AsyncIterator[aiohttp.ClientSession]:
    async with client_of(engine.base_url) as session:
        yield session


async def bound(http: aiohttp.ClientSession, operation: Operation, members: JsonObject, seed: int) -> str:
    """Return the text that the engine generates within a constraint. Assert that it came to its end."""
    path, asked = ASKED[operation]
    body: JsonObject = {**asked, **members, "seed": seed, "temperature": 1, "max_tokens": 1500}
    async with http.post(path, json=body) as answer:
        facts = await answer.json()
        assert answer.status == 200, facts
    (choice,) = facts["choices"]
    assert choice["finish_reason"] == "stop"
    return text_of(choice)


@looped("operation", Operation)
@looped(
    "pattern",
    [
        r"\d{3}-\d{4}",
        r"^[\w.-]{1,10}@[\w-]{1,10}\.(com|org)$",
        r"[A-Z][a-z]{1,8} [0-9]+(\.\d\d)?",
        r'{"n": -?\d{1,3}}',
        "(yes|no)( maybe){0,3}",
        "(a?|b*)*c",
        "((a|b)+c?)+d",
        "((a{2}){3}b?){2}",
        "a?b?c?d?",
        r"(\s*,?\s*){2,4}x",
        "(ab|ba){1,200}",
        "a{300}b{0,300}c",
        r'"[^"\\\x80-\U0010FFFF]{0,40}"',
        "[ -~]{1,60}",
        "é{2}[à-ü]{1,4}",
        "\t\n\\\\[\\]]",
        "",
    ],
)
async def test_a_pattern_binds_as_a_grammar(http: aiohttp.ClientSession, operation: Operation, pattern: str) -> None:
    guided = Guided("regex", pattern)
    made = constraint_fields(STYLES["llamacpp"][operation], guided)
    check = required_check(Params(guided=guided))
    assert made.emulated
    assert check is not None
    verify = compile_check(check)
    for seed in SEEDS:
        text = await bound(http, operation, made.fields, seed)
        assert re.fullmatch(pattern, text)
        assert verify(text) is None


@pytest.mark.parametrize("operation", Operation)
async def test_a_choice_binds_as_a_grammar(http: aiohttp.ClientSession, operation: Operation) -> None:
    choices = ('say "yes"', "no\n", "ünclear", "\\d", "\x01", "a", "ab")
    made = constraint_fields(STYLES["llamacpp"][operation], Guided("choice", choices))
    assert {await bound(http, operation, made.fields, seed) for seed in range(12)} <= {*choices}


@pytest.mark.parametrize("operation", Operation)
async def test_a_schema_binds_in_every_form(http: aiohttp.ClientSession, operation: Operation) -> None:
    named: JsonObject = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}
    mode: JsonObject = {"type": "json_object", "schema": SCHEMA}
    for made in (
        constraint_fields(STYLES["llamacpp"][operation], Guided("json", SCHEMA)),
        constraint_fields(STYLES["llamacpp"][operation], named),
        constraint_fields(STYLES["llamacpp"][operation], mode),
    ):
        for seed in SEEDS:
            jsonschema.validate(orjson.loads(await bound(http, operation, made.fields, seed)), SCHEMA)


@pytest.mark.parametrize("operation", Operation)
async def test_a_grammar_binds(http: aiohttp.ClientSession, operation: Operation) -> None:
    made = constraint_fields(STYLES["llamacpp"][operation], Guided("grammar", 'root ::= "a" [bc] [bc] "d"'))
    for seed in SEEDS:
        assert await bound(http, operation, made.fields, seed) in {"abbd", "abcd", "acbd", "accd"}


async def test_the_format_of_a_forced_call_binds(http: aiohttp.ClientSession) -> None:
    code: JsonObject = {"type": "object", "properties": {"code": {"$ref": "#/$defs/Code"}}, "required": ["code"]}
    tools: list[JsonObject] = [
        {"name": "look", "parameters": {**code, "$defs": {"Code": {"enum": ["a", "b"]}}}},
        {"name": "rest", "parameters": {"type": "object", "properties": {}, "additionalProperties": False}},
    ]
    params = {"tools": [{"type": "function", "function": each} for each in tools], "tool_choice": "required"}
    asked = UnifiedRequest(Operation.CHAT, "v/m", ChatPrompt(()), cast(Params, params))
    held, forced = hold_to_call(asked, Capabilities({"response_format.json_schema": NATIVE}))
    made = constraint_fields(STYLES["ollama"][Operation.CHAT], held.params["response_format"])
    found: set[tuple[str | None, str]] = set()
    for seed in range(8):
        text = await bound(http, Operation.CHAT, made.fields, seed)
        (call,) = CallReader(forced).feed(Chunk(text=text, finish_reason="stop")).tool_calls
        found.add((call.name, re.sub(r"\s", "", call.arguments)))
    assert found <= {("look", '{"code":"a"}'), ("look", '{"code":"b"}'), ("rest", "{}")}
