"""Hooks that rewrite a conversation, by name, for vendors of the OpenAI family that require more than the common form.

A vendor's profile lists the hooks it needs. A hook changes the form of a conversation without changing its meaning. If
that is impossible, the hook refuses the request, or leaves the messages unchanged for the vendor to judge.
"""

from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b
from typing import Final

from providers.dialects.openai import turn_hooks
from providers.dialects.openai.turn_hooks import calls_of
from providers.dialects.shared.prompt import EMPTY_RESULT, joined_texts
from providers.dialects.shared.thought_signatures import SKIP_SIGNATURE, is_modern, unpack_call_id
from providers.dialects.shared.tool_names import nine_character_id
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from providers.profile import HookName
from providers.target import Target

Messages = list[JsonObject]
Hook = Callable[[Target, Messages], Messages]
"""Returns rewritten messages and does not change its input. Raises Refusal."""

_MAX_ID_LENGTH = 40
_EXTRA_CONTENT: Final = "extra_content"


def apply_hooks(target: Target, names: tuple[HookName, ...], messages: Messages) -> Messages:
    """Apply the hooks one after another, and return the messages. Raises Refusal."""
    for name in names:
        messages = HOOKS[name](target, messages)
    return messages


def _refused(target: Target, reason: str) -> Refusal:
    return Refusal("messages", f"'messages' cannot go to {target.name}: {reason}.")


def _parts(message: JsonObject) -> list[JsonObject]:
    """Return the parts of a content that is a list; an empty list for any other content."""
    content = message.get("content")
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def _text(message: JsonObject) -> str | None:
    """Return the text of a content that holds only text; `None` for any other content."""
    content = message.get("content")
    if not isinstance(content, list):
        return content if isinstance(content, str) else None
    texts = [part.get("text") for part in _parts(message) if part.get("type") == "text"]
    strings = [text for text in texts if isinstance(text, str)]
    return joined_texts(message.get("role"), strings) if len(strings) == len(content) else None


# Texts and images -----------------------------------------------------------------------------------------------------


def joined_text(target: Target, messages: Messages) -> Messages:
    """Join a list of text parts into one string, because models without images refuse lists (SambaNova, Moonshot,
    DashScope). A list with a cache marker stays, because models that read markers accept lists."""
    return [
        _with_text(message) if isinstance(message.get("content"), list) and not _is_marked(message) else message
        for message in messages
    ]


def _is_marked(message: JsonObject) -> bool:
    return any(["cache_control" in part for part in _parts(message)])


def _with_text(message: JsonObject) -> JsonObject:
    text = _text(message) if isinstance(message.get("content"), list) else None
    return message if text is None else {**message, "content": text}


def text_tool_results(target: Target, messages: Messages) -> Messages:
    """Write each tool result as one text. Refuse results that hold anything else (DeepInfra)."""
    for message in messages:
        if message.get("role") == "tool" and "content" in message and _text(message) is None:
            raise _refused(target, "it takes tool results as text only")
    return [_with_text(message) if message.get("role") == "tool" else message for message in messages]


def no_empty_text(target: Target, messages: Messages) -> Messages:
    """Remove empty texts, which the vendor refuses (Databricks)."""
    return [_without_empty_text(message) for message in messages]


def _without_empty_text(message: JsonObject) -> JsonObject:
    content = message.get("content")
    if isinstance(content, list):
        kept = [part for part in content if not _is_empty_text(part)]
        message = message if len(kept) == len(content) else {**message, "content": kept or ""}
    if message.get("content") == "" and calls_of(message):
        return {name: value for name, value in message.items() if name != "content"}
    if message.get("content") == "" and message.get("role") == "tool":
        return {**message, "content": EMPTY_RESULT}
    return message


def _is_empty_text(part: JsonValue) -> bool:
    return isinstance(part, dict) and part.get("type") == "text" and not part.get("text")


