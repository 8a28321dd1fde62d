"""Reads the parts of the OpenAI family's responses that non-streaming bodies and stream events share.

A missing value stays missing. A malformed value raises UpstreamError(MALFORMED).
"""

from collections.abc import Mapping, Sequence

from providers.completion import (
    LARGEST_COUNT,
    SEARCH_REQUESTS,
    FinishReason,
    RunPart,
    Usage,
    billed_tier,
    count_of,
    reported_searches,
    reported_usage,
)
from providers.dialects.openai.read_extras import KNOWN_IN_CHOICE, PLAIN_IN_MESSAGE, reasoning_in_part
from providers.dialects.shared.finish_reasons import finish_error, vendor_finish_reason
from providers.dialects.shared.read_json import malformed, text_of, unknown_in
from providers.failure import FailureKind
from providers.framing.text_frames import MARK
from providers.frozen_record import frozen
from providers.json_types import JsonObject, JsonValue
from providers.profile import Profile

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
"""DeepSeek's finish reason for a response that it had no capacity to finish."""


def finish_reason(raw: JsonValue, tool_calls: bool) -> tuple[str | None, str | None]:
    """Return the unified finish reason, and the vendor's own reason if that is more precise. Both are `None` before the
    end.

    An unknown reason is returned unchanged. An empty reason ends a response only after tool calls, and ends a stream
    only if its event holds no content. Raises UpstreamError if the reason means failure.
    """
    if raw is None or (raw == "" and not tool_calls):
        return None, None
    if not isinstance(raw, str):
        raise malformed("has a finish reason that is not a word")
    if raw == _NO_RESOURCE:
        raise finish_error(raw, FailureKind.OVERLOADED)
    reason = _FINISH.get(raw.lower() or "stop")
    if reason is None:
        return vendor_finish_reason(raw), raw
    if reason == "stop" and tool_calls:
        return "tool_calls", None
    return reason, None if raw == reason else raw


def native_finish_reason(choice: JsonObject, reason: str, native: str | None) -> str | None:
    """Return the finish reason of the vendor behind OpenRouter if it differs from `reason`; otherwise `native`."""
    own = choice.get("native_finish_reason")
    return own if isinstance(own, str) and own and own != reason else native


def message_of(choice: JsonObject, *, whole: bool = False) -> JsonObject:
    """Return the object that holds a choice's text and calls: its delta, its message, or the choice of a text
    completion itself.

    `whole` says that the response is not streamed. Perplexity sends both: an empty delta in non-streaming responses,
    and the text so far as the message in streams.
    """
    for name in ("message", "delta") if whole else ("delta", "message"):
        holder = choice.get(name)
        if isinstance(holder, dict):
            return holder
        if holder:
            raise malformed("has a message that is not an object")
    return choice


def content_of(choice: JsonObject, message: JsonObject) -> str:
    """Return a choice's text. `message` is the result of `message_of` for it. In the choice of a text completion,
    `content` is a vendor's own field, and is read only if there is no `text`."""
    if message is choice:
        return text_of(choice.get("text")) or text_of(choice.get("content"))
    return text_of(message.get("content")) or text_of(choice.get("text"))


_MOST_CHECKED_FIELDS = 16
"""The most fields of a delta that are checked for being empty."""


def _holds_only(delta: JsonObject, held: str) -> bool:
    """Return whether a delta holds nothing besides the field `held`. The role, which is not read, and fields that are
    null or empty do not count: DeepSeek, OpenRouter, SGLang, xAI and Ollama send these in each event (November
    2026)."""
    if len(delta) > _MOST_CHECKED_FIELDS:
        return False
    for name, value in delta.items():
        if value is not None and name not in (held, "role") and (value or name not in PLAIN_IN_MESSAGE):
            return False
    return True


def only_text_of(choice: JsonObject) -> str:
    """Return the text of a streamed choice that holds nothing else, as nearly all do; an empty text for other
    choices."""
    if not KNOWN_IN_CHOICE.issuperset(choice) or choice.get("finish_reason") is not None:
        return ""
    delta = choice.get("delta")
    if type(delta) is dict:
        text = delta.get("content")
        if len(delta) > 1 and not _holds_only(delta, "content"):
            return ""
    else:
        text = choice.get("text") if delta is None else None
    return text if isinstance(text, str) and choice.get("logprobs") is None else ""


@frozen
class OnlyPart:
    """The only content of a streamed choice: text, reasoning, or arguments of a call.

    `value_key` is the key of its value. `marked` is the choice with MARK instead of that value. `call` is the vendor's
    index of the call that the arguments belong to.
    """

    part: RunPart
    index: int
    value_key: str
    marked: JsonObject
    call: int | None = None


def only_part_of(choice: JsonObject) -> OnlyPart | None:
    """Return the only content of a streamed choice: text, reasoning, or arguments of a call; `None` if it holds more or
    something else."""
    index, delta = choice.get("index"), choice.get("delta")
    if type(index) is not int or not KNOWN_IN_CHOICE.issuperset(choice):
        return None
    if choice.get("finish_reason") is not None or choice.get("logprobs") is not None:
        return None
    if not isinstance(delta, dict):
        text = delta is None and choice.get("text")
        return OnlyPart("text", index, "text", {**choice, "text": MARK}) if text and isinstance(text, str) else None
    for value_key, part in _TEXT_FIELDS_OF_DELTA:
        value = delta.get(value_key)
        if value and isinstance(value, str):
            alone = _holds_only(delta, value_key) and (part == "text" or not choice.get("text"))
            return OnlyPart(part, index, value_key, {**choice, "delta": {**delta, value_key: MARK}}) if alone else None
    return None if choice.get("text") else _only_arguments(choice, index, delta)


