"""Removes sealed content from a request: encrypted reasoning, signatures and compactions, which only the vendor that
made them can read.

This is for the call after a vendor has refused such a seal. It is not certain which of several seals was refused, so
all are removed. Reasoning in plain text stays: each dialect sends it if its vendor accepts it.

Sources: `openai` 3.54.0 types `ResponseReasoningItemParam` and `ResponseCompactionItemParam`; `anthropic` 2.12.0 types
`ThinkingBlockParam`, `RedactedThinkingBlockParam` and `BetaCompactionBlockParam`; "Thought signatures" page of the
Gemini API; errors that public issue threads quote ("Item 'fc_…' of type 'function_call' was provided without its
required 'reasoning' item"), November 2026.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from providers.dialect import UpstreamRequest
from providers.dialects.shared.thought_signatures import unpack_call_id
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import ChatPrompt, NativeApi, NativeRequest, UnifiedRequest

_THINKING: Final = "thinking"
_COMPACTION: Final = "compaction"
_ENCRYPTED_CONTENT: Final = "encrypted_content"

_SEALED_FIELDS: Final = frozenset({"reasoning_details", "thinking_blocks", "reasoning_signature"})
"""Fields of a chat message that hold sealed reasoning."""

_REASONING_FIELDS: Final = _SEALED_FIELDS | {"reasoning", "reasoning_content", "thinking"}
"""Fields of a chat message that hold reasoning, sealed or not."""

_EXTRA_CONTENT: Final = "extra_content"
"""The field in which Google's OpenAI-compatible API has the signature of a text or a call."""

_CALL_ITEMS: Final = frozenset({"function_call", "custom_tool_call"})
"""Types of items whose id refers to the reasoning before them. With such an id, the vendor requires that reasoning."""


class Unsealed(NamedTuple):
    """A request without seals, and the names of the fields that were removed."""

    request: UnifiedRequest
    dropped: tuple[str, ...]


def without_seals(request: UnifiedRequest, sent: UpstreamRequest) -> Unsealed | None:
    """Return the request without its seals; `None` if it has no seals, or nothing but seals. `sent` is the call as
    which the request was sent."""
    native = request.native
    if sent.native and native is not None:
        return _unsealed_body(request, native)
    if not isinstance(request.prompt, ChatPrompt):
        return None
    ids = _UnsignedIds()
    return _with_changed_messages(request, request.prompt, lambda message: _unsealed_message(message, ids))


def without_reasoning(request: UnifiedRequest, sent: UpstreamRequest) -> Unsealed | None:
    """Return the request that was sent as `sent` without the reasoning of earlier turns, for a model that accepts no
    reasoning; `None` if it has no reasoning. From a client's own body, only the seals are removed."""
    if sent.native or not isinstance(request.prompt, ChatPrompt):
        return without_seals(request, sent)
    return _with_changed_messages(request, request.prompt, _without_reasoning)


# Chats ----------------------------------------------------------------------------------------------------------------


def _with_changed_messages(
    request: UnifiedRequest, prompt: ChatPrompt, leave_out: Callable[[JsonObject], JsonObject]
) -> Unsealed | None:
    """Return the request with its messages changed by `leave_out`; `None` if that changes no message."""
    changed = tuple([leave_out(message) for message in prompt.messages])
    if all([before is after for before, after in zip(prompt.messages, changed, strict=True)]):
        return None
    return Unsealed(replace(request, prompt=replace(prompt, messages=changed)), (_THINKING,))


class _UnsignedIds:
    """The ids of a conversation's calls without the signatures in them. A call and its result get the same id."""

    __slots__ = ("_known", "_used")

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._used: set[str] = set()

    def of(self, given: str) -> str:
        """Return the id to send, which is unique among the calls."""
        known = self._known.get(given)
        if known is None:
            known = own = unpack_call_id(given).id
            while known in self._used:
                known = f"{own}_{len(self._known)}"
            self._known[given] = known
            self._used.add(known)
        return known


def _unsealed_message(message: JsonObject, ids: _UnsignedIds) -> JsonObject:
    """Return the message without seals, or the same object if it has no seals."""
    rest = _without(message, _SEALED_FIELDS, _is_sealed_block)
    if _is_signed_by_google(message):
        del rest[_EXTRA_CONTENT]
    calls, call_id = rest.get("tool_calls"), rest.get("tool_call_id")
    if isinstance(calls, list):
        rest["tool_calls"] = [_unsealed_call(call, ids) for call in calls]
    if isinstance(call_id, str):
        rest["tool_call_id"] = ids.of(call_id)
    return message if rest == message else rest


def _without_reasoning(message: JsonObject) -> JsonObject:
    """Return the message without reasoning, or the same object if it has no reasoning."""
    rest = _without(message, _REASONING_FIELDS, _is_reasoning_block)
    return message if rest == message else rest


