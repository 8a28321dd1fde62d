"""Check AI21's chat against its SDK (ai21 4.3.0): the parameter names of its method, and its message types."""

import inspect
from typing import Any  # the SDK is not installed for the type check

import orjson
from ai21.clients.studio.resources.chat.chat_completions import ChatCompletions  # type: ignore[import-not-found]
from ai21.models.chat import (  # type: ignore[import-not-found]
    AssistantMessage,
    ChatCompletionChunk,
    ChatCompletionResponse,
    ResponseFormat,
    SystemMessage,
    ToolDefinition,
    ToolMessage,
    UserMessage,
)
from pydantic import TypeAdapter

_MESSAGES = {"user": UserMessage, "assistant": AssistantMessage, "tool": ToolMessage, "system": SystemMessage}
_BEYOND_THE_SIGNATURE = {"tool_choice"}


def check_body(operation: str, body: bytes) -> None:
    """Raise AssertionError or pydantic's ValidationError for anything that the SDK would not send."""
    sent: dict[str, Any] = orjson.loads(body)
    assert operation == "chat", operation
    names = set(inspect.signature(inspect.unwrap(ChatCompletions.create)).parameters) - {"self", "kwargs"}
    assert sent.keys() <= names | _BEYOND_THE_SIGNATURE, sent.keys()
    for message in sent["messages"]:
        _MESSAGES[message["role"]].model_validate(message)
    for tool in sent.get("tools", []):
        TypeAdapter(ToolDefinition).validate_python(tool)
    TypeAdapter(ResponseFormat).validate_python(sent.get("response_format", {"type": "text"}))
    assert 0 <= sent.get("temperature", 0) <= 2


def check_answer(body: bytes) -> None:
    """Raise unless the SDK would read the response."""
    ChatCompletionResponse.model_validate(orjson.loads(body))


def check_events(events: list[bytes]) -> None:
    for payload in events:
        if payload != b"[DONE]":
            ChatCompletionChunk.model_validate(orjson.loads(payload))
