"""Makes the ids of tool calls unique for one client: in the history that it sends, and in a response.

Engines begin their ids anew in each response (`call_0`), or give two calls of one response the same id. Clients match
results by the id alone, and vendors refuse a history that repeats an id. Anthropic's error is "`tool_use` ids must be
unique". The first call with an id keeps it. Each further call gets an id that depends only on the calls before it, so
that the beginning of a growing conversation stays the same and the vendor's prompt cache stays valid.

Sources: NVIDIA-NeMo/Switchyard#502 and brainlid/langchain#619 for the two kinds of repeated ids; "Tool use" guide of
Kimi K2 for `functions.NAME:INDEX`, whose index counts all calls of the conversation; November 2026.
"""

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Final

from providers.frozen_record import frozen
from providers.json_types import JsonObject, JsonValue

_SIGNED: Final = re.compile(r"(?s)(.*?)((?:__(?:studio|vertex))?__(?:thought|said)__.*)?")
"""A bare id, and the signature that `providers.dialects.shared.thought_signatures` appends to it."""

_KIMI: Final = re.compile(r"(functions\.[^:\s]+:)[0-9]+")


@frozen
class CallMark:
    """A call or the result of one, in the order of the conversation. `turn` is the number of the turn that contains
    it."""

    id: str
    turn: int
    is_result: bool = False


def unique_ids(marks: Sequence[CallMark]) -> list[str] | None:
    """Return an id for each mark, so that no two calls have the same id; `None` if the ids of the calls are already
    unique.

    The nth result with an id belongs to the nth call with that id. If an id has fewer results than calls, a call
    without a result before the next turn that repeats the id counts as a call without a result.
    """
    calls = [mark.id for mark in marks if not mark.is_result]
    bare = {bare_id(identity) for identity in calls}
    if len(bare) == len(calls):
        return None
    spare = Counter(calls)
    spare.subtract([mark.id for mark in marks if mark.is_result])
    waiting: dict[str, deque[tuple[int, str]]] = {}
    latest: dict[str, str] = {}
    taken: set[str] = set()
    made: list[str] = []
    for mark in marks:
        queue = waiting.setdefault(mark.id, deque())
        if mark.is_result:
            made.append(queue.popleft()[1] if queue else latest.get(mark.id, mark.id))
            continue
        while queue and spare[mark.id] > 0 and queue[0][0] < mark.turn:
            queue.popleft()
            spare[mark.id] -= 1
        latest[mark.id] = own = unused_id(mark.id, taken)
        queue.append((mark.turn, own))
        made.append(own)
    return made


def bare_id(identity: str) -> str:
    """Return an id without the signature in it."""
    if "__" not in identity:
        return identity
    found = _SIGNED.fullmatch(identity)
    return identity if found is None else found[1]


def unused_id(given: str, taken: set[str]) -> str:
    """Return the id of a call, or another id with the same signature if its bare id is `taken`. Add the bare id to
    `taken`."""
    bare = made = bare_id(given)
    kimi, number = _KIMI.fullmatch(bare), len(taken)
    while made in taken:
        made = f"{kimi[1]}{number}" if kimi else made_id(f"{number}:{bare}".encode("utf-8", "surrogatepass"))
        number += 1
    taken.add(made)
    return made + given[len(bare) :]


def made_id(seed: bytes) -> str:
    """Return an id for a call. The id depends only on `seed`."""
    return "call_" + blake2b(seed, digest_size=12).hexdigest()


# Conversations in OpenAI's chat form ----------------------------------------------------------------------------------


def with_unique_ids(messages: tuple[JsonObject, ...]) -> tuple[JsonObject, ...]:
    """Return the messages of a conversation with unique ids of calls; the same object if they are unique already."""
    if not _repeats_an_id(messages) or (ids := unique_ids([*marks_of(messages)])) is None:
        return messages
    left = iter(ids)
    return tuple([_with_ids(message, left) for message in messages])


def _repeats_an_id(messages: Iterable[JsonObject]) -> bool:
    """Return whether two calls have the same id. For nearly every conversation this check is the only work."""
    seen: set[str] = set()
    for message in messages:
        calls = message.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            identity = call.get("id") if isinstance(call, dict) else None
            if isinstance(identity, str):
                if (bare := bare_id(identity)) in seen:
                    return True
                seen.add(bare)
    return False


def ids_in(messages: Iterable[JsonObject]) -> set[str]:
    """Return the bare ids of the calls of a conversation and of their results."""
    found: set[str] = set()
    for message in messages:
        if calls := message.get("tool_calls"):
            for call in calls if isinstance(calls, list) else ():
                if isinstance(call, dict) and isinstance(identity := call.get("id"), str):
                    found.add(bare_id(identity))
        elif isinstance(identity := message.get("tool_call_id"), str):
            found.add(bare_id(identity))
    return found


def marks_of(messages: Iterable[JsonObject]) -> Iterator[CallMark]:
    """Yield the calls of a conversation and their results."""
    for turn, message in enumerate(messages):
        if isinstance(calls := message.get("tool_calls"), list):
            for call in calls:
                if isinstance(call, dict) and isinstance(identity := call.get("id"), str):
                    yield CallMark(identity, turn)
        elif isinstance(answered := message.get("tool_call_id"), str):
            yield CallMark(answered, turn, is_result=True)


def _with_ids(message: JsonObject, ids: Iterator[str]) -> JsonObject:
    """Return a message with the next ids in place of the ids that `marks_of` finds."""
    if isinstance(calls := message.get("tool_calls"), list):
        return {**message, "tool_calls": [_with_id(call, ids) for call in calls]}
    return {**message, "tool_call_id": next(ids)} if isinstance(message.get("tool_call_id"), str) else message


def _with_id(call: JsonValue, ids: Iterator[str]) -> JsonValue:
    return {**call, "id": next(ids)} if isinstance(call, dict) and isinstance(call.get("id"), str) else call
