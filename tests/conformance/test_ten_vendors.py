"""One request with a schema, a function and an image, as `explain` shows it for each of a dozen vendors: every part
is in the vendor's own field, in a body that matches the vendor's own types."""

from collections.abc import Iterator, Mapping
from typing import Final

import orjson
import pytest

from config.load_config import load_text
from providers.emulation.plan_calls import CallPlan
from providers.json_types import JsonObject, JsonValue
from proxy.gateway.dry_run import Explanation, explained
from proxy.routing.snapshot import ANYONE, Snapshot, build_snapshot
from tests.contracts.sdk_judges import Judges
from tests.contracts.sent_bodies import Body
from tests.contracts.test_sent_bodies import faults
from tests.contracts.vendor_judges import judged_by
from tests.support.looped import looped

TABLE: Final = """\
version: 1
defaults: {max_output_tokens: 4096}
vendors:
  anthropic: {api_key: k}
  bedrock: {api_key: k, url_params: {region: eu-central-1}}
  bedrock_anthropic: {api_key: k, url_params: {region: eu-central-1}}
  cohere: {api_key: k}
  fireworks: {api_key: k}
  gemini: {api_key: k}
  groq: {api_key: k}
  mistral: {api_key: k}
  ollama_native: {base_url: "http://127.0.0.1:11434", allow_private: true}
  openai: {api_key: k}
  vertex: {api_key: k, url_params: {location: europe-west4, project: p}}
  vertex_anthropic: {api_key: k, url_params: {location: europe-west4, project: p}}
  vllm: {base_url: "http://127.0.0.1:8000/v1", allow_private: true}
models:
  anthropic/claude-haiku-4-5: {}
  bedrock/anthropic.claude-haiku-4-5: {}
  bedrock_anthropic/anthropic.claude-haiku-4-5: {}
  cohere/command-a-vision-07-2025: {}
  fireworks/accounts/fireworks/models/x: {}
  gemini/gemini-3-pro: {}
  groq/llama-4: {}
  mistral/mistral-large: {}
  ollama_native/gemma3: {}
  openai/gpt-4o: {}
  vertex/gemini-3-pro: {}
  vertex_anthropic/claude-haiku-4-5@20251001: {}
  vllm/qwen: {}
"""

DATA: Final = "iVBORw0KGgo="
URI: Final = f"data:image/png;base64,{DATA}"
SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
ARGUMENTS: Final[JsonObject] = {"type": "object", "properties": {"of": {"type": "string"}}, "required": ["of"]}
FORMAT: Final[JsonObject] = {
    "type": "json_schema",
    "json_schema": {"name": "place", "schema": SCHEMA, "strict": True},
}
TOOL: Final[JsonObject] = {
    "type": "function",
    "function": {"name": "look_up", "description": "Looks it up.", "parameters": ARGUMENTS},
}
QUESTION: Final[JsonObject] = {
    "max_tokens": 100,
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Where is this?"},
                {"type": "image_url", "image_url": {"url": URI}},
            ],
        }
    ],
}
WHOLE: Final[JsonObject] = {**QUESTION, "tools": [TOOL], "response_format": FORMAT}

Places = Mapping[str, JsonValue]
"""Paths in a body, and the value that each must have."""

_OPENAI: Final[Places] = {
    "response_format.json_schema.schema": SCHEMA,
    "tools.0.function.name": "look_up",
    "tools.0.function.parameters": ARGUMENTS,
    "messages.0.content.1.image_url.url": URI,
}
_ANTHROPIC: Final[Places] = {
    "output_config.format": {"type": "json_schema", "schema": SCHEMA},
    "tools.0.name": "look_up",
    "tools.0.input_schema": ARGUMENTS,
    "messages.0.content.1": {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DATA}},
}
_GEMINI: Final[Places] = {
    "generationConfig.responseMimeType": "application/json",
    "generationConfig.responseJsonSchema": SCHEMA,
    "tools.0.functionDeclarations.0.name": "look_up",
    "tools.0.functionDeclarations.0.parametersJsonSchema": ARGUMENTS,
    "contents.0.parts.1.inlineData": {"mimeType": "image/png", "data": DATA},
}
_BEDROCK: Final[Places] = {
    "outputConfig.textFormat.type": "json_schema",
    "outputConfig.textFormat.structure.jsonSchema": {"schema": orjson.dumps(SCHEMA).decode(), "name": "place"},
    "toolConfig.tools.0.toolSpec.name": "look_up",
    "toolConfig.tools.0.toolSpec.inputSchema.json": ARGUMENTS,
    "messages.0.content.1.image": {"format": "png", "source": {"bytes": DATA}},
}
_OLLAMA: Final[Places] = {
    "format": SCHEMA,
    "tools.0.function.name": "look_up",
    "tools.0.function.parameters": ARGUMENTS,
    "messages.0.images": [DATA],
}
VENDORS: Final[Mapping[str, Places]] = {
    "anthropic/claude-haiku-4-5": _ANTHROPIC,
    "bedrock/anthropic.claude-haiku-4-5": _BEDROCK,
    "bedrock_anthropic/anthropic.claude-haiku-4-5": _ANTHROPIC,
    "fireworks/accounts/fireworks/models/x": _OPENAI,
    "gemini/gemini-3-pro": _GEMINI,
    "groq/llama-4": _OPENAI,
    "mistral/mistral-large": _OPENAI,
    "ollama_native/gemma3": _OLLAMA,
    "openai/gpt-4o": _OPENAI,
    "vertex/gemini-3-pro": _GEMINI,
    "vertex_anthropic/claude-haiku-4-5@20251001": _ANTHROPIC,
    "vllm/qwen": _OPENAI,
}
COHERE: Final = "cohere/command-a-vision-07-2025"
"""Accepts all three, but does not constrain a response to a schema while it has tools."""

