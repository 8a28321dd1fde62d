"""Prompts and conversations on the OpenAI family's wire; a prompt may be wrapped into one user message.

Never the other fields of a request.
"""

from providers.capabilities import Capabilities
from providers.dialect import Target
from providers.dialects.native_messages import says_nothing
from providers.dialects.openai_hooks import hooked
from providers.failure import Refusal
from providers.profiles import Profile
from providers.unified import ChatPrompt, JsonObject, JsonValue, Prompt, TextPrompt, TokenPrompt, UnifiedRequest

IMAGE_MARKER = "<image>"
_REASONING = ("reasoning_content", "reasoning")


def native_prompt(target: Target, table: Capabilities, prompt: Prompt) -> JsonValue:
    """The `prompt` member. Raises Refusal for a form that one call does not take."""
    match prompt:
        case TextPrompt((text,), listed):
            return [text] if listed and table["prompt.batch"].native else text
        case TextPrompt(texts):
            _need(target, table, "prompt.batch")
            return list(texts)
        case TokenPrompt((sequence,), listed):
            _need(target, table, "prompt.tokens")
            return [[*sequence]] if listed and table["prompt.token_batch"].native else list(sequence)
        case TokenPrompt(sequences):
            _need(target, table, "prompt.token_batch")
            return [list(sequence) for sequence in sequences]
        case ChatPrompt():
            raise TypeError("a conversation is no prompt")


def _need(target: Target, table: Capabilities, feature: str) -> None:
    cell = table[feature]
    if not cell.native:
        because = cell.how if cell.refused else "it takes one prompt a call"
        raise Refusal("prompt", f"This form of 'prompt' is not supported by {target.name}: {because}.")


def wrapped_messages(target: Target, table: Capabilities, request: UnifiedRequest) -> list[JsonValue]:
    """One user message that carries the prompt. Raises Refusal for prompts that cannot be said in a chat.

    It is chat, not continuation: the model answers the prompt instead of going on with it. No system prompt is added.
    """
    prompt = request.prompt
    if isinstance(prompt, TokenPrompt):
        _need(target, table, "prompt.tokens")
    if not isinstance(prompt, TextPrompt) or len(prompt.texts) > 1:
        _need(target, table, "prompt.batch")
        raise TypeError("only prompts as text are put into a message")
    if not prompt.texts[0]:
        raise Refusal("prompt", f"{target.name} is asked by chat and does not take an empty prompt.", "invalid_value")
    images = request.params.get("images", ())
    content: JsonValue = prompt.texts[0]
    if any(images):
        content = image_parts(prompt.texts[0], images[0])
    return [{"role": "user", "content": content}]


def image_parts(text: str, images: tuple[str, ...]) -> list[JsonValue]:
    """The text split at its `<image>` markers, each replaced by the next image; the surface made the counts agree."""
    parts: list[JsonValue] = []
    for position, piece in enumerate(text.split(IMAGE_MARKER)):
        if position:
            image: JsonObject = {"url": images[position - 1]}
            parts.append({"type": "image_url", "image_url": image})
        if piece:
            parts.append({"type": "text", "text": piece})
    return parts


def vendor_messages(target: Target, profile: Profile, prompt: ChatPrompt) -> list[JsonValue]:
    """A conversation as the vendor's row wants it. Raises Refusal for content that the vendor does not take."""
    messages = [_message(target, profile, message) for message in prompt.messages]
    return [*hooked(target, profile.hooks, messages)]


def _message(target: Target, profile: Profile, message: JsonObject) -> JsonObject:
    """Most messages go as they are.

    Members that are null say nothing, and some vendors refuse them. Reasoning of earlier turns goes under the vendor's
    name for it; vendors without one refuse the member, and it is not part of what was said. Neither is the signature of
    Google's texts, which goes where it is read or where nothing unknown is refused.
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
    if "extra_content" in message and not (profile.forwards_unknown or "signed_calls" in profile.hooks):
        role = message.get("role")
        message = {name: member for name, member in message.items() if not _unread(role, name, member)}
    content = message.get("content")
    if isinstance(content, list) and not profile.content_parts:
        message = {**message, "content": _flat(target, content)}
    return message


def _unread(role: JsonValue, name: str, member: JsonValue) -> bool:
    return name == "extra_content" and says_nothing(role, name, member)


def _flat(target: Target, parts: list[JsonValue]) -> str:
    texts = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type") == "text"]
    if len(texts) < len(parts):
        raise Refusal("messages", f"'messages' may hold only text for {target.name}.")
    return "".join([text for text in texts if isinstance(text, str)])
