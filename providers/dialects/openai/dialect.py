"""The dialect of the OpenAI family: completions and chat completions, as described by each vendor's profile.

Differences between vendors are in their profiles. A request that a model accepts only through the Responses API is sent
to that API, regardless of the API that the client speaks.

Sources: OpenAI OpenAPI 2.3.0; the profiles name their own sources.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from providers.capabilities import Capabilities
from providers.completion import Completion
from providers.dialect import StreamDecoder, UpstreamRequest
from providers.dialects.openai.answer import decode_body
from providers.dialects.openai.capabilities import capabilities
from providers.dialects.openai.fields import put_own_fields, put_pairs, writers
from providers.dialects.openai.message_parts import NotInChats
from providers.dialects.openai.messages import vendor_messages
from providers.dialects.openai.stream import OpenAIStream
from providers.dialects.openai.tools import with_fitting_names, without_custom_tools
from providers.dialects.responses.answer import decode_response, decode_translated
from providers.dialects.responses.call import PROTECTED, encode_responses, responses_request
from providers.dialects.responses.request import (
    effort_of,
    finish_responses,
    put_input,
    responses_fields,
    responses_profile,
    runs_hosted,
    why_responses,
    without_chat_fields,
)
from providers.dialects.responses.stream import ResponsesReader
from providers.dialects.shared.decode_stream import NativeReader, NativeStream
from providers.dialects.shared.errors import OpenAIErrors
from providers.dialects.shared.field_writers import check_images, params_without_field
from providers.dialects.shared.operations import endpoint_url
from providers.dialects.shared.prompt import native_prompt, wrapped_messages
from providers.dialects.shared.read_json import malformed
from providers.dialects.shared.request_body import (
    FieldWriter,
    RequestBody,
    build_request,
    put_fields,
    unless_neutral,
    unsupported,
)
from providers.emulation.collect_stream import Gatherer
from providers.failure import Refusal
from providers.framing.parse_sse import SSEParser
from providers.frozen_record import frozen
from providers.json_types import JsonObject
from providers.models.fit_profile import profile_for_model
from providers.profile import Profile
from providers.request_fields import PROMPT_FIELDS, PROTECTED_PARAMS, is_neutral
from providers.target import Target
from providers.unified_request import ChatPrompt, NativeApi, Operation, UnifiedRequest

_FILES_REASON = "chats do not take all files of the messages"
_AFTER_ALL_VERSIONS = "9999-12-31"
"""An API version that is later than every version of a vendor's API."""


class OpenAIDialect(OpenAIErrors):
    """The `Dialect` of the OpenAI family."""

    def capabilities(self, request: UnifiedRequest, target: Target) -> Capabilities:
        return _endpoint(request, target).table

    def encode(self, request: UnifiedRequest, target: Target) -> UpstreamRequest:
        endpoint = _endpoint(request, target)
        try:
            return self._encoded(request, target, endpoint)
        except NotInChats:
            if endpoint.because or endpoint.operation is not Operation.CHAT or _newest(target).responses is None:
                raise
            return self._encoded(request, target, _compile_responses(request, target, _FILES_REASON))

    def _encoded(self, request: UnifiedRequest, target: Target, endpoint: "_CompiledEndpoint") -> UpstreamRequest:
        profile = endpoint.profile
        custom: frozenset[str] = frozenset()
        renamed: Mapping[str, str] = {}
        if "tools" in request.params:
            request, custom = without_custom_tools(request, profile)
            request, renamed = with_fitting_names(request, profile)
        draft = RequestBody(request, target, endpoint.table, {**endpoint.base_fields})
        endpoint.put_prompt(draft, profile)
        put_fields(draft, endpoint.writers, endpoint.without_field)
        if request.stream or profile.streams_only:
            draft.body.update(endpoint.streaming)
        if endpoint.because:
            finish_responses(draft, profile)
        elif request.unknown:
            put_own_fields(draft, profile, PROTECTED_PARAMS)
        if request.extra_params:
            _check_extra(request.extra_params, PROTECTED if endpoint.because else PROTECTED_PARAMS)
        if custom:
            draft.emulated.append("tools")
        sent = build_request(draft, endpoint.operation, endpoint.url, request.extra_headers or {}, renamed)
        if custom or endpoint.because:
            return replace(sent, custom_tools=custom, responses_because=endpoint.because)
        return sent

    def encode_native(self, request: UnifiedRequest, target: Target) -> UpstreamRequest | None:
        native = responses_request(request)
        wire = target.profile.responses
        if native is None or wire is None or not wire.takes_own:
            return None
        profile = _newest(target)
        return encode_responses(request, native, target, profile, self.capabilities(request, target))

    def decode(self, sent: UpstreamRequest, body: bytes) -> Completion:
        """Decode a complete 2xx body, which may be a stream: some models only stream, and some servers stream although
        the request did not ask for it."""
        if sent.native:
            return decode_response(sent, body)
        if sent.responses_because:
            return decode_translated(sent, body)
        streamed = (body[:1] != b"{" and _is_stream(body)) or _for_target(sent.target).profile.streams_only
        return (_decode_stream if streamed else decode_body)(sent, body)

    def stream(self, sent: UpstreamRequest) -> StreamDecoder:
        if sent.native:
            return NativeStream(SSEParser(), NativeReader(ResponsesReader(sent)))
        if sent.responses_because:
            return NativeStream(SSEParser(), ResponsesReader(sent))
        return OpenAIStream(sent)


