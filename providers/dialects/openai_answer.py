"""Whole answers of the OpenAI family, completions and chat, to the common completion shape.

Never a stream, and never a request.
"""

from hashlib import blake2b

import orjson

from providers.completion import Choice, Completion, ToolCall
from providers.dialect import UpstreamRequest
from providers.dialects.gemini_calls import packed
from providers.dialects.openai_errors import failure_in_body, is_error
from providers.dialects.openai_read import (
    content_of,
    finish_reason,
    index_of,
    json_object,
    logprobs_of,
    malformed,
    matched_stop,
    message_of,
    reasoning_of,
    usage_of,
)
from providers.failure import UpstreamError
from providers.guided import unwrap_choice
from providers.unified import JsonObject, JsonValue

MAX_CHOICES = 2**16
"""Choices of one answer, of which each takes more memory read than written."""


def decode_body(sent: UpstreamRequest, body: bytes) -> Completion:
    """A 2xx body. Raises UpstreamError when it is an error in disguise or makes no sense."""
    return decode_object(sent, json_object(body))


def decode_object(sent: UpstreamRequest, body: JsonObject) -> Completion:
    """The same, parsed."""
    if is_error(body):
        raise UpstreamError(failure_in_body(sent.target.profile, body))
    raw = body.get("choices")
    if not isinstance(raw, list) or not raw:
        raise malformed("has no choices")
    if len(raw) > MAX_CHOICES:
        raise malformed("has more choices than any request asks for")
    choices = [_choice(sent, body.get("id"), entry, position) for position, entry in enumerate(raw)]
    if len({choice.index for choice in choices}) < len(choices):
        raise malformed("has two choices with one index")
    choices.sort(key=lambda choice: choice.index)
    fingerprint, tier = body.get("system_fingerprint"), body.get("service_tier")
    return Completion(
        tuple(choices),
        usage_of(body),
        fingerprint if isinstance(fingerprint, str) else None,
        tier if isinstance(tier, str) else None,
    )


def _choice(sent: UpstreamRequest, answer: JsonValue, raw: JsonValue, position: int) -> Choice:
    if not isinstance(raw, dict):
        raise malformed("has a choice that is not an object")
    message = message_of(raw)
    refusal = message.get("refusal")
    index = index_of(raw, position)
    calls = _tool_calls(sent, message.get("tool_calls"), answer, index)
    reason, native = finish_reason(raw.get("finish_reason"), bool(calls))
    if reason is None:
        raise malformed("has a choice without a finish reason")
    if message is raw and "text" not in raw and reason != "content_filter":
        raise malformed("has a choice without a message")
    text = content_of(raw, message)
    if sent.unwrap_choice and reason == "stop" and not refusal:
        text = unwrapped(text)
    return Choice(
        index=index,
        text=text or (refusal if isinstance(refusal, str) else ""),
        finish_reason=reason,
        native_finish_reason=native,
        logprobs=logprobs_of(raw.get("logprobs"), text),
        refusal=refusal if isinstance(refusal, str) else None,
        reasoning=reasoning_of(message),
        tool_calls=calls,
        matched_stop=matched_stop(raw),
        signature=signature_of(sent, message),
    )


def unwrapped(text: str) -> str:
    """The choice inside the object that stood for it. Raises UpstreamError(MALFORMED)."""
    try:
        return unwrap_choice(text)
    except ValueError:
        raise malformed("does not hold the choice that was asked for") from None


def _tool_calls(sent: UpstreamRequest, raw: JsonValue, answer: JsonValue, choice: int) -> tuple[ToolCall, ...]:
    if not isinstance(raw, list):
        return ()
    return tuple([_tool_call(sent, entry, call_id(answer, choice, number)) for number, entry in enumerate(raw)])


def _tool_call(sent: UpstreamRequest, entry: JsonValue, made_id: str) -> ToolCall:
    function = entry.get("function") if isinstance(entry, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(entry, dict) or not isinstance(function, dict) or not isinstance(name, str):
        raise malformed("has a tool call without a function's name")
    identity = entry.get("id")
    return ToolCall(
        shown_id(sent, entry, identity if isinstance(identity, str) and identity else made_id),
        sent.tool_names.get(name, name),
        arguments_text(function.get("arguments")),
    )


def shown_id(sent: UpstreamRequest, entry: JsonObject, identity: str) -> str:
    """A call's id as the client sees it, with its thought signature in it."""
    return packed(identity, signature_of(sent, entry))


def signature_of(sent: UpstreamRequest, holder: JsonObject) -> str | None:
    """The thought signature of a text or a call, where the row's `signed_calls` gives it back."""
    extra = holder.get("extra_content")
    if extra is None or "signed_calls" not in sent.target.profile.hooks:
        return None
    google = extra.get("google") if isinstance(extra, dict) else None
    signature = google.get("thought_signature") if isinstance(google, dict) else None
    return signature if isinstance(signature, str) and signature else None


def call_id(answer: JsonValue, choice: int, number: int) -> str:
    """The id of a call whose vendor gave none, from the answer's own: in a conversation no two calls may share one."""
    return "call_" + blake2b(f"{answer}/{choice}/{number}".encode(errors="replace"), digest_size=12).hexdigest()


def arguments_text(raw: JsonValue) -> str:
    """A call's arguments as JSON text; some vendors send the value itself."""
    if isinstance(raw, str):
        return raw
    return "" if raw is None else orjson.dumps(raw).decode()
