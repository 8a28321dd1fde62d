"""Gemini's `generateContent`: the outgoing request, and the door to its answers; the same for Vertex AI.

Never I/O, and never raw continuation: the vendor has none, so a prompt becomes one turn of the user.

Sources: `google-genai` 3.4.0 and its calls to a mock transport; API reference, November 2026.
"""

import math
from collections.abc import Mapping
from dataclasses import replace

from providers.capabilities import Capabilities
from providers.completion import Completion
from providers.dialect import StreamDecoder, Target, UpstreamRequest
from providers.dialects.gemini_answer import decode_answer
from providers.dialects.gemini_errors import classify_answer
from providers.dialects.gemini_fields import CONFIG, ELSEWHERE, capabilities, fields_of, row_for, row_of
from providers.dialects.gemini_messages import Conversation
from providers.dialects.gemini_models import model_path, modern
from providers.dialects.gemini_stream import GeminiStream
from providers.dialects.gemini_tools import ToolNames, put_tools
from providers.dialects.native_fields import Draft, finished, put_fields, put_unknown
from providers.dialects.openai_prompt import wrapped_messages
from providers.dialects.vertex_host import placed
from providers.failure import Failure
from providers.tool_names import offered_names
from providers.unified import ChatPrompt, Operation, UnifiedRequest

_PROTECTED = ("model", "contents", f"{CONFIG}.candidateCount", f"{CONFIG}.candidate_count", "generation_config")
"""The last one is another spelling of what the call has already, and the vendor refuses both at once."""

_RESOLUTIONS = ("MEDIA_RESOLUTION_HIGH", "MEDIA_RESOLUTION_LOW")


class GeminiDialect:
    """See providers.dialect.Dialect."""

    def capabilities(self, request: UnifiedRequest, target: Target) -> Capabilities:
        """See Dialect."""
        return capabilities(row_for(target.profile, target.upstream_model, target.model), request.operation)

    def encode(self, request: UnifiedRequest, target: Target) -> UpstreamRequest:
        """See Dialect."""
        draft = Draft(request, target, self.capabilities(request, target), {})
        put_unknown(draft)
        names = ToolNames(offered_names(request.params))
        _put_prompt(draft, names)
        put_tools(draft.body, request.params, names)
        put_fields(draft, fields_of(row_of(draft)), ELSEWHERE)
        sent = finished(draft, Operation.CHAT, "", _PROTECTED, names.changed())
        return replace(
            sent, url=_url(target, row_of(draft).wires[Operation.CHAT].path, request.stream), headers=_headers(request)
        )

    def decode(self, sent: UpstreamRequest, body: bytes) -> Completion:
        """See Dialect."""
        return decode_answer(sent, body)

    def stream(self, sent: UpstreamRequest) -> StreamDecoder:
        """See Dialect."""
        return GeminiStream(sent)

    def classify(self, sent: UpstreamRequest, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        """See Dialect."""
        return classify_answer(status, headers, body)


def _put_prompt(draft: Draft, names: ToolNames) -> None:
    prompt, images = draft.request.prompt, "images" in draft.params
    if isinstance(prompt, ChatPrompt):
        conversation = Conversation(names, "messages", modern(draft.target))
        conversation.read(prompt.messages)
    else:
        draft.emulated.extend(("prompt", "images") if images else ("prompt",))
        conversation = Conversation(names, "images" if images else "prompt", modern(draft.target))
        conversation.read(wrapped_messages(draft.target, draft.table, draft.request))
    if conversation.folded:
        draft.emulated.append("messages")
    if conversation.system:
        draft.body["systemInstruction"] = {"parts": conversation.system}
    draft.body["contents"] = conversation.contents
    # One setting holds for all images: none may be seen less sharply than it was asked for.
    resolution = next((one for one in _RESOLUTIONS if one in conversation.resolutions), None)
    if resolution is not None:
        draft.put(f"{CONFIG}.mediaResolution", resolution)


def _url(target: Target, path: str, stream: bool) -> str:
    """The model stands in the path."""
    action = "streamGenerateContent?alt=sse" if stream else "generateContent"
    return f"{placed(target.base_url)}{model_path(path, target.upstream_model)}:{action}"


def _headers(request: UnifiedRequest) -> Mapping[str, str]:
    """The client's, and how long the answer may take; a stream may go on after its first content."""
    headers = dict(request.extra_headers or {})
    if request.timeout is not None and not request.stream:
        headers = {"x-server-timeout": str(math.ceil(request.timeout)), **headers}
    return headers