def _is_stream(body: bytes) -> bool:
    """Return whether a body is a stream of events although the request was for a non-streaming response."""
    return body[:64].lstrip().startswith((b"data:", b"event:", b":"))


def _decode_stream(sent: UpstreamRequest, body: bytes) -> Completion:
    """Decode a complete stream into one completion. Raises UpstreamError."""
    decoder = OpenAIStream(sent)
    events = [*decoder.feed(body), *decoder.finish()]
    gatherer = Gatherer(sent.choices)
    for event in events:
        gatherer.add(event)
    try:
        return gatherer.completion()
    except ValueError:
        raise malformed("lacks a choice that was requested") from None


class _ForModel(NamedTuple):
    """A profile with its settings for one model, and whether the model accepts raw prompts and chats."""

    profile: Profile
    raw: bool
    chats: bool


def _for_target(target: Target) -> _ForModel:
    return _for_model(target.profile, target.api_version, *target.model_names)


def _newest(target: Target) -> Profile:
    """Return the profile for the Responses API, which has no versions, even if the vendor's chats have."""
    return _for_model(target.profile, _AFTER_ALL_VERSIONS, *target.model_names).profile


@lru_cache(maxsize=4096)
def _for_model(whole: Profile, version: str | None, *names: str) -> _ForModel:
    profile = whole.for_version(version or whole.api_version)
    return _ForModel(profile_for_model(profile, *names), profile.takes_raw_prompts(*names), profile.chats(*names))


def _counted(profile: Profile, target: Target) -> bool:
    return target.context_window is not None or profile.tokenizer is not None


def _operation(request: UnifiedRequest, target: Target) -> Operation:
    """Return the upstream operation of a request. Raises Refusal if the model has no operation for it."""
    profile, raw, chats = _for_target(target)
    if not profile.wires:
        raise unsupported(target, PROMPT_FIELDS[request.operation], "the vendor generates no text")
    if target.completions is not None:
        raw, chats = target.completions, Operation.CHAT in profile.wires
    return _UPSTREAM[request.operation](request, target, profile, raw, chats)


def _operation_of_chat(request: UnifiedRequest, target: Target, profile: Profile, raw: bool, chats: bool) -> Operation:
    if not chats:
        raise unsupported(target, "messages", "the model takes raw prompts only; use a completions endpoint")
    return Operation.CHAT


def _operation_of_prompt(
    request: UnifiedRequest, target: Target, profile: Profile, raw: bool, chats: bool
) -> Operation:
    """Return completions if the model takes raw prompts, otherwise chat. Raises Refusal if the model takes neither for
    this request."""
    raw = raw or (profile.raw_prompts == "suffix" and "suffix" in request.params)
    if raw and Operation.COMPLETIONS in profile.wires and not request.params.get("tools"):
        return Operation.COMPLETIONS
    if not chats:
        raise unsupported(target, "tools", "the model takes raw prompts only")
    return Operation.CHAT


_UPSTREAM: Mapping[Operation, Callable[[UnifiedRequest, Target, Profile, bool, bool], Operation]] = {
    Operation.CHAT: _operation_of_chat,
    Operation.COMPLETIONS: _operation_of_prompt,
}
"""By the client's operation: the function that chooses the upstream operation."""


