"""Ollama's own API: raw prompts to `/api/generate`, chats to `/api/chat`, and the door to their answers.

Never a prompt cut in silence: the engine's habits of dropping turns and shifting the window are switched off always.

Sources: Ollama `api/types.go`, `server/routes.go`, `docs/api.md`; `ollama` 0.6.3; November 2026.
"""

from collections.abc import Mapping

from providers.capabilities import Capabilities
from providers.completion import Completion
from providers.dialect import StreamDecoder, Target, UpstreamRequest
from providers.dialects.native_fields import Draft, finished, put_fields, put_unknown
from providers.dialects.native_stream import NativeStream
from providers.dialects.ollama_answer import OllamaReader, decode_answer
from providers.dialects.ollama_fields import ELSEWHERE, FIELDS, capabilities
from providers.dialects.ollama_messages import Conversation, put_tools
from providers.dialects.openai_errors import classify
from providers.dialects.openai_prompt import native_prompt, wrapped_messages
from providers.failure import Failure
from providers.ndjson import NDJSONParser
from providers.unified import ChatPrompt, Operation, UnifiedRequest

_PATHS = {Operation.COMPLETIONS: "/api/generate", Operation.CHAT: "/api/chat"}
_PROTECTED = ("model", "stream", "prompt", "suffix", "messages", "raw")


class OllamaDialect:
    """See providers.dialect.Dialect."""

    def capabilities(self, request: UnifiedRequest, target: Target) -> Capabilities:
        """See Dialect."""
        counted = target.context_window is not None
        return capabilities(request.operation, _operation(request, target), counted, target.profile.verifies)

    def encode(self, request: UnifiedRequest, target: Target) -> UpstreamRequest:
        """See Dialect."""
        operation = _operation(request, target)
        draft = Draft(request, target, self.capabilities(request, target), {"model": target.upstream_model})
        put_unknown(draft)
        if operation is Operation.CHAT:
            _put_messages(draft)
        else:
            draft.body["prompt"] = native_prompt(target, draft.table, request.prompt)
            if not request.params.get("suffix"):
                draft.body["raw"] = True
        put_tools(draft)
        put_fields(draft, FIELDS, ELSEWHERE)
        # Saying nothing about it means a stream.
        draft.body["stream"] = request.stream
        draft.body["truncate"] = draft.body["shift"] = False
        return finished(draft, operation, _PATHS[operation], _PROTECTED)

    def decode(self, sent: UpstreamRequest, body: bytes) -> Completion:
        """See Dialect."""
        return decode_answer(sent, body)

    def stream(self, sent: UpstreamRequest) -> StreamDecoder:
        """See Dialect."""
        return NativeStream(NDJSONParser(), OllamaReader(sent))

    def classify(self, sent: UpstreamRequest, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        """See Dialect."""
        return classify(sent.target.profile, status, headers, body)


def _operation(request: UnifiedRequest, target: Target) -> Operation:
    """A prompt goes as it is, unless the table says that this model only chats, or it has tools beside it."""
    chats = request.operation is Operation.CHAT or target.completions is False or bool(request.params.get("tools"))
    return Operation.CHAT if chats else Operation.COMPLETIONS


def _put_messages(draft: Draft) -> None:
    prompt, images = draft.request.prompt, "images" in draft.params
    if isinstance(prompt, ChatPrompt):
        draft.body["messages"] = Conversation("messages").read(prompt.messages)
        return
    draft.emulated.extend(("prompt", "images") if images else ("prompt",))
    messages = wrapped_messages(draft.target, draft.table, draft.request)
    draft.body["messages"] = Conversation("images" if images else "prompt").read(messages)
