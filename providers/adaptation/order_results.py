"""Pairs tool calls with their results: each call gets one result, directly after the turn with the call.

Clients of OpenAI's Responses API and of Anthropic's Messages API may send other messages between a call and its result:
these APIs match results by call id, and results may come in several turns of the user. A client that compacts a
conversation may remove a call and leave its result. A client that was interrupted sends calls without results. Vendors
require all results of a turn's calls directly after that turn. OpenAI's errors are "An assistant message with
'tool_calls' must be followed by tool messages responding to each 'tool_call_id'" and "messages with role 'tool' must be
a response to a preceeding message with 'tool_calls'". Anthropic's errors are "`tool_use` ids were found without
`tool_result` blocks immediately after" and "unexpected `tool_use_id` found in `tool_result` blocks". Gemini's error is
"the number of function response parts is equal to the number of function call parts".

Sources: these errors as their users report them; OpenAI OpenAPI 2.3.0 `FunctionCallOutputItemParam`; "Handle tool
calls" page of Anthropic; November 2026.
"""

from collections.abc import Iterator, Mapping, Sequence
from operator import is_
from typing import Final

from providers.json_types import JsonObject, JsonValue

ORPHAN: Final = "Result of an earlier tool call that is no longer part of the conversation:"
"""The text that is put before a result without a call, when the result becomes a message of the user."""

NO_RESULT: Final = "The call was not carried out."
"""The text of the result that is added for a call without a result."""


def with_results_behind_calls(messages: tuple[JsonObject, ...]) -> tuple[JsonObject, ...]:
    """Return the messages of a conversation with each result directly after the turn that has its call. Messages that
    stood between a call and its result follow the results. All other messages keep their order. Return the same object
    if no message has to move.

    A result belongs to the latest preceding call with the same id, since some engines begin their ids anew in every
    turn. A result without such a call becomes a message of the user in its position. A call without a result gets
    NO_RESULT.
    """
    if _clearly_in_order(messages):
        return messages
    places = _places(messages)
    if places != sorted(places):
        messages = tuple([messages[at] for at in sorted(range(len(places)), key=places.__getitem__)])
    paired = tuple(_paired(messages))
    unchanged = len(paired) == len(messages) and all(map(is_, paired, messages))
    return messages if unchanged else paired


def _clearly_in_order(messages: Sequence[JsonObject]) -> bool:
    """Return whether the results of each turn follow the turn in the order of its calls. Nearly every conversation is
    in order, and then this check is the only work."""
    called: Sequence[JsonValue] = ()
    at = 0
    for message in messages:
        if message.get("role") == "tool":
            call = called[at] if at < len(called) else None
            if not isinstance(call, dict) or call.get("id") != message.get("tool_call_id"):
                return False
            at += 1
        elif at < len(called):
            return False
        elif isinstance(calls := message.get("tool_calls"), list):
            called, at = calls, 0
        elif called:
            called, at = (), 0
    return at == len(called)


def _places(messages: Sequence[JsonObject]) -> list[int]:
    """Return the index by which each message is sorted: for a result, the index of the turn with its call."""
    turns: dict[str, int] = {}
    places: list[int] = []
    for position, message in enumerate(messages):
        place = position
        if message.get("role") == "tool":
            answered = message.get("tool_call_id")
            if isinstance(answered, str):
                place = turns.get(answered, position)
        else:
            for identity in _ids_of(message):
                turns[identity] = position
        places.append(place)
    return places


def _ids_of(message: JsonObject) -> list[str]:
    """Return the ids of a message's calls. Ids that are not strings are left out."""
    calls = message.get("tool_calls")
    listed = [call.get("id") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    return [identity for identity in listed if isinstance(identity, str)]


def _paired(messages: Sequence[JsonObject]) -> Iterator[JsonObject]:
    """Yield the messages, which are in order. A result is added for each call without a result, and a result without a
    call becomes a message of the user."""
    waiting: dict[str, None] = {}
    for message in messages:
        if message.get("role") == "tool":
            answered = message.get("tool_call_id")
            if isinstance(answered, str) and answered in waiting:
                del waiting[answered]
                yield message
                continue
            yield from _unanswered(waiting)
            waiting = {}
            yield _as_user(message)
            continue
        yield from _unanswered(waiting)
        waiting = dict.fromkeys(_ids_of(message))
        yield message
    yield from _unanswered(waiting)


def _unanswered(waiting: Mapping[str, None]) -> Iterator[JsonObject]:
    for identity in waiting:
        yield {"role": "tool", "tool_call_id": identity, "content": NO_RESULT}


def _as_user(result: JsonObject) -> JsonObject:
    """Return the result of a tool as a message of the user."""
    content = result.get("content")
    if isinstance(content, list):
        return {"role": "user", "content": [{"type": "text", "text": ORPHAN}, *content]}
    return {"role": "user", "content": f"{ORPHAN}\n{content}" if content else ORPHAN}
