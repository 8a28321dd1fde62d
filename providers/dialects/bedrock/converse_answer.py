"""Decodes non-streaming Converse responses into the common completion shape. The decoder of streams uses some functions
too.

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
from providers.dialects.anthropic.answer import final_text
from providers.dialects.bedrock.converse_blocks import (
    ResponseExtras,
    cited_text,
    other_response_fields,
    reasoning_detail,
    reasoning_format,
    redacted_detail,
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
_PRECISE: Mapping[str, FinishReason] = {
    "model_context_window_exceeded": "length",
    "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
}
_FAILURES = frozenset({"malformed_model_output", "malformed_tool_use"})

SERVER_TOOL = "server_tool_use"
"""The type of a call that the service itself executes. Such calls are not sent to the client as tool calls."""


def decode_converse(sent: UpstreamRequest, body: bytes) -> Completion:
    """Decode a complete 2xx body. Raises UpstreamError."""
    answer = json_object(body)
    match answer:
        case {"output": {"message": {"content": list(blocks)}}, "stopReason": str(reason)}:
            finish, native = finish_reason(reason)
        case _:
            raise malformed("has no message or no stop reason")
    parts = _ConverseParts(sent)
    for index, block in enumerate(blocks):
        if isinstance(block, dict):
            parts.add(index, block)
    matched = stop_string(sent, answer, reason)
    choice = Choice(
        index=0,
        text=final_text(sent, "".join(parts.texts), finish, matched),
        finish_reason=finish,
        native_finish_reason=native,
        reasoning="".join(parts.reasoning_texts) or None,
        tool_calls=tuple(parts.calls),
        matched_stop=matched,
        extras=parts.extras.whole(length=sum(map(len, parts.texts))),
    )
    other = other_response_fields(answer)
    return Completion((choice,), usage_of(answer.get("usage"), tier_of(answer)), None, tier_of(answer), other or None)


class _ConverseParts:
    """The parts of a non-streaming message, collected from its blocks."""

    __slots__ = ("_format", "_sent", "_text_length", "calls", "extras", "reasoning_texts", "texts")

    def __init__(self, sent: UpstreamRequest) -> None:
        self._sent = sent
        self._format = reasoning_format(sent)
        self._text_length = 0
        self.texts: list[str] = []
        self.reasoning_texts: list[str] = []
        self.calls: list[ToolCall] = []
        self.extras = ResponseExtras()

    def add(self, index: int, block: JsonObject) -> None:
        match block:
            case {"text": str(text)}:
                self._add_text(text)
            case {"citationsContent": dict(cited)}:
                start, citations = self._text_length, cited.get("citations")
                self._add_text(cited_text(cited))
                self.extras.add_citations(citations if isinstance(citations, list) else (), start, self._text_length)
            case {"reasoningContent": {"reasoningText": dict(thought)}}:
                self._add_thought(index, thought)
            case {"reasoningContent": {"redactedContent": str(data)}}:
                self.extras.add_reasoning(redacted_detail(self._format, index, data))
            case {"toolUse": dict(call)} if call.get("type") != SERVER_TOOL:
                self.calls.append(call_of(self._sent, call))
            case {"image": dict(image)}:
                self.extras.add_image(image, self._text_length)
            case _:
                for kind, value in block.items():
                    self.extras.add_block(kind, value)

    def _add_thought(self, index: int, thought: JsonObject) -> None:
        text, signature = thought.get("text"), thought.get("signature")
        if isinstance(text, str):
            signed = signature if isinstance(signature, str) and signature else None
            self.reasoning_texts.append(text)
            self.extras.add_reasoning(reasoning_detail(self._format if signed else UNKNOWN_FORMAT, index, text, signed))

    def _add_text(self, text: str) -> None:
        self.texts.append(text)
        self._text_length += len(text)


def tier_of(holder: JsonObject) -> str | None:
    """Return the service tier of a response."""
    tier = holder.get("serviceTier")
    kind = tier.get("type") if isinstance(tier, dict) else None
    return kind if isinstance(kind, str) else None


def call_of(sent: UpstreamRequest, call: JsonObject) -> ToolCall:
    """Return the tool call in a block, with the client's name of the tool."""
    identity, name = call.get("toolUseId"), call.get("name")
    if not isinstance(identity, str) or not isinstance(name, str):
        raise malformed("has a tool call without id or name")
    tool_call = ToolCall(identity, sent.tool_names.get(name, name), arguments_text(call.get("input")))
    return complete_call(tool_call, sent.custom_tools)


def finish_reason(reason: str) -> tuple[str, str | None]:
    """Return the common finish reason, and Converse's own reason if that is more specific, otherwise `None`. Raises
    UpstreamError if the reason means failure."""
    if reason in _FAILURES:
        message = "The upstream could not parse the response of its model."
        raise UpstreamError(Failure(FailureKind.NONCONFORMING, message))
    return read_finish_reason(reason, _PLAIN, _PRECISE)


def stop_string(sent: UpstreamRequest, holder: JsonObject, reason: str) -> str | None:
    """Return the stop string that ended the text, if the model reports it.

    Raises UpstreamError if the client requested the stop string in the text and the model does not report it.
    """
    extra = holder.get("additionalModelResponseFields")
    fields = extra if isinstance(extra, dict) else {}
    inner = fields.get("delta")
    matched = fields.get("stop_sequence") or (inner.get("stop_sequence") if isinstance(inner, dict) else None)
    if isinstance(matched, str) and matched:
        return matched
    if reason == "stop_sequence" and STOP_STRING in sent.emulated:
        raise malformed("does not report the stop string that ended it")
    return None


def usage_of(raw: JsonValue, tier: str | None = None) -> Usage | None:
    """Return the token counts with OpenAI's meaning: prompt tokens include cached tokens. `None` if there are no
    counts. `tier` is the service tier of the response."""
    if not isinstance(raw, dict):
        return None
    uncached, output = count_of(raw.get("inputTokens")), count_of(raw.get("outputTokens"))
    if uncached is None:
        return None
    prompt_details: dict[str, int] = {}
    for wire, name in (("cacheReadInputTokens", "cached_tokens"), ("cacheWriteInputTokens", "cache_write_tokens")):
        if (count := count_of(raw.get(wire))) is not None:
            prompt_details[name] = count
    prompt = uncached + sum(prompt_details.values())
    written = raw.get("cacheDetails")
    for each in written if isinstance(written, list) else ():
        if isinstance(each, dict) and each.get("ttl") == "1h" and (count := count_of(each.get("inputTokens"))):
            prompt_details["ephemeral_1h_input_tokens"] = count
    return reported_usage(prompt, output, prompt_details, tier=billed_tier(tier))
