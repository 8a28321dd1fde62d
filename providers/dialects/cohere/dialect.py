"""Cohere's v2 chat API. The API cannot continue a raw prompt, so a prompt becomes one user message.

Sources: `cohere` 7.3.1 `ClientV2.chat`; "Chat" page, November 2026.
"""

from dataclasses import replace

from providers.capabilities import Capabilities
from providers.completion import Completion
from providers.dialect import StreamDecoder, UpstreamRequest
from providers.dialects.cohere.answer import decode_answer
from providers.dialects.cohere.fields import FIELDS, WRITTEN_ELSEWHERE, capabilities
from providers.dialects.cohere.messages import CohereConversation, called_names
from providers.dialects.cohere.stream import CohereReader
from providers.dialects.cohere.tools import CohereToolNames, offered_functions, put_tools
from providers.dialects.shared.custom_tools import as_functions
from providers.dialects.shared.decode_text_chunks import TextStream
from providers.dialects.shared.errors import OpenAIErrors
from providers.dialects.shared.operations import build_messages, check_operation
from providers.dialects.shared.request_body import RequestBody, finish_request, put_fields, put_unknown
from providers.framing.parse_sse import SSEParser
from providers.json_types import JsonObject
from providers.target import Target
from providers.unified_request import ChatPrompt, Operation, UnifiedRequest

PATH = "/v2/chat"
_PROTECTED = ("model", "messages", "stream")


class CohereDialect(OpenAIErrors):
    """The dialect of Cohere's v2 chat."""

    def capabilities(self, request: UnifiedRequest, target: Target) -> Capabilities:
        return capabilities(check_operation(request, target), target.profile.verifies)

    def encode(self, request: UnifiedRequest, target: Target) -> UpstreamRequest:
        request, vendor_fields = _split_vendor_fields(request)
        table = self.capabilities(request, target)
        draft = RequestBody(request, target, table, {"model": target.upstream_model, **vendor_fields})
        put_unknown(draft)
        params, custom = as_functions(request.params)
        if custom:
            draft.emulated.append("tools")
        functions = offered_functions(params)
        history = called_names(request.prompt.messages) if isinstance(request.prompt, ChatPrompt) else []
        names = CohereToolNames([*functions, *history])
        _put_messages(draft, names)
        put_tools(draft, params, functions, names)
        put_fields(draft, FIELDS, WRITTEN_ELSEWHERE)
        # `stream` is always sent, because the vendor's own client always sends it.
        draft.body["stream"] = request.stream
        sent = finish_request(draft, Operation.CHAT, PATH, _PROTECTED, names.changed())
        return replace(sent, custom_tools=custom) if custom else sent

    def decode(self, sent: UpstreamRequest, body: bytes) -> Completion:
        return decode_answer(sent, body)

    def stream(self, sent: UpstreamRequest) -> StreamDecoder:
        return TextStream(SSEParser(), CohereReader(sent))


_VENDOR_FIELDS = frozenset({"documents", "citation_options", "safety_mode", "priority", "raw_prompting"})
"""Fields of the vendor's own request, which clients may send unchanged."""


def _split_vendor_fields(request: UnifiedRequest) -> tuple[UnifiedRequest, JsonObject]:
    """Return the request without the vendor's own fields, and the fields that were removed."""
    given = request.unknown or {}
    vendor_fields = {name: value for name, value in given.items() if name in _VENDOR_FIELDS}
    if not vendor_fields:
        return request, {}
    return replace(
        request, unknown={name: value for name, value in given.items() if name not in vendor_fields}
    ), vendor_fields


def _put_messages(draft: RequestBody, names: CohereToolNames) -> None:
    messages, field = build_messages(draft)
    conversation = CohereConversation(names, field, "reasoning" in draft.target.model_names[0])
    draft.body["messages"] = conversation.read(messages)
    if conversation.documents:
        given = draft.body.get("documents")
        draft.body["documents"] = [*(given if isinstance(given, list) else ()), *conversation.documents]
    draft.dropped += conversation.dropped
