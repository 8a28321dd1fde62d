"""What the OpenAI family's answers hold beside text, reasoning and calls: known forms, and vendors' own members.

A member that is in none of these tables is passed on under the vendor's name, unless it is null or empty.

Sources, all read in November 2026: types of `openai` 3.54.0, `groq` 1.7.0, `mistralai` 3.7.0, `together` 3.1.1,
`fireworks-ai` 1.2.28, `cerebras-cloud-sdk` 1.91.0, `perplexityai` 0.46.1, `openrouter` 1.3.84 and `xai-sdk` 1.21.0;
Azure's "Content filtering" pages; vLLM 0.33 `entrypoints/openai/protocol.py`; litellm 1.109.1 `thinking_blocks`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from providers.completion import Chunk, Extras
from providers.conversation import CLAUDE_FORMAT, UNKNOWN_FORMAT
from providers.dialects.shared.read_json import text_of, unknown_in
from providers.dialects.shared.read_logprobs import objects_in
from providers.json_types import JsonObject, JsonValue

NOT_PASSED: Mapping[str, str] = {
    "id": "the gateway's answer has an id of its own",
    "object": "the surface says what its answer is",
    "created": "the gateway says when it answered",
    "model": "the answer names the model of the routing table",
    "model_id": "watsonx.ai's name for the same",
    "created_at": "watsonx.ai's name for the time of its answer",
    "obfuscation": "padding that hides the sizes of events on the vendor's connection",
    "kv_transfer_params": "addresses inside the network of a vLLM cluster",
}
"""Members of answers that say nothing of the answer, and why they are not passed on."""

_MAPPED = frozenset({"choices", "usage", "error", "system_fingerprint", "service_tier"})
_REPEATED = frozenset({"provider"})
"""Members that are the same in every event of a stream, and are passed on with a choice's end: OpenRouter's name of the
vendor that answered."""

KNOWN_IN_ANSWER = _MAPPED.union(NOT_PASSED)
KNOWN_IN_EVENT = KNOWN_IN_ANSWER | _REPEATED
PLAIN_IN_EVENT = KNOWN_IN_EVENT - {"error"}
"""The members of an event of a stream that have a place, and those of one that may hold text alone."""

KNOWN_IN_CHOICE = frozenset(
    {"index", "delta", "message", "text", "logprobs", "finish_reason"}
    | {"native_finish_reason", "stop_reason", "matched_stop"}
)
OF_REQUESTS: Mapping[str, str] = {
    "prefix": "Mistral's mark of a message that the model is to continue",
    "tool_call_id": "the call that a tool's result answers",
}
"""Fields of requests that SDKs have in the type of a response's message too, and what they mean there. They are not
passed on: clients would send them back."""

_READ_IN_MESSAGE = frozenset(
    {"role", "content", "refusal", "tool_calls", "function_call", "reasoning", "reasoning_content"} | OF_REQUESTS.keys()
)
PLAIN_IN_MESSAGE = _READ_IN_MESSAGE | {"annotations"}
"""The members of a plain message of OpenAI's, whose list of annotations is empty."""

_LISTS = ("reasoning_details", "annotations", "images")
_OF_PARTS = frozenset({"text", "refusal", "thinking", "reasoning", "image_url"})
"""Types of the parts of a content that have a place elsewhere."""


def repeated_in(event: JsonObject) -> JsonObject:
    """Return the members of an event that each event repeats."""
    return {name: event[name] for name in _REPEATED if event.get(name)}


def extras_of(choice: JsonObject, message: JsonObject, written: int, blocks: int, signed: bool) -> Extras | None:
    """Return the extras of a choice, or of a piece of it; `message` is its `message_of`.

    `written` is the length of the text before it, `blocks` the number of blocks of thinking that are complete, and
    `signed` says that the message's signature is read elsewhere.
    """
    own = {} if message is choice else message
    parts = message.get("content")
    if (
        PLAIN_IN_MESSAGE.issuperset(own)
        and KNOWN_IN_CHOICE.issuperset(choice)
        and not isinstance(parts, list)
        and not own.get("annotations")
    ):
        return None
    lists = {name: objects_in(own.get(name)) for name in _LISTS}
    audio = own.get("audio")
    taken = {name for name in _LISTS if lists[name]} | {"thinking_blocks"}
    taken |= {"extra_content"} if signed else set()
    if isinstance(audio, dict) and audio:
        taken.add("audio")
    rest = unknown_in(own, _READ_IN_MESSAGE.union(taken)) or {}
    if isinstance(parts, list):
        _add_parts(parts, written, lists, rest)
    details = lists["reasoning_details"] or list(_details(own.get("thinking_blocks"), parts, blocks, "delta" in choice))
    found = Extras(
        tuple(details),
        tuple(lists["annotations"]),
        tuple(lists["images"]),
        audio if isinstance(audio, dict) and audio else None,
        rest or None,
        unknown_in(choice, KNOWN_IN_CHOICE),
    )
    return None if found == Extras() else found


