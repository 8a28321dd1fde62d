"""Corrects a client's own Messages body before it is sent to Claude.

A route or a fallback can send Claude a conversation that began with another vendor, and clients send back all that they
received. Such a conversation may hold reasoning that Claude did not sign, empty texts, or ids made by another vendor,
all of which Claude refuses. These parts are removed or adapted as in translated requests. Cache markers above the limit
are removed too. The rest of the body is unchanged. The client's own objects are never changed in place.

Sources: `anthropic` 2.12.0 types `MessageParam` and `ContentBlockParam`; "Messages", "Errors" and "Prompt caching"
pages, November 2026; litellm 1.109.1 for the scopes of cache markers, which the clouds refuse.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeGuard

from providers.adaptation.unique_call_ids import CallMark, bare_id, unique_ids
from providers.conversation import FOREIGN_SEARCH
from providers.dialects.anthropic.blocks import CALL_ID, is_thinking
from providers.dialects.anthropic.cache_markers import MARKER, limit_markers_with
from providers.dialects.shared.prompt import EMPTY_RESULT
from providers.dialects.shared.tool_names import fit_call_id
from providers.json_types import JsonObject, JsonValue

THINKING = "thinking"

_SEARCH_RESULT = "web_search_tool_result"

_RESPONSE_FIELDS: Final = frozenset({"parsed_output", "caller"})
"""Fields that Anthropic's client library adds to the blocks of responses (`ParsedTextBlock`, `ToolUseBlock`)."""

_CALL_ID_BYTES: Final = bytes([byte for byte in range(128) if CALL_ID.fullmatch(chr(byte))])
"""The bytes that the id of a tool call may consist of. Checking many ids against this set is ten times faster than
matching the pattern."""

_SIGNATURE = re.compile(r"[A-Za-z0-9+/]+={0,2}")
"""The form of Claude's signatures and of its redacted `thinking`: base64. The envelopes in which the gateway sends
other vendors' reasoning never have this form."""


@dataclass(slots=True)
class MendedBody:
    """A corrected body, whose top level may be modified, and the names of the fields that were left out or changed.
    `marked` are the turns that may have cache markers."""

    body: JsonObject
    dropped: list[str] = field(default_factory=list)
    emulated: list[str] = field(default_factory=list)
    marked: list[JsonValue] = field(default_factory=list)

    @property
    def turns(self) -> list[JsonObject]:
        """The entries of `messages` that are objects with a role and content."""
        messages = self.body.get("messages")
        return [turn for turn in (messages if isinstance(messages, list) else ()) if _is_turn(turn)]


def mend_body(given: Mapping[str, JsonValue]) -> MendedBody:
    """Return a client's body in the form that Claude accepts, without the null fields at its top level."""
    mended = MendedBody({name: value for name, value in given.items() if value is not None})
    body = mended.body
    if isinstance(messages := body.get("messages"), list):
        body["messages"] = _mended_turns(messages, mended)
    if isinstance(system := body.get("system"), list):
        body["system"] = _without_blanks(system, mended)
        if not body["system"]:
            del body["system"]
    if isinstance(tools := body.get("tools"), list):
        body["tools"] = [*tools]
    if limit_markers_with(body, mended.marked):
        mended.dropped.append(MARKER)
    return mended


def remove_thinking(mended: MendedBody) -> None:
    """Remove all `thinking` blocks from the conversation, for a call that has to be made without reasoning."""
    _change_turns(mended, _without_thinking)


def instructions_as_users(mended: MendedBody) -> None:
    """Change instructions within the conversation into user turns, for platforms that accept instructions at the top
    only. The turns are not moved, because their position is part of their meaning."""
    if "system" in [turn["role"] for turn in mended.turns]:
        mended.emulated.append("messages")
        _change_turns(mended, lambda turn: {**turn, "role": "user"} if turn["role"] == "system" else turn)


