"""A client's own Messages body, mended where Claude would refuse what the client cannot know of.

Conversations come here from other vendors, by a route or a fallback, through clients that send back what they got:
thinking that no Claude signed, empty texts, ids that others made. Those are taken out or fitted as in translated
requests, and so are cache markers that have no place; whatever else the body holds is left as it came. Nothing of the
client's is changed in place.

Sources: `anthropic` 2.12.0 types `MessageParam` and `ContentBlockParam`; "Messages", "Errors" and "Prompt caching"
pages, November 2026; litellm 1.109.1 for the scope of cache markers, which the clouds refuse.
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

_FOUND = "web_search_tool_result"

_RESPONSES_OWN: Final = frozenset({"parsed_output", "caller"})
"""Fields of blocks that Anthropic's client has in responses: `ParsedTextBlock`, `ToolUseBlock`."""

_OF_IDS: Final = bytes([byte for byte in range(128) if CALL_ID.fullmatch(chr(byte))])
"""The bytes that an id of a call may have. Many ids are searched for others ten times faster than by the pattern."""

_SIGNATURE = re.compile(r"[A-Za-z0-9+/]+={0,2}")
"""The form of Claude's signatures and of its redacted thinking: base64, which no envelope of other thinking is."""


@dataclass(slots=True)
class MendedBody:
    """A body that may be written to at its top, and the names of the fields that were left out or changed. `marked` are
    the turns that may have cache markers."""

    body: JsonObject
    dropped: list[str] = field(default_factory=list)
    emulated: list[str] = field(default_factory=list)
    marked: list[JsonValue] = field(default_factory=list)

    @property
    def turns(self) -> list[JsonObject]:
        """The turns of the conversation that have the form of one."""
        messages = self.body.get("messages")
        return [turn for turn in (messages if isinstance(messages, list) else ()) if _is_turn(turn)]


def mend_body(given: Mapping[str, JsonValue]) -> MendedBody:
    """Return a client's body as Claude takes it, without the members that are null at its top."""
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
    """Take all thinking out of the conversation, for a call that has to go without."""
    _change_turns(mended, _unthinking)


def instructions_as_users(mended: MendedBody) -> None:
    """Turn instructions within the conversation into turns of the user, for platforms that have them at its top only:
    a later place is part of what they say."""
    if "system" in [turn["role"] for turn in mended.turns]:
        mended.emulated.append("messages")
        _change_turns(mended, lambda turn: {**turn, "role": "user"} if turn["role"] == "system" else turn)


def unscope_markers(mended: MendedBody) -> None:
    """Take the scope out of cache markers: it says only whose requests share the cache."""
    body = mended.body
    held = [body, *objects_in(body.get("tools")), *objects_in(body.get("system"))]
    held += [block for turn in mended.marked if _is_turn(turn) for block in objects_in(turn["content"])]
    if not any(map(_is_scoped, held)):
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
    """Change every turn that has the form of one; a turn that `change` returns None for is taken out."""
    messages = mended.body.get("messages")
    if isinstance(messages, list):
        changed = [(each, change(each) if _is_turn(each) else each) for each in messages]
        mended.body["messages"] = [turn for each, turn in changed if turn is not None or each is None]


def _is_turn(turn: JsonValue) -> TypeGuard[JsonObject]:
    return isinstance(turn, dict) and "role" in turn and "content" in turn


def _unthinking(turn: JsonObject) -> JsonObject | None:
    content = turn["content"]
    if not isinstance(content, list):
        return turn
    kept = [block for block in content if not is_thinking(block)]
    return {**turn, "content": kept} if kept else None


def objects_in(held: JsonValue) -> list[JsonObject]:
    """Return the objects of a list."""
    return [block for block in held if isinstance(block, dict)] if isinstance(held, list) else []


def _is_scoped(block: JsonObject) -> bool:
    marker = block.get(MARKER)
    return isinstance(marker, dict) and "scope" in marker


def _unscoped(block: JsonObject) -> JsonObject:
    marker = block.get(MARKER)
    if not isinstance(marker, dict) or "scope" not in marker:
        return block
    return {**block, MARKER: {name: value for name, value in marker.items() if name != "scope"}}


