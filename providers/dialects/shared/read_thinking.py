"""Reads the reasoning of earlier turns from the fields in which clients send it back.

Claude refuses its reasoning at any other position than the original one. It also reasons between calls and texts, as
OpenAI's models do. A chat message has no order between reasoning, texts and calls. Therefore `after` in a detail of
their reasoning holds its position in the turn (see `Reasoning`).

Sources: OpenRouter's `reasoning_details` in @openrouter/sdk 1.3.19 and its ai-sdk-provider 2.10.0; litellm 1.109.1
`thinking_blocks`; "Thought signatures" page of the Gemini API, November 2026. OpenAI's own client joins the deltas of a
stream by their index. A value that is the same in each delta, such as a format or a list of numbers, is thereby
repeated once per delta (openai 3.54.0 `lib/streaming/_deltas.py`).
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from providers.conversation import (
    AFTER_KEY,
    CLAUDE_FORMAT,
    INTERLEAVED_FORMATS,
    UNKNOWN_FORMAT,
    Part,
    Reasoning,
    RedactedReasoning,
    Text,
)
from providers.json_types import JsonObject, JsonValue


def reasoning_of_message(message: JsonObject) -> list[Part]:
    """Return the reasoning of a message, from the most exact field that holds any."""
    details, blocks = message.get("reasoning_details"), message.get("thinking_blocks")
    if isinstance(details, list) and (found := list(_from_details(details))):
        return found
    if isinstance(blocks, list) and blocks:
        return [thinking_block(block) for block in blocks if isinstance(block, dict)]
    text = message.get("reasoning_content") or message.get("reasoning")
    if not isinstance(text, str):
        return []
    signature = message.get("reasoning_signature")
    if isinstance(signature, str) and signature:
        return [Reasoning(text, signature, CLAUDE_FORMAT)]
    return [Reasoning(text)]


def thinking_block(block: JsonObject) -> Part:
    """Return the reasoning of a block in Anthropic's form, or in Mistral's form, whose `thinking` is a list of
    texts."""
    if block.get("type") == "redacted_thinking":
        return RedactedReasoning(str(block.get("data") or ""), CLAUDE_FORMAT)
    text, signature = block.get("thinking"), block.get("signature")
    if isinstance(text, list):
        text = "".join([str(part.get("text", "")) for part in text if isinstance(part, dict)])
    signed = isinstance(signature, str) and signature
    return Reasoning(
        text if isinstance(text, str) else "",
        str(signature) if signed else None,
        CLAUDE_FORMAT if signed else UNKNOWN_FORMAT,
    )


def order_parts(reasoning: list[Part], texts: list[Part], calls: list[Part]) -> list[Part]:
    """Return the parts of a turn in their original order, as far as the positions of the reasoning show it. A text is
    split if reasoning came in the middle of it."""
    if not reasoning:
        return [*texts, *calls]
    parts: list[Part] = []
    at = offset = text_length = calls_placed = 0
    for part_of_reasoning in reasoning:
        text_before, calls_before = position_in_turn(part_of_reasoning)
        while at < len(texts) and text_length < text_before:
            part = texts[at]
            text = part.text if isinstance(part, Text) else ""
            if isinstance(part, Text) and len(text) - offset > text_before - text_length:
                cut = offset + text_before - text_length
                parts.append(Text(text[offset:cut]))
                offset, text_length = cut, text_before
                continue
            parts.append(_rest_of_text(part, offset))
            text_length += len(text) - offset
            at, offset = at + 1, 0
        parts += calls[calls_placed : max(calls_placed, calls_before)]
        calls_placed = max(calls_placed, calls_before)
        parts.append(part_of_reasoning)
    if at < len(texts):
        parts += [_rest_of_text(texts[at], offset), *texts[at + 1 :]]
    return [*parts, *calls[calls_placed:]]


def position_in_turn(part_of_reasoning: Part) -> tuple[int, int]:
    """Return the position of a reasoning part in its turn, in the form of `Reasoning.after`."""
    return part_of_reasoning.after if isinstance(part_of_reasoning, Reasoning | RedactedReasoning) else (0, 0)


def _rest_of_text(part: Part, offset: int) -> Part:
    return replace(part, text=part.text[offset:]) if offset and isinstance(part, Text) else part


def _after(detail: JsonObject, form: str) -> tuple[int, int]:
    match detail.get(AFTER_KEY):
        case [int(text), int(calls), *more] if form in INTERLEAVED_FORMATS and more == [text, calls] * (len(more) // 2):
            return text, calls
        case _:
            return 0, 0


def google_signature(holder: JsonObject) -> str | None:
    """Return the signature that Google's OpenAI-compatible endpoint puts beside a text or a call, otherwise `None`."""
    found: JsonValue = holder
    for step in ("extra_content", "google", "thought_signature"):
        found = found.get(step) if isinstance(found, dict) else None
    return found if isinstance(found, str) and found else None


def _from_details(details: list[JsonValue]) -> Iterator[Part]:
    """Yield the reasoning in OpenRouter's `reasoning_details`. Deltas of one block have the same index and type, and
    follow each other. Entries of types without reasoning of the model are skipped."""
    deltas: list[JsonObject] = []
    for detail in details:
        if not isinstance(detail, dict):
            continue
        if deltas and not _continues(deltas[-1], detail):
            yield from _from_deltas(deltas)
            deltas = []
        deltas.append(detail)
    yield from _from_deltas(deltas)


def _continues(before: JsonObject, detail: JsonObject) -> bool:
    """Return whether a detail is another delta of the previous detail's block. A block ends with its signature."""
    same = all(before.get(name) == detail.get(name) for name in ("type", "index", AFTER_KEY))
    return same and "index" in detail and not before.get("signature") and detail.get("type") == "reasoning.text"


LONGEST_FORMAT: Final = 4096
"""The most characters of a format that may be several repetitions of one. A longer format is unchanged."""


def _without_repetition(form: JsonValue) -> JsonValue:
    """Return a single format if the given one is a repetition of it."""
    if not isinstance(form, str) or len(form) > LONGEST_FORMAT:
        return form
    return form[: (form + form).find(form, 1)]


def _from_deltas(deltas: list[JsonObject]) -> Iterator[Part]:
    if not deltas:
        return
    first = deltas[0]
    signature = next((str(each["signature"]) for each in deltas if each.get("signature")), None)
    given = _without_repetition(first.get("format"))
    form = given if isinstance(given, str) and given else CLAUDE_FORMAT if signature else UNKNOWN_FORMAT
    match first.get("type"):
        case "reasoning.text":
            text = "".join([str(each.get("text") or "") for each in deltas])
            yield Reasoning(text, signature, form, _after(first, form))
        case "reasoning.summary":
            yield Reasoning(str(first.get("summary") or ""), None, UNKNOWN_FORMAT)
        case "reasoning.encrypted":
            identity = first.get("id")
            # OpenRouter's own client reads a detail without a format as Claude's.
            owner_format = given if isinstance(given, str) and given else CLAUDE_FORMAT
            known = identity if isinstance(identity, str) else None
            yield RedactedReasoning(str(first.get("data") or ""), owner_format, known, _after(first, owner_format))
        case _:
            return
