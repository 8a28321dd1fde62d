"""Decodes non-streaming responses of the OpenAI family, completions and chat, into the common completion shape."""

from collections.abc import Sequence
from dataclasses import replace

import orjson

from providers.completion import CallKind, Choice, Completion, Extras, ToolCall
from providers.dialect import UpstreamRequest
from providers.dialects.openai.cited_marks import SOURCE_LISTS, MarkFinder, Source, sources_of
from providers.dialects.openai.read import (
    content_of,
    finish_reason,
    lift_fields,
    matched_stop,
    message_of,
    native_finish_reason,
    reasoning_of,
    usage_of,
)
from providers.dialects.openai.read_extras import KNOWN_IN_ANSWER, extras_of
from providers.dialects.shared.custom_tools import complete_call
from providers.dialects.shared.errors import failure_in_body, is_error
from providers.dialects.shared.read_json import (
    arguments_text,
    call_id,
    index_of,
    json_object,
    load_unchecked,
    malformed,
    object_in,
    unknown_in,
    unwrap_answer,
)
from providers.dialects.shared.read_logprobs import logprobs_of
from providers.dialects.shared.thought_signatures import pack_call_id
from providers.failure import UpstreamError
from providers.json_types import JsonObject, JsonValue

MAX_CHOICES = 2**16
"""The most choices of one response. Each choice takes more memory than its text."""


def decode_body(sent: UpstreamRequest, body: bytes) -> Completion:
    """Decode a 2xx body. Raises UpstreamError if it holds an error or is malformed."""
    try:
        value = load_unchecked(body)
    except orjson.JSONDecodeError:
        return decode_object(
            sent, json_object(body)
        )  # reads JSON that `load_unchecked` cannot, such as unpaired surrogates
    if type(value) is dict and not sent.unwrap_choice and (simple := _only_text_completion(value)) is not None:
        return simple
    return decode_object(sent, object_in(body, value))


def _only_text_completion(body: JsonObject) -> Completion | None:
    """Return the completion of a response that has one text and no fields to pass on, as most have; otherwise `None`.

    The result is the same as the result of `decode_object`, at half the cost. A vendor's own field for usage and errors
    is not among the known fields, so a response with it gives `None`.
    """
    raw = body.get("choices")
    if type(raw) is not list or len(raw) != 1 or not KNOWN_IN_ANSWER.issuperset(body):
        return None
    if body.get("error") or body.get("object") == "error":
        return None
    choice = only_text_in(first) if type(first := raw[0]) is dict else None
    if choice is None:
        return None
    fingerprint, tier = body.get("system_fingerprint"), body.get("service_tier")
    return Completion(
        (choice,),
        usage_of(body),
        fingerprint if isinstance(fingerprint, str) else None,
        tier if isinstance(tier, str) else None,
    )


def decode_object(sent: UpstreamRequest, body: JsonObject) -> Completion:
    """Decode a parsed body as `decode_body` does."""
    profile = sent.target.profile
    body = lift_fields(profile, body)
    if is_error(body):
        raise UpstreamError(failure_in_body(profile, body))
    raw = body.get("choices")
    if not isinstance(raw, list) or not raw:
        raise malformed("has no choices")
    if len(raw) > MAX_CHOICES:
        raise malformed("has more choices than any request allows")
    sources = () if SOURCE_LISTS.isdisjoint(body) else sources_of(body)
    choices = [_choice(sent, body.get("id"), entry, position, sources) for position, entry in enumerate(raw)]
    if len(choices) > 1:
        if len({choice.index for choice in choices}) < len(choices):
            raise malformed("has two choices with one index")
        choices.sort(key=lambda choice: choice.index)
    fingerprint, tier = body.get("system_fingerprint"), body.get("service_tier")
    return Completion(
        tuple(choices),
        usage_of(body),
        fingerprint if isinstance(fingerprint, str) else None,
        tier if isinstance(tier, str) else None,
        unknown_in(body, KNOWN_IN_ANSWER),
    )


def _choice(
    sent: UpstreamRequest, answer: JsonValue, raw: JsonValue, position: int, sources: Sequence[Source]
) -> Choice:
    if not isinstance(raw, dict):
        raise malformed("has a choice that is not an object")
    if not (sources or sent.unwrap_choice) and (plain := only_text_in(raw)) is not None:
        return plain
    message = message_of(raw, whole=True)
    refusal = message.get("refusal")
    index = index_of(raw, position)
    listed = calls_in(message)
    calls = _tool_calls(sent, listed, answer, index) if listed else ()
    reason, native = finish_reason(raw.get("finish_reason"), bool(calls))
    if reason is None:
        raise malformed("has a choice without a finish reason")
    if message is raw and "text" not in raw and reason != "content_filter":
        raise malformed("has a choice without a message")
    text = content_of(raw, message)
    extras = extras_of(raw, message, 0, 0, signs(sent))
    logprobs = raw.get("logprobs")
    if sent.unwrap_choice and reason == "stop" and not refusal:
        text = unwrap_answer(text)
    # Positional, because eleven keyword arguments would double the cost of creating the choice.
    return Choice(
        index,
        text or (refusal if isinstance(refusal, str) else ""),
        reason,
        native_finish_reason(raw, reason, native) if "native_finish_reason" in raw else native,
        None if logprobs is None else logprobs_of(logprobs, text),
        refusal if isinstance(refusal, str) else None,
        reasoning_of(message),
        calls,
        matched_stop(raw),
        signature_of(sent, message) if "extra_content" in message else None,
        _cited(extras, text, sources) if sources else extras,
    )