def _all_unscoped(held: JsonValue) -> JsonValue:
    if not isinstance(held, list):
        return held
    return [_unscoped(block) if isinstance(block, dict) else block for block in held]


# Turns ----------------------------------------------------------------------------------------------------------------


def _mended_turns(messages: list[JsonValue], mended: MendedBody) -> list[JsonValue]:
    """Return the turns as the vendor takes them, and note the turns that may have cache markers.

    Nearly all turns have nothing to mend. They are read once and stay the same objects.
    """
    calls: list[str] = []
    results: list[str] = []
    odd: list[int] = []
    for place, turn in enumerate(messages):
        known = len(calls)
        if not _is_sound(turn, calls, results):
            odd.append(place)
            calls[known:] = _called_ids(turn)
    ids = "".join((*calls, *results))
    bare = {*map(bare_id, calls)} if "__" in ids else {*calls}
    if ids.encode(errors="replace").translate(None, _OF_IDS) or len(bare) < len(calls):
        mended.marked = [turn for each in _with_unique_ids(messages) for turn in _turn(each, mended)]
        return [*mended.marked]
    turns: list[JsonValue] = []
    before = 0
    for place in odd:
        made = _turn(messages[place], mended)
        turns += messages[before:place]
        turns += made
        mended.marked += made
        before = place + 1
    return turns + messages[before:] if odd else messages


def _called_ids(turn: JsonValue) -> list[str]:
    blocks = objects_in(turn.get("content") if isinstance(turn, dict) else None)
    return [made for each in blocks if each.get("type") == "tool_use" and isinstance(made := each.get("id"), str)]


def _is_sound(turn: JsonValue, calls: list[str], results: list[str]) -> bool:
    """Return whether a turn has nothing to mend but ids of calls, and no cache markers. The ids in its calls and its
    results are added to these lists."""
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
            if not isinstance(identity := block.get("id"), str) or not identity:
                return False
            calls.append(identity)
        elif not (_is_sound_result(block, results) if kind == "tool_result" else _is_sound_thinking(block)):
            return False
    return bool(content)


def _is_sound_result(block: JsonObject, results: list[str]) -> bool:
    identity, content, size = block.get("tool_use_id"), block.get("content"), len(block)
    if not isinstance(identity, str) or not identity or content is None:
        return False
    # An error without content gets one.
    if size != 3 and not (size == 4 and "is_error" in block and content):
        return False
    for each in content if isinstance(content, list) else ():
        if isinstance(each, dict) and isinstance(text := each.get("text"), str) and (not text or text.isspace()):
            return False
    results.append(identity)
    return True


def _is_sound_thinking(block: JsonObject) -> bool:
    known = block.get("type") == "thinking" and len(block) == 3 and "thinking" in block
    return known and _is_signed(block.get("signature"))


def _turn(turn: JsonValue, mended: MendedBody) -> tuple[JsonValue, ...]:
    """Return a turn as the vendor takes it; nothing where nothing is left of it."""
    if not isinstance(turn, dict):
        return (turn,)
    content = turn.get("content")
    if isinstance(content, str):
        return (turn,) if content and not content.isspace() else ()
    if not isinstance(content, list):
        return (turn,)
    kept = [block for each in content for block in _block(each, mended)]
    # A list of its own in any case: markers are taken out of it.
    return ({**turn, "content": kept},) if kept else ()


# Ids of calls ---------------------------------------------------------------------------------------------------------

_ID_OF: Final[Mapping[object, str]] = {"tool_use": "id", "tool_result": "tool_use_id"}


def _with_unique_ids(messages: list[JsonValue]) -> list[JsonValue]:
    """Return the turns with unique ids of calls: "`tool_use` ids must be unique"."""
    marks = [
        CallMark(identity, place, block["type"] == "tool_result")
        for place, turn in enumerate(messages)
        for block in objects_in(turn.get("content") if isinstance(turn, dict) else None)
        if (identity := _call_id(block)) is not None
    ]
    ids = unique_ids(marks)
    if ids is None:
        return messages
    left = iter(ids)
    return [
        {**turn, "content": [_renamed(block, left) for block in content]}
        if isinstance(turn, dict) and isinstance(content := turn.get("content"), list)
        else turn
        for turn in messages
    ]


