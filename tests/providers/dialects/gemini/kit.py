"""Targets, requests and fixtures for the tests of Gemini's dialect."""

from dataclasses import replace
from pathlib import Path

import orjson
from pydantic import SecretStr

from providers.dialect import UpstreamRequest
from providers.dialects.gemini.dialect import GeminiDialect
from providers.json_types import JsonObject, JsonValue
from providers.profiles.load_profiles import load_profiles
from providers.target import Target
from providers.unified_request import UnifiedRequest
from providers.vendor_credential import Credential
from tests.providers.dialects.kit import chat_request, reader, target_of

FIXTURES = Path(__file__).parent / "fixtures"
answer = reader("gemini", "answers", "json")
stream = reader("gemini", "streams", "sse")
DIALECT = GeminiDialect()
TARGET = target_of(
    "gemini", "gemini-3.1-pro-preview", credential=Credential("header", "x-goog-api-key", SecretStr("AIzaSecret"))
)
OLD = replace(TARGET, model="gemini-2.5-flash", upstream_model="gemini-2.5-flash")
NEWEST = replace(TARGET, model="gemini-3.8-flash", upstream_model="gemini-3.8-flash")
VERTEX = replace(
    TARGET,
    vendor="vertex",
    profile=load_profiles()["vertex"],
    base_url="https://europe-west4-aiplatform.googleapis.com/v1/projects/acme/locations/europe-west4",
    credential=Credential("bearer", key=SecretStr("ya29.secret")),
)

SIGNATURE = "c2lnbmF0dXJlLW9mLW9uZS8rPz8+"
SAID = "YW5vdGhlci1zaWduYXR1cmU/Pg=="
"""The signatures in the fixtures: of a call, and of a text before one."""
SIGNED: JsonObject = {"extra_content": {"google": {"thought_signature": SIGNATURE}}}
"""The field of a call that holds its signature beside its id."""
MEMBERS: JsonObject = {"model_version": "gemini-3.8-flash", "response_id": "resp-1"}
"""The fields of the whole response in the fixtures."""


def tool(name: str = "get_weather", **more: JsonValue) -> JsonObject:
    return {"type": "function", "function": {"name": name, **more}}


def body_of(request: UnifiedRequest, target: Target = TARGET) -> JsonObject:
    body: JsonObject = orjson.loads(DIALECT.encode(request, target).body)
    return body


def config_of(request: UnifiedRequest, target: Target = TARGET) -> JsonValue:
    return body_of(request, target).get("generationConfig")


def contents_of(*messages: JsonObject, target: Target = TARGET) -> JsonValue:
    return body_of(chat_request(*messages), target)["contents"]


def error(name: str) -> bytes:
    return (FIXTURES / "errors" / name).read_bytes()


def sent(*, streamed: bool = False, **params: object) -> UpstreamRequest:
    """Return a call to which the fixtures could be responses."""
    return DIALECT.encode(replace(chat_request(**params), stream=streamed), TARGET)
