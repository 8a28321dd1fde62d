"""Claude on Bedrock's InvokeModel: Anthropic's own body and events, in the service's address, frames and errors.

Never Anthropic's messages themselves: those are in the files of its own dialect.

Sources: botocore 1.44.5 service model `bedrock-runtime`; `anthropic` 2.12.0 `lib/bedrock`; "Anthropic Claude Messages
API" page of the service, November 2026.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from providers.capabilities import Capabilities
from providers.completion import Chunk, Completion, StreamEvent
from providers.dialect import StreamDecoder, Target, UpstreamRequest
from providers.dialects.anthropic import AnthropicDialect, finished, with_betas, written
from providers.dialects.anthropic_answer import decode_message
from providers.dialects.anthropic_messages import gives_addresses
from providers.dialects.anthropic_stream import AnthropicStream
from providers.dialects.bedrock import model_path
from providers.dialects.bedrock_errors import classify_answer
from providers.dialects.bedrock_frames import EventFrames
from providers.dialects.bedrock_invoke import invoke_action, invoke_headers
from providers.dialects.bedrock_invoke_answer import GUARDED, INTERVENED, chunk_payload
from providers.dialects.native_stream import event_object
from providers.failure import Failure, Refusal
from providers.unified import JsonObject, JsonValue, UnifiedRequest

VERSION = "bedrock-2023-05-31"
"""What is asked for when the table says nothing; from the next version on the service has Anthropic's own dates."""

_FIRST = "2023-06-01"
_VERSION_HEADER, _BETA_HEADER = "anthropic-version", "anthropic-beta"
_ANTHROPIC = AnthropicDialect()
_GUARDED = GUARDED.encode()


class BedrockAnthropicDialect:
    """See providers.dialect.Dialect."""

    def capabilities(self, request: UnifiedRequest, target: Target) -> Capabilities:
        """See Dialect."""
        return _ANTHROPIC.capabilities(request, target)

    def encode(self, request: UnifiedRequest, target: Target) -> UpstreamRequest:
        """See Dialect."""
        given = target.api_version or target.profile.api_version or VERSION
        headers = with_betas({_VERSION_HEADER: given}, request.extra_headers)
        version, betas = headers.pop(_VERSION_HEADER), headers.pop(_BETA_HEADER, "")
        version = _FIRST if version == VERSION else version
        opening: JsonObject = {"anthropic_version": VERSION if version == _FIRST else version}
        if betas:
            opening["anthropic_beta"] = [beta.strip() for beta in betas.split(",") if beta.strip()]
        draft, names = written(request, target, self.capabilities(request, target), version, opening)
        # Which of the two paths is taken says it.
        draft.body.pop("stream", None)
        if draft.body.pop("service_tier", None) == "standard_only":
            headers.setdefault("x-amzn-bedrock-service-tier", "default")
        _refuse_addresses(target, draft.body["messages"])
        url = target.base_url + model_path(target, invoke_action(request.stream))
        sent = finished(draft, names, url, headers)
        return replace(sent, headers=invoke_headers(sent, request.stream))

    def decode(self, sent: UpstreamRequest, body: bytes) -> Completion:
        """See Dialect."""
        completion = decode_message(sent, body)
        if not _guarded(body):
            return completion
        choices = (
            replace(choice, finish_reason="content_filter", native_finish_reason=INTERVENED)
            for choice in completion.choices
        )
        return replace(completion, choices=tuple(choices))

    def stream(self, sent: UpstreamRequest) -> StreamDecoder:
        """See Dialect."""
        return BedrockAnthropicStream(sent)

    def classify(self, sent: UpstreamRequest, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        """See Dialect."""
        return classify_answer(status, headers, body)


class BedrockAnthropicStream:
    """See providers.dialect.StreamDecoder."""

    __slots__ = ("_frames", "_guarded", "_inner")

    def __init__(self, sent: UpstreamRequest) -> None:
        self._frames = EventFrames()
        self._inner = AnthropicStream(sent)
        self._guarded = False

    @property
    def complete(self) -> bool:
        """See StreamDecoder."""
        return self._inner.complete

    def feed(self, data: bytes) -> Iterator[StreamEvent]:
        """See StreamDecoder."""
        if self.complete:
            return
        for name, payload in self._frames.feed(data):
            if name == "chunk" and (event := chunk_payload(payload)):
                yield from self._events(event)
                if self._inner.complete:
                    return

    def finish(self) -> Iterator[StreamEvent]:
        """See StreamDecoder."""
        return self._inner.finish()

    def _events(self, payload: bytes) -> Iterable[StreamEvent]:
        self._guarded = self._guarded or _guarded(payload)
        events = self._inner.read("", payload)
        return map(_intervened, events) if self._guarded else events


def _refuse_addresses(target: Target, turns: JsonValue) -> None:
    if gives_addresses([turn for turn in (turns if isinstance(turns, list) else ()) if isinstance(turn, dict)]):
        message = f"'messages' has an image by its address; {target.name} takes images as base64 data URIs only."
        raise Refusal("messages", message)


def _guarded(event: bytes) -> bool:
    """Whether a guardrail has put its own words in the answer's place."""
    return _GUARDED in event and event_object(event).get(GUARDED) == "INTERVENED"


def _intervened(event: StreamEvent) -> StreamEvent:
    """An event of such an answer, whose end says so."""
    if isinstance(event, Chunk) and event.finish_reason is not None:
        return replace(event, finish_reason="content_filter", native_finish_reason=INTERVENED)
    return event
