"""Whole answers of Bedrock's Converse to the common completion shape, and what streams share with them.

Sources: botocore 1.44.5 service model `bedrock-runtime`, shapes `ConverseResponse`, `StopReason`, `TokenUsage`.
"""

from collections.abc import Mapping

from providers.completion import (
    Choice,
    Completion,
    FinishReason,
    ToolCall,
    Usage,
    billed_tier,
    count_of,
    reported_usage,
)
from providers.conversation import UNKNOWN_FORMAT
from providers.dialect import UpstreamRequest
from providers.dialects.anthropic.answer import whole_text
from providers.dialects.bedrock.converse_blocks import (
    AnswerExtras,
    cited_text,
    own_members,
    redacted_detail,
    thinking_format,
    thought_detail,
)
from providers.dialects.shared.custom_tools import complete_call
from providers.dialects.shared.finish_reasons import read_finish_reason
from providers.dialects.shared.read_json import arguments_text, json_object, malformed
from providers.failure import Failure, FailureKind, UpstreamError
from providers.json_types import JsonObject, JsonValue
from providers.request_fields import STOP_STRING

_PLAIN: Mapping[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
}
_SHOWN: Mapping[str, FinishReason] = {
    "model_context_window_exceeded": "length",
    "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
}
_BROKEN = frozenset({"malformed_model_output", "malformed_tool_use"})

SERVER_TOOL = "server_tool_use"
"""The type of a call that the service itself executes; it is not for the client."""


def decode_converse(sent: UpstreamRequest, body: bytes) -> Completion:
    """Decode a whole 2xx body. Raises UpstreamError."""
    answer = json_object(body)
    match answer:
        case {"output": {"message": {"content": list(blocks)}}, "stopReason": str(reason)}:
            finish, native = finish_reason(reason)
        case _:
            raise malformed("has no message or no stop reason")
    read = _Blocks(sent)
    for index, block in enumerate(blocks):
        if isinstance(block, dict):
            read.add(index, block)
    matched = stop_string(sent, answer, reason)
    choice = Choice(
        index=0,
        text=whole_text(sent, "".join(read.texts), finish, matched),
        finish_reason=finish,
        native_finish_reason=native,
        reasoning="".join(read.thoughts) or None,
        tool_calls=tuple(read.calls),
        matched_stop=matched,
        extras=read.extras.whole(length=sum(map(len, read.texts))),
    )
    own = own_members(answer)
    return Completion((choice,), usage_of(answer.get("usage"), tier_of(answer)), None, tier_of(answer), own or None)


class _Blocks:
    """Reads the blocks of a whole answer."""

    __slots__ = ("_format", "_said", "_sent", "calls", "extras", "texts", "thoughts")

    def __init__(self, sent: UpstreamRequest) -> None:
        self._sent = sent
        self._format = thinking_format(sent)
        self._said = 0
        self.texts: list[str] = []
        self.thoughts: list[str] = []
        self.calls: list[ToolCall] = []
        self.extras = AnswerExtras()

    def add(self, index: int, block: JsonObject) -> None:
        match block:
            case {"text": str(text)}:
                self._say(text)
            case {"citationsContent": dict(cited)}:
                start, citations = self._said, cited.get("citations")
                self._say(cited_text(cited))
                self.extras.cite(citations if isinstance(citations, list) else (), start, self._said)
            case {"reasoningContent": {"reasoningText": dict(thought)}}:
                self._think(index, thought)
            case {"reasoningContent": {"redactedContent": str(data)}}:
                self.extras.think(redacted_detail(self._format, index, data))
            case {"toolUse": dict(call)} if call.get("type") != SERVER_TOOL:
                self.calls.append(call_of(self._sent, call))
            case {"image": dict(image)}:
                self.extras.show(image, self._said)
            case _:
                for kind, value in block.items():
                    self.extras.pass_on(kind, value)

    def _think(self, index: int, thought: JsonObject) -> None:
        text, signature = thought.get("text"), thought.get("signature")
        if isinstance(text, str):
            signed = signature if isinstance(signature, str) and signature else None
            self.thoughts.append(text)
            self.extras.think(thought_detail(self._format if signed else UNKNOWN_FORMAT, index, text, signed))

    def _say(self, text: str) -> None:
        self.texts.append(text)
        self._said += len(text)


def tier_of(holder: JsonObject) -> str | None:
    """Return the service tier of an answer."""
    tier = holder.get("serviceTier")
    kind = tier.get("type") if isinstance(tier, dict) else None
    return kind if isinstance(kind, str) else None


def call_of(sent: UpstreamRequest, call: JsonObject) -> ToolCall:
    """Return the call in a block under the client's name for the tool."""
    identity, name = call.get("toolUseId"), call.get("name")
    if not isinstance(identity, str) or not isinstance(name, str):
        raise malformed("has a tool call without id or name")
    made = ToolCall(identity, sent.tool_names.get(name, name), arguments_text(call.get("input")))
    return complete_call(made, sent.custom_tools)


def finish_reason(reason: str) -> tuple[str, str | None]:
    """Return the finish reason as `read_finish_reason` does."""
    if reason in _BROKEN:
        message = "The upstream's model gave an answer that it could not read."
        raise UpstreamError(Failure(FailureKind.NONCONFORMING, message))
    return read_finish_reason(reason, _PLAIN, _SHOWN)


def stop_string(sent: UpstreamRequest, holder: JsonObject, reason: str) -> str | None:
    """Return the stop string that ended the text, where the model names it.

    Raises UpstreamError where the client wants the string in the text and the model does not name it.
    """
    extra = holder.get("additionalModelResponseFields")
    held = extra if isinstance(extra, dict) else {}
    inner = held.get("delta")
    matched = held.get("stop_sequence") or (inner.get("stop_sequence") if isinstance(inner, dict) else None)
    if isinstance(matched, str) and matched:
        return matched
    if reason == "stop_sequence" and STOP_STRING in sent.emulated:
        raise malformed("does not say which stop string has ended it")
    return None


def usage_of(raw: JsonValue, tier: str | None = None) -> Usage | None:
    """Return the counts in OpenAI's meaning, where prompt tokens include cached ones; None without counts. `tier` is
    the service tier of the response."""
    if not isinstance(raw, dict):
        return None
    fresh, output = count_of(raw.get("inputTokens")), count_of(raw.get("outputTokens"))
    if fresh is None:
        return None
    details: dict[str, int] = {}
    for wire, name in (("cacheReadInputTokens", "cached_tokens"), ("cacheWriteInputTokens", "cache_write_tokens")):
        if (count := count_of(raw.get(wire))) is not None:
            details[name] = count
    prompt = fresh + sum(details.values())
    written = raw.get("cacheDetails")
    for each in written if isinstance(written, list) else ():
        if isinstance(each, dict) and each.get("ttl") == "1h" and (count := count_of(each.get("inputTokens"))):
            details["ephemeral_1h_input_tokens"] = count
    return reported_usage(prompt, output, details, tier=billed_tier(tier))
