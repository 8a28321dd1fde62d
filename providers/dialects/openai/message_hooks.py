"""Rewrites of a conversation for vendors of the OpenAI family that want more than the common form, by name.

A vendor's profile lists the hooks it needs. A hook changes the form of a conversation and keeps its meaning; where that
is impossible it refuses, or leaves the messages for the vendor to judge.
"""

from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b
from typing import Final

from providers.dialects.openai import turn_hooks
from providers.dialects.openai.turn_hooks import calls_of
from providers.dialects.shared.prompt import EMPTY_RESULT, joined_texts
from providers.dialects.shared.thought_signatures import SKIPPED, is_modern, unpack_call_id
from providers.dialects.shared.tool_names import nine_character_id
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from providers.profile import HookName
from providers.target import Target

Messages = list[JsonObject]
Hook = Callable[[Target, Messages], Messages]
"""Returns rewritten messages, without editing its input. Raises Refusal."""

_MAX_ID_LENGTH = 40
_EXTRA: Final = "extra_content"


def apply_hooks(target: Target, names: tuple[HookName, ...], messages: Messages) -> Messages:
    """Return the messages after each hook in turn. Raises Refusal."""
    for name in names:
        messages = HOOKS[name](target, messages)
    return messages


def _refused(target: Target, reason: str) -> Refusal:
    return Refusal("messages", f"'messages' cannot go to {target.name}: {reason}.")


def _parts(message: JsonObject) -> list[JsonObject]:
    """Return the parts of a content in parts; none for any other."""
    content = message.get("content")
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def _text(message: JsonObject) -> str | None:
    """Return the text of a content that is all text; None for any other."""
    content = message.get("content")
    if not isinstance(content, list):
        return content if isinstance(content, str) else None
    texts = [part.get("text") for part in _parts(message) if part.get("type") == "text"]
    strings = [text for text in texts if isinstance(text, str)]
    return joined_texts(message.get("role"), strings) if len(strings) == len(content) else None


# Texts and images -----------------------------------------------------------------------------------------------------


def joined_text(target: Target, messages: Messages) -> Messages:
    """Join a list of texts into one: models without images refuse lists (SambaNova, Moonshot, DashScope). A list with a
    cache marker stays: the models that read markers take lists."""
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
    """Write the results of tools as one text each, and refuse others (DeepInfra)."""
    for message in messages:
        if message.get("role") == "tool" and "content" in message and _text(message) is None:
            raise _refused(target, "it takes results of tools as text only")
    return [_with_text(message) if message.get("role") == "tool" else message for message in messages]


def no_empty_text(target: Target, messages: Messages) -> Messages:
    """Leave out empty texts, which the vendor refuses (Databricks)."""
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
    """Put reasoning into the content as a chunk before the text (Mistral)."""
    return [_with_chunk(message) if "reasoning_content" in message else message for message in messages]


def _with_chunk(message: JsonObject) -> JsonObject:
    kept = {name: value for name, value in message.items() if name != "reasoning_content"}
    thought: JsonObject = {
        "type": "thinking",
        "thinking": [{"type": "text", "text": message["reasoning_content"]}],
        "closed": True,
    }
    content = message.get("content")
    text: list[JsonValue] = [{"type": "text", "text": content}] if content else []
    return {**kept, "content": [thought, *(content if isinstance(content, list) else text)]}


def document_parts(target: Target, messages: Messages) -> Messages:
    """Write files and sounds as Mistral has them: a document by its address or data, a file by its id, a sound as a
    string."""
    return [
        {**message, "content": [_as_chunk(part) for part in content]}
        if isinstance(content := message.get("content"), list)
        else message
        for message in messages
    ]


def _as_chunk(part: JsonValue) -> JsonValue:
    match part:
        case {"type": "file", "file": dict(file)}:
            return _document(file) or part
        case {"type": "input_audio", "input_audio": {"data": str(data)}}:
            return {"type": "input_audio", "input_audio": data}
        case _:
            return part


def _document(file: JsonObject) -> JsonObject | None:
    if isinstance(known := file.get("file_id"), str):
        return {"type": "file", "file_id": known}
    url, name = file.get("file_data") or file.get("file_url"), file.get("filename")
    if not isinstance(url, str):
        return None
    document: JsonObject = {"type": "document_url", "document_url": url}
    return {**document, "document_name": name} if name else document


def inline_images(target: Target, messages: Messages) -> Messages:
    """Refuse images that are no data URIs: URLs are not fetched (SambaNova, Ollama, LM Studio)."""
    for message in messages:
        if any(not url.startswith("data:") for url in _image_urls(message)):
            raise _refused(target, "it takes images as data URIs only and fetches no address")
    return messages


