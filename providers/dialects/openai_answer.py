"""Whole answers of the OpenAI family, completions and chat, to the common completion shape.

Never a stream, and never a request.
"""

import orjson

from providers.completion import Choice, Completion, ToolCall
from providers.dialect import UpstreamRequest
from providers.dialects.openai_errors import failure_in_body
from providers.dialects.openai_read import (
    finish_reason,
    index_of,
    json_object,
    logprobs_of,
    malformed,
    matched_stop,
    reasoning_of,
    text_of,
    usage_of,
)
from providers.failure import UpstreamError
from providers.guided import unwrap_choice
from providers.unified import JsonObject, JsonValue


def decode_body(sent: UpstreamRequest, body: bytes) -> Completion:
    """A 2xx body. Raises UpstreamError when it is an error in disguise or makes no sense."""
    return decode_object(sent, json_object(body))


def decode_object(sent: UpstreamRequest, body: JsonObject) -> Completion:
    """The same, parsed."""
    if body.get("error"):
        raise UpstreamError(failure_in_body(sent.target.profile, body))
    raw = body.get("choices")
    if not isinstance(raw, list) or not raw:
        raise malformed("has no choices")
    choices = [_choice(sent, entry) for entry in raw if isinstance(entry, dict)]
    choices.sort(key=lambda choice: choice.index)
    fingerprint, tier = body.get("system_fingerprint"), body.get("service_tier")
    return Completion(
        tuple(choices),
        usage_of(body),
        fingerprint if isinstance(fingerprint, str) else None,
        tier if isinstance(tier, str) else None,
    )


def _choice(sent: UpstreamRequest, raw: JsonObject) -> Choice:
    message = raw.get("message")
    holder: JsonObject = message if isinstance(message, dict) else {}
    content = holder.get("content") if isinstance(message, dict) else raw.get("text")
    refusal = holder.get("refusal")
    calls = tuple(_tool_calls(sent, holder.get("tool_calls")))
    reason, native = finish_reason(raw.get("finish_reason"), bool(calls))
    if reason is None:
        raise malformed("has a choice without a finish reason")
    text = text_of(content)
    if not text and isinstance(refusal, str):
        text = refusal
    return Choice(
        index=index_of(raw),
        text=_unwrapped(text) if sent.unwrap_choice and reason == "stop" and not refusal else text,
        finish_reason=reason,
        native_finish_reason=native,
        logprobs=logprobs_of(raw.get("logprobs")),
        refusal=refusal if isinstance(refusal, str) else None,
        reasoning=reasoning_of(holder),
        tool_calls=calls,
        matched_stop=matched_stop(raw),
    )


def _unwrapped(text: str) -> str:
    try:
        return unwrap_choice(text)
    except ValueError:
        raise malformed("does not hold the choice that was asked for") from None


def _tool_calls(sent: UpstreamRequest, raw: JsonValue) -> list[ToolCall]:
    calls: list[ToolCall] = []
    for position, entry in enumerate(raw if isinstance(raw, list) else []):
        function = entry.get("function") if isinstance(entry, dict) else None
        if not isinstance(entry, dict) or not isinstance(function, dict):
            raise malformed("has a tool call without a function")
        name, arguments = str(function.get("name", "")), function.get("arguments", "")
        calls.append(
            ToolCall(
                str(entry.get("id") or f"call_{position}"),
                sent.tool_names.get(name, name),
                arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode(),
            )
        )
    return calls