def unscope_markers(mended: MendedBody) -> None:
    """Remove the scope from cache markers. The scope decides only which requests share a cache entry."""
    body = mended.body
    marked = [body, *objects_in(body.get("tools")), *objects_in(body.get("system"))]
    marked += [block for turn in mended.marked if _is_turn(turn) for block in objects_in(turn["content"])]
    if not any(map(_is_scoped, marked)):
        return
    mended.dropped.append(f"{MARKER}.scope")
    for name in ("tools", "system"):
        body[name] = _all_unscoped(body.get(name))
        if body[name] is None:
            del body[name]
    if _is_scoped(body):
        body.update(_unscoped({MARKER: body[MARKER]}))
    _change_turns(mended, lambda turn: {**turn, "content": _all_unscoped(turn["content"])})


def _change_turns(mended: MendedBody, change: Callable[[JsonObject], JsonObject | None]) -> None:
    """Apply `change` to each entry that is a turn. Turns for which it returns `None` are removed."""
    messages = mended.body.get("messages")
    if isinstance(messages, list):
        changed = [(each, change(each) if _is_turn(each) else each) for each in messages]
        mended.body["messages"] = [turn for each, turn in changed if turn is not None or each is None]


def _is_turn(turn: JsonValue) -> TypeGuard[JsonObject]:
    return isinstance(turn, dict) and "role" in turn and "content" in turn


def _without_thinking(turn: JsonObject) -> JsonObject | None:
    content = turn["content"]
    if not isinstance(content, list):
        return turn
    rest = [block for block in content if not is_thinking(block)]
    return {**turn, "content": rest} if rest else None


def objects_in(values: JsonValue) -> list[JsonObject]:
    """Return the objects in a list."""
    return [block for block in values if isinstance(block, dict)] if isinstance(values, list) else []


def _is_scoped(block: JsonObject) -> bool:
    marker = block.get(MARKER)
    return isinstance(marker, dict) and "scope" in marker


def _unscoped(block: JsonObject) -> JsonObject:
    marker = block.get(MARKER)
    if not isinstance(marker, dict) or "scope" not in marker:
        return block
    return {**block, MARKER: {name: value for name, value in marker.items() if name != "scope"}}


def _all_unscoped(content: JsonValue) -> JsonValue:
    if not isinstance(content, list):
        return content
    return [_unscoped(block) if isinstance(block, dict) else block for block in content]


# Turns ----------------------------------------------------------------------------------------------------------------


def _mended_turns(messages: list[JsonValue], mended: MendedBody) -> list[JsonValue]:
    """Return the turns in the form that the vendor accepts, and note the turns that may have cache markers.

    Nearly all turns need no correction: such a turn is read once and returned as the same object.
    """
    calls: list[str] = []
    results: list[str] = []
    faulty: list[int] = []
    for index, turn in enumerate(messages):
        count = len(calls)
        if not _is_valid(turn, calls, results):
            faulty.append(index)
            calls[count:] = _called_ids(turn)
    ids = "".join((*calls, *results))
    bare = {*map(bare_id, calls)} if "__" in ids else {*calls}
    if ids.encode(errors="replace").translate(None, _CALL_ID_BYTES) or len(bare) < len(calls):
        mended.marked = [turn for each in _with_unique_ids(messages) for turn in _mended_turn(each, mended)]
        return [*mended.marked]
    turns: list[JsonValue] = []
    before = 0
    for index in faulty:
        mended_turn = _mended_turn(messages[index], mended)
        turns += messages[before:index]
        turns += mended_turn
        mended.marked += mended_turn
        before = index + 1
    return turns + messages[before:] if faulty else messages


def _called_ids(turn: JsonValue) -> list[str]:
    blocks = objects_in(turn.get("content") if isinstance(turn, dict) else None)
    return [call_id for each in blocks if each.get("type") == "tool_use" and isinstance(call_id := each.get("id"), str)]


