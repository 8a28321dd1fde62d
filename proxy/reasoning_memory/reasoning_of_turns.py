"""Selects the reasoning to store of turns that called tools, and restores it in a client's messages. For other turns,
`signed_texts` does the same with the signatures of their texts.

Vendors want the reasoning of a turn that called tools back with the results of the calls, but most clients do not send
it. In November 2026 LangChain sends no reasoning, openai-agents 0.24.0 sends only the reasoning of models named
deepseek, and Vercel's openai-compatible 2.0.91 sends no signatures. The id of a turn's first call identifies the
missing reasoning.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import orjson

from providers.completion import Choice, Chunk, Extras, StreamEvent, ToolCallDelta
from providers.emulation.collect_stream import Gatherer
from providers.emulation.join_extras import texts_of_details
from providers.json_types import JsonObject, JsonValue, nests_deeper
from providers.models.reasoning_back import wants_signatures, wants_text
from providers.target import Target
from proxy.reasoning_memory.signed_texts import SignedText, marks_of, unsigned_texts, with_signature

MOST_BYTES: Final = 512 * 1024
"""The most bytes that are stored for one turn: 128,000 tokens, the longest reasoning of any model. Nothing of a longer
turn is stored."""

MAX_DEPTH: Final = 64
"""The most levels of stored JSON. A client's whole request may have as many."""

MOST_TURNS: Final = 256
"""The most turns of a conversation that are looked up, the latest ones first. Vendors demand only the reasoning of the
current tool loop."""

_PIECE: Final = 16
"""The bytes that each value counts in addition to its text."""

_LONGEST_ID: Final = 256
"""The most characters of an id that are searched for a random part."""

_RANDOM: Final = re.compile(r"[A-Za-z0-9]{8,}")

_OWN = ("reasoning_details", "thinking_blocks", "reasoning_signature")
_OWN_TEXT = ("reasoning_content", "reasoning")
_THINKING_PARTS = frozenset({"thinking", "redacted_thinking"})


@dataclass(frozen=True, slots=True)
class TurnThinking:
    """The reasoning of a model before it called tools. `details` are OpenRouter's `reasoning_details`, `signature` is
    the signature of the turn's text, `calls` has the additional fields of tool calls, by the ids of the calls."""

    details: tuple[JsonObject, ...] = ()
    text: str = ""
    signature: str | None = None
    calls: Mapping[str, JsonObject] | None = None


@dataclass(frozen=True, slots=True)
class MissingTurn:
    """A message that lacks the reasoning stored as `key`; `said` is the reasoning text that the client did send, or
    empty."""

    position: int
    key: str
    said: str


def thinking_to_keep(choice: Choice, target: Target) -> TurnThinking | None:
    """Return the reasoning to store for a choice in a response of `target`; `None` if no later request needs it."""
    if not choice.tool_calls:
        return None
    details = () if choice.extras is None else choice.extras.reasoning_details
    calls = {call.id: dict(call.extra) for call in choice.tool_calls if call.extra}
    signed = choice.signature is not None or calls or any(map(_is_signed, details))
    if wants_signatures(target) and signed:
        return TurnThinking(details, choice.reasoning or _joined(details), choice.signature, calls or None)
    if wants_text(target) and choice.reasoning:
        return TurnThinking(text=choice.reasoning)
    return None


def thinking_of_text(signed: SignedText) -> TurnThinking:
    """Return the signature of a turn without calls, in the form in which reasoning is stored."""
    return TurnThinking(signed.details, signature=signed.signature)


def turn_key(call_id: str, name: str, before: JsonValue) -> str:
    """Return the name under which a turn is stored: a hash of the id of its first call and, if the id is not unique,
    such as Kimi's `functions.search:0`, of the function's name and the marks of the preceding message."""
    return _key(call_id, name, marks_of(before))


def _key(call_id: str, name: str, marks: Iterable[str]) -> str:
    digest = hashlib.sha256(call_id.encode(errors="surrogatepass"))
    if not _is_unique(call_id, name):
        for text in (name, *marks):
            digest.update(b"\0" + text.encode(errors="surrogatepass"))
    return digest.hexdigest()


def key_of_answer(choice: Choice, marks: Iterable[str]) -> str:
    """Return the key of a choice with tool calls; `marks` are the marks of the preceding message."""
    first = choice.tool_calls[0]
    return _key(first.id, first.name, marks)


