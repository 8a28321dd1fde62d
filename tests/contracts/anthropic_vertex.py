"""Claude on Vertex AI held to Anthropic's types (`anthropic` 2.12.0). Never imported by the gateway."""

from collections.abc import Iterable

import orjson
from anthropic.types import Message, RawMessageStreamEvent
from pydantic import TypeAdapter

from tests.providers.dialects.anthropic_kit import sdk_check

_EVENT: TypeAdapter[object] = TypeAdapter(RawMessageStreamEvent)


def check_body(operation: str, body: bytes) -> None:
    """Raises for a body that Anthropic's types, or what the platform adds to and takes from them, would not have."""
    members = orjson.loads(body)
    version = members.pop("anthropic_version")
    if operation != "chat" or version not in ("vertex-2023-10-16", "2026-10-21"):
        raise ValueError(f"{operation} in the version {version!r}")
    if "model" in members or b'"type":"url"' in body:
        raise ValueError("the model stands in the path, and images come with the call")
    sdk_check({**members, "model": "m"}, "2023-06-01" if version.startswith("vertex") else version)


def check_answer(body: bytes) -> None:
    """Raises on an answer that Anthropic's client could not read."""
    Message.model_validate_json(body)


def check_events(payloads: Iterable[bytes]) -> None:
    """The same for each event of a stream."""
    for payload in payloads:
        if orjson.loads(payload).get("type") not in ("ping", "error"):
            _EVENT.validate_json(payload)
