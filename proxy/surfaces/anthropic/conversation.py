"""Converts `system` and `messages` of the Messages API to messages of OpenAI's chat shape.

A user's turn becomes one message for each result of a tool, then one message with the rest. A turn of the model becomes
one message with its reasoning, text and calls. Reasoning that another vendor signed comes back in one of the gateway's
envelopes.

Agents send hundreds of blocks with each request, so each block is read once. The commonest blocks are tested by a few
comparisons, and the path of a block is only built if there is an error.

Sources: `anthropic` 2.12.0 types `MessageParam`, `TextBlockParam`, `ToolResultBlockParam`; Claude Code 2.1.197 for
system messages within the conversation and for its billing header, November 2026.
"""

from collections.abc import Sequence
from typing import cast

from providers.conversation import AFTER_KEY, CLAUDE_FORMAT, UNKNOWN_FORMAT
from providers.dialects.shared.prompt import loaded_tools
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import PLAIN_ROLES, ChatPrompt
from proxy.surfaces.anthropic.blocks import (
    MARKER,
    NO_BLOCKS,
    content_block,
    content_blocks,
    model_parts_of,
    parts_of,
)
from proxy.surfaces.anthropic.translation import Translation, with_path
from proxy.surfaces.request.chat_messages import MAX_MESSAGES, messages
from proxy.surfaces.request.rule_kinds import Invalid, boolean, check_at, json_object, string, text
from proxy.surfaces.response.write_sse import utf8_json
from proxy.surfaces.thinking_envelope import is_sealed

_REFERENCE = "tool_reference"
"""The type of a block in the result of a tool search: it names a tool that the search has found."""

BILLING_HEADER = "x-anthropic-billing-header"
"""The beginning of the first block of Claude Code's system text. The block is for Anthropic's accounting. It changes
with every request, which would invalidate the prompt caches of other vendors."""

ROLES = ("user", "assistant", "system")


def put_system(draft: Translation, value: JsonValue) -> None:
    """Read the instructions. Raises Invalid."""
    parts = [part for part in _instructions(draft, value) if not _is_billing(draft, part)]
    if parts:
        draft.system.append({"role": "system", "content": _content(parts)})


def put_messages(draft: Translation, value: JsonValue) -> None:
    """Read the turns. Raises Invalid."""
    if not isinstance(value, list) or not value:
        raise Invalid("must be a non-empty list of messages")
    for index, item in enumerate(value):
        try:
            _turn(draft, item)
        except Invalid as bad:
            raise with_path(bad, index) from None
    draft.chat["messages"] = cast(JsonValue, draft.turns)


def checked_prompt(draft: Translation, listed: Sequence[JsonObject]) -> ChatPrompt | None:
    """Return the prompt of translated messages without a further check; `None` if the general check of conversations
    might refuse the messages.

    A translation writes all fields of its messages itself, from checked values, and the arguments of calls have been
    counted with the elements of the body. So the check can only refuse the number of messages, or an image without an
    address.
    """
    if draft.lacks_address or len(listed) > MAX_MESSAGES:
        return None
    return ChatPrompt(tuple(listed), all(map(_is_plain, listed)))


def conversation(value: JsonValue) -> ChatPrompt:
    """Check the messages of a translation; a checked prompt is returned unchanged. Raises Invalid."""
    given: object = value
    return given if isinstance(given, ChatPrompt) else messages(value)


def _is_plain(message: JsonObject) -> bool:
    """Return whether a message is plain, as `ChatPrompt` describes it."""
    content = message["content"]
    return len(message) == 2 and type(content) is str and content != "" and message["role"] in PLAIN_ROLES


def _turn(draft: Translation, value: JsonValue) -> None:
    """Add the messages of a turn. Raises Invalid."""
    message = value if isinstance(value, dict) else json_object(value)
    role, content = message.get("role"), message.get("content")
    if role not in ROLES:
        raise Invalid(f"must be one of {', '.join(repr(name) for name in ROLES)}", "role")
    if content is None:
        raise Invalid("is required", "content")
    if role == "system":
        draft.instructs_later = True
    if isinstance(content, str):
        draft.turns.append({"role": role, "content": content})
        return
    try:
        if role == "user":
            _user(draft, content)
        elif role == "assistant":
            _model(draft, content)
        else:
            draft.turns.append({"role": role, "content": _content(_instructions(draft, content))})
    except Invalid as bad:
        raise with_path(bad, "content") from None