def pack_turn(thinking: TurnThinking) -> bytes | None:
    """Return a turn in its stored form; `None` if it is too long, or cannot be written as JSON."""
    body: JsonObject = {"details": list(thinking.details)}
    if _weight([*thinking.details, thinking.text, thinking.signature, dict(thinking.calls or {})]) > 2 * MOST_BYTES:
        return None  # checked first, because writing the JSON takes time
    if thinking.text != _joined(thinking.details):
        body["text"] = thinking.text
    if thinking.signature is not None:
        body["signature"] = thinking.signature
    if thinking.calls:
        body["calls"] = dict(thinking.calls)
    try:
        data = orjson.dumps(body)
    except orjson.JSONEncodeError:
        return None
    return data if len(data) <= MOST_BYTES else None


def unpack_turn(data: bytes) -> TurnThinking | None:
    """Return a stored turn; `None` if `pack_turn` cannot have made the data, because other programs may write to a
    shared store."""
    if len(data) > MOST_BYTES:
        return None
    try:
        body: JsonValue = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(body, dict) or nests_deeper(body, MAX_DEPTH):
        return None
    details, calls, signature = body.get("details"), body.get("calls", {}), body.get("signature")
    if not isinstance(details, list) or not isinstance(calls, dict) or not isinstance(signature, str | None):
        return None
    kept = tuple([detail for detail in details if isinstance(detail, dict)])
    extras = {name: extra for name, extra in calls.items() if isinstance(extra, dict)}
    text = body.get("text", _joined(kept))
    if len(kept) < len(details) or len(extras) < len(calls) or not isinstance(text, str):
        return None
    return TurnThinking(kept, text, signature, extras or None)


def missing_turns(messages: Sequence[JsonObject]) -> list[MissingTurn]:
    """Return the messages that call tools and have no reasoning, or only its text: at most MOST_TURNS, the latest
    first.

    A message with any signature, or with parts of type `thinking`, is not returned, because it has the client's own
    reasoning.
    """
    found: list[MissingTurn] = []
    for position in range(len(messages) - 1, -1, -1):
        message = messages[position]
        calls = message.get("tool_calls")
        if not calls or message.get("role") != "assistant" or not isinstance(calls, list):
            continue
        call = _first_call(calls[0])
        if call is None or _has_own(message):
            continue
        said = next((text for name in _OWN_TEXT if isinstance(text := message.get(name), str) and text), "")
        before = messages[position - 1] if position else None
        found.append(MissingTurn(position, turn_key(*call, before), said))
        if len(found) == MOST_TURNS:
            break
    return found


def missing_texts(messages: Sequence[JsonObject]) -> list[MissingTurn]:
    """Return the latest messages without calls whose text may have a signature that the client left out, latest
    first."""
    return [MissingTurn(position, key, "") for position, key in unsigned_texts(messages)]


def with_thinking(
    messages: Sequence[JsonObject], missing: Iterable[MissingTurn], kept: Mapping[str, TurnThinking]
) -> tuple[JsonObject, ...] | None:
    """Return the messages with the stored reasoning of the `missing` turns. `kept` has the stored reasoning by key.
    Return `None` if nothing changes.

    Fields that the client sent stay unchanged. If the client sent a reasoning text that differs from the stored one,
    nothing is added to the message.
    """
    changed: dict[int, JsonObject] = {}
    for turn in missing:
        thinking = kept.get(turn.key)
        if thinking is not None and (not turn.said or turn.said.strip() == thinking.text.strip()):
            message = messages[turn.position]
            changed[turn.position] = (
                _restored(message, thinking)
                if message.get("tool_calls")
                else with_signature(message, thinking.signature, thinking.details)
            )
    if not changed:
        return None
    return tuple([changed.get(position, message) for position, message in enumerate(messages)])


class GatheredTurns:
    """Gathers the choices of a stream that call tools, each one until its end. If they exceed MOST_BYTES, nothing is
    gathered."""

    __slots__ = ("_gatherers", "_left")

    def __init__(self) -> None:
        self._gatherers: dict[int, Gatherer] = {}
        self._left = MOST_BYTES

    def add(self, event: StreamEvent) -> Choice | None:
        """Add the next event. If it ends a choice that called tools, return the choice without its text and
        arguments."""
        if self._left <= 0 or not isinstance(event, Chunk):
            return None
        ended = event.finish_reason is not None
        details = event.extras is not None and event.extras.reasoning_details
        if not (details or event.reasoning or event.signature or event.tool_calls or ended):
            return None
        self._left -= _size(event)
        if self._left <= 0:
            self._gatherers.clear()
            return None
        gatherer = self._gatherers.get(event.index)
        if gatherer is None:
            gatherer = self._gatherers[event.index] = Gatherer(1)
        gatherer.add(_kept_of(event))
        if not ended:
            return None
        del self._gatherers[event.index]
        try:
            (choice,) = gatherer.completion().choices
        except ValueError:
            return None  # a call without a name; no client can send it back
        return choice if choice.tool_calls else None


