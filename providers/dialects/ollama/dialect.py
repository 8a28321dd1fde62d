"""Ollama's own API: raw prompts to `/api/generate`, chats to `/api/chat`.

By default the engine drops turns of a conversation that is too long, and shifts the context window. Every call disables
both.

Sources: Ollama `api/types.go`, `server/routes.go`, `docs/api.md`; `ollama` 0.6.3; November 2026.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from providers.capabilities import Capabilities
from providers.completion import Completion
from providers.dialect import StreamDecoder, UpstreamRequest
from providers.dialects.ollama.answer import OllamaReader, decode_answer
from providers.dialects.ollama.fields import ELSEWHERE, FIELDS, capabilities
from providers.dialects.ollama.messages import OllamaConversation, put_tools
from providers.dialects.shared.custom_tools import as_functions
from providers.dialects.shared.decode_stream import NativeStream
from providers.dialects.shared.errors import OpenAIErrors
from providers.dialects.shared.operations import build_messages, choose_operation
from providers.dialects.shared.prompt import native_prompt
from providers.dialects.shared.request_body import RequestBody, finish_request, put_fields, put_unknown
from providers.framing.parse_ndjson import NDJSONParser
from providers.target import Target
from providers.unified_request import Operation, UnifiedRequest

_PATHS: Mapping[Operation, str] = {Operation.COMPLETIONS: "/api/generate", Operation.CHAT: "/api/chat"}
_PROTECTED = ("model", "stream", "prompt", "suffix", "messages", "raw")


class OllamaDialect(OpenAIErrors):
    """The `Dialect` of Ollama's own API."""

    def capabilities(self, request: UnifiedRequest, target: Target) -> Capabilities:
        counted = target.context_window is not None
        return capabilities(request.operation, choose_operation(request, target), counted, target.profile.verifies)

    def encode(self, request: UnifiedRequest, target: Target) -> UpstreamRequest:
        operation = choose_operation(request, target)
        draft = RequestBody(request, target, self.capabilities(request, target), {"model": target.upstream_model})
        put_unknown(draft)
        _PUT_PROMPT[operation](draft)
        params, custom = as_functions(request.params)
        if custom:
            draft.emulated.append("tools")
        put_tools(draft, params)
        put_fields(draft, FIELDS, ELSEWHERE)
        # Without the field the response is a stream.
        draft.body["stream"] = request.stream
        draft.body["truncate"] = draft.body["shift"] = False
        sent = finish_request(draft, operation, _PATHS[operation], _PROTECTED)
        return replace(sent, custom_tools=custom) if custom else sent

    def decode(self, sent: UpstreamRequest, body: bytes) -> Completion:
        return decode_answer(sent, body)

    def stream(self, sent: UpstreamRequest) -> StreamDecoder:
        return NativeStream(NDJSONParser(), OllamaReader(sent))


def _put_raw(draft: RequestBody) -> None:
    draft.body["prompt"] = native_prompt(draft.target, draft.table, draft.request.prompt)
    if not draft.params.get("suffix"):
        draft.body["raw"] = True


def _put_messages(draft: RequestBody) -> None:
    messages, field = build_messages(draft)
    conversation = OllamaConversation(field)
    draft.body["messages"] = conversation.read(messages)
    draft.dropped += conversation.dropped


_PUT_PROMPT: Mapping[Operation, Callable[[RequestBody], None]] = {
    Operation.COMPLETIONS: _put_raw,
    Operation.CHAT: _put_messages,
}
