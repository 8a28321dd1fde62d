"""Rewrites of a conversation for vendors of the OpenAI family that want more than the common form, by name.

A vendor's profile lists the hooks it needs. A hook changes the form of a conversation and keeps its meaning; where that
is impossible it refuses, or leaves the messages for the vendor to judge.
"""

from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b
from itertools import groupby, takewhile

from providers.dialects.shared.thought_signatures import unpack_call_id
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from providers.profile import HookName
from providers.target import Target

Messages = list[JsonObject]
Hook = Callable[[Target, Messages], Messages]
"""Returns rewritten messages, without editing its input. Raises Refusal."""

_NO_REASONING = " "
"""Reasoning of a turn whose reasoning the client has not kept: the member must not be empty."""

_ID_LENGTH = 9
_MAX_ID_LENGTH = 40


def apply_hooks(target: Target, names: tuple[HookName, ...], messages: Messages) -> Messages:
    """Return the messages after each hook in turn. Raises Refusal."""
    for name in names:
        messages = HOOKS[name](target, messages)
    return messages


def _refused(target: Target, reason: str) -> Refusal:
    return Refusal("messages", f"'messages' cannot go to {target.name}: {reason}.")


def _calls(message: JsonObject) -> list[JsonObject]:
    calls = message.get("tool_calls")
    return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []


def _parts(message: JsonObject) -> list[JsonObject]:
    content = message.get("content")
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def _text(message: JsonObject) -> str | None:
    """Return the text of a content that is all text; None for any other."""
    content = message.get("content")
    if not isinstance(content, list):
        return content if isinstance(content, str) else None
    texts = [part.get("text") for part in _parts(message) if part.get("type") == "text"]
    strings = [text for text in texts if isinstance(text, str)]
    return "".join(strings) if len(strings) == len(content) else None


def _role(message: JsonObject) -> JsonValue:
    return message.get("role")


# Texts and images -----------------------------------------------------------------------------------------------------


def joined_text(target: Target, messages: Messages) -> Messages:
    """Join a list of texts into one: models without images refuse lists (SambaNova, Moonshot, DashScope)."""
    return [_with_text(message) for message in messages]


def _with_text(message: JsonObject) -> JsonObject:
    text = _text(message) if isinstance(message.get("content"), list) else None
    return message if text is None else {**message, "content": text}


def text_tool_results(target: Target, messages: Messages) -> Messages:
    """Write the results of tools as one text each, and refuse others (DeepInfra)."""
    for message in messages:
        if _role(message) == "tool" and "content" in message and _text(message) is None:
            raise _refused(target, "it takes results of tools as text only")
    return [_with_text(message) if _role(message) == "tool" else message for message in messages]


def no_empty_text(target: Target, messages: Messages) -> Messages:
    """Leave out empty texts, which the vendor refuses (Databricks)."""
    return [_without_empty_text(message) for message in messages]


def _without_empty_text(message: JsonObject) -> JsonObject:
    content = message.get("content")
    if isinstance(content, list):
        kept = [part for part in content if not _is_empty_text(part)]
        message = message if len(kept) == len(content) else {**message, "content": kept or ""}
    if message.get("content") == "" and _calls(message):
        return {name: value for name, value in message.items() if name != "content"}
    return message


def _is_empty_text(part: JsonValue) -> bool:
    return isinstance(part, dict) and part.get("type") == "text" and not part.get("text")


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


# Turns ----------------------------------------------------------------------------------------------------------------


def alternating_roles(target: Target, messages: Messages) -> Messages:
    """Merge successive turns of one role: users and models must alternate (Perplexity)."""
    merged: Messages = []
    for role, run in groupby(messages, lambda message: _role(message) if _plain_turn(message) else None):
        turns = list(run)
        if role is None or len(turns) == 1:
            merged += turns
        else:
            merged.append({**turns[0], "content": _merge_contents([turn["content"] for turn in turns])})
    return merged


def _plain_turn(message: JsonObject) -> bool:
    content = message.get("content")
    return message.keys() == {"role", "content"} and _role(message) in ("user", "assistant") and bool(content)


def _merge_contents(contents: list[JsonValue]) -> JsonValue:
    """Merge contents into one; texts that come before any parts become one text."""
    texts = [*takewhile(lambda content: isinstance(content, str), contents)]
    joined = "\n\n".join(map(str, texts))
    if len(texts) == len(contents):
        return joined
    first: list[JsonValue] = [joined] if texts else []
    return [part for content in (*first, *contents[len(texts) :]) for part in _as_parts(content)]


def _as_parts(content: JsonValue) -> list[JsonValue]:
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def names_of_users_only(target: Target, messages: Messages) -> Messages:
    """Refuse a name of anyone but a user (xAI); that of a tool's result is left out, as its call's id suffices."""
    for message in messages:
        if "name" in message and _role(message) not in ("user", "tool"):
            raise _refused(target, "it knows a 'name' of users only")
    return [_without_name(message) if _role(message) == "tool" else message for message in messages]