def _is_valid(turn: JsonValue, calls: list[str], results: list[str]) -> bool:
    """Return whether a turn has no cache markers and needs no correction, apart from the ids of its calls. Append the
    ids in its calls and its results to `calls` and `results`."""
    content = turn.get("content") if isinstance(turn, dict) else None
    if not isinstance(content, list):
        return isinstance(content, str) and content != "" and not content.isspace()
    for block in content:
        if not isinstance(block, dict):
            return False
        kind, size = block.get("type"), len(block)
        if kind == "text" and size == 2:
            if not isinstance(text := block.get("text"), str) or not text or text.isspace():
                return False
        elif kind == "tool_use" and size == 4 and "name" in block and "input" in block:
            if not isinstance(call_id := block.get("id"), str) or not call_id:
                return False
            calls.append(call_id)
        elif not (_is_valid_result(block, results) if kind == "tool_result" else _is_valid_thinking(block)):
            return False
    return bool(content)


def _is_valid_result(block: JsonObject, results: list[str]) -> bool:
    call_id, content, size = block.get("tool_use_id"), block.get("content"), len(block)
    if not isinstance(call_id, str) or not call_id or content is None:
        return False
    # An error without content needs correction.
    if size != 3 and not (size == 4 and "is_error" in block and content):
        return False
    for each in content if isinstance(content, list) else ():
        if isinstance(each, dict) and isinstance(text := each.get("text"), str) and (not text or text.isspace()):
            return False
    results.append(call_id)
    return True


def _is_valid_thinking(block: JsonObject) -> bool:
    is_plain = block.get("type") == "thinking" and len(block) == 3 and "thinking" in block
    return is_plain and _is_signed(block.get("signature"))


def _mended_turn(turn: JsonValue, mended: MendedBody) -> tuple[JsonValue, ...]:
    """Return a turn in the form that the vendor accepts, or an empty tuple if no content is left."""
    if not isinstance(turn, dict):
        return (turn,)
    content = turn.get("content")
    if isinstance(content, str):
        return (turn,) if content and not content.isspace() else ()
    if not isinstance(content, list):
        return (turn,)
    blocks = [block for each in content for block in _mended_block(each, mended)]
    # The list is always a new one, because cache markers are removed from it later.
    return ({**turn, "content": blocks},) if blocks else ()


# Ids of calls ---------------------------------------------------------------------------------------------------------

_ID_FIELD: Final[Mapping[object, str]] = {"tool_use": "id", "tool_result": "tool_use_id"}


def _with_unique_ids(messages: list[JsonValue]) -> list[JsonValue]:
    """Return the turns with unique ids of calls, as the vendor requires: "`tool_use` ids must be unique"."""
    marks = [
        CallMark(identity, index, block["type"] == "tool_result")
        for index, turn in enumerate(messages)
        for block in objects_in(turn.get("content") if isinstance(turn, dict) else None)
        if (identity := _call_id(block)) is not None
    ]
    ids = unique_ids(marks)
    if ids is None:
        return messages
    new_ids = iter(ids)
    return [
        {**turn, "content": [_with_next_id(block, new_ids) for block in content]}
        if isinstance(turn, dict) and isinstance(content := turn.get("content"), list)
        else turn
        for turn in messages
    ]


def _call_id(block: JsonObject) -> str | None:
    kind = block.get("type")
    identity = block.get(_ID_FIELD.get(kind, "")) if isinstance(kind, str) else None
    return identity if isinstance(identity, str) else None


def _with_next_id(block: JsonValue, ids: Iterator[str]) -> JsonValue:
    if not isinstance(block, dict) or _call_id(block) is None:
        return block
    return {**block, _ID_FIELD[block["type"]]: next(ids)}


# Blocks ---------------------------------------------------------------------------------------------------------------


