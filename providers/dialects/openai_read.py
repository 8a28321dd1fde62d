"""Reading the OpenAI family's answers: the pieces that whole bodies and stream frames share.

Never a request, and never a guess: what is missing stays missing, what makes no sense raises.
"""

from collections.abc import Mapping, Sequence
from math import isfinite

import orjson

from providers.completion import (
    FLOOR_LOGPROB,
    ContentLogprobs,
    FinishReason,
    LegacyLogprobs,
    Logprobs,
    TokenLogprob,
    Usage,
)
from providers.failure import Failure, FailureKind, UpstreamError
from providers.finish import broken_off, own_word
from providers.unified import JsonObject, JsonValue

_FINISH: Mapping[str, FinishReason] = {
    "stop": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "stop_sequence": "stop",
    "stop_token": "stop",
    "end_turn": "stop",
    "repetition": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
    "content_filter": "content_filter",
    "sensitive": "content_filter",
    "tool_calls": "tool_calls",
    "tool_call": "tool_calls",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
}
_NO_RESOURCE = "insufficient_system_resource"
"""DeepSeek's word for an answer that it had no room to finish."""


def malformed(what: str) -> UpstreamError:
    """The vendor's bytes make no sense; `what` is ours, never a quotation."""
    return UpstreamError(Failure(FailureKind.MALFORMED, f"The upstream's answer {what}."))


MOST_HELD = 320 * 2**20
"""Bytes that the values of one JSON text may take. 30 MB of log probabilities, twenty for each token, stay below it."""

_HELD_BY = ((b"{", 200), (b"[", 72), (b",", 64))
"""Bytes that each of these means in memory: an object with one member, an empty list, a short string."""

_SMALL = MOST_HELD // max(held for _, held in _HELD_BY)
"""Bytes of a text that cannot come to more."""

_PARSER = 13
"""Bytes that orjson 3.11 asks for at once, for each of a text's, before it reads it; it does not survive not getting
them. Nearly all stay untouched."""

_MOST_OPEN = 200
"""Brackets that a text may have without being looked at closer: fewer levels than any recursion here fails at."""


def values_held(data: bytes) -> int:
    """About as many bytes as the values of a JSON text take. Raises UpstreamError where that is more than MOST_HELD."""
    held = sum([data.count(mark) * each for mark, each in _HELD_BY])
    if held > MOST_HELD:
        raise malformed("has more members than are read")
    return held


def loaded(data: bytes) -> JsonValue:
    """A JSON text that can be written again. Raises `orjson.JSONDecodeError`, UpstreamError for one that would take far
    more memory than its own size (32 MB of empty objects take 800), and MemoryError.

    orjson reads 1,024 levels and writes 254; what lies between would end in a RecursionError somewhere.
    """
    if len(data) > _SMALL:
        # Raises MemoryError where there is no room; the pages stay untouched.
        bytes(_PARSER * len(data) + values_held(data))
    value: JsonValue = orjson.loads(data)
    if len(data) > 2 * _MOST_OPEN and data.count(b"[") + data.count(b"{") > _MOST_OPEN:
        try:
            orjson.dumps(value)
        except orjson.JSONEncodeError:
            raise orjson.JSONDecodeError("nested too deeply", "", 0) from None
    return value


def parsed(data: bytes) -> JsonValue:
    """The same; what is no UTF-8 in it becomes U+FFFD: engines that cut a text between tokens may cut a character,
    too."""
    try:
        return loaded(data)
    except orjson.JSONDecodeError:
        text = data.decode("utf-8", "replace")
        if "\ufffd" not in text:
            raise
    return loaded(text.encode())


def is_json(data: bytes) -> bool:
    """Whether the bytes are a whole JSON text."""
    try:
        parsed(data)
    except orjson.JSONDecodeError:
        return False
    return True


def json_object(data: bytes) -> JsonObject:
    """A JSON object. Raises UpstreamError(MALFORMED). Blank lines before it are a vendor's keep-alive."""
    try:
        value = parsed(data.strip())
    except orjson.JSONDecodeError:
        raise malformed("is not valid JSON") from None
    if isinstance(value, list) and value and isinstance(value[0], dict):
        value = value[0]
    if not isinstance(value, dict):
        raise malformed("is not a JSON object")
    return value


