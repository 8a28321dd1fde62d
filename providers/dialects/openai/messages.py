"""Conversations on the OpenAI family's wire, as each vendor's profile wants them."""

from providers.dialects.openai.message_hooks import apply_hooks
from providers.dialects.shared.conversation import says_nothing
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from providers.profile import Profile
from providers.target import Target
from providers.unified_request import ChatPrompt

_REASONING = ("reasoning_content", "reasoning")


def vendor_messages(target: Target, profile: Profile, prompt: ChatPrompt) -> list[JsonValue]:
    """Return a conversation as the vendor's profile wants it. Raises Refusal for content that it does not take."""
    messages = [_message(target, profile, message) for message in prompt.messages]
    return [*apply_hooks(target, profile.hooks, messages)]


def _message(target: Target, profile: Profile, message: JsonObject) -> JsonObject:
    """Return a message with what the vendor refuses left out or renamed; most pass unchanged.

    Null members mean nothing, and some vendors refuse them. Reasoning of earlier turns goes under the vendor's name for
    it and is left out where the vendor has none. The signature of Google's texts is sent only to vendors that read it
    or that accept unknown members.
    """
    if None in message.values():
        message = {name: value for name, value in message.items() if value is not None}
    if message.get("role") == "developer" and not profile.developer_role:
        message = {**message, "role": "system"}
    if not message.keys().isdisjoint(_REASONING):
        reasoning = next((message[name] for name in _REASONING if message.get(name)), None)
        message = {name: value for name, value in message.items() if name not in _REASONING}
        if reasoning is not None and profile.reasoning_member is not None:
            message[profile.reasoning_member] = reasoning
    name = "extra_content"
    read = profile.forwards_unknown or "signed_calls" in profile.hooks
    if name in message and not read and says_nothing(message.get("role"), name, message[name]):
        message = {key: member for key, member in message.items() if key != name}
    content = message.get("content")
    if isinstance(content, list) and not profile.content_parts:
        message = {**message, "content": _flat(target, content)}
    return message


def _flat(target: Target, parts: list[JsonValue]) -> str:
    texts = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type") == "text"]
    if len(texts) < len(parts):
        raise Refusal("messages", f"'messages' may hold only text for {target.name}.")
    return "".join([text for text in texts if isinstance(text, str)])