def _instructions(draft: Translation, value: JsonValue) -> list[JsonObject]:
    parts: list[JsonObject] = []
    for index, block in enumerate(content_blocks(value)):
        if block["type"] != "text":
            raise Invalid("must be 'text', the only type that instructions may have", index, "type")
        try:
            parts += parts_of(draft, block)
        except Invalid as bad:
            raise with_path(bad, index) from None
    return parts


def _is_billing(draft: Translation, part: JsonObject) -> bool:
    if not str(part["text"]).startswith(BILLING_HEADER):
        return False
    draft.leave_out(BILLING_HEADER)
    return True


def _content(parts: list[JsonObject]) -> JsonValue:
    """Return a single plain text as a string, which every vendor accepts, and anything else as parts."""
    if not parts:
        return ""
    if len(parts) == 1 and parts[0]["type"] == "text" and len(parts[0]) == 2:
        return parts[0]["text"]
    return cast(JsonValue, parts)


def _first_problem(blocks: list[JsonValue], bad: Invalid, index: int) -> Invalid:
    """Return the problem to report for a content whose block at `index` has the problem `bad`. A value that does not
    have the form of a block is reported first, at whatever index it is."""
    try:
        content_blocks(blocks)
    except Invalid as other:
        return other
    return with_path(bad, index)


# The user's turns -----------------------------------------------------------------------------------------------------


def _user(draft: Translation, blocks: JsonValue) -> None:
    """Add the messages of a turn of the user. Raises Invalid."""
    if not isinstance(blocks, list):
        raise Invalid(NO_BLOCKS)
    parts: list[JsonObject] = []
    results = 0
    for index, block in enumerate(blocks):
        try:
            if isinstance(block, dict) and block.get("type") == "tool_result":
                results += 1
                draft.turns.append(_result(draft, block))
            else:
                parts += parts_of(draft, content_block(block))
        except Invalid as bad:
            raise _first_problem(blocks, bad, index) from None
    if parts or not results:
        draft.turns.append({"role": "user", "content": _content(parts)})


def _result(draft: Translation, block: JsonObject) -> JsonObject:
    identity, raw_content = block.get("tool_use_id"), block.get("content")
    if not isinstance(identity, str) or not identity:
        identity = check_at(text, identity, "tool_use_id")
    if isinstance(raw_content, list):
        content = _result_content(draft, raw_content)
    elif raw_content is None or isinstance(raw_content, str):
        content = raw_content or ""
    else:
        raise Invalid(NO_BLOCKS, "content")
    message: JsonObject = {"role": "tool", "tool_call_id": identity, "content": content}
    if block.get("is_error") is not None and check_at(boolean, block["is_error"], "is_error"):
        message["is_error"] = True
    if (marker := block.get(MARKER)) is not None:
        message[MARKER] = check_at(json_object, marker, MARKER)
    return message


def _result_content(draft: Translation, raw_content: list[JsonValue]) -> JsonValue:
    only = raw_content[0] if len(raw_content) == 1 else None
    if isinstance(only, dict) and len(only) == 2 and only.get("type") == "text" and isinstance(only.get("text"), str):
        return only["text"]  # the common case
    parts: list[JsonObject] = []
    found: list[str] = []
    for index, each in enumerate(raw_content):
        try:
            block = each if isinstance(each, dict) else content_block(each)
            if block.get("type") == _REFERENCE:
                found.append(check_at(text, content_block(block).get("tool_name"), "tool_name"))
            else:
                parts += parts_of(draft, content_block(block))
        except Invalid as bad:
            raise with_path(_first_problem(raw_content, bad, index), "content") from None
    if found:
        parts.insert(0, {"type": "text", "text": loaded_tools(found)})
    return _content(parts)


# The model's turns ----------------------------------------------------------------------------------------------------


