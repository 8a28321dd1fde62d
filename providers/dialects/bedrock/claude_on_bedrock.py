"""Claude on Bedrock's InvokeModel: Anthropic's body and events, with the service's address, frames and errors.

The Anthropic dialect translates the messages.

Sources: botocore 1.44.5 service model `bedrock-runtime`; `anthropic` 2.12.0 `lib/bedrock`; "Anthropic Claude Messages
API" page of the service, November 2026.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from providers.capabilities import Capabilities
from providers.completion import Chunk, Completion, StreamEvent, Usage
from providers.dialect import StreamDecoder, UpstreamRequest, usage_so_far
from providers.dialects.anthropic.answer import decode_message
from providers.dialects.anthropic.blocks import refuse_stored_media
from providers.dialects.anthropic.claude_on_vertex import native_headers
from providers.dialects.anthropic.dialect import NO_SAMPLING, call_of, model_of, request_body, with_betas
from providers.dialects.anthropic.fields import capabilities
from providers.dialects.anthropic.native_body import objects_in
from providers.dialects.anthropic.native_call import (
    CLAUDE_ON_BEDROCK,
    betas_of,
    mended_for,
    messages_request,
    native_call,
    native_draft,
    refuse_sampling,
)
from providers.dialects.anthropic.stream import AnthropicReader
from providers.dialects.anthropic.thinking import needed_betas
from providers.dialects.anthropic.tools import refuse_tools
from providers.dialects.bedrock.converse import model_path
from providers.dialects.bedrock.invoke import invoke_action, invoke_headers
from providers.dialects.bedrock.invoke_answer import GUARDRAIL_ACTION, INTERVENED, chunk_payload
from providers.dialects.platforms.aws_errors import BEDROCK, classify_answer
from providers.dialects.platforms.aws_events import EventFrames
from providers.dialects.shared.decode_stream import NOTHING, NativeReader, NativeStream, Reader, event_object
from providers.dialects.shared.request_body import RequestBody
from providers.failure import Failure
from providers.json_types import JsonObject
from providers.target import Target
from providers.unified_request import UnifiedRequest

VERSION = "bedrock-2023-05-31"
"""The version that is sent if the configuration gives no version. Later versions on this service have the names of
Anthropic's own versions, which are dates."""

_FIRST_VERSION = "2023-06-01"
_ABSENT_TOOLS = re.compile(r"web_search_|web_fetch_|code_execution_|mcp_toolset|advisor_")
"""The vendor's own tools that the service does not offer."""
_VERSION_HEADER, _BETA_HEADER = "anthropic-version", "anthropic-beta"
_GUARDRAIL_ACTION = GUARDRAIL_ACTION.encode()


