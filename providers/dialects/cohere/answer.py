"""Decodes non-streaming responses of Cohere's v2 chat into the common completion shape. The decoder of streams uses
some of the functions too.

Sources: `cohere` 7.3.1 types `V2ChatResponse`, `Usage`, `LogprobItem`, `ChatFinishReason`.
"""

from collections.abc import Mapping

import orjson

from providers.completion import (
    Choice,
    Completion,
    ContentLogprobs,
    Extras,
    FinishReason,
    TokenLogprob,
    ToolCall,
    Usage,
    count_of,
    reported_usage,
)
from providers.conversation import UNKNOWN_FORMAT
from providers.dialect import UpstreamRequest
from providers.dialects.cohere.citations import split_citations
from providers.dialects.shared.custom_tools import complete_call
from providers.dialects.shared.finish_reasons import read_finish_reason
from providers.dialects.shared.read_json import arguments_text, call_id, json_object, malformed, unwrap_answer
from providers.dialects.shared.read_logprobs import logprob
from providers.failure import Failure, FailureKind, UpstreamError
from providers.json_types import JsonObject, JsonValue
from providers.vendor_text.vet_message import vet

_PLAIN: Mapping[str, FinishReason] = {
    "COMPLETE": "stop",
    "STOP_SEQUENCE": "stop",
    "MAX_TOKENS": "length",
    "TOOL_CALL": "tool_calls",
}
_PRECISE: Mapping[str, FinishReason] = {"ERROR_TOXIC": "content_filter", "ERROR_LIMIT": "length"}
_FAILURES: Mapping[str, FailureKind] = {"ERROR": FailureKind.SERVER, "TIMEOUT": FailureKind.TIMEOUT}


def decode_answer(sent: UpstreamRequest, body: bytes) -> Completion:
    """Decode a complete 2xx body. Raises UpstreamError."""
    answer = json_object(body)
    message, usage = answer.get("message"), usage_of(answer.get("usage"))
    finish, native = finish_reason(answer.get("finish_reason"), answer.get("error"))
    if not isinstance(message, dict):
        raise malformed("has no message")
    content, plan = message.get("content"), message.get("tool_plan")
    content_items = _Content()
    parts: list[JsonValue] = content if isinstance(content, list) else [{"type": "text", "text": content}]
    for index, part in enumerate(parts):
        content_items.add(index, part)
    if isinstance(plan, str) and plan:
        content_items.reasoning_texts.append(plan)
        content_items.details.append(plan_detail(plan))
    text = "".join(content_items.texts)
    choice = Choice(
        index=0,
        text=unwrap_answer(text) if sent.unwrap_choice and finish == "stop" else text,
        finish_reason=finish,
        native_finish_reason=native,
        logprobs=logprobs_of(answer.get("logprobs")),
        reasoning="".join(content_items.reasoning_texts) or None,
        tool_calls=_calls(sent, message.get("tool_calls"), answer.get("id")),
        matched_stop=matched_stop(only_stop(sent), answer.get("finish_reason")),
        extras=_extras(message, content_items),
    )
    return Completion((choice,), usage, extra=other_response_fields(answer) or None)


class _Content:
    """The content items of a non-streaming message, sorted by kind."""

    __slots__ = ("_text_length", "details", "others", "reasoning_texts", "starts", "texts")

    def __init__(self) -> None:
        self._text_length = 0
        self.texts: list[str] = []
        self.reasoning_texts: list[str] = []
        self.details: list[JsonObject] = []
        self.others: list[JsonValue] = []
        self.starts: dict[int, int] = {}

    def add(self, index: int, part: JsonValue) -> None:
        match part:
            case {"type": "text", "text": str(text)}:
                self.starts[index] = self._text_length
                self.texts.append(text)
                self._text_length += len(text)
            case {"type": "thinking", "thinking": str(thought)}:
                self.reasoning_texts.append(thought)
                self.details.append(reasoning_detail(index, thought))
            case {"type": str(kind)} if kind not in ("text", "thinking"):
                self.others.append(part)


def reasoning_detail(index: int, thought: str) -> JsonObject:
    """Return reasoning, or a delta of it, in OpenRouter's form."""
    return {"type": "reasoning.text", "format": UNKNOWN_FORMAT, "index": index, "text": thought}


def plan_detail(plan: str) -> JsonObject:
    """Return the plan before the tool calls, or a delta of it, in OpenRouter's form."""
    return {"type": "reasoning.summary", "format": UNKNOWN_FORMAT, "index": 0, "summary": plan}


_KNOWN_MESSAGE_FIELDS = frozenset({"role", "content", "tool_calls", "tool_plan", "citations"})
_KNOWN_RESPONSE_FIELDS = frozenset(
    {"id", "type", "message", "finish_reason", "usage", "logprobs", "error", "delta", "index"}
)