_PLAIN_CHOICE = frozenset({"index", "message", "text", "logprobs", "finish_reason"})
_PLAIN_MESSAGE = frozenset({"role", "content", "refusal", "annotations"})


def only_text_in(raw: JsonObject) -> Choice | None:
    """Return a choice that ended with `stop` or `length` and holds only a text, as most do; `None` for any other
    choice, which takes many more checks."""
    message, index, reason = raw.get("message"), raw.get("index"), raw.get("finish_reason")
    if (
        type(index) is not int
        or reason not in ("stop", "length")
        or raw.get("logprobs") is not None
        or not _PLAIN_CHOICE.issuperset(raw)
    ):
        return None
    text = raw.get("text")
    if type(message) is dict:
        if message.get("refusal") is not None or message.get("annotations") or not _PLAIN_MESSAGE.issuperset(message):
            return None
        text = message.get("content")
    elif message is not None:
        return None
    return Choice(index, text, reason) if type(text) is str and text else None


def _cited(extras: Extras | None, text: str, sources: Sequence[Source]) -> Extras | None:
    """Return the extras with citations for the marks in the text, unless the vendor sent annotations itself."""
    if extras is not None and extras.annotations:
        return extras
    found = MarkFinder().cite(text, sources, last=True)
    return replace(extras or Extras(), annotations=found) if found else extras


def calls_in(message: JsonObject) -> list[JsonValue]:
    """Return the tool calls of a message or delta. A call in OpenAI's older form, `function_call`, is the only call.
    Raises UpstreamError if the calls are not a list."""
    calls, legacy = message.get("tool_calls"), message.get("function_call")
    if calls:
        if not isinstance(calls, list):
            raise malformed("has tool calls that are not a list")
        return calls
    return [{"function": legacy}] if isinstance(legacy, dict) and legacy else []


def _tool_calls(sent: UpstreamRequest, raw: list[JsonValue], answer: JsonValue, choice: int) -> tuple[ToolCall, ...]:
    return tuple([_tool_call(sent, entry, call_id(answer, choice, number)) for number, entry in enumerate(raw)])


def _tool_call(sent: UpstreamRequest, entry: JsonValue, made_id: str) -> ToolCall:
    entry, kind, called, written = called_in(entry)
    name = called.get("name")
    if not isinstance(name, str):
        raise malformed("has a tool call without a function's name")
    identity = entry.get("id")
    made = ToolCall(
        shown_id(sent, entry, identity if isinstance(identity, str) and identity else made_id),
        sent.tool_names.get(name, name),
        written,
        kind,
        unknown_in(entry, READ_IN_CALL),
    )
    return complete_call(made, sent.custom_tools)


READ_IN_CALL = frozenset({"index", "id", "type", "function", "custom"})


def called_in(entry: JsonValue) -> tuple[JsonObject, CallKind, JsonObject, str]:
    """Return a tool call or a delta of one, its kind, the object with its name, and its arguments.

    Raises UpstreamError if the call is neither a function call nor a custom tool call.
    """
    if isinstance(entry, dict):
        function, custom = entry.get("function"), entry.get("custom")
        if isinstance(function, dict):
            return entry, "function", function, arguments_text(function.get("arguments"))
        if isinstance(custom, dict):
            return entry, "custom", custom, arguments_text(custom.get("input"))
    raise malformed("has a tool call without a function")


def shown_id(sent: UpstreamRequest, entry: JsonObject, identity: str) -> str:
    """Return a call's id for the client, which also carries the call's thought signature if there is one."""
    return pack_call_id(identity, signature_of(sent, entry))


def signature_of(sent: UpstreamRequest, holder: JsonObject) -> str | None:
    """Return the thought signature of a text or a call; `None` unless the profile has the hook `signed_calls`."""
    extra = holder.get("extra_content")
    if extra is None or not signs(sent):
        return None
    google = extra.get("google") if isinstance(extra, dict) else None
    signature = google.get("thought_signature") if isinstance(google, dict) else None
    return signature if isinstance(signature, str) and signature else None


def signs(sent: UpstreamRequest) -> bool:
    """Return whether the vendor signs texts and calls, and expects the signatures in later requests."""
    return "signed_calls" in sent.target.profile.hooks
