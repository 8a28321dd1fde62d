"""Writes conversations for the OpenAI family, in the form that each vendor's profile requires.

A message in OpenAI's own form is the same for all vendors. Clients add fields to it: names, cache markers, and the
reasoning and other fields of earlier responses. Such a field is sent to the vendors that accept it and left out for the
others, since several vendors respond to an unknown field with an error.

Sources, November 2026: OpenAI OpenAPI 2.3.0; the errors of Fireworks ("Extra inputs are not permitted, field:
'messages[2].reasoning'"), Groq ("property 'reasoning_content' is unsupported"), Cerebras (`wrong_api_format`) and
Mistral (422 `extra_forbidden`) as their users report them; litellm 1.109.1 and openai-agents 0.24.0 for the fields that
clients send back.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final, cast

from providers.conversation import CONTINUATION_FIELDS, DESCRIPTIVE_FIELDS
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
from providers.dialects.openai.message_thinking import has_reasoning, with_readable_reasoning
from providers.dialects.shared.prompt import failed_text, joined_texts
from providers.failure import Refusal
from providers.frozen_record import frozen
from providers.json_types import JsonObject, JsonValue
from providers.profile import Profile
from providers.target import Target
from providers.unified_request import PLAIN_ROLES, ChatPrompt

_COMMON_FIELDS: Final = frozenset({"role", "content", "tool_calls", "tool_call_id"})
_REPORTED_FIELDS: Final = frozenset({"name", "cache_control", "is_error"})
"""Fields that are named in `x-dragoman-dropped` whenever they are left out."""

_MAY_REPLACE_CONTENT: Final = frozenset({"tool_calls", "function_call", "refusal", "audio"})
"""The fields of an assistant message that may be present without a `content`."""

_FIELDS_WITHOUT_CONTENT: Final = frozenset({"role", "content", "name", *CONTINUATION_FIELDS})

_ROLE_OF_NAME: Final[Mapping[str, str]] = {"developer": "system", "function": "tool"}

_NAMED_ROLES: Final = frozenset({"system", "developer", "user", "assistant"})
_NAME_PATTERN: Final = re.compile(r"[^\s<|\\/>]{1,64}")
"""The names that OpenAI accepts. For others it reports: "Invalid 'messages[1].name': string does not match pattern"."""


def vendor_messages(target: Target, profile: Profile, prompt: ChatPrompt, dropped: list[str]) -> list[JsonValue]:
    """Return a conversation in the form that the vendor's profile requires, and add the names of advisory fields that
    were left out to `dropped`. Raises Refusal for content that the vendor does not accept."""
    if prompt.plain and not profile.hooks:
        return [*prompt.messages]
    messages = _write_messages(prompt.messages, _VendorMessage(target, profile, dropped))
    if not (messages or profile.engine):
        raise Refusal("messages", "'messages' holds no text for the model to answer.", "invalid_value")
    return cast(list[JsonValue], apply_hooks(target, profile.hooks, messages) if profile.hooks else messages)


def _write_messages(given: Iterable[JsonObject], writer: "_VendorMessage") -> list[JsonObject]:
    """Return messages in the vendor's form, without empty assistant messages if the vendor does not accept them."""
    profile = writer.profile
    messages: list[JsonObject] = []
    for message in given:
        # Nearly all messages are texts, tool results or function calls. They are checked inline, without a function
        # call each.
        content, fields = message.get("content"), len(message)
        if type(content) is not str:
            unchanged = _is_sent_unchanged(message, profile)
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


def _is_sent_unchanged(message: JsonObject, profile: Profile) -> bool:
    """Return whether a message whose content is not a string is sent unchanged: text parts, or calls with a null
    content."""
    content, role = message.get("content"), message.get("role")
    other_fields = len(message) - ("content" in message) - 1
    if type(content) is list and content and profile.content_parts and are_texts_alone(content):
        if other_fields == 0:
            return role in PLAIN_ROLES
        if other_fields == 1 and role == "tool":
            return type(message.get("tool_call_id")) is str
    elif content is not None:
        return False
    calls = message.get("tool_calls")
    return other_fields == 1 and role == "assistant" and type(calls) is list and are_functions_alone(calls)


