"""Check Anthropic's messages against the vendor's own types (`anthropic` 2.11.0).

Only for a process of its own: see `strict_types`.
"""

import json
import math
from collections.abc import Mapping

from anthropic.types import ErrorResponse, Message, RawMessageStreamEvent
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming, MessageCreateParamsStreaming
from pydantic import TypeAdapter

from tests.contracts.strict_types import strict_adapter

_BODIES = {False: strict_adapter(MessageCreateParamsNonStreaming), True: strict_adapter(MessageCreateParamsStreaming)}
_EVENT: TypeAdapter[object] = TypeAdapter(RawMessageStreamEvent)
_SAMPLING = {"temperature": (0, 1), "top_p": (0, 1), "top_k": (0, math.inf)}
"""The bounds of the sampling settings. Version 2023-06-01 of the API accepts the settings; the types follow 2026-10-21,
which no longer has them."""


def check_body(operation: str, body: bytes) -> None:
    """Raise for a body that the vendor's client, or version 2023-06-01 of the API, would not have."""
    assert operation == "chat", operation
    check_members(json.loads(body), "2023-06-01")


def check_members(sent: Mapping[str, object], version: str) -> None:
    """The same for a body that was read, in any version."""
    rest = dict(sent)
    for name, (low, high) in _SAMPLING.items() if version < "2026-10-21" else ():
        value = rest.pop(name, low)
        assert isinstance(value, int | float), (name, value)
        assert not isinstance(value, bool), (name, value)
        assert low <= value <= high, (name, value)
    _BODIES[sent.get("stream") is True].validate_json(json.dumps(rest), strict=True)


def check_answer(body: bytes) -> None:
    """Raise unless the vendor's client would read every field with its own type."""
    Message.model_validate_json(body)


def check_events(payloads: list[bytes]) -> None:
    """The same for each event; `ping` is in no type, and an error is one of its own."""
    for payload in payloads:
        kind = json.loads(payload)["type"]
        if kind == "error":
            ErrorResponse.model_validate_json(payload)
        elif kind != "ping":
            _EVENT.validate_json(payload)