def thinking_chunks(target: Target, messages: Messages) -> Messages:
    """Put reasoning into the content as a part before the text (Mistral)."""
    return [_with_reasoning_part(message) if "reasoning_content" in message else message for message in messages]


def _with_reasoning_part(message: JsonObject) -> JsonObject:
    kept = {name: value for name, value in message.items() if name != "reasoning_content"}
    reasoning_part: JsonObject = {
        "type": "thinking",
        "thinking": [{"type": "text", "text": message["reasoning_content"]}],
        "closed": True,
    }
    content = message.get("content")
    text: list[JsonValue] = [{"type": "text", "text": content}] if content else []
    return {**kept, "content": [reasoning_part, *(content if isinstance(content, list) else text)]}


def document_parts(target: Target, messages: Messages) -> Messages:
    """Write files and audio in Mistral's form: a document by its URL or data, a file by its id, audio as a string."""
    return [
        {**message, "content": [_as_mistral_part(part) for part in content]}
        if isinstance(content := message.get("content"), list)
        else message
        for message in messages
    ]


def _as_mistral_part(part: JsonValue) -> JsonValue:
    match part:
        case {"type": "file", "file": dict(file)}:
            return _document(file) or part
        case {"type": "input_audio", "input_audio": {"data": str(data)}}:
            return {"type": "input_audio", "input_audio": data}
        case _:
            return part


def _document(file: JsonObject) -> JsonObject | None:
    if isinstance(file_id := file.get("file_id"), str):
        return {"type": "file", "file_id": file_id}
    url, name = file.get("file_data") or file.get("file_url"), file.get("filename")
    if not isinstance(url, str):
        return None
    document: JsonObject = {"type": "document_url", "document_url": url}
    return {**document, "document_name": name} if name else document


def inline_images(target: Target, messages: Messages) -> Messages:
    """Refuse images that are not data URIs, because these vendors do not fetch URLs (SambaNova, Ollama, LM Studio)."""
    for message in messages:
        if any(not url.startswith("data:") for url in _image_urls(message)):
            raise _refused(target, "it takes images as data URIs only and fetches no URL")
    return messages


def _image_urls(message: JsonObject) -> Iterator[str]:
    for part in _parts(message):
        image = part.get("image_url")
        url = image.get("url") if isinstance(image, dict) else image
        if part.get("type") == "image_url" and isinstance(url, str):
            yield url


# Tool calls -----------------------------------------------------------------------------------------------------------


def named_tool_results(target: Target, messages: Messages) -> Messages:
    """Add the function's name to each tool result, because OpenAI's form has the name only in the call (Mistral)."""
    names = {
        str(call.get("id")): name
        for message in messages
        for call in calls_of(message)
        if (name := _function_name(call))
    }
    return [_with_function_name(message, names) for message in messages]


def _with_function_name(message: JsonObject, names: Mapping[str, str]) -> JsonObject:
    name = names.get(str(message.get("tool_call_id")))
    return {**message, "name": name} if message.get("role") == "tool" and "name" not in message and name else message


def _function_name(call: JsonObject) -> str | None:
    function = call.get("function")
    name = function.get("name") if isinstance(function, dict) else None
    return name if isinstance(name, str) else None


def nine_character_call_ids(target: Target, messages: Messages) -> Messages:
    """Replace call ids that are not nine letters and digits (Mistral), such as the ids of another vendor. Call and
    result get the same new id."""
    return _with_changed_ids(messages, nine_character_id)


def forty_character_call_ids(target: Target, messages: Messages) -> Messages:
    """Replace call ids of more than 40 characters (OpenAI, and OpenRouter for OpenAI's models), such as the ids of
    another vendor that carry a signature. Call and result get the same new id."""
    return _with_changed_ids(messages, _forty_character_id) if _has_longer_ids(messages) else messages