def _is_empty(message: JsonObject, profile: Profile) -> bool:
    """Return whether a message is an empty assistant message that must not be sent to the vendor.

    Many vendors refuse an empty message: "Assistant message must have either content or tool_calls" (Mistral), "must
    not be empty" (Moonshot). Engines get it, since turns must alternate in the templates of their models.
    """
    if profile.engine or message.get("content") or message.get("tool_calls"):
        return False
    return message["role"] == "assistant" and message.keys() <= _FIELDS_WITHOUT_CONTENT


@frozen
class _VendorMessage:
    """The writer of one message. It adds the names of fields that it leaves out to `dropped`."""

    target: Target
    profile: Profile
    dropped: list[str]

    def written(self, message: JsonObject) -> JsonObject:
        """Return a message without the fields that the vendor refuses, or with these renamed.

        Null fields mean nothing, and some vendors refuse them. But in OpenAI's own form, an assistant message that only
        calls tools has a null content.
        """
        if None in message.values():
            # DeepSeek requires the null content of a message that only calls tools: "missing field `content`".
            has_calls = message.get("tool_calls")
            message = {
                name: value for name, value in message.items() if value is not None or (has_calls and name == "content")
            }
        if message.get("role") == "developer" and not self.profile.developer_role:
            message = {**message, "role": "system"}
        if is_legacy(message) and "function_call" not in self.profile.takes:
            message = without_legacy_calls(message)
        if has_reasoning(message):
            message = with_readable_reasoning(message, self.profile, self.dropped)
        if "is_error" in message and message.get("role") == "tool":
            message = _with_failure_as_text(message)
        if not message.keys() <= _COMMON_FIELDS:
            message = self._with_accepted_fields(message)
        if not message.get("tool_calls") and message.get("role") == "assistant":
            message = self._with_content(message)
        if isinstance(calls := message.get("tool_calls"), list):
            message = {**message, "tool_calls": CallWriter(self.profile, self.dropped).written(calls)}
        content = message.get("content")
        if isinstance(content, list):
            parts = PartWriter(self.profile, self.dropped).written(content)
            message = {
                **message,
                "content": parts if self.profile.content_parts else _joined_text_parts(self.target, message, parts),
            }
        return message

    def _with_accepted_fields(self, message: JsonObject) -> JsonObject:
        accepted = {name: value for name, value in message.items() if self._is_sent(message.get("role"), name, value)}
        if "refusal" in accepted and "refusal" not in self.profile.takes:
            accepted = _with_refusal_as_text(accepted)
        if "audio" in message and not message.get("tool_calls"):
            accepted = self._with_audio(accepted, message["audio"])
        if "cache_control" in message and "cache_control" in self.profile.takes:
            accepted = _with_marker_on_part(accepted)
        return accepted

    def _with_audio(self, message: JsonObject, audio: JsonValue) -> JsonObject:
        """Return a spoken assistant message with its audio by id if the vendor accepts that, otherwise with the
        transcript as its text. Raises Refusal if the audio has no transcript."""
        audio_object = audio if isinstance(audio, dict) else {}
        if "audio" in self.profile.takes:
            return {**message, "audio": {"id": audio_object.get("id")}}
        if message.get("content"):
            return message
        transcript = audio_object.get("transcript")
        if not isinstance(transcript, str) or not transcript:
            raise Refusal("messages", f"{self.target.name} does not know the sound of a response by its 'audio.id'.")
        return {**message, "content": transcript}

    def _with_content(self, message: JsonObject) -> JsonObject:
        """Return an assistant message without an empty `tool_calls`, and with a content if it has no calls."""
        if "tool_calls" in message and not message["tool_calls"]:
            message = {name: value for name, value in message.items() if name != "tool_calls"}
        if message.get("content") or not message.keys().isdisjoint(_MAY_REPLACE_CONTENT):
            return message
        return {**message, "content": ""}

    def _is_sent(self, role: JsonValue, name: str, value: JsonValue) -> bool:
        """Return whether a field of a message is sent to the vendor. Adds its name to `dropped` if it is left out and
        worth reporting."""
        takes = self.profile.takes
        if name in takes or name in _COMMON_FIELDS or name in self.profile.reasoning_members:
            return True
        match name:
            case "name":
                sent = isinstance(role, str) and _ROLE_OF_NAME.get(role, role) in self.profile.named_roles
                if sent and role in _NAMED_ROLES and not self.profile.engine:
                    sent = isinstance(value, str) and _NAME_PATTERN.fullmatch(value) is not None
            case "refusal":
                sent = True  # as text, if the vendor does not take it
            case "cache_control" | "provider_specific_fields" | "is_error":
                sent = False
            case _:
                # Clients send a response back with all its fields, which the next vendor may refuse.
                sent = role != "assistant" or (name in CONTINUATION_FIELDS and bool(value))
        if not sent and self._is_reported(role, name, value):
            self.dropped.append(name)
        return sent

    def _is_reported(self, role: JsonValue, name: str, value: JsonValue) -> bool:
        """Return whether a field that is left out is named in `x-dragoman-dropped`."""
        if name in _REPORTED_FIELDS:
            # The name in a tool's result repeats information that the call's id already gives.
            return not (name == "name" and role == "tool")
        return bool(value) and name not in DESCRIPTIVE_FIELDS and not (name == "extra_content" and is_googles(value))


