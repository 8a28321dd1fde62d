"""Check Claude on Vertex AI against Anthropic's types (`anthropic` 2.12.0)."""

import orjson

from tests.providers.dialects.anthropic import sdk_types as anthropic


def check_body(operation: str, body: bytes) -> None:
    """Raise for a body that does not fit Anthropic's types, with the platform's added and removed fields."""
    members = orjson.loads(body)
    version = members.pop("anthropic_version")
    if operation != "chat" or version not in ("vertex-2023-10-16", "2026-10-21"):
        raise ValueError(f"{operation} in the version {version!r}")
    if "model" in members or b'"type":"url"' in body:
        raise ValueError("the model stands in the path, and images come with the call")
    anthropic.check_members({**members, "model": "m"}, "2023-06-01" if version.startswith("vertex") else version)


check_answer = anthropic.check_answer
check_events = anthropic.check_events
