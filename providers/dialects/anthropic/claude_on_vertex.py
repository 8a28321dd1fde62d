"""Claude on Vertex AI: Anthropic's Messages API at Google's URLs.

Sources: `anthropic` 2.12.0 `lib/vertex` and its calls to a mock transport; "Claude on Vertex AI" page, November 2026.
"""

import re
from collections.abc import Mapping, Sequence
from urllib.parse import quote

import orjson

from providers.dialect import StreamDecoder, UpstreamRequest
from providers.dialects.anthropic.blocks import refuse_stored_media
from providers.dialects.anthropic.dialect import (
    NO_SAMPLING,
    AnthropicDialect,
    call_of,
    model_of,
    request_body,
    with_betas,
)
from providers.dialects.anthropic.errors import classify_answer
from providers.dialects.anthropic.native_body import objects_in
from providers.dialects.anthropic.native_call import (
    CLAUDE_ON_VERTEX,
    betas_of,
    mended_for,
    messages_request,
    native_call,
    native_draft,
    refuse_sampling,
)
from providers.dialects.anthropic.stream import AnthropicReader, Events
from providers.dialects.anthropic.thinking import needed_betas
from providers.dialects.anthropic.tools import refuse_tools
from providers.dialects.platforms.google_errors import classify_answer as classify_google
from providers.dialects.platforms.google_errors import error_in, failure_of
from providers.dialects.platforms.google_events import EventsOrJSON
from providers.dialects.platforms.vertex_address import resolve_host
from providers.dialects.shared.decode_text_chunks import MarkedEvent, NativeTextReader, TextStream
from providers.dialects.shared.read_json import load_json
from providers.failure import Failure, UpstreamError
from providers.json_types import JsonObject
from providers.target import Target
from providers.unified_request import Operation, UnifiedRequest

VERSION = "vertex-2023-10-16"
"""The version that is sent if the configuration gives no version. It is the platform's name for Anthropic's first
version. Later versions have Anthropic's own names, which are dates."""

_FIRST_VERSION = "2023-06-01"
_ABSENT_TOOLS = re.compile(r"web_fetch_|code_execution_|mcp_toolset|advisor_")
"""The vendor's own tools that the platform does not offer."""

_VERSION_HEADER = "anthropic-version"


class AnthropicVertexDialect(AnthropicDialect):
    """The dialect of Claude on Vertex AI."""

    def encode(self, request: UnifiedRequest, target: Target) -> UpstreamRequest:
        headers = with_betas(needed_betas(request.params), request.extra_headers)
        version = _version(target, headers.pop(_VERSION_HEADER, ""))
        opening: JsonObject = {"anthropic_version": _platform_version(version)}
        draft, names = request_body(request, target, self.capabilities(request, target), version, opening)
        refuse_tools(target, request.params.get("tools", ()), _ABSENT_TOOLS)
        refuse_stored_media(draft, "images" if "images" in request.params else "messages")
        return call_of(draft, names, _url(target, request.stream), headers)

    def encode_native(self, request: UnifiedRequest, target: Target) -> UpstreamRequest | None:
        native = messages_request(request)
        if native is None:
            return None
        mended, model = mended_for(CLAUDE_ON_VERTEX, native.body), model_of(target)
        headers = with_betas(native_headers(betas_of(CLAUDE_ON_VERTEX, mended, native.headers)), request.extra_headers)
        version = _version(target, headers.pop(_VERSION_HEADER, ""))
        draft = native_draft(request, target, self.capabilities(request, target), model, mended)
        if version >= NO_SAMPLING or not model.sampling:
            refuse_sampling(draft)
        refuse_tools(target, objects_in(draft.body.get("tools")), _ABSENT_TOOLS)
        refuse_stored_media(draft, "messages")
        draft.body.pop("model", None)
        draft.body["anthropic_version"] = _platform_version(version)
        return native_call(draft, _url(target, request.stream), headers)

    def stream(self, sent: UpstreamRequest) -> StreamDecoder:
        reader = _VertexReader(sent)
        frames = EventsOrJSON()
        return TextStream(frames, NativeTextReader(reader) if sent.native else reader)

    def classify(self, sent: UpstreamRequest, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        return classify_google(status, headers, body) if _google_error(body) else classify_answer(status, headers, body)


class _VertexReader(AnthropicReader):
    """Reader of Anthropic's events, between which Google's front end may send an error in Google's form."""

    __slots__ = ()

    def read(self, name: str, payload: bytes) -> Events:
        if not name and (error := _google_error(payload)) is not None:
            raise UpstreamError(failure_of(error))
        return super().read(name, payload)

    def marked(self, event: JsonObject) -> MarkedEvent | None:
        return None if "error" in event else super().marked(event)


def native_headers(betas: Sequence[str]) -> dict[str, str]:
    """Return the headers of a call that carries the client's own body."""
    return {"anthropic-beta": ",".join(betas)} if betas else {}


def native_version(target: Target) -> str:
    """Return the version to write into a client's own body: the configured version, else the first version, which every
    model accepts. The client's version applies to Anthropic's own API alone."""
    return _platform_version(_version(target, ""))


def _version(target: Target, given: str) -> str:
    """Return the version of Anthropic's own API that a call is written for."""
    version = given or target.api_version or target.profile.api_version or VERSION
    return _FIRST_VERSION if version == VERSION else version


def _platform_version(version: str) -> str:
    """Return the platform's name for a version of Anthropic's API."""
    return VERSION if version == _FIRST_VERSION else version


def _google_error(data: bytes) -> JsonObject | None:
    """Return the error in Google's envelope, or `None` for other data. Anthropic's errors have the key `type`; Google's
    errors have the key `status`."""
    if b'"error"' not in data:
        return None
    try:
        value = load_json(data)
    except orjson.JSONDecodeError:
        return None
    error = error_in(value)
    return error if error is not None and "type" not in error else None


def _url(target: Target, stream: bool) -> str:
    path = target.profile.wires[Operation.CHAT].path.replace("{model}", quote(target.upstream_model, safe="@:"))
    return f"{resolve_host(target.base_url)}{path}:{'streamRawPredict' if stream else 'rawPredict'}"
