"""Rewrites of the turns of a conversation, for vendors of the OpenAI family that want a certain order of them.

`message_hooks` lists them by the name that profiles use.

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
from providers.unified_request import INSTRUCTING

_NO_REASONING: Final = " "
"""Reasoning of a turn whose reasoning the client has not kept: Moonshot refuses an empty text."""

_HEARD: Final[JsonObject] = {"role": "assistant", "content": "OK"}
"""A turn that says nothing, for between a tool's result and the user."""

_TEXTS: Final = ("text", "refusal")

_Turns = list[JsonObject]


def calls_of(message: JsonObject) -> list[JsonObject]:
    """Return the calls of a message."""
    calls = message.get("tool_calls")
    return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []


def instructions_from_users(target: Target, messages: _Turns) -> _Turns:
    """Give instructions to the user, for models that take none: "'messages[0].role' does not support 'system' with this
    model" (pydantic/pydantic-ai issue 974, for OpenAI's o1-mini)."""
    return [{**message, "role": "user"} if message.get("role") in INSTRUCTING else message for message in messages]


def alternating_roles(target: Target, messages: _Turns) -> _Turns:
    """Merge successive turns of one role: users and models must alternate (Perplexity)."""
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
    """Put each of several parallel calls into a turn of its own, followed by its result (Databricks)."""
    split: _Turns = []
    place = 0
    while place < len(messages):
        message, place = messages[place], place + 1
        calls = calls_of(message)
        results = {str(each.get("tool_call_id")): each for each in messages[place : place + len(calls)]}
        if len(calls) > 1 and results.keys() == {str(call.get("id")) for call in calls}:
            split += _pairs(message, calls, results)
            place += len(calls)
        else:
            split.append(message)
    return split


def _pairs(message: JsonObject, calls: list[JsonObject], results: Mapping[str, JsonObject]) -> Iterator[JsonObject]:
    turn = message
    for call in calls:
        yield {**turn, "tool_calls": [call]}
        yield results[str(call.get("id"))]
        # The text beside the calls stays in the first turn alone.
        turn = {"role": message.get("role")}


def media_after_results(target: Target, messages: _Turns) -> _Turns:
    """Put the media of tools' results into a message of the user behind them: results are text alone (OpenAI)."""
    if not [message for message in messages if type(message.get("content")) is list and message.get("role") == "tool"]:
        return messages
    turns: _Turns = []
    for is_result, run in groupby(messages, lambda message: message.get("role") == "tool"):
        media: list[JsonValue] = []
        turns += [_text_alone(message, media) if is_result else message for message in run]
        if media:
            turns.append({"role": "user", "content": media})
    return turns


def _text_alone(message: JsonObject, media: list[JsonValue]) -> JsonObject:
    """Return a result without its media, which are moved to `media` under the name that the result calls them by."""
    content = message.get("content")
    if not isinstance(content, list):
        return message
    kept: list[JsonValue] = []
    for part in content:
        if not isinstance(part, dict) or part.get("type") in _TEXTS:
            kept.append(part)
            continue
        name = f"[content {len(media) // 2 + 1} of the tools' results]"
        kept.append({"type": "text", "text": name})
        media += [{"type": "text", "text": name}, part]
    return {**message, "content": kept}


def answered_results(target: Target, messages: _Turns) -> _Turns:
    """Put a turn of the model between a tool's result and the user, who may not speak next (Mistral)."""
    turns: _Turns = []
    after: JsonValue = None
    for message in messages:
        role = message.get("role")
        if role == "user" and after == "tool":
            turns.append(_HEARD)
        turns.append(message)
        after = role
    return turns


def prefixed_last_turn(target: Target, messages: _Turns) -> _Turns:
    """Mark a conversation's last turn as the start of the answer where it is the model's (Mistral)."""
    if messages and messages[-1].get("role") == "assistant" and not messages[-1].get("tool_calls"):
        return [*messages[:-1], {"prefix": True, **messages[-1]}]
    return messages


def reasoning_on_calls(target: Target, messages: _Turns) -> _Turns:
    """Add reasoning to turns that call tools (Moonshot), where the client has not kept it."""
    return [
        {**message, "reasoning_content": _NO_REASONING}
        if message.get("tool_calls") and not message.get("reasoning_content")
        else message
        for message in messages
    ]


def reasoning_on_turns(target: Target, messages: _Turns) -> _Turns:
    """Add reasoning to every turn of the model (DeepSeek), where the client has not kept it."""
    return [
        {**message, "reasoning_content": _NO_REASONING}
        if message.get("role") == "assistant" and not message.get("reasoning_content")
        else message
        for message in messages
    ]
