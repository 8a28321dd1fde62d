"""Check Ollama's own API against the vendor's client types (`ollama` 0.6.3).

The types drop unknown fields, so a body must be unchanged after a round trip through them. They lack some fields that
the server has (`api/types.go`), which are checked here.
"""

from typing import Any  # the SDK is not installed for the type check

import orjson
from ollama._types import (  # type: ignore[import-not-found]
    ChatRequest,
    ChatResponse,
    GenerateRequest,
    GenerateResponse,
    Options,
)

_BEYOND_THE_TYPES = {"truncate": bool, "shift": bool}
_OPTIONS_BEYOND = {"min_p": (int, float)}


def check_body(operation: str, body: bytes) -> None:
    """Raise AssertionError or pydantic's ValidationError for anything that the server would refuse or ignore."""
    sent: dict[str, Any] = orjson.loads(body)
    for name, kind in _BEYOND_THE_TYPES.items():
        assert isinstance(sent.pop(name), kind), name
    assert isinstance(sent.get("stream"), bool), "silence means a stream"
    options = sent.get("options", {})
    for name, numbers in _OPTIONS_BEYOND.items():
        assert isinstance(options.get(name, 0), numbers), name
    known = {name: value for name, value in options.items() if name not in _OPTIONS_BEYOND}
    assert Options.model_validate(known).model_dump(exclude_none=True) == known, known
    if operation == "completions":
        _check_round(GenerateRequest.model_validate(sent).model_dump(exclude_none=True, by_alias=True), sent)
        assert sent.get("raw") or "suffix" in sent
        return
    for message in sent["messages"]:
        assert isinstance(message["content"], str), message
        message.pop("tool_call_id", None)
        for index, call in enumerate(message.get("tool_calls", ())):
            assert isinstance(call.pop("id"), str), call
            assert call["function"].pop("index") == index
    _check_round(ChatRequest.model_validate(sent).model_dump(exclude_none=True, by_alias=True), sent)


def _check_round(back: object, sent: dict[str, Any]) -> None:
    assert back == sent, (back, sent)


def check_answer(body: bytes) -> None:
    """Raise unless the vendor's client would read the response."""
    answer = orjson.loads(body)
    (ChatResponse if "message" in answer else GenerateResponse).model_validate(answer)


def check_events(events: list[bytes]) -> None:
    for line in events:
        check_answer(line)