def _without_name(message: JsonObject) -> JsonObject:
    return {name: value for name, value in message.items() if name != "name"}


# Tool calls -----------------------------------------------------------------------------------------------------------


def named_tool_results(target: Target, messages: Messages) -> Messages:
    """Name the function in a tool's result; OpenAI's form names it only in the call (Mistral)."""
    names = {str(call.get("id")): name for message in messages for call in _calls(message) if (name := _function(call))}
    return [_named(message, names) for message in messages]


def _named(message: JsonObject, names: Mapping[str, str]) -> JsonObject:
    name = names.get(str(message.get("tool_call_id")))
    return {**message, "name": name} if _role(message) == "tool" and "name" not in message and name else message


def _function(call: JsonObject) -> str | None:
    function = call.get("function")
    name = function.get("name") if isinstance(function, dict) else None
    return name if isinstance(name, str) else None


def nine_character_call_ids(target: Target, messages: Messages) -> Messages:
    """Replace ids of calls that are not nine letters and digits (Mistral), such as another vendor's, each by one id in
    call and result."""
    return [_with_ids(message, _nine_characters) for message in messages]


def _nine_characters(identity: str) -> str:
    if len(identity) == _ID_LENGTH and identity.isascii() and identity.isalnum():
        return identity
    return blake2b(identity.encode("utf-8", "surrogatepass"), digest_size=5).hexdigest()[:_ID_LENGTH]


def forty_character_call_ids(target: Target, messages: Messages) -> Messages:
    """Replace ids of calls of more than 40 characters (OpenAI, and OpenRouter for its models), such as another vendor's
    that carry a signature, each by one id in call and result."""
    return [_with_ids(message, _forty_characters) for message in messages]


def _forty_characters(identity: str) -> str:
    if len(identity) <= _MAX_ID_LENGTH:
        return identity
    return "call_" + blake2b(identity.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


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


def split_tool_results(target: Target, messages: Messages) -> Messages:
    """Put each of several parallel calls into a turn of its own, followed by its result (Databricks)."""
    split: Messages = []
    place = 0
    while place < len(messages):
        message, place = messages[place], place + 1
        calls = _calls(message)
        results = {str(each.get("tool_call_id")): each for each in messages[place : place + len(calls)]}
        if len(calls) > 1 and results.keys() == {str(call.get("id")) for call in calls}:
            split += _pairs(message, calls, results)
            place += len(calls)
        else:
            split.append(message)
    return split


def _pairs(message: JsonObject, calls: list[JsonObject], results: Mapping[str, JsonObject]) -> Iterator[JsonObject]:
    turn = message
    for call in calls:
        yield {**turn, "tool_calls": [call]}
        yield results[str(call.get("id"))]
        # The text beside the calls stays in the first turn alone.
        turn = {"role": message.get("role")}


def signed_calls(target: Target, messages: Messages) -> Messages:
    """Give calls their thought signatures back (Gemini), which `openai_answer` put into their ids: clients of OpenAI's
    form keep ids, but no members that they do not know."""
    return [_signed(_with_ids(message, lambda identity: unpack_call_id(identity)[0]), message) for message in messages]


def _signed(message: JsonObject, given: JsonObject) -> JsonObject:
    if not _calls(given):
        return message
    pairs = zip(_calls(message), _calls(given), strict=True)
    return {**message, "tool_calls": [_with_signature(call, str(own.get("id"))) for call, own in pairs]}


def _with_signature(call: JsonObject, identity: str) -> JsonObject:
    signature = unpack_call_id(identity)[1]
    if signature is None or "extra_content" in call:
        return call
    return {**call, "extra_content": {"google": {"thought_signature": signature}}}


def reasoning_on_calls(target: Target, messages: Messages) -> Messages:
    """Add reasoning to turns that call tools (Moonshot), where the client has not kept it."""
    return [
        {**message, "reasoning_content": _NO_REASONING}
        if _calls(message) and not message.get("reasoning_content")
        else message
        for message in messages
    ]


HOOKS: Mapping[HookName, Hook] = {
    "alternating_roles": alternating_roles,
    "forty_character_call_ids": forty_character_call_ids,
    "inline_images": inline_images,
    "joined_text": joined_text,
    "named_tool_results": named_tool_results,
    "names_of_users_only": names_of_users_only,
    "nine_character_call_ids": nine_character_call_ids,
    "no_empty_text": no_empty_text,
    "reasoning_on_calls": reasoning_on_calls,
    "signed_calls": signed_calls,
    "split_tool_results": split_tool_results,
    "text_tool_results": text_tool_results,
}
"""The hooks that a profile may name."""