every_vendor = looped("model", VENDORS)


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    return build_snapshot(load_text(TABLE, "ten.yaml", {}))


@pytest.fixture(scope="module")
def judges() -> Iterator[Judges]:
    with Judges() as process:
        yield process


def ask(snapshot: Snapshot, model: str, request: JsonObject) -> Explanation:
    """Return the report of `explain` for a request to a model."""
    return explained(snapshot, ANYONE, "/v1/chat/completions", orjson.dumps({"model": model, **request}))


def body_of(explanation: Explanation) -> JsonObject:
    """Return the body of the only call that would be made."""
    (trial,) = explanation.trials
    assert isinstance(trial.outcome, CallPlan), trial.outcome
    (call,) = trial.outcome.calls
    body: JsonObject = orjson.loads(call.sent.body)
    return body


def value_at(body: JsonValue, path: str) -> JsonValue:
    """Return the value at a path; fail if the path does not exist."""
    for step in path.split("."):
        if isinstance(body, list):
            body = body[int(step)]
        else:
            assert isinstance(body, dict), path
            assert step in body, path
            body = body[step]
    return body


def judged_fault(judges: Judges, model: str, body: JsonObject) -> list[str]:
    """Return the fault that a vendor's judges find."""
    row = model.partition("/")[0]
    shown = Body(row, body, ("schema, tool and image",))
    return [found for judged in judged_by(row) if (found := faults(judges, judged, shown))]


@every_vendor
def test_schema_function_and_image_stand_in_the_vendor_s_place(snapshot: Snapshot, model: str) -> None:
    explanation = ask(snapshot, model, WHOLE)
    assert explanation.error is None
    body = body_of(explanation)
    assert {path: value_at(body, path) for path in VENDORS[model]} == VENDORS[model]


@pytest.mark.clients
@pytest.mark.timeout(300)
@every_vendor
def test_the_vendor_s_own_types_take_the_body(snapshot: Snapshot, judges: Judges, model: str) -> None:
    assert judged_fault(judges, model, body_of(ask(snapshot, model, WHOLE))) == []


def test_what_cohere_cannot_do_at_once_is_told_in_the_prompt(snapshot: Snapshot) -> None:
    explanation = ask(snapshot, COHERE, WHOLE)
    (trial,) = explanation.trials
    assert isinstance(trial.outcome, CallPlan)
    assert "response_format" in trial.outcome.emulated
    assert [check.field for check in trial.outcome.checks] == ["response_format"]
    body = body_of(explanation)
    assert "response_format" not in body
    assert "tools" in body


@pytest.mark.clients
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("more", "places"),
    [
        ({"response_format": FORMAT}, {"response_format": {"type": "json_object", "json_schema": SCHEMA}}),
        ({"tools": [TOOL]}, {"tools.0.function.name": "look_up", "tools.0.function.parameters": ARGUMENTS}),
    ],
)
def test_cohere_takes_images_with_either(snapshot: Snapshot, judges: Judges, more: JsonObject, places: Places) -> None:
    body = body_of(ask(snapshot, COHERE, {**QUESTION, **more}))
    expected = {**places, "messages.0.content.1.image_url.url": URI}
    assert {path: value_at(body, path) for path in expected} == expected
    assert judged_fault(judges, COHERE, body) == []
