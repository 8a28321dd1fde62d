"""Gemini's `generateContent`, on the Gemini API and on Vertex AI.

The API cannot continue a raw prompt, so a prompt becomes one user turn.

Sources: `google-genai` 3.4.0 and its calls to a mock transport; API reference, November 2026.
"""

import math
from collections.abc import Mapping
from dataclasses import replace

from providers.capabilities import Capabilities
from providers.completion import Completion
from providers.dialect import StreamDecoder, UpstreamRequest
from providers.dialects.gemini.answer import decode_answer
from providers.dialects.gemini.fields import CONFIG, WRITTEN_ELSEWHERE, capabilities, fields_of, profile_for, profile_of
from providers.dialects.gemini.messages import GeminiConversation, GeminiFeatures
from providers.dialects.gemini.model_path import is_modern, model_path, service_of
from providers.dialects.gemini.stream import GeminiStream
from providers.dialects.gemini.thinking import rule_of
from providers.dialects.gemini.tools import GeminiToolNames, named_functions, put_tools
from providers.dialects.platforms.google_errors import classify_answer
from providers.dialects.platforms.vertex_address import resolve_host
from providers.dialects.shared.custom_tools import as_functions
from providers.dialects.shared.operations import build_messages, check_operation
from providers.dialects.shared.request_body import RequestBody, finish_request, put_fields, put_unknown
from providers.failure import Failure
from providers.target import Target
from providers.unified_request import Operation, UnifiedRequest

_PROTECTED = ("model", "contents", f"{CONFIG}.candidateCount", f"{CONFIG}.candidate_count", "generation_config")
"""Fields that clients may not overwrite. `generation_config` is another spelling of a field that every call has, and
the vendor refuses both spellings in one request."""

_RESOLUTIONS = ("MEDIA_RESOLUTION_HIGH", "MEDIA_RESOLUTION_LOW")


class GeminiDialect:
    """The dialect of Gemini's `generateContent`."""

    def capabilities(self, request: UnifiedRequest, target: Target) -> Capabilities:
        return capabilities(
            profile_for(target.profile, *target.model_names),
            check_operation(request, target),
            rule_of(target).reasons,
        )

    def encode(self, request: UnifiedRequest, target: Target) -> UpstreamRequest:
        params, custom_tools = as_functions(request.params)
        if custom_tools:
            request = replace(request, params=params)
        draft = RequestBody(request, target, self.capabilities(request, target), {})
        put_unknown(draft)
        if custom_tools:
            draft.emulated.append("tools")
        names = GeminiToolNames(named_functions(request.params))
        _put_prompt(draft, names)
        put_tools(draft, names, service_of(target))
        put_fields(draft, fields_of(profile_of(draft), rule_of(target).reasons), WRITTEN_ELSEWHERE)
        sent = finish_request(draft, Operation.CHAT, "", _PROTECTED, names.changed())
        return replace(
            sent,
            url=_url(target, profile_of(draft).wires[Operation.CHAT].path, request.stream),
            headers=_headers(request),
            custom_tools=custom_tools,
        )

    def decode(self, sent: UpstreamRequest, body: bytes) -> Completion:
        return decode_answer(sent, body)

    def stream(self, sent: UpstreamRequest) -> StreamDecoder:
        return GeminiStream(sent)

    def classify(self, sent: UpstreamRequest, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        return classify_answer(status, headers, body)


def _put_prompt(draft: RequestBody, names: GeminiToolNames) -> None:
    messages, field = build_messages(draft)
    service = service_of(draft.target)
    files = f"{draft.target.base_url}/files/" if service == "studio" else None
    conversation = GeminiConversation(names, field, GeminiFeatures(is_modern(draft.target), service, files))
    conversation.read(messages)
    draft.dropped.extend(conversation.dropped)
    if conversation.folded:
        draft.emulated.append("messages")
    if conversation.system:
        draft.body["systemInstruction"] = {"parts": conversation.system}
    draft.body["contents"] = conversation.contents
    # One setting applies to all images, so the highest resolution that any image requests is sent.
    resolution = next((one for one in _RESOLUTIONS if one in conversation.resolutions), None)
    if resolution is not None:
        draft.put(f"{CONFIG}.mediaResolution", resolution)


def _url(target: Target, path: str, stream: bool) -> str:
    action = "streamGenerateContent?alt=sse" if stream else "generateContent"
    return f"{resolve_host(target.base_url)}{model_path(path, target.upstream_model)}:{action}"


def _headers(request: UnifiedRequest) -> Mapping[str, str]:
    """Return the client's headers, and for a non-streaming response a header with the maximum duration in seconds.
    Streams have no such limit."""
    headers = dict(request.extra_headers or {})
    if request.timeout is not None and not request.stream:
        headers = {"x-server-timeout": str(math.ceil(request.timeout)), **headers}
    return headers