def _image_urls(message: JsonObject) -> Iterator[str]:
    for part in _parts(message):
        image = part.get("image_url")
        url = image.get("url") if isinstance(image, dict) else image
        if part.get("type") == "image_url" and isinstance(url, str):
            yield url


# Tool calls -----------------------------------------------------------------------------------------------------------


def named_tool_results(target: Target, messages: Messages) -> Messages:
    """Name the function in a tool's result; OpenAI's form names it only in the call (Mistral)."""
    names = {
        str(call.get("id")): name for message in messages for call in calls_of(message) if (name := _function(call))
    }
    return [_named(message, names) for message in messages]


def _named(message: JsonObject, names: Mapping[str, str]) -> JsonObject:
    name = names.get(str(message.get("tool_call_id")))
    return {**message, "name": name} if message.get("role") == "tool" and "name" not in message and name else message


def _function(call: JsonObject) -> str | None:
    function = call.get("function")
    name = function.get("name") if isinstance(function, dict) else None
    return name if isinstance(name, str) else None


def nine_character_call_ids(target: Target, messages: Messages) -> Messages:
    """Replace ids of calls that are not nine letters and digits (Mistral), such as another vendor's, each by one id in
    call and result."""
    return _refitted(messages, nine_character_id)


def forty_character_call_ids(target: Target, messages: Messages) -> Messages:
    """Replace ids of calls of more than 40 characters (OpenAI, and OpenRouter for its models), such as another vendor's
    that carry a signature, each by one id in call and result."""
    return _refitted(messages, _forty_characters) if _has_longer_ids(messages) else messages


def _has_longer_ids(messages: Messages) -> bool:
    """Return whether an id of a call has more than 40 characters. Nearly all conversations cost no more than this."""
    for message in messages:
        if isinstance(calls := message.get("tool_calls"), list):
            for call in calls:
                if isinstance(call, dict) and isinstance(given := call.get("id"), str) and len(given) > _MAX_ID_LENGTH:
                    return True
        if isinstance(given := message.get("tool_call_id"), str) and len(given) > _MAX_ID_LENGTH:
            return True
    return False


def _forty_characters(identity: str) -> str:
    if len(identity) <= _MAX_ID_LENGTH:
        return identity
    return "call_" + blake2b(identity.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _refitted(messages: Messages, changed: Callable[[str], str]) -> Messages:
    return [
        _with_ids(message, changed) if "tool_calls" in message or "tool_call_id" in message else message
        for message in messages
    ]


def _with_ids(message: JsonObject, changed: Callable[[str], str]) -> JsonObject:
    answered, calls = message.get("tool_call_id"), message.get("tool_calls")
    if isinstance(answered, str):
        message = {**message, "tool_call_id": changed(answered)}
    if isinstance(calls, list):
        message = {**message, "tool_calls": [_with_id(call, changed) for call in calls]}
    return message


def _with_id(call: JsonValue, changed: Callable[[str], str]) -> JsonValue:
    identity = call.get("id") if isinstance(call, dict) else None
    return {**call, "id": changed(identity)} if isinstance(call, dict) and isinstance(identity, str) else call


def signed_calls(target: Target, messages: Messages) -> Messages:
    """Give calls their thought signatures back (Gemini), which `openai_answer` put into their ids: clients of OpenAI's
    form keep ids, but no members that they do not know. A modern model demands one on the first call of a turn, whoever
    made it: a call of another model gets the placeholder that Google documents."""
    modern = is_modern(*target.model_names)
    return [
        _signed(_with_ids(message, lambda identity: unpack_call_id(identity)[0]), message, modern)
        for message in messages
    ]


def _signed(message: JsonObject, given: JsonObject, demanded: bool) -> JsonObject:
    if not calls_of(given):
        return message
    pairs = zip(calls_of(message), calls_of(given), strict=True)
    calls = [_with_signature(call, str(own.get("id"))) for call, own in pairs]
    if demanded and _EXTRA not in calls[0]:
        calls[0] = {**calls[0], _EXTRA: {"google": {"thought_signature": SKIPPED}}}
    return {**message, "tool_calls": [*calls]}


def _with_signature(call: JsonObject, identity: str) -> JsonObject:
    signature = unpack_call_id(identity)[1]
    if signature is None or _EXTRA in call:
        return call
    return {**call, _EXTRA: {"google": {"thought_signature": signature}}}


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
