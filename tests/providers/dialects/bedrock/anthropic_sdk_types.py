"""Check Claude on Bedrock's InvokeModel against the types of both vendors (`anthropic` 2.12.0, `botocore` 1.44.5)."""

import base64

import orjson

from tests.providers.dialects.anthropic import sdk_types as anthropic
from tests.providers.dialects.bedrock import invoke_sdk_types as bedrock_invoke
from tests.providers.dialects.bedrock.sdk_types import framed


def check_body(operation: str, body: bytes) -> None:
    """Raise for a body that does not fit Anthropic's types, with the service's added and removed fields."""
    assert operation == "chat", operation
    sent = orjson.loads(body)
    version, betas = sent.pop("anthropic_version"), sent.pop("anthropic_beta", [])
    assert version in ("bedrock-2023-05-31", "2026-10-21"), version
    assert all(isinstance(beta, str) for beta in betas)
    assert not sent.keys() & {"model", "stream", "service_tier"}, sent.keys()
    assert b'"type":"url"' not in body
    anthropic.check_members({**sent, "model": "m"}, "2023-06-01" if version.startswith("bedrock") else version)


check_answer = anthropic.check_answer


def check_events(events: list[bytes]) -> None:
    """Check the frames of a stream whose chunks are Anthropic's events."""
    bedrock_invoke.check_events(events)
    for message in framed(b"".join(events)):
        anthropic.check_events([base64.b64decode(orjson.loads(message.payload)["bytes"])])