def _call_id(block: JsonObject) -> str | None:
    kind = block.get("type")
    identity = block.get(_ID_OF.get(kind, "")) if isinstance(kind, str) else None
    return identity if isinstance(identity, str) else None


def _renamed(block: JsonValue, ids: Iterator[str]) -> JsonValue:
    if not isinstance(block, dict) or _call_id(block) is None:
        return block
    return {**block, _ID_OF[block["type"]]: next(ids)}


# Blocks ---------------------------------------------------------------------------------------------------------------


def _block(block: JsonValue, mended: MendedBody) -> tuple[JsonValue, ...]:
    """Return a block as the vendor takes it; nothing for one that it refuses."""
    if not isinstance(block, dict):
        return (block,)
    kind, identity = block.get("type"), block.get("id")
    if not block.keys().isdisjoint(_RESPONSES_OWN):
        block = _without_response_fields(block)
    if kind == "tool_use" and isinstance(identity, str) and not CALL_ID.fullmatch(identity):
        return ({**block, "id": fit_call_id(identity, CALL_ID)},)
    if kind == "tool_result":
        return (_result(block, mended),)
    if kind in ("server_tool_use", _FOUND) and str(identity or block.get("tool_use_id")).startswith(FOREIGN_SEARCH):
        # The results of these searches are not encrypted, which Claude demands.
        mended.dropped.append(_FOUND)
        return ()
    if kind == "text" and block.get("citations"):
        block = _cited(block, mended)
    if (kind == "thinking" and not _is_signed(block.get("signature"))) or (
        kind == "redacted_thinking" and not _is_signed(block.get("data"))
    ):
        mended.dropped.append(THINKING)
        return ()
    return () if _is_blank(block, mended) else (block,)


def _without_response_fields(block: JsonObject) -> JsonObject:
    """Return a block without what the vendor refuses to get back: "parsed_output: Extra inputs are not permitted", and
    of `caller` what it takes for granted, which the clouds refuse so."""
    caller = block.get("caller")
    direct = isinstance(caller, dict) and caller.get("type") == "direct"
    rest = {name: value for name, value in block.items() if name != "parsed_output"}
    if "caller" in rest and (caller is None or direct):
        del rest["caller"]
    return rest


def _cited(block: JsonObject, mended: MendedBody) -> JsonObject:
    """Return a text without the citations that another vendor made, which lack Claude's index."""
    listed = block["citations"]
    if not isinstance(listed, list):
        return block
    kept = [each for each in listed if not (isinstance(each, dict) and each.get("encrypted_index") == "")]
    if len(kept) == len(listed):
        return block
    mended.dropped.append("citations")
    rest = {name: value for name, value in block.items() if name != "citations"}
    return {**rest, "citations": kept} if kept else rest


def _result(block: JsonObject, mended: MendedBody) -> JsonObject:
    identity, content = block.get("tool_use_id"), block.get("content")
    if isinstance(identity, str) and not CALL_ID.fullmatch(identity):
        block = {**block, "tool_use_id": fit_call_id(identity, CALL_ID)}
    kept = _without_blanks(content, mended) if isinstance(content, list) else content
    if not kept and block.get("is_error") is True:
        # "content cannot be empty if `is_error` is true".
        return {**block, "content": EMPTY_RESULT}
    if not isinstance(content, list) or not isinstance(kept, list) or len(kept) == len(content):
        return block
    rest = {name: value for name, value in block.items() if name != "content"}
    return {**rest, "content": [*kept]} if kept else rest


def _without_blanks(blocks: list[JsonValue], mended: MendedBody) -> list[JsonValue]:
    return [block for block in blocks if not (isinstance(block, dict) and _is_blank(block, mended))]


def _is_blank(block: JsonObject, mended: MendedBody) -> bool:
    """Return whether a block is a text without a character to read; a marker that is lost with it is noted."""
    text = block.get("text")
    if block.get("type") != "text" or not isinstance(text, str) or (text and not text.isspace()):
        return False
    if block.get(MARKER):
        mended.dropped.append(MARKER)
    return True


def _is_signed(signature: JsonValue) -> bool:
    return isinstance(signature, str) and _SIGNATURE.fullmatch(signature) is not None
