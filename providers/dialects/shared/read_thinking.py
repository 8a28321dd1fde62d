"""Reads the thinking of earlier turns from the members in which clients send it back.

Claude refuses its thinking anywhere but where it came, and it thinks between calls and texts too, as OpenAI's models
do. A message has no order between these, so `after` in a detail of their thinking holds its place in the turn
(see `Thinking`).

Sources: OpenRouter's `reasoning_details` in @openrouter/sdk 1.3.19 and its ai-sdk-provider 2.10.0; litellm 1.109.1
`thinking_blocks`; "Thought signatures" page of the Gemini API, November 2026. OpenAI's own client joins the pieces of a
stream by their index, and what is the same in each piece, a format or a list of numbers, comes to stand as often as
there were pieces (openai 3.54.0 `lib/streaming/_deltas.py`).
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
    RedactedThinking,
    Text,
    Thinking,
)
from providers.json_types import JsonObject, JsonValue


def thinking_of(message: JsonObject) -> list[Part]:
    """Return the thinking of a message, from the most exact member that holds any."""
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
        return [Thinking(text, signature, CLAUDE_FORMAT)]
    return [Thinking(text)]


def thinking_block(block: JsonObject) -> Part:
    """Return the thinking of a block in Anthropic's form, or in Mistral's, whose thinking is a list of texts."""
    if block.get("type") == "redacted_thinking":
        return RedactedThinking(str(block.get("data") or ""), CLAUDE_FORMAT)
    text, signature = block.get("thinking"), block.get("signature")
    if isinstance(text, list):
        text = "".join([str(part.get("text", "")) for part in text if isinstance(part, dict)])
    signed = isinstance(signature, str) and signature
    return Thinking(
        text if isinstance(text, str) else "",
        str(signature) if signed else None,
        CLAUDE_FORMAT if signed else UNKNOWN_FORMAT,
    )


def in_order(thoughts: list[Part], said: list[Part], calls: list[Part]) -> list[Part]:
    """Return the parts of a turn in the order in which they came, as far as the thoughts tell: the texts are cut where
    a thought came between."""
    if not thoughts:
        return [*said, *calls]
    parts: list[Part] = []
    at = offset = passed = called = 0
    for thought in thoughts:
        text_before, calls_before = came_after(thought)
        while at < len(said) and passed < text_before:
            part = said[at]
            text = part.text if isinstance(part, Text) else ""
            if isinstance(part, Text) and len(text) - offset > text_before - passed:
                cut = offset + text_before - passed
                parts.append(Text(text[offset:cut]))
                offset, passed = cut, text_before
                continue
            parts.append(_from(part, offset))
            passed += len(text) - offset
            at, offset = at + 1, 0
        parts += calls[called : max(called, calls_before)]
        called = max(called, calls_before)
        parts.append(thought)
    if at < len(said):
        parts += [_from(said[at], offset), *said[at + 1 :]]
    return [*parts, *calls[called:]]


def came_after(thought: Part) -> tuple[int, int]:
    """Return the place of a thought in its turn, as `Thinking.after` has it."""
    return thought.after if isinstance(thought, Thinking | RedactedThinking) else (0, 0)


def _from(part: Part, offset: int) -> Part:
    return replace(part, text=part.text[offset:]) if offset and isinstance(part, Text) else part


def _after(detail: JsonObject, form: str) -> tuple[int, int]:
    match detail.get(AFTER_KEY):
        case [int(text), int(calls), *more] if form in INTERLEAVED_FORMATS and more == [text, calls] * (len(more) // 2):
            return text, calls
        case _:
            return 0, 0


def google_signature(holder: JsonObject) -> str | None:
    """Return the signature that Google's own OpenAI-compatible endpoint puts beside a text or a call."""
    found: JsonValue = holder
    for step in ("extra_content", "google", "thought_signature"):
        found = found.get(step) if isinstance(found, dict) else None
    return found if isinstance(found, str) and found else None


def _from_details(details: list[JsonValue]) -> Iterator[Part]:
    """Yield the thinking of OpenRouter's `reasoning_details`; pieces of one block have one index and type, and follow
    each other. Entries of types without thinking of the model are skipped."""
    pieces: list[JsonObject] = []
    for detail in details:
        if not isinstance(detail, dict):
            continue
        if pieces and not _continues(pieces[-1], detail):
            yield from _of_pieces(pieces)
            pieces = []
        pieces.append(detail)
    yield from _of_pieces(pieces)


def _continues(before: JsonObject, detail: JsonObject) -> bool:
    """Return whether a detail is a further piece of the block before it: a block ends with its signature."""
    same = all(before.get(name) == detail.get(name) for name in ("type", "index", AFTER_KEY))
    return same and "index" in detail and not before.get("signature") and detail.get("type") == "reasoning.text"


LONGEST_FORMAT: Final = 4096
"""Characters of a format that may have been joined of many; a longer one is taken as it is."""


def _once(form: JsonValue) -> JsonValue:
    """Return a format that was joined of equal ones as one of them."""
    if not isinstance(form, str) or len(form) > LONGEST_FORMAT:
        return form
    return form[: (form + form).find(form, 1)]


def _of_pieces(pieces: list[JsonObject]) -> Iterator[Part]:
    if not pieces:
        return
    first = pieces[0]
    signature = next((str(each["signature"]) for each in pieces if each.get("signature")), None)
    given = _once(first.get("format"))
    form = given if isinstance(given, str) and given else CLAUDE_FORMAT if signature else UNKNOWN_FORMAT
    match first.get("type"):
        case "reasoning.text":
            said = "".join([str(each.get("text") or "") for each in pieces])
            yield Thinking(said, signature, form, _after(first, form))
        case "reasoning.summary":
            yield Thinking(str(first.get("summary") or ""), None, UNKNOWN_FORMAT)
        case "reasoning.encrypted":
            identity = first.get("id")
            # Without a format OpenRouter's own client reads Claude's.
            whose = given if isinstance(given, str) and given else CLAUDE_FORMAT
            known = identity if isinstance(identity, str) else None
            yield RedactedThinking(str(first.get("data") or ""), whose, known, _after(first, whose))
        case _:
            return