def _with_failure_as_text(message: JsonObject) -> JsonObject:
    """Return a tool's result with the failure in its text, because no vendor of the family has a field for it."""
    rest = {name: value for name, value in message.items() if name != "is_error"}
    if message["is_error"] is not True:
        return rest
    content = message.get("content")
    if not isinstance(content, list):
        return {**rest, "content": failed_text(content if isinstance(content, str) else "")}
    first = content[0] if content else None
    if isinstance(first, dict) and first.get("type") == "text" and isinstance(text := first.get("text"), str):
        return {**rest, "content": [{**first, "text": failed_text(text)}, *content[1:]]}
    return {**rest, "content": [{"type": "text", "text": failed_text("")}, *content]}


def _with_refusal_as_text(message: JsonObject) -> JsonObject:
    """Return an assistant message with its refusal as text, for vendors that have no field for refusals."""
    rest = {name: value for name, value in message.items() if name != "refusal"}
    refusal, content = message["refusal"], message.get("content")
    if not isinstance(refusal, str) or not refusal:
        return rest
    if isinstance(content, list):
        return {**rest, "content": [*content, {"type": "text", "text": refusal}]}
    return {**rest, "content": f"{content}{refusal}" if isinstance(content, str) else refusal}


def _with_marker_on_part(message: JsonObject) -> JsonObject:
    """Return a message with its cache marker moved to its last part, because vendors with cache markers read it
    there."""
    marker, content = message["cache_control"], message.get("content")
    rest = {name: value for name, value in message.items() if name != "cache_control"}
    if isinstance(content, str) and content:
        return {**rest, "content": [{"type": "text", "text": content, "cache_control": marker}]}
    if isinstance(content, list) and content and isinstance(last := content[-1], dict):
        return {**rest, "content": [*content[:-1], {"cache_control": marker, **last}]}
    return rest


def _joined_text_parts(target: Target, message: JsonObject, parts: list[JsonValue]) -> str:
    texts = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type") == "text"]
    if len(texts) < len(parts):
        raise Refusal("messages", f"'messages' may hold only text for {target.name}.")
    return joined_texts(message.get("role"), [text for text in texts if isinstance(text, str)])
