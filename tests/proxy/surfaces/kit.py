"""Helpers that parse and render in the tests of the surfaces."""

import json
from typing import cast

import orjson
import pytest

from providers.completion import Chunk, Usage
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import Operation, UnifiedRequest
from proxy.errors import ErrorFacts, GatewayError
from proxy.surfaces.completion_surface import CompletionSurface
from proxy.surfaces.fireworks import FIREWORKS
from proxy.surfaces.openai import OPENAI
from proxy.surfaces.scale_genai import SCALE_V4, SCALE_V5
from proxy.surfaces.surface import AnswerFacts, Renderer
from proxy.surfaces.vmware_pais import PAIS
from tests.support.looped import looped

ROWS = {"openai": OPENAI, "scale_v4": SCALE_V4, "scale_v5": SCALE_V5, "fireworks": FIREWORKS, "pais": PAIS}
FACTS = AnswerFacts("1", 1795246123, "openai/gpt-x")
USAGE = Usage(6, 2)

every_row = looped("row", ROWS.values(), ids=ROWS.keys())


def complete(row: CompletionSurface = OPENAI, /, **fields: JsonValue) -> UnifiedRequest:
    """Return a parsed text completion; model and prompt are filled in."""
    return row.parse(Operation.COMPLETIONS, orjson.dumps({"model": "m", "prompt": "p", **fields}), None)


def converse(row: CompletionSurface = OPENAI, /, **fields: JsonValue) -> UnifiedRequest:
    """Return a parsed chat; model and messages are filled in."""
    messages = [{"role": "user", "content": "hi"}]
    return row.parse(Operation.CHAT, orjson.dumps({"model": "m", "messages": messages, **fields}), None)


def refuse(
    row: CompletionSurface = OPENAI, operation: Operation = Operation.COMPLETIONS, /, **fields: JsonValue
) -> ErrorFacts:
    """Return the error facts of a body that must not parse; model and prompt are filled in for completions."""
    filled = {"model": "m", "prompt": "p"} if operation is Operation.COMPLETIONS else {"model": "m"}
    return refuse_bytes(orjson.dumps({**filled, **fields}), row, operation)


def refuse_bytes(
    body: bytes, row: CompletionSurface = OPENAI, operation: Operation = Operation.COMPLETIONS
) -> ErrorFacts:
    """Return the error facts of any bytes that must not parse."""
    with pytest.raises(GatewayError) as caught:
        row.parse(operation, body, None)
    return caught.value.facts


def params_at_fault(facts: ErrorFacts) -> list[str | None]:
    """Return the fields that an error names, in order."""
    return [problem.param for problem in facts.problems]


def play(renderer: Renderer, *events: Chunk | Usage) -> bytes:
    """Return a complete stream that ends well."""
    played = [renderer.chunk(event) if isinstance(event, Chunk) else renderer.usage(event) for event in events]
    return b"".join(played) + renderer.end()


def objects(stream: bytes) -> list[JsonObject]:
    lines = [line.removeprefix("data: ") for line in stream.decode("ascii").split("\n") if line.startswith("data: ")]
    return [cast(JsonObject, json.loads(line)) for line in lines if line != "[DONE]"]


def choices(*bodies: JsonObject) -> list[JsonObject]:
    return [choice for body in bodies for choice in cast(list[JsonObject], body["choices"])]
