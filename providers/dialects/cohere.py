"""Cohere's v2 chat: the outgoing request, and the door to its answers. Never raw continuation: the API has none.

Sources: `cohere` 7.3.1 `ClientV2.chat`; "Chat" page, November 2026.
"""

from collections.abc import Mapping

from providers.capabilities import Capabilities
from providers.completion import Completion
from providers.dialect import StreamDecoder, Target, UpstreamRequest
from providers.dialects.cohere_answer import decode_answer
from providers.dialects.cohere_fields import ELSEWHERE, FIELDS, capabilities
from providers.dialects.cohere_messages import Conversation, called_names
from providers.dialects.cohere_stream import CohereReader
from providers.dialects.cohere_tools import offered, put_tools, wire_names
from providers.dialects.native_fields import Draft, finished, put_fields, put_unknown
from providers.dialects.native_stream import NativeStream
from providers.dialects.openai_errors import classify
from providers.dialects.openai_prompt import wrapped_messages
from providers.failure import Failure
from providers.sse import SSEParser
from providers.unified import ChatPrompt, Operation, UnifiedRequest

PATH = "/v2/chat"
_PROTECTED = ("model", "messages", "stream")


class CohereDialect:
    """See providers.dialect.Dialect."""

    def capabilities(self, request: UnifiedRequest, target: Target) -> Capabilities:
        """See Dialect."""
        return capabilities(request.operation, target.profile.verifies)

    def encode(self, request: UnifiedRequest, target: Target) -> UpstreamRequest:
        """See Dialect."""
        draft = Draft(request, target, self.capabilities(request, target), {"model": target.upstream_model})
        put_unknown(draft)
        functions = offered(request.params)
        history = called_names(request.prompt.messages) if isinstance(request.prompt, ChatPrompt) else []
        names = wire_names([*functions, *history])
        _put_prompt(draft, names)
        put_tools(draft, functions, names)
        put_fields(draft, FIELDS, ELSEWHERE)
        # Said always, as the vendor's own client does.
        draft.body["stream"] = request.stream
        changed = {wire: name for name, wire in names.items() if wire != name}
        return finished(draft, Operation.CHAT, PATH, _PROTECTED, changed)

    def decode(self, sent: UpstreamRequest, body: bytes) -> Completion:
        """See Dialect."""
        return decode_answer(sent, body)

    def stream(self, sent: UpstreamRequest) -> StreamDecoder:
        """See Dialect."""
        return NativeStream(SSEParser(), CohereReader(sent))

    def classify(self, sent: UpstreamRequest, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        """See Dialect."""
        return classify(sent.target.profile, status, headers, body)


def _put_prompt(draft: Draft, names: Mapping[str, str]) -> None:
    prompt, images = draft.request.prompt, "images" in draft.params
    if isinstance(prompt, ChatPrompt):
        draft.body["messages"] = Conversation(names, "messages").read(prompt.messages)
        return
    draft.emulated.extend(("prompt", "images") if images else ("prompt",))
    messages = wrapped_messages(draft.target, draft.table, draft.request)
    draft.body["messages"] = Conversation(names, "images" if images else "prompt").read(messages)