class BedrockAnthropicDialect:
    """The dialect of Claude on Bedrock's InvokeModel."""

    def capabilities(self, request: UnifiedRequest, target: Target) -> Capabilities:
        counted = target.context_window is not None
        return capabilities(request.operation, counted, model_of(target), "bedrock")

    def encode(self, request: UnifiedRequest, target: Target) -> UpstreamRequest:
        headers = with_betas(needed_betas(request.params), request.extra_headers)
        version, opening = _take_version_and_betas(target, headers)
        draft, names = request_body(request, target, self.capabilities(request, target), version, opening)
        # The path, not the body, requests a stream.
        draft.body.pop("stream", None)
        _move_tier(draft, headers)
        refuse_tools(target, request.params.get("tools", ()), _ABSENT_TOOLS)
        refuse_stored_media(draft, "images" if "images" in request.params else "messages")
        url = target.base_url + model_path(target, invoke_action(request.stream))
        sent = call_of(draft, names, url, headers)
        return replace(sent, headers=invoke_headers(sent, request.stream))

    def encode_native(self, request: UnifiedRequest, target: Target) -> UpstreamRequest | None:
        native = messages_request(request)
        if native is None:
            return None
        mended, model = mended_for(CLAUDE_ON_BEDROCK, native.body), model_of(target)
        headers = with_betas(native_headers(betas_of(CLAUDE_ON_BEDROCK, mended, native.headers)), request.extra_headers)
        version, opening = _take_version_and_betas(target, headers)
        draft = native_draft(request, target, self.capabilities(request, target), model, mended)
        if version >= NO_SAMPLING or not model.sampling:
            refuse_sampling(draft)
        _move_tier(draft, headers)
        refuse_tools(target, objects_in(draft.body.get("tools")), _ABSENT_TOOLS)
        refuse_stored_media(draft, "messages")
        for name in ("model", "stream"):
            draft.body.pop(name, None)
        draft.body.update(opening)
        url = target.base_url + model_path(target, invoke_action(request.stream))
        sent = native_call(draft, url, headers)
        return replace(sent, headers=invoke_headers(sent, request.stream))

    def decode(self, sent: UpstreamRequest, body: bytes) -> Completion:
        completion = decode_message(sent, body)
        if sent.native:
            completion = replace(completion, native=body)
        if not _guardrail_intervened(body):
            return completion
        choices = (
            replace(choice, finish_reason="content_filter", native_finish_reason=INTERVENED)
            for choice in completion.choices
        )
        return replace(completion, choices=tuple(choices))

    def stream(self, sent: UpstreamRequest) -> StreamDecoder:
        reader = AnthropicReader(sent)
        inner = NativeReader(reader) if sent.native else reader
        return NativeStream(EventFrames(BEDROCK), GuardedReader(inner))

    def classify(self, sent: UpstreamRequest, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        return classify_answer(BEDROCK, status, headers, body)


class GuardedReader:
    """Reader of Claude's events inside the service's frames. If a guardrail intervened, the finish reason says so. See
    providers.dialects.shared.decode_stream.Reader."""

    __slots__ = ("_guardrail_intervened", "_inner")

    def __init__(self, inner: Reader) -> None:
        self._inner = inner
        self._guardrail_intervened = False

    @property
    def complete(self) -> bool:
        return self._inner.complete

    def read(self, name: str, payload: bytes) -> Iterable[StreamEvent]:
        if name != "chunk" or not (event := chunk_payload(payload)):
            return NOTHING
        if not self._guardrail_intervened and _GUARDRAIL_ACTION in event:
            self._guardrail_intervened = _guardrail_intervened(event)
        events = self._inner.read("", event)
        return map(_with_guardrail_finish, events) if self._guardrail_intervened else events

    def usage_so_far(self) -> Usage | None:
        return usage_so_far(self._inner)


def native_opening(target: Target, betas: Sequence[str]) -> JsonObject:
    """Return the fields that open a client's own body: the betas and the version. The version is the configured
    version, else the first version, which every model accepts."""
    return _take_version_and_betas(target, native_headers(betas))[1]


def _take_version_and_betas(target: Target, headers: dict[str, str]) -> tuple[str, JsonObject]:
    """Remove the version and the betas from the headers. Return the version of Anthropic's own API that the call is
    written for, and the body fields that give the version and the betas."""
    version = headers.pop(_VERSION_HEADER, "") or target.api_version or target.profile.api_version or VERSION
    betas = headers.pop(_BETA_HEADER, "")
    version = _FIRST_VERSION if version == VERSION else version
    opening: JsonObject = {"anthropic_version": VERSION if version == _FIRST_VERSION else version}
    if betas:
        opening["anthropic_beta"] = [beta.strip() for beta in betas.split(",") if beta.strip()]
    return version, opening


def _move_tier(draft: RequestBody, headers: dict[str, str]) -> None:
    """Move the service tier from the body to a header. Tiers that the service lacks are left out."""
    if draft.body.pop("service_tier", None) == "standard_only":
        headers.setdefault("x-amzn-bedrock-service-tier", "default")


def _guardrail_intervened(event: bytes) -> bool:
    """Return whether a guardrail has replaced the response."""
    return _GUARDRAIL_ACTION in event and event_object(event).get(GUARDRAIL_ACTION) == "INTERVENED"


def _with_guardrail_finish(event: StreamEvent) -> StreamEvent:
    """Return the event. If the event ends the response, its finish reason is replaced by the guardrail's
    intervention."""
    if isinstance(event, Chunk) and event.finish_reason is not None:
        return replace(event, finish_reason="content_filter", native_finish_reason=INTERVENED)
    return event
