"""Conversations on the OpenAI family's wire, as each vendor's profile wants them.

A message in OpenAI's own form is the same everywhere. What clients add to it (names, cache markers, the thinking and
other members of answers that they send back) goes to the vendors that take it, and is left out elsewhere: several
answer a member that they do not know with an error.

Sources, November 2026: OpenAI OpenAPI 2.3.0; the errors of Fireworks ("Extra inputs are not permitted, field:
'messages[2].reasoning'"), Groq ("property 'reasoning_content' is unsupported"), Cerebras (`wrong_api_format`) and
Mistral (422 `extra_forbidden`) as their users report them; litellm 1.109.1 and openai-agents 0.24.0 for what clients
send back.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final, cast

from providers.conversation import CONTINUING, DESCRIBING
from providers.dialects.openai.message_hooks import apply_hooks
from providers.dialects.openai.message_parts import (
    CallWriter,
    PartWriter,
    are_functions_alone,
    are_texts_alone,
    is_googles,
    is_legacy,
    without_legacy_calls,
)
from providers.dialects.openai.message_thinking import holds_thinking, with_thinking
from providers.dialects.shared.prompt import failed_text, joined_texts
from providers.failure import Refusal
from providers.frozen_record import record
from providers.json_types import JsonObject, JsonValue
from providers.profile import Profile
from providers.target import Target
from providers.unified_request import PLAIN_ROLES, ChatPrompt

_COMMON: Final = frozenset({"role", "content", "tool_calls", "tool_call_id"})
_NAMED: Final = frozenset({"name", "cache_control", "is_error"})
"""Fields that are named in `x-dragoman-dropped` whenever they are left out."""

_INSTEAD: Final = frozenset({"tool_calls", "function_call", "refusal", "audio"})
"""The fields of a turn of the model that may stand without a content."""

_SAYS_NOTHING: Final = frozenset({"role", "content", "name", *CONTINUING})

_ROLE_OF_NAME: Final[Mapping[str, str]] = {"developer": "system", "function": "tool"}

_SPEAKERS: Final = frozenset({"system", "developer", "user", "assistant"})
_SPEAKER: Final = re.compile(r"[^\s<|\\/>]{1,64}")
"""The names that OpenAI takes: "Invalid 'messages[1].name': string does not match pattern"."""


def vendor_messages(target: Target, profile: Profile, prompt: ChatPrompt, dropped: list[str]) -> list[JsonValue]:
    """Return a conversation as the vendor's profile wants it, and note in `dropped` what promises nothing and is left
    out. Raises Refusal for content that the vendor does not take."""
    if prompt.plain and not profile.hooks:
        return [*prompt.messages]
    messages = _written(prompt.messages, _VendorMessage(target, profile, dropped))
    if not (messages or profile.engine):
        raise Refusal("messages", "'messages' holds no text for the model to answer.", "invalid_value")
    return cast(list[JsonValue], apply_hooks(target, profile.hooks, messages) if profile.hooks else messages)


def _written(given: Iterable[JsonObject], writer: "_VendorMessage") -> list[JsonObject]:
    """Return messages as the vendor takes them, without turns of the model that say nothing if it takes none."""
    profile = writer.profile
    messages: list[JsonObject] = []
    for message in given:
        # Texts, results of tools, and turns that call functions, as nearly all messages are, cost no call each.
        content, fields = message.get("content"), len(message)
        if type(content) is not str:
            unchanged = _goes_without_text(message, profile)
        elif fields == 2:
            unchanged = content != "" and message.get("role") in PLAIN_ROLES
        elif fields != 3:
            unchanged = False
        elif type(message.get("tool_call_id")) is str:
            unchanged = message.get("role") == "tool"
        else:
            calls = message.get("tool_calls")
            unchanged = type(calls) is list and message.get("role") == "assistant" and are_functions_alone(calls)
        if unchanged:
            messages.append(message)
        elif not _is_empty(made := writer.written(message), profile):
            messages.append(made)
    return messages


def _goes_without_text(message: JsonObject, profile: Profile) -> bool:
    """Return whether a message whose content is null or parts of text goes unchanged."""
    content, role = message.get("content"), message.get("role")
    further = len(message) - ("content" in message) - 1
    if type(content) is list and content and profile.content_parts and are_texts_alone(content):
        if further == 0:
            return role in PLAIN_ROLES
        if further == 1 and role == "tool":
            return type(message.get("tool_call_id")) is str
    elif content is not None:
        return False
    calls = message.get("tool_calls")
    return further == 1 and role == "assistant" and type(calls) is list and are_functions_alone(calls)


def _is_empty(message: JsonObject, profile: Profile) -> bool:
    """Return whether a message is a turn of the model that says nothing, and the vendor is not sent such a turn.

    Many vendors refuse such a turn: "Assistant message must have either content or tool_calls" (Mistral), "must not be
    empty" (Moonshot). The templates of engines' models need it, since turns must alternate there.
    """
    if profile.engine or message.get("content") or message.get("tool_calls"):
        return False
    return message["role"] == "assistant" and message.keys() <= _SAYS_NOTHING


@record
class _VendorMessage:
    """Writer of one message."""

    target: Target
    profile: Profile
    dropped: list[str]

    def written(self, message: JsonObject) -> JsonObject:
        """Return a message with what the vendor refuses left out or renamed.

        Null members mean nothing, and some vendors refuse them; but the null content of a turn that only calls is
        OpenAI's own form.
        """
        if None in message.values():
            # DeepSeek misses the content of a turn that only calls: "missing field `content`".
            called = message.get("tool_calls")
            message = {
                name: value for name, value in message.items() if value is not None or (called and name == "content")
            }
        if message.get("role") == "developer" and not self.profile.developer_role:
            message = {**message, "role": "system"}
        if is_legacy(message) and "function_call" not in self.profile.takes:
            message = without_legacy_calls(message)
        if holds_thinking(message):
            message = with_thinking(message, self.profile, self.dropped)
        if "is_error" in message and message.get("role") == "tool":
            message = _with_failure_as_text(message)
        if not message.keys() <= _COMMON:
            message = self._with_known_members(message)
        if not message.get("tool_calls") and message.get("role") == "assistant":
            message = self._with_something_said(message)
        if isinstance(calls := message.get("tool_calls"), list):
            message = {**message, "tool_calls": CallWriter(self.profile, self.dropped).written(calls)}
        content = message.get("content")
        if isinstance(content, list):
            parts = PartWriter(self.profile, self.dropped).written(content)
            message = {
                **message,
                "content": parts if self.profile.content_parts else _flat(self.target, message, parts),
            }
        return message

    def _with_known_members(self, message: JsonObject) -> JsonObject:
        kept = {name: value for name, value in message.items() if self._goes(message.get("role"), name, value)}
        if "refusal" in kept and "refusal" not in self.profile.takes:
            kept = _with_refusal_as_text(kept)
        if "audio" in message and not message.get("tool_calls"):
            kept = self._with_sound(kept, message["audio"])
        if "cache_control" in message and "cache_control" in self.profile.takes:
            kept = _with_marker_on_part(kept)
        return kept

    def _with_sound(self, message: JsonObject, audio: JsonValue) -> JsonObject:
        """Return a spoken turn of the model as its vendor takes it back, by its id, or with the transcript as its text.
        Raises Refusal for a sound without one."""
        held = audio if isinstance(audio, dict) else {}
        if "audio" in self.profile.takes:
            return {**message, "audio": {"id": held.get("id")}}
        if message.get("content"):
            return message
        said = held.get("transcript")
        if not isinstance(said, str) or not said:
            raise Refusal("messages", f"{self.target.name} does not know the sound of a response by its 'audio.id'.")
        return {**message, "content": said}

    def _with_something_said(self, message: JsonObject) -> JsonObject:
        """Return a turn of the model without an empty list of calls, and with a content if it has no calls."""
        if "tool_calls" in message and not message["tool_calls"]:
            message = {name: value for name, value in message.items() if name != "tool_calls"}
        if message.get("content") or not message.keys().isdisjoint(_INSTEAD):
            return message
        return {**message, "content": ""}

    def _goes(self, role: JsonValue, name: str, value: JsonValue) -> bool:
        """Return whether a member goes to the vendor; what it does not take, and is known, is left out."""
        takes = self.profile.takes
        if name in takes or name in _COMMON or name in self.profile.reasoning_members:
            return True
        match name:
            case "name":
                goes = isinstance(role, str) and _ROLE_OF_NAME.get(role, role) in self.profile.named_roles
                if goes and role in _SPEAKERS and not self.profile.engine:
                    goes = isinstance(value, str) and _SPEAKER.fullmatch(value) is not None
            case "refusal":
                goes = True  # as text, if the vendor does not take it
            case "cache_control" | "provider_specific_fields" | "is_error":
                goes = False
            case _:
                # Clients send a response back with all its fields, which the next vendor may refuse.
                goes = role != "assistant" or (name in CONTINUING and bool(value))
        if not goes and self._is_named(role, name, value):
            self.dropped.append(name)
        return goes

    def _is_named(self, role: JsonValue, name: str, value: JsonValue) -> bool:
        """Return whether a field that is left out is named in `x-dragoman-dropped`."""
        if name in _NAMED:
            # The name of a tool's result repeats what its call's id says.
            return not (name == "name" and role == "tool")
        return bool(value) and name not in DESCRIBING and not (name == "extra_content" and is_googles(value))


def _with_failure_as_text(message: JsonObject) -> JsonObject:
    """Return a tool's result with the failure in its text: no vendor of the family has a field for that."""
    kept = {name: value for name, value in message.items() if name != "is_error"}
    if message["is_error"] is not True:
        return kept
    content = message.get("content")
    if not isinstance(content, list):
        return {**kept, "content": failed_text(content if isinstance(content, str) else "")}
    first = content[0] if content else None
    if isinstance(first, dict) and first.get("type") == "text" and isinstance(text := first.get("text"), str):
        return {**kept, "content": [{**first, "text": failed_text(text)}, *content[1:]]}
    return {**kept, "content": [{"type": "text", "text": failed_text("")}, *content]}


