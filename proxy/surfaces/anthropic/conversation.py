"""`system` and `messages` of the Messages API as messages of OpenAI's chat shape.

A user's turn becomes one message for each result of a tool, then one with the rest. A turn of the model becomes one
message with its thinking, text and calls. Thinking that another vendor signed comes back in an envelope of ours.

Sources: `anthropic` 2.12.0 types `MessageParam`, `TextBlockParam`, `ToolResultBlockParam`; Claude Code 2.1.197 for
system messages within the conversation and for its billing header, November 2026.
"""

from collections.abc import Iterator
from typing import cast

from providers.conversation import AFTER, CLAUDE_FORMAT, UNKNOWN_FORMAT
from providers.dialects.shared.prompt import loaded_tools
from providers.json_types import JsonObject, JsonValue
from proxy.surfaces.anthropic.blocks import MARKER, content_blocks, model_parts_of, parts_of
from proxy.surfaces.anthropic.translation import At, Translation
from proxy.surfaces.request.rule_kinds import Invalid, boolean, check_at, json_object, string, text
from proxy.surfaces.response.write_sse import utf8_json
from proxy.surfaces.thinking_envelope import is_sealed

_REFERENCE = "tool_reference"
"""The type of a block that names a tool which a search has found, in the search's result."""

BILLING_HEADER = "x-anthropic-billing-header"
"""What Claude Code's first block of the system text begins with: it is for the vendor's accounts, and it changes with
every request, which would spoil other vendors' caches."""

ROLES = ("user", "assistant", "system")


def put_system(made: Translation, value: JsonValue) -> None:
    """Read the instructions. Raises Invalid."""
    parts = [part for part in _instructions(made, value) if not _is_billing(made, part)]
    if parts:
        made.system.append({"role": "system", "content": _content(parts)})


def put_messages(made: Translation, value: JsonValue) -> None:
    """Read the turns. Raises Invalid."""
    if not isinstance(value, list) or not value:
        raise Invalid("must be a non-empty list of messages")
    made.chat["messages"] = cast(
        JsonValue, [message for index, item in enumerate(value) for message in _turn(made, item, index)]
    )


def _turn(made: Translation, value: JsonValue, index: int) -> list[JsonObject]:
    with At(index):
        message = json_object(value)
        role = message.get("role")
        if role not in ROLES:
            raise Invalid(f"must be one of {', '.join(repr(name) for name in ROLES)}", "role")
        made.instructs_later = made.instructs_later or role == "system"
        content = message.get("content")
        if content is None:
            raise Invalid("is required", "content")
        if isinstance(content, str):
            return [{"role": role, "content": content}]
        with At("content"):
            if role == "system":
                return [{"role": role, "content": _content(_instructions(made, content))}]
            blocks = content_blocks(content)
            return [*_user(made, blocks)] if role == "user" else [_Answer(made).read(blocks)]


def _instructions(made: Translation, value: JsonValue) -> list[JsonObject]:
    parts: list[JsonObject] = []
    for index, block in enumerate(content_blocks(value)):
        if block["type"] != "text":
            raise Invalid("must be 'text': instructions hold nothing else", index, "type")
        with At(index):
            parts += parts_of(made, block)
    return parts


def _is_billing(made: Translation, part: JsonObject) -> bool:
    if not str(part["text"]).startswith(BILLING_HEADER):
        return False
    made.leave_out(BILLING_HEADER)
    return True


def _content(parts: list[JsonObject]) -> JsonValue:
    """Return a single plain text as a string, which every vendor takes, and anything else as parts."""
    match parts:
        case []:
            return ""
        case [{"type": "text", "text": str(said), **more}] if not more:
            return said
        case _:
            return cast(JsonValue, parts)


# The user's turns -----------------------------------------------------------------------------------------------------


def _user(made: Translation, blocks: list[JsonObject]) -> Iterator[JsonObject]:
    parts: list[JsonObject] = []
    results = 0
    for index, block in enumerate(blocks):
        with At(index):
            if block["type"] == "tool_result":
                results += 1
                yield _result(made, block)
            else:
                parts += parts_of(made, block)
    if parts or not results:
        yield {"role": "user", "content": _content(parts)}