def _has_longer_ids(messages: Messages) -> bool:
    """Return whether a call id has more than 40 characters. For nearly all conversations this check is the only
    cost."""
    for message in messages:
        if isinstance(calls := message.get("tool_calls"), list):
            for call in calls:
                if isinstance(call, dict) and isinstance(given := call.get("id"), str) and len(given) > _MAX_ID_LENGTH:
                    return True
        if isinstance(given := message.get("tool_call_id"), str) and len(given) > _MAX_ID_LENGTH:
            return True
    return False


def _forty_character_id(identity: str) -> str:
    if len(identity) <= _MAX_ID_LENGTH:
        return identity
    return "call_" + blake2b(identity.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _with_changed_ids(messages: Messages, change: Callable[[str], str]) -> Messages:
    return [
        _with_ids(message, change) if "tool_calls" in message or "tool_call_id" in message else message
        for message in messages
    ]


def _with_ids(message: JsonObject, change: Callable[[str], str]) -> JsonObject:
    call_id, calls = message.get("tool_call_id"), message.get("tool_calls")
    if isinstance(call_id, str):
        message = {**message, "tool_call_id": change(call_id)}
    if isinstance(calls, list):
        message = {**message, "tool_calls": [_with_id(call, change) for call in calls]}
    return message


def _with_id(call: JsonValue, change: Callable[[str], str]) -> JsonValue:
    identity = call.get("id") if isinstance(call, dict) else None
    return {**call, "id": change(identity)} if isinstance(call, dict) and isinstance(identity, str) else call


def signed_calls(target: Target, messages: Messages) -> Messages:
    """Restore the thought signatures of calls (Gemini). The decoder put them into the calls' ids, because clients of
    OpenAI's form send ids back, but not fields that they do not know. A modern model requires a signature on the first
    call of a turn, even if another model made the call; such a call gets the placeholder that Google documents."""
    modern = is_modern(*target.model_names)
    return [
        _with_signatures(_with_ids(message, lambda identity: unpack_call_id(identity)[0]), message, modern)
        for message in messages
    ]


def _with_signatures(message: JsonObject, given: JsonObject, required: bool) -> JsonObject:
    if not calls_of(given):
        return message
    pairs = zip(calls_of(message), calls_of(given), strict=True)
    calls = [_with_signature(call, str(own.get("id"))) for call, own in pairs]
    if required and _EXTRA_CONTENT not in calls[0]:
        calls[0] = {**calls[0], _EXTRA_CONTENT: {"google": {"thought_signature": SKIP_SIGNATURE}}}
    return {**message, "tool_calls": [*calls]}


def _with_signature(call: JsonObject, identity: str) -> JsonObject:
    signature = unpack_call_id(identity)[1]
    if signature is None or _EXTRA_CONTENT in call:
        return call
    return {**call, _EXTRA_CONTENT: {"google": {"thought_signature": signature}}}


HOOKS: Final[Mapping[HookName, Hook]] = {
    "instructions_from_users": turn_hooks.instructions_from_users,
    "alternating_roles": turn_hooks.alternating_roles,
    "answered_results": turn_hooks.answered_results,
    "document_parts": document_parts,
    "forty_character_call_ids": forty_character_call_ids,
    "inline_images": inline_images,
    "joined_text": joined_text,
    "media_after_results": turn_hooks.media_after_results,
    "named_tool_results": named_tool_results,
    "nine_character_call_ids": nine_character_call_ids,
    "no_empty_text": no_empty_text,
    "prefixed_last_turn": turn_hooks.prefixed_last_turn,
    "reasoning_on_calls": turn_hooks.reasoning_on_calls,
    "reasoning_on_turns": turn_hooks.reasoning_on_turns,
    "signed_calls": signed_calls,
    "split_tool_results": turn_hooks.split_tool_results,
    "text_tool_results": text_tool_results,
    "thinking_chunks": thinking_chunks,
}
"""The hooks that a profile may name."""