def finish_reason(raw: JsonValue, tool_calls: bool) -> tuple[str | None, str | None]:
    """The unified reason and the vendor's word where it says more. Raises UpstreamError for a reason that means
    failure.

    A word nobody knows yet stays what it is. An empty one is an end only of tool calls.
    """
    if raw is None or (raw == "" and not tool_calls):
        return None, None
    if not isinstance(raw, str):
        raise malformed("has a finish reason that is not a word")
    if raw == _NO_RESOURCE:
        raise broken_off(raw, FailureKind.OVERLOADED)
    reason = _FINISH.get(raw.lower() or "stop")
    if reason is None:
        return own_word(raw), raw
    if reason == "stop" and tool_calls:
        return "tool_calls", None
    return reason, None if raw == reason else raw


def text_of(content: JsonValue) -> str:
    """The text of a message's content: a string, or the text parts of a list. Raises UpstreamError for another form."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(map(_part, content))
    if content is None:
        return ""
    raise malformed("has a message whose content is neither text nor a list")


def _part(part: JsonValue) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        raise malformed("has a part of a message that is neither text nor an object")
    kind = part.get("type")
    text = part.get(kind) if kind in ("text", "refusal") else None
    return text if isinstance(text, str) else ""


def message_of(choice: JsonObject) -> JsonObject:
    """Where a choice's text and calls stand: its delta, its message, or, for a text completion, the choice itself."""
    for name in ("delta", "message"):
        holder = choice.get(name)
        if isinstance(holder, dict):
            return holder
    return choice


def content_of(choice: JsonObject, message: JsonObject) -> str:
    """A choice's text, given its `message_of`."""
    return text_of(message.get("content")) or text_of(choice.get("text"))


def only_text_of(choice: JsonObject) -> str:
    """The text of a streamed choice that says nothing else, as nearly every one; empty for the others."""
    delta = choice.get("delta")
    holder, name = (choice, "text") if delta is None else (delta, "content")
    if choice.get("finish_reason") is not None or choice.get("logprobs") is not None or not isinstance(holder, dict):
        return ""
    text = holder.get(name)
    return text if isinstance(text, str) and (len(holder) == 1 or holder is choice) else ""


def reasoning_of(message: JsonObject) -> str | None:
    """Reasoning under either of its names, or in parts of the content: Mistral's `thinking`, Databricks' `summary`."""
    value = message.get("reasoning_content") or message.get("reasoning")
    if isinstance(value, str) and value:
        return value
    content = message.get("content")
    if not isinstance(content, list):
        return None
    return "".join([_thought(part) for part in content if isinstance(part, dict)]) or None


def _thought(part: JsonObject) -> str:
    summary = part.get("summary")
    if not isinstance(summary, list):
        return text_of(part.get("thinking"))
    texts = [each.get("text") for each in summary if isinstance(each, dict)]
    return "".join([text for text in texts if isinstance(text, str)])


def usage_of(body: JsonObject) -> Usage | None:
    """Usage from wherever the vendor puts it; zeros that Ollama sends with every chunk are none."""
    raw = body.get("usage")
    if raw is None:
        raw = _usage_elsewhere(body)
    return _usage(raw) if isinstance(raw, dict) else None


def _usage_elsewhere(body: JsonObject) -> JsonValue:
    groq, choices = body.get("x_groq"), body.get("choices")
    holder = groq if groq is not None else choices[0] if isinstance(choices, list) and choices else None
    return holder.get("usage") if isinstance(holder, dict) else None


def _usage(raw: JsonObject) -> Usage | None:
    prompt, completion = _count(raw, "prompt_tokens"), _count(raw, "completion_tokens")
    total = _count(raw, "total_tokens")
    if prompt is None or not (prompt or completion or total):
        return None
    if completion is None:
        completion = max(0, (total or prompt) - prompt)
    prompt_details = _details(raw, ("prompt_tokens_details", "prompt_token_details"))
    cached = _count(raw, "prompt_cache_hit_tokens")
    if cached is None:
        cached = _count(raw, "cached_tokens")
    if cached is not None:
        prompt_details.setdefault("cached_tokens", cached)
    completion_details = _details(raw, ("completion_tokens_details",))
    reasoning = _count(raw, "reasoning_tokens")
    if reasoning is not None:
        completion_details.setdefault("reasoning_tokens", reasoning)
    if total == prompt + completion + completion_details.get("reasoning_tokens", 0):
        # xAI counts reasoning in the total alone.
        completion = total - prompt
    return Usage(prompt, completion, prompt_details or None, completion_details or None)


