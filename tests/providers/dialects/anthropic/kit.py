"""Targets, encoding with a check by the SDK's types, and fixtures for the tests of Anthropic's dialect."""

import collections.abc
from dataclasses import replace
from pathlib import Path

import orjson
import pydantic
from anthropic.types.message_create_params import MessageCreateParamsBase
from pydantic import SecretStr, TypeAdapter

from providers.dialect import UpstreamRequest
from providers.dialects.anthropic.dialect import AnthropicDialect
from providers.json_types import JsonObject
from providers.target import Target
from providers.unified_request import UnifiedRequest
from providers.vendor_credential import Credential
from tests.providers.dialects.kit import reader, target_of

FIXTURES = Path(__file__).parent / "fixtures"
answer = reader("anthropic", "answers", "json")
stream = reader("anthropic", "streams", "sse")
DIALECT = AnthropicDialect()
TARGET = target_of(
    "anthropic",
    "claude-haiku-4-5",
    upstream_model="claude-haiku-4-5-20251001",
    credential=Credential("header", "x-api-key", SecretStr("sk-ant-secret")),
    max_output_tokens=8192,
)
NEW_VERSION = replace(TARGET, api_version="2026-10-21")
SAMPLING = ("temperature", "top_p", "top_k")


class _Strict(MessageCreateParamsBase, total=False):
    """The SDK's request type with unknown fields forbidden, for streaming and non-streaming requests."""

    __pydantic_config__ = {"extra": "forbid"}  # type: ignore[misc]  # noqa: RUF012 - pydantic reads it from the class
    stream: bool


_REQUEST: TypeAdapter[object] = TypeAdapter(_Strict)


def sdk_check(body: JsonObject, version: str) -> None:
    """Check a body against the SDK's types. Raises pydantic's ValidationError.

    The types of SDK 2 follow the newest version, which has no sampling settings; older versions take them.
    """
    allowed = SAMPLING if version < "2026-10-21" else ()
    _force(_REQUEST.validate_python({name: value for name, value in body.items() if name not in allowed}))


def _force(value: object) -> None:
    """Consume the lazily validated iterables of the SDK's types."""
    if isinstance(value, dict):
        for member in value.values():
            _force(member)
    elif isinstance(value, collections.abc.Iterable) and not isinstance(value, str | bytes | pydantic.BaseModel):
        for item in value:
            _force(item)


def encode(request: UnifiedRequest, target: Target = TARGET) -> UpstreamRequest:
    sent = DIALECT.encode(request, target)
    sdk_check(orjson.loads(sent.body), sent.headers["anthropic-version"])
    return sent


def body_of(request: UnifiedRequest, target: Target = TARGET) -> JsonObject:
    body: JsonObject = orjson.loads(encode(request, target).body)
    return body