def _mended_block(block: JsonValue, mended: MendedBody) -> tuple[JsonValue, ...]:
    """Return a block in the form that the vendor accepts, or an empty tuple for a block that it refuses."""
    if not isinstance(block, dict):
        return (block,)
    kind, identity = block.get("type"), block.get("id")
    if not block.keys().isdisjoint(_RESPONSE_FIELDS):
        block = _without_response_fields(block)
    if kind == "tool_use" and isinstance(identity, str) and not CALL_ID.fullmatch(identity):
        return ({**block, "id": fit_call_id(identity, CALL_ID)},)
    if kind == "tool_result":
        return (_mended_result(block, mended),)
    if kind in ("server_tool_use", _SEARCH_RESULT) and str(identity or block.get("tool_use_id")).startswith(
        FOREIGN_SEARCH
    ):
        # Claude requires encrypted search results, and the results of these searches are not encrypted.
        mended.dropped.append(_SEARCH_RESULT)
        return ()
    if kind == "text" and block.get("citations"):
        block = _with_claude_citations(block, mended)
    if (kind == "thinking" and not _is_signed(block.get("signature"))) or (
        kind == "redacted_thinking" and not _is_signed(block.get("data"))
    ):
        mended.dropped.append(THINKING)
        return ()
    return () if _is_blank(block, mended) else (block,)


def _without_response_fields(block: JsonObject) -> JsonObject:
    """Return a block without the response fields that the vendor refuses in a request: "parsed_output: Extra inputs are
    not permitted". A `caller` that is the model itself, the default, is also removed, because the clouds refuse it."""
    caller = block.get("caller")
    direct = isinstance(caller, dict) and caller.get("type") == "direct"
    rest = {name: value for name, value in block.items() if name != "parsed_output"}
    if "caller" in rest and (caller is None or direct):
        del rest["caller"]
    return rest


def _with_claude_citations(block: JsonObject, mended: MendedBody) -> JsonObject:
    """Return a text block without the citations that another vendor made. Such citations lack the index that Claude's
    citations have."""
    citations = block["citations"]
    if not isinstance(citations, list):
        return block
    claude_citations = [
        each for each in citations if not (isinstance(each, dict) and each.get("encrypted_index") == "")
    ]
    if len(claude_citations) == len(citations):
        return block
    mended.dropped.append("citations")
    rest = {name: value for name, value in block.items() if name != "citations"}
    return {**rest, "citations": claude_citations} if claude_citations else rest


def _mended_result(block: JsonObject, mended: MendedBody) -> JsonObject:
    identity, content = block.get("tool_use_id"), block.get("content")
    if isinstance(identity, str) and not CALL_ID.fullmatch(identity):
        block = {**block, "tool_use_id": fit_call_id(identity, CALL_ID)}
    blocks = _without_blanks(content, mended) if isinstance(content, list) else content
    if not blocks and block.get("is_error") is True:
        # "content cannot be empty if `is_error` is true".
        return {**block, "content": EMPTY_RESULT}
    if not isinstance(content, list) or not isinstance(blocks, list) or len(blocks) == len(content):
        return block
    rest = {name: value for name, value in block.items() if name != "content"}
    return {**rest, "content": [*blocks]} if blocks else rest


def _without_blanks(blocks: list[JsonValue], mended: MendedBody) -> list[JsonValue]:
    return [block for block in blocks if not (isinstance(block, dict) and _is_blank(block, mended))]


def _is_blank(block: JsonObject, mended: MendedBody) -> bool:
    """Return whether a block is an empty text or white space only. A cache marker that is removed with such a block is
    recorded as dropped."""
    text = block.get("text")
    if block.get("type") != "text" or not isinstance(text, str) or (text and not text.isspace()):
        return False
    if block.get(MARKER):
        mended.dropped.append(MARKER)
    return True


def _is_signed(signature: JsonValue) -> bool:
    return isinstance(signature, str) and _SIGNATURE.fullmatch(signature) is not None
