"""Cohere's v2 chat API. It continues no raw text, so a prompt becomes one message of the user.

Sources: `cohere` 7.3.1 `ClientV2.chat`; "Chat" page, November 2026.
"""

from providers.capabilities import Capabilities
from providers.completion import Completion
from providers.dialect import StreamDecoder, UpstreamRequest
from providers.dialects.cohere.answer import decode_answer
from providers.dialects.cohere.fields import ELSEWHERE, FIELDS, capabilities
from providers.dialects.cohere.messages import CohereConversation, called_names
from providers.dialects.cohere.stream import CohereReader
from providers.dialects.cohere.tools import CohereToolNames, offered_functions, put_tools
from providers.dialects.shared.errors import OpenAIErrors
from providers.dialects.shared.operations import build_messages, check_operation
from providers.dialects.shared.request_body import RequestBody, finish_request, put_fields, put_unknown
from providers.dialects.shared.stream_reader import NativeStream
from providers.framing.parse_sse import SSEParser
from providers.target import Target
from providers.unified_request import ChatPrompt, Operation, UnifiedRequest

PATH = "/v2/chat"
_PROTECTED = ("model", "messages", "stream")


class CohereDialect(OpenAIErrors):
    """See providers.dialect.Dialect."""

    def capabilities(self, request: UnifiedRequest, target: Target) -> Capabilities:
        """See Dialect."""
        return capabilities(check_operation(request, target), target.profile.verifies)

    def encode(self, request: UnifiedRequest, target: Target) -> UpstreamRequest:
        """See Dialect."""
        draft = RequestBody(request, target, self.capabilities(request, target), {"model": target.upstream_model})
        put_unknown(draft)
        functions = offered_functions(request.params)
        history = called_names(request.prompt.messages) if isinstance(request.prompt, ChatPrompt) else []
        names = CohereToolNames([*functions, *history])
        messages, field = build_messages(draft)
        draft.body["messages"] = CohereConversation(names, field).read(messages)
        put_tools(draft, functions, names)
        put_fields(draft, FIELDS, ELSEWHERE)
        # Always sent, as the vendor's own client does.
        draft.body["stream"] = request.stream
        return finish_request(draft, Operation.CHAT, PATH, _PROTECTED, names.changed())

    def decode(self, sent: UpstreamRequest, body: bytes) -> Completion:
        """See Dialect."""
        return decode_answer(sent, body)

    def stream(self, sent: UpstreamRequest) -> StreamDecoder:
        """See Dialect."""
        return NativeStream(SSEParser(), CohereReader(sent))
