"""Check calls and responses of the Responses API against the vendor's own types (`openai` 3.54.0). Only for a process
of its own: see `strict_types`.

An input item is one of fifty types, so a wrong item has an error message for each of them.
"""

import json

from openai.types.responses import Response, ResponseStreamEvent  # type: ignore[import-not-found]
from openai.types.responses.response_create_params import (  # type: ignore[import-not-found]
    ResponseCreateParamsNonStreaming,
    ResponseCreateParamsStreaming,
)
from pydantic import TypeAdapter

from tests.contracts.strict_types import strict_adapter

_BODIES = {False: strict_adapter(ResponseCreateParamsNonStreaming), True: strict_adapter(ResponseCreateParamsStreaming)}
_EVENT: TypeAdapter[object] = TypeAdapter(ResponseStreamEvent)


def check_body(operation: str, body: bytes) -> None:
    """Raise for a body that does not fit the types of the vendor's client."""
    assert operation == "responses", operation
    _BODIES[json.loads(body).get("stream") is True].validate_json(body, strict=True)


def check_answer(body: bytes) -> None:
    """Raise unless the vendor's client would read every field with its own type."""
    Response.model_validate_json(body)


def check_events(payloads: list[bytes]) -> None:
    """Raise unless the vendor's client would read each event; an error is read as the event type that it has."""
    for payload in payloads:
        event = json.loads(payload)
        error = event.get("error")
        _EVENT.validate_python({**event, **error, "type": "error"} if event["type"] == "error" and error else event)