def _model(draft: Translation, blocks: JsonValue) -> None:
    """Add the message of a turn of the model. Raises Invalid."""
    if not isinstance(blocks, list):
        raise Invalid(NO_BLOCKS)
    parts: list[JsonObject] = []
    calls: list[JsonObject] = []
    details: _Details | None = None
    for index, each in enumerate(blocks):
        try:
            block = each if isinstance(each, dict) else content_block(each)
            kind = block.get("type")
            if kind == "tool_use":
                calls.append(_call(block))
            elif kind == "text" and len(block) == 2 and isinstance(part_text := block.get("text"), str):
                if part_text:
                    parts.append({"type": "text", "text": part_text})
            elif kind in ("thinking", "redacted_thinking"):
                details = details or _Details(draft)
                details.add(content_block(block), parts, calls)
            else:
                parts += model_parts_of(draft, content_block(block))
        except Invalid as bad:
            raise _first_problem(blocks, bad, index) from None
    message: JsonObject = {"role": "assistant", "content": _content(parts) if parts or not calls else None}
    if details is not None and details.listed:
        message["reasoning_details"] = cast(JsonValue, details.listed)
    if calls:
        message["tool_calls"] = cast(JsonValue, calls)
    draft.turns.append(message)


def _call(block: JsonObject) -> JsonObject:
    identity, name, given = block.get("id"), block.get("name"), block.get("input")
    if not (isinstance(given, dict) and isinstance(name, str) and name and isinstance(identity, str) and identity):
        given = check_at(json_object, block.get("input", {}), "input")
        name, identity = check_at(text, name, "name"), check_at(text, identity, "id")
    function: JsonObject = {"name": name, "arguments": utf8_json(given).decode()}
    call: JsonObject = {"id": identity, "type": "function", "function": function}
    if (marker := block.get(MARKER)) is not None:
        call[MARKER] = check_at(json_object, marker, MARKER)
    return call


class _Details:
    """Reads the thinking blocks of one turn of the model, in the form of `reasoning_details`."""

    __slots__ = ("_draft", "_parts", "_said", "listed")

    def __init__(self, draft: Translation) -> None:
        self._draft = draft
        self.listed: list[JsonObject] = []
        self._parts = 0  # the number of parts of the turn that have been counted
        self._said = 0  # the number of characters in the texts of these parts

    def add(self, block: JsonObject, parts: list[JsonObject], calls: list[JsonObject]) -> None:
        """Add the details of a block that follows the parts and the calls of its turn so far. Raises Invalid."""
        self._said += sum(
            [len(part_text) for part in parts[self._parts :] if isinstance(part_text := part.get("text"), str)]
        )
        self._parts = len(parts)
        position: JsonObject = {AFTER_KEY: [self._said, len(calls)]} if self._said or calls else {}
        if block["type"] == "thinking":
            self._thinking(block, position)
        else:
            data = check_at(string, block.get("data"), "data")
            self._detail({"type": "reasoning.encrypted", "data": data, "format": CLAUDE_FORMAT}, position)

    def _thinking(self, block: JsonObject, position: JsonObject) -> None:
        thinking_text = check_at(string, block.get("thinking"), "thinking")
        given = block.get("signature")
        signature = "" if given is None else check_at(string, given, "signature")
        if is_sealed(signature):
            sealed = self._draft.envelopes.open(signature)
            if sealed is not None:
                if thinking_text and not any([detail.get("text") or detail.get("summary") for detail in sealed]):
                    self._detail({"type": "reasoning.text", "text": thinking_text, "format": UNKNOWN_FORMAT}, position)
                # The details stay unchanged, because vendors identify the parts of their reasoning by their own
                # indexes.
                self.listed += sealed
                return
            self._draft.leave_out("thinking")
            signature = ""
        detail: JsonObject = {"type": "reasoning.text", "text": thinking_text}
        if signature:
            self._detail({**detail, "signature": signature, "format": CLAUDE_FORMAT}, position)
        elif thinking_text:
            self._detail({**detail, "format": UNKNOWN_FORMAT}, position)

    def _detail(self, detail: JsonObject, position: JsonObject) -> None:
        self.listed.append({**detail, **position, "index": len(self.listed)})