def _with_refusal_as_text(message: JsonObject) -> JsonObject:
    """Return a turn of the model with its refusal as text, for vendors that have no place for it."""
    kept = {name: value for name, value in message.items() if name != "refusal"}
    refusal, content = message["refusal"], message.get("content")
    if not isinstance(refusal, str) or not refusal:
        return kept
    if isinstance(content, list):
        return {**kept, "content": [*content, {"type": "text", "text": refusal}]}
    return {**kept, "content": f"{content}{refusal}" if isinstance(content, str) else refusal}


def _with_marker_on_part(message: JsonObject) -> JsonObject:
    """Return a message whose cache marker stands on its last part, where the vendors that have markers look for it."""
    marker, content = message["cache_control"], message.get("content")
    kept = {name: value for name, value in message.items() if name != "cache_control"}
    if isinstance(content, str) and content:
        return {**kept, "content": [{"type": "text", "text": content, "cache_control": marker}]}
    if isinstance(content, list) and content and isinstance(last := content[-1], dict):
        return {**kept, "content": [*content[:-1], {"cache_control": marker, **last}]}
    return kept


def _flat(target: Target, message: JsonObject, parts: list[JsonValue]) -> str:
    texts = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type") == "text"]
    if len(texts) < len(parts):
        raise Refusal("messages", f"'messages' may hold only text for {target.name}.")
    return joined_texts(message.get("role"), [text for text in texts if isinstance(text, str)])
