"""Check raw prompts on Bedrock's InvokeModel against schemas of the fields that its user guide lists.

The service's own model declares these bodies as bytes. Streamed responses are checked against that model (`botocore`
1.44.5).
"""

import base64
from typing import Any  # JSON Schema, and an SDK without types

import jsonschema
import orjson
from botocore.parsers import EventStreamJSONParser  # type: ignore[import-not-found,import-untyped,unused-ignore]

from tests.providers.dialects.bedrock.sdk_types import SERVICE, framed


def _number(low: float, high: float) -> dict[str, Any]:
    return {"type": "number", "minimum": low, "maximum": high}


def _whole(low: int, high: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": low, "maximum": high}


_LENGTH: dict[str, Any] = {"type": "integer", "minimum": 1}
"""The length of a response. Each model of the maker has a maximum of its own, which its error names."""


def _stops(most: int) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1, "maxItems": most}


def _object(required: str, **members: dict[str, Any]) -> dict[str, Any]:
    text: dict[str, Any] = {"type": "string", "minLength": 1}
    return {
        "type": "object",
        "properties": {required: text, **members},
        "required": [required],
        "additionalProperties": False,
    }


_TITAN = {"temperature": _number(0, 1), "topP": _number(0, 1), "maxTokenCount": _LENGTH}
_BODIES: list[dict[str, Any]] = [
    _object("inputText", textGenerationConfig={"type": "object", "properties": _TITAN, "additionalProperties": False}),
    _object("prompt", max_gen_len=_LENGTH, temperature=_number(0, 1), top_p=_number(0, 1)),
    _object(
        "prompt",
        max_tokens=_LENGTH,
        temperature=_number(0, 1),
        top_p=_number(0, 1),
        top_k=_whole(1, 200),
        stop=_stops(10),
    ),
    {
        **_object(
            "prompt",
            max_tokens=_whole(1, 4096),
            temperature=_number(0, 5),
            p=_number(0, 1),
            k=_number(0, 500),
            stop_sequences=_stops(4),
            truncate={"const": "NONE"},
            stream={"const": True},
        ),
        "required": ["prompt", "truncate", "stream"],
    },
]


def check_body(operation: str, body: bytes) -> None:
    """Raise for a body that no maker would accept."""
    assert operation == "completions", operation
    jsonschema.validate(orjson.loads(body), {"anyOf": _BODIES})


def check_events(events: list[bytes]) -> None:
    """Check the frames of a stream. The service's client must read each as a chunk or an exception."""
    stream = SERVICE.shape_for("ResponseStream")
    for message in framed(b"".join(events)):
        parsed = EventStreamJSONParser().parse(message.to_response_dict(), stream)
        assert parsed, message.headers
        if "chunk" in parsed:
            inner = base64.b64decode(orjson.loads(message.payload)["bytes"], validate=True)
            assert parsed["chunk"]["bytes"] == inner
            assert isinstance(orjson.loads(inner), dict)