_TEXT_FIELDS_OF_DELTA: tuple[tuple[str, RunPart], ...] = (
    ("content", "text"),
    ("reasoning_content", "reasoning"),
    ("reasoning", "reasoning"),
)


def _only_arguments(choice: JsonObject, index: int, delta: JsonObject) -> OnlyPart | None:
    calls = delta.get("tool_calls")
    entry = calls[0] if isinstance(calls, list) and len(calls) == 1 else None
    if not isinstance(entry, dict) or not _CALL_FIELDS.issuperset(entry) or not _holds_only(delta, "tool_calls"):
        return None
    native, function = entry.get("index"), entry.get("function")
    if type(native) is not int or not isinstance(function, dict) or not _FUNCTION_FIELDS.issuperset(function):
        return None
    arguments = function.get("arguments")
    if function.get("name") or not isinstance(arguments, str) or not arguments:
        return None
    marked: JsonObject = {**entry, "function": {**function, "arguments": MARK}}
    made: JsonObject = {**choice, "delta": {**delta, "tool_calls": [marked]}}
    return OnlyPart("arguments", index, "arguments", made, native)


_CALL_FIELDS = frozenset({"index", "id", "type", "function"})
_FUNCTION_FIELDS = frozenset({"name", "arguments"})


_END_FIELDS = frozenset({"index", "delta", "logprobs", "finish_reason"})


def only_end_of(choice: JsonObject) -> str:
    """Return the finish reason of a streamed choice that holds only a `stop` or `length` and an empty delta, as nearly
    all last events do; an empty text for other choices."""
    reason = choice.get("finish_reason")
    usual = reason in ("stop", "length") and choice.get("delta") == {} and choice.get("logprobs") is None
    return str(reason) if usual and _END_FIELDS.issuperset(choice) else ""


def reasoning_of(message: JsonObject) -> str | None:
    """Return the reasoning text, from either of its keys or from parts of the content: Mistral's `thinking`,
    Databricks' `summary`. `None` if there is no reasoning."""
    value = message.get("reasoning_content") or message.get("reasoning")
    if isinstance(value, str) and value:
        return value
    content = message.get("content")
    if not isinstance(content, list):
        return None
    return "".join([reasoning_in_part(part) for part in content if isinstance(part, dict)]) or None


def lift_fields(profile: Profile, body: JsonObject) -> JsonObject:
    """Return a response with its `usage` and `error` at the top level, moved from the fields that the profile names."""
    if profile.own_member in body and isinstance(own := body[profile.own_member], dict):
        return {**body, **{name: own[name] for name in ("usage", "error") if own.get(name) and not body.get(name)}}
    choices = body.get("choices")
    if profile.usage_in_choices and isinstance(choices, list) and choices and isinstance(choices[0], dict):
        usage = choices[0].get("usage")
        return body if usage is None or body.get("usage") is not None else {**body, "usage": usage}
    return body


def usage_of(body: JsonObject, tier: JsonValue = None) -> Usage | None:
    """Return the usage of a response, otherwise `None`. Zeros, which Ollama sends with every chunk, mean no usage.

    `tier` is the service tier of the stream, and is used if the body has no tier. Completion tokens include reasoning
    tokens.
    """
    raw = body.get("usage")
    if not isinstance(raw, dict):
        return None
    prompt, completion, total = raw.get("prompt_tokens"), raw.get("completion_tokens"), raw.get("total_tokens")
    if not (len(raw) == 3 and type(prompt) is type(completion) is type(total) is int):
        return _usage(raw, billed_tier(body.get("service_tier") or tier))
    # Many vendors send exactly these three counts.
    if 0 < prompt <= LARGEST_COUNT and 0 <= completion <= LARGEST_COUNT and total >= 0:
        return reported_usage(prompt, completion, tier=billed_tier(body.get("service_tier") or tier))
    return _usage(raw, billed_tier(body.get("service_tier") or tier))


_READ_IN_USAGE = frozenset(
    {"prompt_tokens", "completion_tokens", "total_tokens", "reasoning_tokens", "cached_tokens"}
    | {"prompt_tokens_details", "prompt_token_details", "completion_tokens_details", "prompt_cache_hit_tokens"}
)


def _usage(raw: JsonObject, tier: str | None) -> Usage | None:
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
        # xAI counts reasoning tokens only in the total.
        completion = total - prompt
    own = unknown_in(raw, _READ_IN_USAGE)
    if own is not None and (searches := reported_searches(own)):
        completion_details.setdefault(SEARCH_REQUESTS, searches)
    return reported_usage(prompt, completion, prompt_details, completion_details, own, tier)


def _count(raw: JsonObject, name: str) -> int | None:
    value = raw.get(name)
    # Most counts are absent or plain integers. They cost no function call.
    if value is None or (type(value) is int and 0 <= value <= LARGEST_COUNT):
        return value
    return count_of(value)


def _details(raw: JsonObject, names: Sequence[str]) -> dict[str, int]:
    for name in names:
        members = raw.get(name)
        if isinstance(members, dict):
            return {key: count for key, count in members.items() if type(count) is int and 0 <= count <= LARGEST_COUNT}
    return {}


def matched_stop(choice: JsonObject) -> str | int | None:
    """Return the stop string or token id that ended the text, as vLLM and SGLang report it, otherwise `None`."""
    if "stop_reason" not in choice and "matched_stop" not in choice:
        return None
    for name in ("stop_reason", "matched_stop"):
        value = choice.get(name)
        if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
            return value
    return None
