"""The fields that text and chat responses share, as JSON.

Source: OpenAI OpenAPI 2.3.0. `native_finish_reason` (OpenRouter's name) is the vendor's own value, `stop_reason`
(vLLM's name) the stop string that matched; clients that do not know these fields ignore them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, get_args

from providers.completion import CallKind, Choice, Chunk, Completion, FinishReason, ToolCall, ToolCallDelta, Usage
from providers.json_types import JsonValue
from providers.unified_request import UnifiedRequest
from proxy.errors import ErrorFacts
from proxy.surfaces.response.extras import response_fields
from proxy.surfaces.response.write_sse import AnswerStyle, usage_json, utf8_json
from proxy.surfaces.surface import AnswerFacts

_FINISHES: Final = frozenset({*get_args(FinishReason), "function_call"})

NO_USAGE = Usage(0, 0)
"""Clients read the usage of a non-streaming response without a check (LangChain), so it is always sent."""


class AnswerRenderer:
    """Base of the renderers. `prefix` is the beginning of the response's id; `kind` is the type of the streamed
    object."""

    __slots__ = ("_created", "_fingerprint", "_id", "_model", "_style", "_writer")

    def __init__(self, request: UnifiedRequest, facts: AnswerFacts, style: AnswerStyle, prefix: str, kind: str) -> None:
        self._id = prefix + facts.unique
        self._created = facts.created
        self._model = facts.model
        self._style = style
        if request.stream:
            # The writer is created only for a stream, because creating it costs as much as rendering a non-streaming
            # response.
            self._writer = style.writer(self._head(kind), request)
        self._fingerprint: str | None = None

    def usage(self, usage: Usage) -> bytes:
        return self._writer.usage(usage)

    def end(self) -> bytes:
        return self._writer.end()

    def error(self, facts: ErrorFacts) -> bytes:
        """Return the events of a broken stream. Held-back chunks are not sent."""
        return self._style.broken(self._writer, facts)

    def _head(self, kind: str) -> dict[str, object]:
        return {"id": self._id, "object": kind, "created": self._created, "model": self._model}

    def _set_fingerprint(self, fingerprint: str) -> None:
        if fingerprint != self._fingerprint:
            self._fingerprint = fingerprint
            self._writer.set_fingerprint(fingerprint)

    def _completion_body(self, kind: str, completion: Completion, choices: Sequence[Mapping[str, object]]) -> bytes:
        body = self._head(kind)
        if completion.system_fingerprint is not None:
            body["system_fingerprint"] = completion.system_fingerprint
        body["choices"] = choices
        body["usage"] = usage_json(completion.usage or NO_USAGE)
        if completion.service_tier is not None:
            body["service_tier"] = completion.service_tier
        if completion.extra is not None:
            body |= response_fields(completion.extra)
        return utf8_json(body)


def finish_fields(ended: Choice | Chunk, tool_finish: str) -> dict[str, object]:
    """Return the fields that report how a choice ended. `tool_finish` replaces the reason `tool_calls`, which then
    becomes the `native_finish_reason`. A vendor's own reason that OpenAI does not have also becomes the
    `native_finish_reason`."""
    reason, native = ended.finish_reason, ended.native_finish_reason
    if reason is not None and reason not in _FINISHES:
        reason, native = "stop", native or reason
    if reason == "tool_calls" and tool_finish != reason:
        reason, native = tool_finish, native or reason
    fields: dict[str, object] = {"finish_reason": reason}
    if native is not None:
        fields["native_finish_reason"] = native
    if ended.matched_stop is not None:
        fields["stop_reason"] = ended.matched_stop
    return fields


def tool_call_json(tool_call: ToolCall) -> dict[str, object]:
    """Return a complete tool call in OpenAI's form."""
    arguments_field = "input" if tool_call.kind == "custom" else "arguments"
    body: dict[str, object] = {
        "id": tool_call.id,
        "type": tool_call.kind,
        tool_call.kind: {"name": tool_call.name, arguments_field: tool_call.arguments},
    }
    return {**tool_call.extra, **body} if tool_call.extra else body


def delta_json(delta: ToolCallDelta) -> dict[str, object]:
    """Return a delta of a tool call; the first delta has its id, type and name."""
    called: dict[str, object] = {} if delta.name is None else {"name": delta.name}
    called["input" if delta.kind == "custom" else "arguments"] = delta.arguments
    opening: dict[str, object] = {} if delta.id is None else {"id": delta.id, "type": delta.kind}
    body = {"index": delta.index, **opening, delta.kind: called}
    return {**delta.extra, **body} if delta.extra else body


@dataclass(slots=True)
class _Pending:
    id: str = ""
    name: str = ""
    kind: CallKind = "function"
    extra: Mapping[str, JsonValue] | None = None
    arguments: list[str] = field(default_factory=list)


class PendingCalls:
    """Collects the tool calls of one streamed choice, for surfaces that send each call as a whole."""

    __slots__ = ("_calls",)

    def __init__(self) -> None:
        self._calls: dict[int, _Pending] = {}

    def add(self, deltas: Sequence[ToolCallDelta]) -> None:
        """Add further deltas."""
        for delta in deltas:
            call = self._calls.setdefault(delta.index, _Pending())
            call.id = delta.id or call.id
            call.name = delta.name or call.name
            call.kind = call.kind if delta.id is None else delta.kind
            if delta.extra:
                call.extra = {**(call.extra or {}), **delta.extra}
            call.arguments.append(delta.arguments)

    def whole(self) -> list[ToolCall]:
        """Return the calls, ordered by index."""
        return [
            ToolCall(call.id, call.name, "".join(call.arguments), call.kind, call.extra)
            for _, call in sorted(self._calls.items())
        ]
