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
_BROKEN = frozenset({"error", "abort", "network_error", "insufficient_system_resource"})


def malformed(what: str) -> UpstreamError:
    """The vendor's bytes make no sense; `what` is ours, never a quotation."""
    return UpstreamError(Failure(FailureKind.MALFORMED, f"The upstream's answer {what}."))


def json_object(data: bytes) -> JsonObject:
    """A JSON object. Raises UpstreamError(MALFORMED). Blank lines before it are a vendor's keep-alive."""
    try:
        value = orjson.loads(data.strip())
    except orjson.JSONDecodeError:
        raise malformed("is not valid JSON") from None
    if isinstance(value, list) and value and isinstance(value[0], dict):
        value = value[0]
    if not isinstance(value, dict):
        raise malformed("is not a JSON object")
    return value


def finish_reason(raw: JsonValue, tool_calls: bool) -> tuple[FinishReason | None, str | None]:
    """The unified reason and the vendor's word where it says more. Raises UpstreamError for a reason that means failure.

    An unknown word is a clean end: vendors add values several times a year.
    """
    if raw is None or (raw == "" and not tool_calls):
        return None, None
    if raw == "":
        return "tool_calls", None
    word = str(raw)
    if word in _BROKEN:
        message = "The upstream broke the answer off with an error of its own."
        raise UpstreamError(Failure(FailureKind.SERVER, message))
    reason = _FINISH.get(word, "stop")
    if reason == "stop" and tool_calls:
        return "tool_calls", None
    return reason, None if word == reason else word


def text_of(content: JsonValue) -> str:
    """The text of a message's content: a string, or the text parts of a list."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(
            part["text"]
            for part in content
            if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)
        )
    return ""


def reasoning_of(message: JsonObject) -> str | None:
    """Reasoning under either of its names."""
    for name in ("reasoning_content", "reasoning"):
        value = message.get(name)
        if isinstance(value, str) and value:
            return value
    return None


def usage_of(body: JsonObject) -> Usage | None:
    """Usage from wherever the vendor puts it; zeros that Ollama sends with every chunk are none."""
    for holder in (body, body.get("x_groq"), _first_choice(body)):
        raw = holder.get("usage") if isinstance(holder, dict) else None
        if isinstance(raw, dict) and (usage := _usage(raw)) is not None:
            return usage
    return None


def _first_choice(body: JsonObject) -> JsonValue:
    choices = body.get("choices")
    return choices[0] if isinstance(choices, list) and choices else None


def _usage(raw: JsonObject) -> Usage | None:
    prompt, completion, total = (_count(raw, name) for name in ("prompt_tokens", "completion_tokens", "total_tokens"))
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
    return Usage(prompt, completion, prompt_details or None, completion_details or None)


def _count(raw: JsonObject, name: str) -> int | None:
    value = raw.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _details(raw: JsonObject, names: Sequence[str]) -> dict[str, int]:
    for name in names:
        members = raw.get(name)
        if isinstance(members, dict):
            return {key: count for key in members if (count := _count(members, key)) is not None}
    return {}


def logprobs_of(raw: JsonValue) -> Logprobs | None:
    """Log probabilities in either shape, wherever they stand; llama.cpp answers in chat's on both routes."""
    if not isinstance(raw, dict):
        return None
    content, refusal = raw.get("content"), raw.get("refusal")
    if isinstance(content, list) or isinstance(refusal, list):
        return ContentLogprobs(_tokens(content), _tokens(refusal))
    tokens = raw.get("tokens")
    if isinstance(tokens, list):
        return _legacy(raw, tokens)
    return None


def _tokens(raw: JsonValue) -> tuple[TokenLogprob, ...]:
    if not isinstance(raw, list):
        return ()
    return tuple(_token(entry) for entry in raw if isinstance(entry, dict))


def _token(entry: JsonObject) -> TokenLogprob:
    raw_bytes = entry.get("bytes")
    return TokenLogprob(
        str(entry.get("token", "")),
        logprob(entry.get("logprob")),
        tuple(byte for byte in raw_bytes if isinstance(byte, int)) if isinstance(raw_bytes, list) else None,
        _tokens(entry.get("top_logprobs")),
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


def index_of(choice: JsonObject) -> int:
    """A choice's index; 0 where the vendor leaves it out."""
    value = choice.get("index")
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
