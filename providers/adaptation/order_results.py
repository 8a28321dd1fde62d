"""Moves the results of tools directly behind the calls that they answer.

Clients of OpenAI's Responses API and of Anthropic's Messages may send something between a call and its result: items
are matched by the ids of calls there, and results may come in several turns of the user. Vendors want all results of a
turn directly behind it. OpenAI: "An assistant message with 'tool_calls' must be followed by tool messages responding to
each 'tool_call_id'." Anthropic: "`tool_use` ids were found without `tool_result` blocks immediately after". Gemini:
"ensure that function response turn comes immediately after a function call turn".

Sources: these errors as their users report them; OpenAI OpenAPI 2.3.0 `FunctionCallOutputItemParam`; "Handle tool
calls" page of Anthropic; November 2026.
"""

from collections.abc import Sequence

from providers.json_types import JsonObject, JsonValue


def with_results_behind_calls(messages: tuple[JsonObject, ...]) -> tuple[JsonObject, ...]:
    """Return the messages of a conversation with each result directly behind the turn that calls for it, and what stood
    between behind the results; all else keeps its order. The very same where they are in this order already.

    A result answers the latest call of its id before it, since some engines begin their ids anew in every turn. One
    without such a call stays where it is.
    """
    if _clearly_in_order(messages):
        return messages
    places = _places(messages)
    if places == sorted(places):
        return messages
    return tuple([messages[at] for at in sorted(range(len(places)), key=places.__getitem__)])


def _clearly_in_order(messages: Sequence[JsonObject]) -> bool:
    """Return whether each result stands behind its call, in the order of the calls and with nothing but results
    between, as nearly always. This is all that a conversation in order costs. A search for the call of each result
    would take the square of their number."""
    called: Sequence[JsonValue] = ()
    position = 0
    for message in messages:
        if message.get("role") == "tool":
            call = called[position] if position < len(called) else None
            if not isinstance(call, dict) or call.get("id") != message.get("tool_call_id"):
                return False
            position += 1
        elif isinstance(calls := message.get("tool_calls"), list):
            called = calls
            position = 0
        elif called:
            called = ()
    return True


def _places(messages: Sequence[JsonObject]) -> list[int]:
    """Return for each message the index that it is to be sorted by: for a result that of its call's turn."""
    turns: dict[str, int] = {}
    places: list[int] = []
    for position, message in enumerate(messages):
        place = position
        if message.get("role") == "tool":
            answered = message.get("tool_call_id")
            if isinstance(answered, str):
                place = turns.get(answered, position)
        elif isinstance(calls := message.get("tool_calls"), list):
            for call in calls:
                if isinstance(call, dict) and isinstance(identity := call.get("id"), str):
                    turns[identity] = position
        places.append(place)
    return places