def _kept_of(chunk: Chunk) -> Chunk:
    """Return a chunk with only its reasoning and signature, and its calls without their arguments."""
    details = () if chunk.extras is None else chunk.extras.reasoning_details
    return Chunk(
        finish_reason=chunk.finish_reason,
        reasoning=chunk.reasoning,
        tool_calls=tuple(
            [ToolCallDelta(call.index, call.id, call.name, "", call.kind, call.extra) for call in chunk.tool_calls]
        ),
        signature=chunk.signature,
        extras=Extras(reasoning_details=details) if details else None,
    )


def _size(chunk: Chunk) -> int:
    """Return about how many bytes a chunk adds to the gathered bytes."""
    calls: list[JsonValue] = [[call.id, call.name, dict(call.extra or {})] for call in chunk.tool_calls]
    details: list[JsonValue] = [] if chunk.extras is None else [*chunk.extras.reasoning_details]
    return _weight([chunk.reasoning, chunk.signature, calls, details])


def _weight(value: JsonValue) -> int:
    """Return about how many bytes a value takes. For a value above twice MOST_BYTES, return any number above that. The
    function is not recursive."""
    weight = 0
    waiting = [value]
    while waiting and weight <= 2 * MOST_BYTES:
        each = waiting.pop()
        weight += _PIECE
        if isinstance(each, str):
            weight += len(each)
        elif isinstance(each, dict):
            weight += _PIECE * len(each)
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each
    return weight


def _is_signed(detail: JsonObject) -> bool:
    return bool(detail.get("signature") or detail.get("data"))


def _joined(details: Iterable[JsonObject]) -> str:
    return "".join(texts_of_details(details))


def _is_unique(call_id: str, name: str) -> bool:
    """Return whether an id has a random part: digits and letters that are not the function's name."""
    rest = call_id[:_LONGEST_ID].replace(name, " ") if name else call_id[:_LONGEST_ID]
    return any(not (part.isalpha() or part.isdigit()) for part in _RANDOM.findall(rest))


def _first_call(tool_call: JsonValue) -> tuple[str, str] | None:
    """Return the id and the name of a call in a client's message."""
    if not isinstance(tool_call, dict) or not isinstance(call_id := tool_call.get("id"), str) or not call_id:
        return None
    called = tool_call.get("custom") if tool_call.get("type") == "custom" else tool_call.get("function")
    name = called.get("name") if isinstance(called, dict) else None
    return call_id, name if isinstance(name, str) else ""


def _has_own(message: JsonObject) -> bool:
    if any(message.get(name) for name in _OWN):
        return True
    content = message.get("content")
    parts = content if isinstance(content, list) else ()
    return any(isinstance(part, dict) and part.get("type") in _THINKING_PARTS for part in parts)


def _restored(message: JsonObject, thinking: TurnThinking) -> JsonObject:
    restored = {**message}
    if thinking.details:
        restored["reasoning_details"] = list(thinking.details)
    if thinking.text and not any(message.get(name) for name in _OWN_TEXT):
        restored["reasoning_content"] = thinking.text
    if thinking.signature is not None and not message.get("extra_content"):
        restored["extra_content"] = {"google": {"thought_signature": thinking.signature}}
    calls = message.get("tool_calls")
    if thinking.calls and isinstance(calls, list):
        restored["tool_calls"] = [_with_extra(call, thinking.calls) for call in calls]
    return restored


def _with_extra(tool_call: JsonValue, extras: Mapping[str, JsonObject]) -> JsonValue:
    """Return a client's call with the stored fields that it lacks. The fields that the client sent stay unchanged."""
    extra = extras.get(str(tool_call.get("id"))) if isinstance(tool_call, dict) else None
    return {**extra, **tool_call} if isinstance(tool_call, dict) and extra else tool_call