@frozen(eq=False)
class _CompiledEndpoint:
    """The parts of a vendor's endpoint that are the same for all requests of one kind to a target.

    `base_fields` are the fields of every body, `streaming` are the additional fields of a body that requests a stream.
    `because` is the reason for using the Responses API, empty if another API is used. `without_field` names the params
    that are honoured without a field of the body.
    """

    profile: Profile
    operation: Operation
    table: Capabilities
    writers: Mapping[str, FieldWriter]
    put_prompt: Callable[[RequestBody, Profile], None]
    url: str
    base_fields: JsonObject
    streaming: JsonObject
    because: str = ""
    without_field: frozenset[str] = frozenset()


def _endpoint(request: UnifiedRequest, target: Target) -> _CompiledEndpoint:
    """Return the endpoint that a request goes to. Raises Refusal if the model has no endpoint for it."""

    # The key holds everything that `_operation` and `why_responses` depend on.
    params = request.params
    native_api = request.native and request.native.api
    effort, hosted = (effort_of(_newest(target), params), runs_hosted(params)) if params.get("tools") else (None, False)
    key = (_CompiledEndpoint, request.operation, effort, hosted, "suffix" in params, native_api)
    compiled = target.compiled.get(key)
    if not isinstance(compiled, _CompiledEndpoint):
        compiled = target.compiled[key] = _compile_endpoint(request, target)
    return compiled


def _is_own(request: UnifiedRequest) -> bool:
    """Return whether the client sent the request by the Responses API."""
    return request.native is not None and request.native.api is NativeApi.RESPONSES


def _compile_endpoint(request: UnifiedRequest, target: Target) -> _CompiledEndpoint:
    operation = _operation(request, target)
    if operation is Operation.CHAT and (
        because := why_responses(_newest(target), request.params, own=_is_own(request))
    ):
        return _compile_responses(request, target, because)
    profile = _for_target(target).profile
    fields = writers(profile, operation)
    streaming: JsonObject = {"stream": True}
    if profile.asks_usage:
        # Usage is always requested, for the gateway's own accounting. The surface shows it only to a client that
        # requests it.
        streaming["stream_options"] = {"include_usage": True}
    return _CompiledEndpoint(
        profile,
        operation,
        capabilities(profile, request.operation, operation, _counted(profile, target)),
        fields,
        _PUT_PROMPT[operation],
        endpoint_url(target, profile, profile.wires[operation].path),
        {"model": target.upstream_model, **profile.body},
        streaming,
        without_field=params_without_field(fields),
    )


def _compile_responses(request: UnifiedRequest, target: Target, because: str) -> _CompiledEndpoint:
    profile = responses_profile(_newest(target))
    table = capabilities(profile, request.operation, Operation.CHAT, _counted(profile, target))
    return _CompiledEndpoint(
        profile,
        Operation.CHAT,
        without_chat_fields(table, _newest(target), because),
        _responses_writers(profile),
        put_input,
        target.base_url + profile.wires[Operation.CHAT].path,
        responses_fields(profile, target),
        {"stream": True},
        because,
    )


def _responses_writers(profile: Profile) -> Mapping[str, FieldWriter]:
    put = {**writers(profile, Operation.CHAT), "images": unless_neutral("images", check_images)}
    return {**put, "metadata": put_pairs} if "metadata" in profile.wires[Operation.CHAT].accepts else put


def _put_raw_prompt(draft: RequestBody, profile: Profile) -> None:
    draft.body["prompt"] = native_prompt(draft.target, draft.table, draft.request.prompt)


def _put_messages(draft: RequestBody, profile: Profile) -> None:
    prompt, params = draft.request.prompt, draft.request.params
    if isinstance(prompt, ChatPrompt):
        if "images" in params and not is_neutral("images", params["images"]):
            raise draft.unsupported("images", "on chat they belong into the messages")
        draft.body["messages"] = vendor_messages(draft.target, profile, prompt, draft.dropped)
    else:
        draft.body["messages"] = wrapped_messages(draft.target, draft.table, draft.request)
        draft.emulated.append("prompt")
        if "images" in params:
            draft.emulated.append("images")


_PUT_PROMPT: Mapping[Operation, Callable[[RequestBody, Profile], None]] = {
    Operation.CHAT: _put_messages,
    Operation.COMPLETIONS: _put_raw_prompt,
}
"""Writers of the prompt by the upstream operation."""


def _check_extra(extra: Iterable[str], names: Iterable[str]) -> None:
    if protected := set(names).intersection(extra):
        name = min(protected)
        raise Refusal("inference_extra_params", f"'inference_extra_params' may not set '{name}'.", "invalid_value")
