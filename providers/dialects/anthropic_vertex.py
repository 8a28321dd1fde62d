"""Claude on Vertex AI: Anthropic's messages at Google's address. Never what the two have in common.

Sources: `anthropic` 2.12.0 `lib/vertex` and its calls to a mock transport; "Claude on Vertex AI" page, November 2026.
"""

from collections.abc import Mapping
from urllib.parse import quote

import orjson

from providers.dialect import StreamDecoder, Target, UpstreamRequest
from providers.dialects.anthropic import AnthropicDialect, finished, with_betas, written
from providers.dialects.anthropic_errors import classify_answer
from providers.dialects.anthropic_messages import gives_addresses
from providers.dialects.anthropic_stream import AnthropicStream, Events
from providers.dialects.gemini_errors import classify_answer as classify_google
from providers.dialects.gemini_errors import error_in, failure_of
from providers.dialects.gemini_frames import EventsOrJSON
from providers.dialects.openai_read import loaded
from providers.dialects.vertex_host import placed
from providers.failure import Failure, Refusal, UpstreamError
from providers.unified import JsonObject, JsonValue, Operation, UnifiedRequest

VERSION = "vertex-2023-10-16"
"""What is asked for when the table says nothing, by which the platform means Anthropic's first version; later ones have
Anthropic's own dates."""

_FIRST = "2023-06-01"
_HEADER = "anthropic-version"


class AnthropicVertexDialect(AnthropicDialect):
    """See providers.dialect.Dialect."""

    def encode(self, request: UnifiedRequest, target: Target) -> UpstreamRequest:
        """See Dialect."""
        headers = with_betas({}, request.extra_headers)
        version = headers.pop(_HEADER, "") or target.api_version or target.profile.api_version or VERSION
        version = _FIRST if version == VERSION else version
        opening: JsonObject = {"anthropic_version": VERSION if version == _FIRST else version}
        draft, names = written(request, target, self.capabilities(request, target), version, opening)
        _refuse_addresses(request, target, draft.body["messages"])
        return finished(draft, names, _url(target, request.stream), headers)

    def stream(self, sent: UpstreamRequest) -> StreamDecoder:
        """See Dialect."""
        return _Stream(sent)

    def classify(self, sent: UpstreamRequest, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        """See Dialect."""
        return classify_google(status, headers, body) if _google_error(body) else classify_answer(status, headers, body)


class _Stream(AnthropicStream):
    """Anthropic's, which Google's front end may break off in its own way."""

    __slots__ = ()

    def __init__(self, sent: UpstreamRequest) -> None:
        super().__init__(sent)
        self._parser = EventsOrJSON()

    def read(self, name: str, payload: bytes) -> Events:
        """See AnthropicStream."""
        if not name and (error := _google_error(payload)) is not None:
            raise UpstreamError(failure_of(error))
        return super().read(name, payload)


def _google_error(data: bytes) -> JsonObject | None:
    """The error of Google's envelope, which has a status by name, or a number for one; Anthropic's has a type."""
    if b'"error"' not in data:
        return None
    try:
        value = loaded(data)
    except orjson.JSONDecodeError:
        return None
    error = error_in(value)
    return error if error is not None and "type" not in error else None


def _url(target: Target, stream: bool) -> str:
    path = target.profile.wires[Operation.CHAT].path.replace("{model}", quote(target.upstream_model, safe="@:"))
    return f"{placed(target.base_url)}{path}:{'streamRawPredict' if stream else 'rawPredict'}"


def _refuse_addresses(request: UnifiedRequest, target: Target, turns: JsonValue) -> None:
    """Google's platform fetches nothing: images must come with the call."""
    if gives_addresses([turn for turn in (turns if isinstance(turns, list) else ()) if isinstance(turn, dict)]):
        name = "images" if "images" in request.params else "messages"
        raise Refusal(name, f"'{name}' may hold images for {target.name} only as base64 data URIs.")