def _extras(message: JsonObject, content: _Content) -> Extras | None:
    """Return the parts of a message other than text and tool calls. Parts without a common form keep the vendor's
    names."""
    annotations, unlinked = split_citations(_listed(message.get("citations")), content.starts)
    message_fields: JsonObject = {"citations": unlinked} if unlinked else {}
    if content.others:
        message_fields["content_blocks"] = content.others
    choice_fields = {
        name: value for name, value in message.items() if name not in _KNOWN_MESSAGE_FIELDS and value is not None
    }
    if not (content.details or annotations or message_fields or choice_fields):
        return None
    return Extras(
        tuple(content.details), tuple(annotations), message=message_fields or None, choice=choice_fields or None
    )


def other_response_fields(answer: JsonObject) -> JsonObject:
    """Return the fields of a response that have no common form, under the vendor's names."""
    fields: JsonObject = {
        name: value for name, value in answer.items() if name not in _KNOWN_RESPONSE_FIELDS and value is not None
    }
    usage = answer.get("usage")
    billed = usage.get("billed_units") if isinstance(usage, dict) else None
    return {**fields, "billed_units": billed} if billed else fields


def _listed(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def _calls(sent: UpstreamRequest, raw: JsonValue, answer: JsonValue) -> tuple[ToolCall, ...]:
    calls = raw if isinstance(raw, list) else []
    calls_made = [call_of(sent, call, call_id(answer, 0, number)) for number, call in enumerate(calls)]
    return tuple([complete_call(call, sent.custom_tools) for call in calls_made])


def call_of(sent: UpstreamRequest, call: JsonValue, fallback_id: str) -> ToolCall:
    """Return a tool call, or the beginning of one, with the client's name of its function. `fallback_id` is the call's
    id if the vendor gave no id.

    Raises UpstreamError.
    """
    function = call.get("function") if isinstance(call, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(call, dict) or not isinstance(function, dict) or not isinstance(name, str):
        raise malformed("has a tool call without a function's name")
    identity, arguments = call.get("id"), arguments_text(function.get("arguments"))
    identity_or_fallback = identity if isinstance(identity, str) and identity else fallback_id
    return ToolCall(identity_or_fallback, sent.tool_names.get(name, name), arguments)


def finish_reason(reason: JsonValue, error: JsonValue = None) -> tuple[str, str | None]:
    """Return the common finish reason, and the vendor's own reason if it is more precise, otherwise `None`. Raises
    UpstreamError for a reason that means failure, with the vendor's `error` as its message."""
    if not isinstance(reason, str):
        raise malformed("has no finish reason")
    if reason in _FAILURES:
        message = vet(error) if isinstance(error, str) else ""
        raise UpstreamError(Failure(_FAILURES[reason], message or "The upstream ended its response with an error."))
    return read_finish_reason(reason, _PLAIN, _PRECISE)


def only_stop(sent: UpstreamRequest) -> str | None:
    """Return the stop string of a call if the call has exactly one; otherwise `None`."""
    if b'"stop_sequences"' not in sent.body:
        return None
    stops = orjson.loads(sent.body).get("stop_sequences")
    return str(stops[0]) if isinstance(stops, list) and len(stops) == 1 else None


def matched_stop(stop: str | None, reason: JsonValue) -> str | None:
    """Return the stop string that ended the text. The stop string is known only if exactly one was sent, because the
    vendor does not report which one matched."""
    return stop if reason == "STOP_SEQUENCE" else None


def usage_of(raw: JsonValue) -> Usage | None:
    """Return the token counts as integers, although the vendor sends floats; `None` if there are no counts.

    The billed counts leave out the vendor's own preamble, so they are not used.
    """
    tokens = raw.get("tokens") if isinstance(raw, dict) else None
    if not isinstance(raw, dict) or not isinstance(tokens, dict):
        return None
    prompt, completion = _count(tokens, "input_tokens"), _count(tokens, "output_tokens")
    cached = _count(raw, "cached_tokens")
    return reported_usage(prompt, completion, None if cached is None else {"cached_tokens": cached})


def _count(holder: JsonObject, name: str) -> int | None:
    return count_of(holder.get(name))


def logprobs_of(raw: JsonValue) -> ContentLogprobs | None:
    """Return the log probabilities. If an entry has several tokens, the first token gets the text of the entry."""
    entries = raw if isinstance(raw, list) else []
    tokens = tuple([token for entry in entries if isinstance(entry, dict) for token in _tokens(entry)])
    return ContentLogprobs(tokens) if tokens else None


def _tokens(entry: JsonObject) -> list[TokenLogprob]:
    text, numbers = entry.get("text"), entry.get("logprobs")
    tokens = [TokenLogprob("", logprob(number)) for number in numbers] if isinstance(numbers, list) else []
    return [TokenLogprob(text if isinstance(text, str) else "", tokens[0].logprob), *tokens[1:]] if tokens else []
