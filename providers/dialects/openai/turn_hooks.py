"""Hooks that rewrite the turns of a conversation, for vendors of the OpenAI family that require a certain order.

`message_hooks` lists the hooks by the names that profiles use.

Sources, November 2026: pydantic-ai-slim 2.68.0 for media of results on OpenAI, and with @ai-sdk/mistral 3.0.69 for
Mistral's turns ("Unexpected role 'user' after role 'tool'"); litellm 1.109.1 for the reasoning that Moonshot and
DeepSeek demand ("The `reasoning_content` in the thinking mode must be passed back to the API.").
"""

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Final

from providers.adaptation.merged_messages import merged_contents
from providers.json_types import JsonObject, JsonValue
from providers.target import Target
from providers.unified_request import INSTRUCTION_ROLES

_PLACEHOLDER_REASONING: Final = " "
"""The reasoning of a turn whose reasoning the client did not send back. It is not empty, because Moonshot refuses an
empty text."""

_ACKNOWLEDGEMENT: Final[JsonObject] = {"role": "assistant", "content": "OK"}
"""An assistant turn that is put between a tool's result and the user's next message."""

_TEXT_PARTS: Final = ("text", "refusal")

_Turns = list[JsonObject]


def calls_of(message: JsonObject) -> list[JsonObject]:
    """Return the tool calls of a message."""
    calls = message.get("tool_calls")
    return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []


def instructions_from_users(target: Target, messages: _Turns) -> _Turns:
    """Turn instructions into messages of the user, for models that accept no instructions: "'messages[0].role' does not
    support 'system' with this model" (pydantic/pydantic-ai issue 974, for OpenAI's o1-mini)."""
    return [
        {**message, "role": "user"} if message.get("role") in INSTRUCTION_ROLES else message for message in messages
    ]


def alternating_roles(target: Target, messages: _Turns) -> _Turns:
    """Merge successive turns of one role, because `user` and `assistant` must alternate (Perplexity)."""
    merged: _Turns = []
    for role, run in groupby(messages, lambda message: message.get("role") if _plain_turn(message) else None):
        turns = list(run)
        if role is None or len(turns) == 1:
            merged += turns
        else:
            merged.append({**turns[0], "content": merged_contents([turn["content"] for turn in turns])})
    return merged


def _plain_turn(message: JsonObject) -> bool:
    content = message.get("content")
    return message.keys() == {"role", "content"} and message.get("role") in ("user", "assistant") and bool(content)


def split_tool_results(target: Target, messages: _Turns) -> _Turns:
    """Put each of several parallel calls into its own turn, followed by its result (Databricks)."""
    split: _Turns = []
    position = 0
    while position < len(messages):
        message, position = messages[position], position + 1
        calls = calls_of(message)
        results = {str(each.get("tool_call_id")): each for each in messages[position : position + len(calls)]}
        if len(calls) > 1 and results.keys() == {str(call.get("id")) for call in calls}:
            split += _pairs(message, calls, results)
            position += len(calls)
        else:
            split.append(message)
    return split


def _pairs(message: JsonObject, calls: list[JsonObject], results: Mapping[str, JsonObject]) -> Iterator[JsonObject]:
    turn = message
    for call in calls:
        yield {**turn, "tool_calls": [call]}
        yield results[str(call.get("id"))]
        # Only the first turn has the text beside the calls.
        turn = {"role": message.get("role")}


def media_after_results(target: Target, messages: _Turns) -> _Turns:
    """Move the media of tool results into a user message after them, because results may hold only text (OpenAI)."""
    if not [message for message in messages if type(message.get("content")) is list and message.get("role") == "tool"]:
        return messages
    turns: _Turns = []
    for is_result, run in groupby(messages, lambda message: message.get("role") == "tool"):
        media: list[JsonValue] = []
        turns += [_without_media(message, media) if is_result else message for message in run]
        if media:
            turns.append({"role": "user", "content": media})
    return turns


def _without_media(message: JsonObject, media: list[JsonValue]) -> JsonObject:
    """Return a result without its media. Each medium is appended to `media`, after the name that replaces it in the
    result."""
    content = message.get("content")
    if not isinstance(content, list):
        return message
    text_parts: list[JsonValue] = []
    for part in content:
        if not isinstance(part, dict) or part.get("type") in _TEXT_PARTS:
            text_parts.append(part)
            continue
        name = f"[content {len(media) // 2 + 1} of the tools' results]"
        text_parts.append({"type": "text", "text": name})
        media += [{"type": "text", "text": name}, part]
    return {**message, "content": text_parts}


def answered_results(target: Target, messages: _Turns) -> _Turns:
    """Put an assistant turn between a tool's result and a user message, which may not follow a result (Mistral)."""
    turns: _Turns = []
    previous_role: JsonValue = None
    for message in messages:
        role = message.get("role")
        if role == "user" and previous_role == "tool":
            turns.append(_ACKNOWLEDGEMENT)
        turns.append(message)
        previous_role = role
    return turns


def prefixed_last_turn(target: Target, messages: _Turns) -> _Turns:
    """Mark the last turn as the beginning of the response if it is an assistant turn without calls (Mistral)."""
    if messages and messages[-1].get("role") == "assistant" and not messages[-1].get("tool_calls"):
        return [*messages[:-1], {"prefix": True, **messages[-1]}]
    return messages


def reasoning_on_calls(target: Target, messages: _Turns) -> _Turns:
    """Add a placeholder for the reasoning to turns that call tools (Moonshot), if the client did not send the reasoning
    back."""
    return [
        {**message, "reasoning_content": _PLACEHOLDER_REASONING}
        if message.get("tool_calls") and not message.get("reasoning_content")
        else message
        for message in messages
    ]


def reasoning_on_turns(target: Target, messages: _Turns) -> _Turns:
    """Add a placeholder for the reasoning to every assistant turn (DeepSeek), if the client did not send the reasoning
    back."""
    return [
        {**message, "reasoning_content": _PLACEHOLDER_REASONING}
        if message.get("role") == "assistant" and not message.get("reasoning_content")
        else message
        for message in messages
    ]
