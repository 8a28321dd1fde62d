"""Whole answers of Cohere's v2 chat to the common completion shape, and what streams share with them.

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
from providers.dialects.cohere.citations import cited
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
_SHOWN: Mapping[str, FinishReason] = {"ERROR_TOXIC": "content_filter", "ERROR_LIMIT": "length"}
_BROKEN: Mapping[str, FailureKind] = {"ERROR": FailureKind.SERVER, "TIMEOUT": FailureKind.TIMEOUT}


def decode_answer(sent: UpstreamRequest, body: bytes) -> Completion:
    """Decode a whole 2xx body. Raises UpstreamError."""
    answer = json_object(body)
    message, usage = answer.get("message"), usage_of(answer.get("usage"))
    finish, native = finish_reason(answer.get("finish_reason"), answer.get("error"))
    if not isinstance(message, dict):
        raise malformed("has no message")
    content, plan = message.get("content"), message.get("tool_plan")
    read = _Content()
    parts: list[JsonValue] = content if isinstance(content, list) else [{"type": "text", "text": content}]
    for index, part in enumerate(parts):
        read.add(index, part)
    if isinstance(plan, str) and plan:
        read.thoughts.append(plan)
        read.details.append(plan_detail(plan))
    text = "".join(read.texts)
    choice = Choice(
        index=0,
        text=unwrap_answer(text) if sent.unwrap_choice and finish == "stop" else text,
        finish_reason=finish,
        native_finish_reason=native,
        logprobs=logprobs_of(answer.get("logprobs")),
        reasoning="".join(read.thoughts) or None,
        tool_calls=_calls(sent, message.get("tool_calls"), answer.get("id")),
        matched_stop=matched_stop(only_stop(sent), answer.get("finish_reason")),
        extras=_extras(message, read),
    )
    return Completion((choice,), usage, extra=own_members(answer) or None)


class _Content:
    """Reads the items of a whole answer's content."""

    __slots__ = ("_said", "details", "others", "starts", "texts", "thoughts")

    def __init__(self) -> None:
        self._said = 0
        self.texts: list[str] = []
        self.thoughts: list[str] = []
        self.details: list[JsonObject] = []
        self.others: list[JsonValue] = []
        self.starts: dict[int, int] = {}

    def add(self, index: int, part: JsonValue) -> None:
        match part:
            case {"type": "text", "text": str(text)}:
                self.starts[index] = self._said
                self.texts.append(text)
                self._said += len(text)
            case {"type": "thinking", "thinking": str(thought)}:
                self.thoughts.append(thought)
                self.details.append(thought_detail(index, thought))
            case {"type": str(kind)} if kind not in ("text", "thinking"):
                self.others.append(part)


def thought_detail(index: int, thought: str) -> JsonObject:
    """Return thinking, or a piece of it, in OpenRouter's form."""
    return {"type": "reasoning.text", "format": UNKNOWN_FORMAT, "index": index, "text": thought}


def plan_detail(plan: str) -> JsonObject:
    """Return the plan before the calls, or a piece of it, in OpenRouter's form."""
    return {"type": "reasoning.summary", "format": UNKNOWN_FORMAT, "index": 0, "summary": plan}


_OF_MESSAGE = frozenset({"role", "content", "tool_calls", "tool_plan", "citations"})
_OF_ANSWER = frozenset({"id", "type", "message", "finish_reason", "usage", "logprobs", "error", "delta", "index"})


def _extras(message: JsonObject, read: _Content) -> Extras | None:
    """Return what the answer holds besides text and calls; what has no common form keeps the vendor's names."""
    annotations, passed = cited(_listed(message.get("citations")), read.starts)
    members: JsonObject = {"citations": passed} if passed else {}
    if read.others:
        members["content_blocks"] = read.others
    own = {name: value for name, value in message.items() if name not in _OF_MESSAGE and value is not None}
    if not (read.details or annotations or members or own):
        return None
    return Extras(tuple(read.details), tuple(annotations), message=members or None, choice=own or None)


def own_members(answer: JsonObject) -> JsonObject:
    """Return the members of an answer that have no common form, under the vendor's names."""
    members: JsonObject = {
        name: value for name, value in answer.items() if name not in _OF_ANSWER and value is not None
    }
    usage = answer.get("usage")
    billed = usage.get("billed_units") if isinstance(usage, dict) else None
    return {**members, "billed_units": billed} if billed else members


def _listed(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def _calls(sent: UpstreamRequest, raw: JsonValue, answer: JsonValue) -> tuple[ToolCall, ...]:
    calls = raw if isinstance(raw, list) else []
    made = [call_of(sent, call, call_id(answer, 0, number)) for number, call in enumerate(calls)]
    return tuple([complete_call(call, sent.custom_tools) for call in made])


def call_of(sent: UpstreamRequest, call: JsonValue, fallback_id: str) -> ToolCall:
    """Return a call, or the begin of one, under the client's name for its function; `fallback_id` is its id if it has
    none.

    Raises UpstreamError.
    """
    function = call.get("function") if isinstance(call, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(call, dict) or not isinstance(function, dict) or not isinstance(name, str):
        raise malformed("has a tool call without a function's name")
    identity, arguments = call.get("id"), arguments_text(function.get("arguments"))
    own = identity if isinstance(identity, str) and identity else fallback_id
    return ToolCall(own, sent.tool_names.get(name, name), arguments)


def finish_reason(reason: JsonValue, error: JsonValue = None) -> tuple[str, str | None]:
    """Return the finish reason as `read_finish_reason` does."""
    if not isinstance(reason, str):
        raise malformed("has no finish reason")
    if reason in _BROKEN:
        message = vet(error) if isinstance(error, str) else ""
        raise UpstreamError(Failure(_BROKEN[reason], message or "The upstream broke the answer off with an error."))
    return read_finish_reason(reason, _PLAIN, _SHOWN)


def only_stop(sent: UpstreamRequest) -> str | None:
    """Return the stop string of a call that has exactly one."""
    if b'"stop_sequences"' not in sent.body:
        return None
    stops = orjson.loads(sent.body).get("stop_sequences")
    return str(stops[0]) if isinstance(stops, list) and len(stops) == 1 else None


def matched_stop(stop: str | None, reason: JsonValue) -> str | None:
    """Return the stop string that ended the text if only one was sent: the vendor does not say which one matched."""
    return stop if reason == "STOP_SEQUENCE" else None


def usage_of(raw: JsonValue) -> Usage | None:
    """Return the counts, which are floats on the wire; None without counts.

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
    """Return the log probabilities; the one text of an entry with several tokens goes to its first token."""
    entries = raw if isinstance(raw, list) else []
    found = tuple([token for entry in entries if isinstance(entry, dict) for token in _tokens(entry)])
    return ContentLogprobs(found) if found else None


def _tokens(entry: JsonObject) -> list[TokenLogprob]:
    text, numbers = entry.get("text"), entry.get("logprobs")
    tokens = [TokenLogprob("", logprob(number)) for number in numbers] if isinstance(numbers, list) else []
    return [TokenLogprob(text if isinstance(text, str) else "", tokens[0].logprob), *tokens[1:]] if tokens else []
