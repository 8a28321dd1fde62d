"""Reads the fields of the OpenAI family's responses other than text, reasoning and calls.

Fields with a known form are translated. A field outside the sets below is passed on under the vendor's name, unless it
is null or empty.

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
    "id": "the gateway's response has its own id",
    "object": "the surface sets the type of its response",
    "created": "the gateway sets the time of its response",
    "model": "the response names the configured model",
    "model_id": "watsonx.ai's name for the model",
    "created_at": "watsonx.ai's name for the time of its response",
    "obfuscation": "padding that hides the sizes of events on the vendor's connection",
    "kv_transfer_params": "addresses inside the network of a vLLM cluster",
}
"""Fields that say nothing about the response, with the reason why each is not passed on."""

_MAPPED_FIELDS = frozenset({"choices", "usage", "error", "system_fingerprint", "service_tier"})
_REPEATED_FIELDS = frozenset({"provider"})
"""Fields that are the same in every event of a stream, and are passed on with the end of a choice: OpenRouter's name of
the vendor that responded."""

KNOWN_IN_ANSWER = _MAPPED_FIELDS.union(NOT_PASSED)
KNOWN_IN_EVENT = KNOWN_IN_ANSWER | _REPEATED_FIELDS
PLAIN_IN_EVENT = KNOWN_IN_EVENT - {"error"}
"""The known fields of an event of a stream. `PLAIN_IN_EVENT` are the fields of an event that may hold only text."""

KNOWN_IN_CHOICE = frozenset(
    {"index", "delta", "message", "text", "logprobs", "finish_reason"}
    | {"native_finish_reason", "stop_reason", "matched_stop"}
)
REQUEST_ONLY_FIELDS: Mapping[str, str] = {
    "prefix": "Mistral's mark of a message that the model is to continue",
    "tool_call_id": "the call that a tool's result belongs to",
}
"""Request fields that SDKs also declare in the type of a response's message, with their meaning in a request. They are
not passed on, because clients would send them back."""

_READ_IN_MESSAGE = frozenset(
    {"role", "content", "refusal", "tool_calls", "function_call", "reasoning", "reasoning_content"}
    | REQUEST_ONLY_FIELDS.keys()
)
PLAIN_IN_MESSAGE = _READ_IN_MESSAGE | {"annotations"}
"""The fields of a plain message of OpenAI's, whose list of annotations is empty."""

_LIST_FIELDS = ("reasoning_details", "annotations", "images")
_PARTS_READ_ELSEWHERE = frozenset({"text", "refusal", "thinking", "reasoning", "image_url"})
"""Types of content parts that are read elsewhere."""


def repeated_in(event: JsonObject) -> JsonObject:
    """Return the fields of an event that every event repeats."""
    return {name: event[name] for name in _REPEATED_FIELDS if event.get(name)}


def extras_of(choice: JsonObject, message: JsonObject, written: int, blocks: int, signed: bool) -> Extras | None:
    """Return the extras of a choice, or of a delta of it. `message` is the result of `message_of` for it.

    `written` is the length of the choice's text before it, in characters. `blocks` is the number of complete reasoning
    blocks before it. `signed` is true if other code reads the message's signature.
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
    lists = {name: objects_in(own.get(name)) for name in _LIST_FIELDS}
    audio = own.get("audio")
    known = {name for name in _LIST_FIELDS if lists[name]} | {"thinking_blocks"}
    known |= {"extra_content"} if signed else set()
    if isinstance(audio, dict) and audio:
        known.add("audio")
    rest = unknown_in(own, _READ_IN_MESSAGE.union(known)) or {}
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
    """Add images and sources to `lists`, and parts without a common form to `rest`, as a list under their type."""
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
        elif isinstance(kind, str) and kind not in _PARTS_READ_ELSEWHERE:
            others.setdefault(kind, []).append(part)
    for kind, listed in others.items():
        rest.setdefault(kind, listed)


def _image(part: JsonObject) -> JsonObject:
    """Return an image in OpenRouter's form. Mistral may send only its URL."""
    image = part.get("image_url")
    return {"type": "image_url", "image_url": {"url": image} if isinstance(image, str) else image}


def url_citation(url: str, title: JsonValue, start: int, end: int) -> JsonObject:
    """Return an annotation in OpenAI's form."""
    title_text = title if isinstance(title, str) else ""
    citation: JsonObject = {"url": url, "title": title_text, "start_index": start, "end_index": end}
    return {"type": "url_citation", "url_citation": citation}


def _details(blocks: JsonValue, parts: JsonValue, first: int, streamed: bool) -> Iterator[JsonObject]:
    """Yield reasoning blocks in OpenRouter's form: LiteLLM's `thinking_blocks`, which are Claude's, otherwise the
    blocks among the parts.

    A delta of a stream has Claude's format before its signature arrives. A complete block without a signature has an
    unknown format.
    """
    index, claude_blocks = first, objects_in(blocks)
    for block in claude_blocks:
        signature = block.get("signature")
        if block.get("type") == "redacted_thinking":
            yield _detail("reasoning.encrypted", "data", block.get("data"), CLAUDE_FORMAT, index)
        else:
            form = CLAUDE_FORMAT if signature or streamed else UNKNOWN_FORMAT
            yield _detail("reasoning.text", "text", block.get("thinking"), form, index, signature)
        index += ends_block(block) if streamed else 1
    for part in () if claude_blocks else objects_in(parts):
        if part.get("type") in ("thinking", "reasoning"):
            signature = _signature(part)
            yield _detail("reasoning.text", "text", reasoning_in_part(part), UNKNOWN_FORMAT, index, signature)
            index += bool(signature) if streamed else 1


def _detail(kind: str, name: str, value: JsonValue, form: str, index: int, signature: JsonValue = None) -> JsonObject:
    detail: JsonObject = {"type": kind, name: value if isinstance(value, str) else "", "format": form, "index": index}
    return {**detail, "signature": signature} if isinstance(signature, str) and signature else detail


def ends_block(block: JsonObject) -> bool:
    """Return whether a reasoning block or detail is complete: nothing follows its signature or encrypted data."""
    return bool(block.get("signature") or block.get("data"))


def reasoning_in_part(part: JsonObject) -> str:
    """Return the reasoning text of a content part: Mistral's `thinking` or Databricks' `summary`."""
    summary = part.get("summary")
    if not isinstance(summary, list):
        return text_of(part.get("thinking"))
    texts = [each.get("text") for each in summary if isinstance(each, dict)]
    return "".join([text for text in texts if isinstance(text, str)])


def _signature(part: JsonObject) -> JsonValue:
    holders = [part, *objects_in(part.get("summary"))]
    return next((holder["signature"] for holder in holders if holder.get("signature")), None)


def has_only_vendor_fields(chunk: Chunk) -> bool:
    """Return whether a chunk holds only the vendor's own fields."""
    extras = chunk.extras
    if extras is None or extras.reasoning_details or extras.annotations or extras.images or extras.audio:
        return False
    return chunk == Chunk(chunk.index, system_fingerprint=chunk.system_fingerprint, extras=extras)


def with_vendor_fields(chunk: Chunk, own: JsonObject) -> Chunk:
    """Return the first chunk of an event, extended by the vendor's own fields of the event."""
    extras = chunk.extras or Extras()
    return replace(chunk, extras=replace(extras, answer={**own, **(extras.answer or {})}))