def _without(message: JsonObject, fields: frozenset[str], is_left_out: Callable[[JsonValue], bool]) -> JsonObject:
    """Return a copy of the message without some fields and without some blocks of its content."""
    rest = {name: value for name, value in message.items() if name not in fields}
    content = rest.get("content")
    if isinstance(content, list) and any(map(is_left_out, content)):
        rest["content"] = [part for part in content if not is_left_out(part)] or ""
    return rest


def _is_reasoning_block(block: JsonValue) -> bool:
    return isinstance(block, dict) and block.get("type") in ("thinking", "redacted_thinking")


def _unsealed_call(call: JsonValue, ids: _UnsignedIds) -> JsonValue:
    if not isinstance(call, dict):
        return call
    rest = {name: value for name, value in call.items() if name != _EXTRA_CONTENT or not _is_signed_by_google(call)}
    identity = call.get("id")
    return {**rest, "id": ids.of(identity)} if isinstance(identity, str) else rest


def _is_signed_by_google(holder: JsonObject) -> bool:
    extra = holder.get(_EXTRA_CONTENT)
    google = extra.get("google") if isinstance(extra, dict) else None
    return isinstance(google, dict) and bool(google.get("thought_signature"))


def _is_sealed_block(block: JsonValue) -> bool:
    """Return whether a block in Anthropic's form is signed or encrypted reasoning."""
    match block:
        case {"type": "redacted_thinking"}:
            return True
        case {"type": "thinking", "signature": str(signature)}:
            return bool(signature)
        case _:
            return False


# A client's own body --------------------------------------------------------------------------------------------------


class _UnsealedBody(NamedTuple):
    """A conversation without seals, and the names of the fields that were removed."""

    turns: list[JsonValue]
    dropped: tuple[str, ...]


def _unsealed_body(request: UnifiedRequest, native: NativeRequest) -> Unsealed | None:
    name, unsealed = _APIS[native.api]
    turns = native.body.get(name)
    unsealed_body = unsealed(turns) if isinstance(turns, list) else None
    if unsealed_body is None or not unsealed_body.dropped or not unsealed_body.turns:
        return None
    changed = replace(native, body={**native.body, name: unsealed_body.turns})
    return Unsealed(replace(request, native=changed), unsealed_body.dropped)


def _unsealed_items(items: list[JsonValue]) -> _UnsealedBody:
    """Return the items of a Responses body without encrypted items, such as reasoning."""
    dropped: dict[str, None] = {}
    rest: list[JsonValue] = []
    for item in items:
        if isinstance(item, dict) and item.get(_ENCRYPTED_CONTENT):
            dropped[str(item.get("type"))] = None
        elif isinstance(item, dict) and item.get("type") in _CALL_ITEMS and "id" in item:
            rest.append({name: value for name, value in item.items() if name != "id"})
        else:
            rest.append(item)
    return _UnsealedBody(rest, tuple(dropped))


def _unsealed_turns(turns: list[JsonValue]) -> _UnsealedBody:
    """Return the turns of a Messages body without signed or encrypted reasoning."""
    dropped: dict[str, None] = {}
    rest = [_unsealed_turn(turn, dropped) for turn in turns]
    return _UnsealedBody([turn for turn in rest if turn is not None], tuple(dropped))


def _unsealed_turn(turn: JsonValue, dropped: dict[str, None]) -> JsonValue:
    """Return a turn without seals; `None` if it held nothing else. The names of the seals are added to `dropped`."""
    content = turn.get("content") if isinstance(turn, dict) else None
    if not isinstance(turn, dict) or not isinstance(content, list):
        return turn
    rest = [block for block in content if not _is_sealed_block(block)]
    if len(rest) < len(content):
        dropped[_THINKING] = None
    blocks = [_unsealed_compaction(block, dropped) for block in rest]
    unsealed_blocks: list[JsonValue] = [block for block in blocks if block is not None]
    if not unsealed_blocks:
        return None
    return {**turn, "content": unsealed_blocks}


def _unsealed_compaction(block: JsonValue, dropped: dict[str, None]) -> JsonValue:
    """Return a sealed compaction with only its text; `None` if it has no text. Any other block is unchanged."""
    if not isinstance(block, dict) or block.get("type") != _COMPACTION:
        return block
    if not (block.get(_ENCRYPTED_CONTENT) or block.get("signature")):
        return block
    dropped[_COMPACTION] = None
    if not block.get("content"):
        return None
    return {name: value for name, value in block.items() if name not in (_ENCRYPTED_CONTENT, "signature")}


_APIS: Final[Mapping[NativeApi, tuple[str, Callable[[list[JsonValue]], _UnsealedBody]]]] = {
    NativeApi.RESPONSES: ("input", _unsealed_items),
    NativeApi.MESSAGES: ("messages", _unsealed_turns),
}
"""By API: the field of the body that holds the conversation, and the function that removes the seals from it."""