def _count(raw: JsonObject, name: str) -> int | None:
    value = raw.get(name)
    return value if type(value) is int and value >= 0 else None


def _details(raw: JsonObject, names: Sequence[str]) -> dict[str, int]:
    for name in names:
        members = raw.get(name)
        if isinstance(members, dict):
            return {key: count for key, count in members.items() if type(count) is int and count >= 0}
    return {}


def logprobs_of(raw: JsonValue, text: str) -> Logprobs | None:
    """Log probabilities in any shape, None for none at all.

    llama.cpp answers in chat's shape on both routes. Together's streams give one number, which is that of `text`.
    """
    if isinstance(raw, dict):
        content, refusal = _tokens(raw.get("content")), _tokens(raw.get("refusal"))
        if content or refusal:
            return ContentLogprobs(content, refusal)
        tokens = raw.get("tokens")
        return _legacy(raw, tokens) if isinstance(tokens, list) and tokens else None
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        return LegacyLogprobs((text,), (logprob(raw),), None, None)
    return None


def _tokens(raw: JsonValue) -> tuple[TokenLogprob, ...]:
    return tuple([_token(entry, _alternatives(entry.get("top_logprobs"))) for entry in _objects(raw)])


def _alternatives(raw: JsonValue) -> tuple[TokenLogprob, ...]:
    """Alternatives have none of their own; a vendor that nests them would choose how deep the stack becomes."""
    return tuple([_token(entry, ()) for entry in _objects(raw)])


def _objects(raw: JsonValue) -> list[JsonObject]:
    return [entry for entry in raw if isinstance(entry, dict)] if isinstance(raw, list) else []


def _token(entry: JsonObject, top: tuple[TokenLogprob, ...]) -> TokenLogprob:
    raw_bytes = entry.get("bytes")
    return TokenLogprob(
        text_of(entry.get("token")),
        logprob(entry.get("logprob")),
        tuple([byte for byte in raw_bytes if isinstance(byte, int)]) if isinstance(raw_bytes, list) else None,
        top,
    )


def logprob(raw: JsonValue) -> float:
    """A log probability, floored where the vendor says null or minus infinity."""
    if isinstance(raw, int | float) and isfinite(raw):
        return float(raw)
    return FLOOR_LOGPROB


def _legacy(raw: JsonObject, tokens: list[JsonValue]) -> LegacyLogprobs:
    values, tops, offsets = raw.get("token_logprobs"), raw.get("top_logprobs"), raw.get("text_offset")
    known = [offset for offset in offsets if isinstance(offset, int)] if isinstance(offsets, list) else []
    # SGLang sends -1 for every offset.
    usable = len(known) == len(tokens) and all(offset >= 0 for offset in known)
    return LegacyLogprobs(
        tokens=tuple(str(token) for token in tokens),
        token_logprobs=tuple(None if value is None else logprob(value) for value in values)
        if isinstance(values, list)
        else (),
        top_logprobs=tuple(_top(entry) for entry in tops) if isinstance(tops, list) else None,
        text_offset=tuple(known) if usable else None,
    )


def _top(raw: JsonValue) -> Mapping[str, float] | None:
    return {token: logprob(value) for token, value in raw.items()} if isinstance(raw, dict) else None


def matched_stop(choice: JsonObject) -> str | int | None:
    """The stop that ended the text, under vLLM's and SGLang's names."""
    for name in ("stop_reason", "matched_stop"):
        value = choice.get(name)
        if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
            return value
    return None


def index_of(choice: JsonObject, position: int) -> int:
    """A choice's index; its position where the vendor leaves it out."""
    value = choice.get("index")
    return value if isinstance(value, int) and not isinstance(value, bool) else position