def _add_parts(parts: list[JsonValue], written: int, lists: Mapping[str, list[JsonObject]], rest: JsonObject) -> None:
    """Add images, sources and parts without a common form; the latter under their type, in a list."""
    others: dict[str, list[JsonValue]] = {}
    for part in parts:
        if not isinstance(part, dict):
            written += len(part) if isinstance(part, str) else 0
            continue
        kind, address = part.get("type"), part.get("url")
        if kind == "image_url":
            lists["images"].append(_image(part))
        elif kind == "tool_reference" and isinstance(address, str) and address:
            lists["annotations"].append(url_citation(address, part.get("title"), written, written))
        if kind == "text":
            written += len(text_of([part]))
        elif isinstance(kind, str) and kind not in _OF_PARTS:
            others.setdefault(kind, []).append(part)
    for kind, listed in others.items():
        rest.setdefault(kind, listed)


def _image(part: JsonObject) -> JsonObject:
    """Return an image in OpenRouter's form; Mistral may have its address alone."""
    image = part.get("image_url")
    return {"type": "image_url", "image_url": {"url": image} if isinstance(image, str) else image}


def url_citation(url: str, title: JsonValue, start: int, end: int) -> JsonObject:
    """Return an annotation in OpenAI's form."""
    named = title if isinstance(title, str) else ""
    citation: JsonObject = {"url": url, "title": named, "start_index": start, "end_index": end}
    return {"type": "url_citation", "url_citation": citation}


def _details(blocks: JsonValue, parts: JsonValue, first: int, streamed: bool) -> Iterator[JsonObject]:
    """Yield blocks of thinking in OpenRouter's form: LiteLLM's, which are Claude's, else those among the parts.

    A piece of a stream has Claude's format before its signature comes; a whole block without one is nobody's.
    """
    index, claimed = first, objects_in(blocks)
    for block in claimed:
        signature = block.get("signature")
        if block.get("type") == "redacted_thinking":
            yield _detail("reasoning.encrypted", "data", block.get("data"), CLAUDE_FORMAT, index)
        else:
            form = CLAUDE_FORMAT if signature or streamed else UNKNOWN_FORMAT
            yield _detail("reasoning.text", "text", block.get("thinking"), form, index, signature)
        index += ends_block(block) if streamed else 1
    for part in () if claimed else objects_in(parts):
        if part.get("type") in ("thinking", "reasoning"):
            signature = _signature(part)
            yield _detail("reasoning.text", "text", thought_in(part), UNKNOWN_FORMAT, index, signature)
            index += bool(signature) if streamed else 1


def _detail(kind: str, name: str, value: JsonValue, form: str, index: int, signature: JsonValue = None) -> JsonObject:
    detail: JsonObject = {"type": kind, name: value if isinstance(value, str) else "", "format": form, "index": index}
    return {**detail, "signature": signature} if isinstance(signature, str) and signature else detail


def ends_block(block: JsonObject) -> bool:
    """Return whether a block of thinking, or a detail, is complete: nothing follows its signature or encrypted data."""
    return bool(block.get("signature") or block.get("data"))


def thought_in(part: JsonObject) -> str:
    """Return the thinking of a part of a content: Mistral's `thinking`, Databricks' `summary`."""
    summary = part.get("summary")
    if not isinstance(summary, list):
        return text_of(part.get("thinking"))
    texts = [each.get("text") for each in summary if isinstance(each, dict)]
    return "".join([text for text in texts if isinstance(text, str)])


def _signature(part: JsonObject) -> JsonValue:
    holders = [part, *objects_in(part.get("summary"))]
    return next((holder["signature"] for holder in holders if holder.get("signature")), None)


def says_nothing(chunk: Chunk) -> bool:
    """Return whether a chunk holds nothing but members of the vendor's own."""
    extras = chunk.extras
    if extras is None or extras.reasoning_details or extras.annotations or extras.images or extras.audio:
        return False
    return chunk == Chunk(chunk.index, system_fingerprint=chunk.system_fingerprint, extras=extras)


def with_members(chunk: Chunk, own: JsonObject) -> Chunk:
    """Return the first chunk of an event with the vendor's own members of the event."""
    extras = chunk.extras or Extras()
    return replace(chunk, extras=replace(extras, answer={**own, **(extras.answer or {})}))