def _result(made: Translation, block: JsonObject) -> JsonObject:
    message: JsonObject = {"role": "tool", "tool_call_id": check_at(text, block.get("tool_use_id"), "tool_use_id")}
    held = block.get("content")
    parts: list[JsonObject] = []
    found: list[str] = []
    with At("content"):
        for place, each in enumerate([] if held is None else content_blocks(held)):
            with At(place):
                if each["type"] == _REFERENCE:
                    found.append(check_at(text, each.get("tool_name"), "tool_name"))
                else:
                    parts += parts_of(made, each)
    if found:
        parts.insert(0, {"type": "text", "text": loaded_tools(found)})
    message["content"] = _content(parts)
    if block.get("is_error") is not None and check_at(boolean, block["is_error"], "is_error"):
        message["is_error"] = True
    if block.get(MARKER) is not None:
        message[MARKER] = block[MARKER]
    return message


# The model's turns ----------------------------------------------------------------------------------------------------


class _Answer:
    """Reads one turn of the model."""

    __slots__ = ("_calls", "_details", "_made", "_parts", "_said")

    def __init__(self, made: Translation) -> None:
        self._made = made
        self._details: list[JsonObject] = []
        self._parts: list[JsonObject] = []
        self._calls: list[JsonObject] = []
        self._said = 0  # characters of its text

    def read(self, blocks: list[JsonObject]) -> JsonObject:
        """Return the message. Raises Invalid."""
        for index, block in enumerate(blocks):
            with At(index):
                self._block(block)
        message: JsonObject = {"role": "assistant"}
        message["content"] = _content(self._parts) if self._parts or not self._calls else None
        if self._details:
            message["reasoning_details"] = cast(JsonValue, self._details)
        if self._calls:
            message["tool_calls"] = cast(JsonValue, self._calls)
        return message

    def _block(self, block: JsonObject) -> None:
        match block["type"]:
            case "thinking":
                self._thinking(block)
            case "redacted_thinking":
                data = check_at(string, block.get("data"), "data")
                self._detail({"type": "reasoning.encrypted", "data": data, "format": CLAUDE_FORMAT})
            case "tool_use":
                self._call(block)
            case _:
                parts = model_parts_of(self._made, block)
                self._parts += parts
                self._said += sum([len(said) for part in parts if isinstance(said := part.get("text"), str)])

    def _thinking(self, block: JsonObject) -> None:
        thought = check_at(string, block.get("thinking"), "thinking")
        given = block.get("signature")
        signature = "" if given is None else check_at(string, given, "signature")
        if is_sealed(signature):
            sealed = self._made.envelopes.open(signature)
            if sealed is not None:
                if thought and not any([detail.get("text") or detail.get("summary") for detail in sealed]):
                    self._detail({"type": "reasoning.text", "text": thought, "format": UNKNOWN_FORMAT})
                # As they came: vendors find the parts of a thought by their own indexes.
                self._details += sealed
                return
            self._made.leave_out("thinking")
            signature = ""
        detail: JsonObject = {"type": "reasoning.text", "text": thought}
        if signature:
            self._detail({**detail, "signature": signature, "format": CLAUDE_FORMAT})
        elif thought:
            self._detail({**detail, "format": UNKNOWN_FORMAT})

    def _detail(self, detail: JsonObject) -> None:
        place: JsonObject = {AFTER: [self._said, len(self._calls)]} if self._said or self._calls else {}
        self._details.append({**detail, **place, "index": len(self._details)})

    def _call(self, block: JsonObject) -> None:
        arguments = check_at(json_object, block.get("input", {}), "input")
        function: JsonObject = {
            "name": check_at(text, block.get("name"), "name"),
            "arguments": utf8_json(arguments).decode(),
        }
        identity = check_at(text, block.get("id"), "id")
        call: JsonObject = {"id": identity, "type": "function", "function": function}
        self._calls.append(call if block.get(MARKER) is None else {**call, MARKER: block[MARKER]})
