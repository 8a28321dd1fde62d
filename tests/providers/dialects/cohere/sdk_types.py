"""Check Cohere's v2 chat against the vendor's own types (`cohere` 7.3.1)."""

import inspect
from typing import Any  # the SDK is not installed for the type check

import orjson
import pydantic
from cohere import ClientV2  # type: ignore[import-not-found]
from cohere.core.unchecked_base_model import construct_type  # type: ignore[import-not-found]
from cohere.types import (  # type: ignore[import-not-found]
    ChatMessageV2,
    Document,
    LogprobItem,
    ResponseFormatV2,
    Thinking,
    ToolV2,
    Usage,
)
from cohere.v2.types import V2ChatResponse, V2ChatStreamResponse  # type: ignore[import-not-found]

_FIELDS = frozenset(inspect.signature(ClientV2.chat).parameters) - {"self", "request_options"} | {"stream"}
_PARTS: dict[str, Any] = {
    "messages": list[ChatMessageV2],
    "documents": list[str | Document],
    "tools": list[ToolV2],
    "response_format": ResponseFormatV2,
    "thinking": Thinking,
}
_SCALARS: dict[str, Any] = {
    "model": str,
    "stream": bool,
    "max_tokens": int,
    "stop_sequences": list[str],
    "temperature": float,
    "seed": int,
    "frequency_penalty": float,
    "presence_penalty": float,
    "k": int,
    "p": float,
    "logprobs": bool,
    "strict_tools": bool,
    "tool_choice": str,
}
_RANGES = {"k": (0, 500), "p": (0.01, 0.99), "frequency_penalty": (0, 1), "presence_penalty": (0, 1)}


def check_body(operation: str, body: bytes) -> None:
    """Raise AssertionError or pydantic's ValidationError for anything the vendor would not take."""
    sent = orjson.loads(body)
    assert operation == "chat", operation
    assert sent.keys() <= _FIELDS, sent.keys() - _FIELDS
    for name, value in sent.items():
        if name in _PARTS:
            _without_extras(pydantic.TypeAdapter(_PARTS[name]).validate_python(value))
        elif name in _SCALARS:
            pydantic.TypeAdapter(_SCALARS[name]).validate_python(value, strict=not isinstance(value, int))
    for name, (low, high) in _RANGES.items():
        assert low <= sent.get(name, low) <= high, name
    assert len(sent.get("stop_sequences", [])) <= 5
    assert sent.get("tool_choice", "NONE") in ("REQUIRED", "NONE")
    assert not ("tools" in sent and "response_format" in sent)
    assert all(message.get("content", "x") != "" for message in sent["messages"])


def check_answer(body: bytes) -> None:
    """Raise unless the vendor's client would read every field that the gateway reads."""
    _without_extras(pydantic.TypeAdapter(V2ChatResponse).validate_python(orjson.loads(body)))


def check_events(events: list[bytes]) -> None:
    """Check the payloads of a stream. The SDK's type checks only the type of each event, so the parts are checked by
    their own types."""
    for payload in events:
        event = orjson.loads(payload)
        built = construct_type(type_=V2ChatStreamResponse, object_=event)
        assert getattr(built, "type", None) == event["type"], event["type"]
        assert type(built).__name__ != "dict"
        if event.get("logprobs") is not None:
            _without_extras(LogprobItem.model_validate(event["logprobs"]))
        usage = (event.get("delta") or {}).get("usage")
        if usage is not None:
            _without_extras(Usage.model_validate(usage))


def _without_extras(value: object) -> None:
    """Raise for unknown fields, which the types accept."""
    if isinstance(value, pydantic.BaseModel):
        assert not value.model_extra, value.model_extra
        for name in type(value).model_fields:
            _without_extras(getattr(value, name))
    elif isinstance(value, list | tuple):
        for item in value:
            _without_extras(item)
