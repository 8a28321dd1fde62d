"""Claude on Bedrock's InvokeModel: Anthropic's own body and events, with the service's address, frames and errors.

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
from providers.dialects.bedrock.invoke_answer import GUARDED, INTERVENED, chunk_payload
from providers.dialects.platforms.aws_errors import BEDROCK, classify_answer
from providers.dialects.platforms.aws_events import EventFrames
from providers.dialects.shared.decode_stream import NOTHING, NativeReader, NativeStream, Reader, event_object
from providers.dialects.shared.request_body import RequestBody
from providers.failure import Failure
from providers.json_types import JsonObject
from providers.target import Target
from providers.unified_request import UnifiedRequest

VERSION = "bedrock-2023-05-31"
"""The version sent where the table names none; later versions on this service are Anthropic's own dates."""

_FIRST = "2023-06-01"
_ABSENT_TOOLS = re.compile(r"web_search_|web_fetch_|code_execution_|mcp_toolset|advisor_")
"""Tools of the vendor's own that the service does not offer."""
_VERSION_HEADER, _BETA_HEADER = "anthropic-version", "anthropic-beta"
_GUARDED = GUARDED.encode()


class BedrockAnthropicDialect:
    """See providers.dialect.Dialect."""

    def capabilities(self, request: UnifiedRequest, target: Target) -> Capabilities:
        """See Dialect."""
        counted = target.context_window is not None
        return capabilities(request.operation, counted, model_of(target), "bedrock")

    def encode(self, request: UnifiedRequest, target: Target) -> UpstreamRequest:
        """See Dialect."""
        headers = with_betas(needed_betas(request.params), request.extra_headers)
        version, opening = _taken_out(target, headers)
        draft, names = request_body(request, target, self.capabilities(request, target), version, opening)
        # The path says whether the answer is a stream.
        draft.body.pop("stream", None)
        _move_tier(draft, headers)
        refuse_tools(target, request.params.get("tools", ()), _ABSENT_TOOLS)
        refuse_stored_media(draft, "images" if "images" in request.params else "messages")
        url = target.base_url + model_path(target, invoke_action(request.stream))
        sent = call_of(draft, names, url, headers)
        return replace(sent, headers=invoke_headers(sent, request.stream))

    def encode_native(self, request: UnifiedRequest, target: Target) -> UpstreamRequest | None:
        """See NativeDialect."""
        native = messages_request(request)
        if native is None:
            return None
        mended, model = mended_for(CLAUDE_ON_BEDROCK, native.body), model_of(target)
        headers = with_betas(native_headers(betas_of(CLAUDE_ON_BEDROCK, mended, native.headers)), request.extra_headers)
        version, opening = _taken_out(target, headers)
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
        """See Dialect."""
        completion = decode_message(sent, body)
        if sent.native:
            completion = replace(completion, native=body)
        if not _guarded(body):
            return completion
        choices = (
            replace(choice, finish_reason="content_filter", native_finish_reason=INTERVENED)
            for choice in completion.choices
        )
        return replace(completion, choices=tuple(choices))

    def stream(self, sent: UpstreamRequest) -> StreamDecoder:
        """See Dialect."""
        reader = AnthropicReader(sent)
        inner = NativeReader(reader) if sent.native else reader
        return NativeStream(EventFrames(BEDROCK), GuardedReader(inner))

    def classify(self, sent: UpstreamRequest, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        """See Dialect."""
        return classify_answer(BEDROCK, status, headers, body)


class GuardedReader:
    """A reader of Claude's own events in the service's, with a guardrail's word on how the answer ended. See
    providers.dialects.shared.decode_stream.Reader."""

    __slots__ = ("_guarded", "_inner")

    def __init__(self, inner: Reader) -> None:
        self._inner = inner
        self._guarded = False

    @property
    def complete(self) -> bool:
        """See Reader."""
        return self._inner.complete

    def read(self, name: str, payload: bytes) -> Iterable[StreamEvent]:
        """See Reader."""
        if name != "chunk" or not (event := chunk_payload(payload)):
            return NOTHING
        if not self._guarded and _GUARDED in event:
            self._guarded = _guarded(event)
        events = self._inner.read("", event)
        return map(_intervened, events) if self._guarded else events

    def usage_so_far(self) -> Usage | None:
        """See UsageReporter."""
        return usage_so_far(self._inner)


def native_opening(target: Target, betas: Sequence[str]) -> JsonObject:
    """Return what a client's own body begins with: the version that the table has, else the first, which every model
    takes, and the betas."""
    return _taken_out(target, native_headers(betas))[1]


def _taken_out(target: Target, headers: dict[str, str]) -> tuple[str, JsonObject]:
    """Take version and betas out of the headers, and return the version of Anthropic's own API that the call is written
    for, and the members that name both."""
    version = headers.pop(_VERSION_HEADER, "") or target.api_version or target.profile.api_version or VERSION
    betas = headers.pop(_BETA_HEADER, "")
    version = _FIRST if version == VERSION else version
    opening: JsonObject = {"anthropic_version": VERSION if version == _FIRST else version}
    if betas:
        opening["anthropic_beta"] = [beta.strip() for beta in betas.split(",") if beta.strip()]
    return version, opening


def _move_tier(draft: RequestBody, headers: dict[str, str]) -> None:
    """Write the service tier as a header, where the service has it."""
    if draft.body.pop("service_tier", None) == "standard_only":
        headers.setdefault("x-amzn-bedrock-service-tier", "default")


def _guarded(event: bytes) -> bool:
    """Return whether a guardrail has replaced the answer."""
    return _GUARDED in event and event_object(event).get(GUARDED) == "INTERVENED"


def _intervened(event: StreamEvent) -> StreamEvent:
    """Return the event, with the guardrail as its finish reason if it ends the answer."""
    if isinstance(event, Chunk) and event.finish_reason is not None:
        return replace(event, finish_reason="content_filter", native_finish_reason=INTERVENED)
    return event
