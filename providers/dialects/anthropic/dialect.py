"""Anthropic's Messages API. The API cannot continue a raw prompt, so a prompt becomes one user message.

Sources: `anthropic` 2.12.0 type `MessageCreateParams`; "Messages" and "API versions" pages, November 2026.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from providers.capabilities import Capabilities
from providers.completion import Completion
from providers.dialect import StreamDecoder, UpstreamRequest
from providers.dialects.anthropic.answer import decode_message
from providers.dialects.anthropic.cache_markers import MARKER, limit_markers
from providers.dialects.anthropic.errors import classify_answer
from providers.dialects.anthropic.fields import FIELDS, FIELDS_WITHOUT_SAMPLING, WRITTEN_ELSEWHERE, capabilities
from providers.dialects.anthropic.messages import Conversation
from providers.dialects.anthropic.native_betas import (
    BETA_HEADER,
    VERSION_HEADER,
    given_version,
    names_fallback_beta,
    without_fallback_betas,
)
from providers.dialects.anthropic.native_call import (
    CLAUDE_API,
    betas_of,
    mended_for,
    messages_request,
    native_call,
    native_draft,
    refuse_sampling,
)
from providers.dialects.anthropic.stream import AnthropicReader
from providers.dialects.anthropic.thinking import honoured_fields, needed_betas, put_limit, put_thinking
from providers.dialects.anthropic.tools import ToolNames, put_tools, tool_names
from providers.dialects.shared.decode_text_chunks import NativeTextReader, TextStream
from providers.dialects.shared.prompt import wrapped_messages
from providers.dialects.shared.request_body import RequestBody, build_request, put_fields, put_unknown
from providers.failure import Failure
from providers.framing.parse_sse import SSEParser
from providers.json_types import JsonObject
from providers.models.claude import UNKNOWN, ClaudeModel, claude_model
from providers.target import Target
from providers.unified_request import ChatPrompt, Operation, UnifiedRequest

PATH = "/v1/messages"
"""The path of a call. Anthropic's own base URLs end before the version; the base URLs of compatible vendors often end
after the version."""

VERSION = "2023-06-01"
"""The version that is sent if the configuration gives no version. Every model accepts this version."""

NO_SAMPLING = "2026-10-21"
"""The first version of the API that refuses `temperature`, `top_p` and `top_k`, whatever value they have."""

_RESERVED = frozenset({"system", "stop_sequences", "anthropic_version", "anthropic_beta"})
"""Fields of the body that the gateway writes from other fields of the request, or from headers that it has checked."""

_ADVISORY_FIELDS = frozenset({"cache_control"})


class AnthropicDialect:
    """The dialect of Anthropic's Messages API."""

    def capabilities(self, request: UnifiedRequest, target: Target) -> Capabilities:
        return capabilities(request.operation, target.context_window is not None, model_of(target))

    def encode(self, request: UnifiedRequest, target: Target) -> UpstreamRequest:
        version = target.api_version or target.profile.api_version or VERSION
        headers = with_betas({VERSION_HEADER: version, **needed_betas(request.params)}, request.extra_headers)
        table = self.capabilities(request, target)
        opening: JsonObject = {"model": target.upstream_model}
        draft, names = request_body(request, target, table, headers[VERSION_HEADER], opening)
        url = target.base_url.removesuffix("/v1") + PATH
        return call_of(draft, names, url, headers)

    def encode_native(self, request: UnifiedRequest, target: Target) -> UpstreamRequest | None:
        native = messages_request(request)
        if native is None:
            return None
        mended, model = mended_for(CLAUDE_API, native.body), model_of(target)
        own_headers = native_headers(target, betas_of(CLAUDE_API, mended, native.headers), native.headers)
        headers = with_betas(own_headers, request.extra_headers)
        draft = native_draft(request, target, self.capabilities(request, target), model, mended)
        if headers[VERSION_HEADER] >= NO_SAMPLING or not model.sampling:
            refuse_sampling(draft)
        draft.body["model"] = target.upstream_model
        return native_call(draft, target.base_url.removesuffix("/v1") + PATH, headers)

    def decode(self, sent: UpstreamRequest, body: bytes) -> Completion:
        completion = decode_message(sent, body)
        return replace(completion, native=body) if sent.native else completion

    def stream(self, sent: UpstreamRequest) -> StreamDecoder:
        reader = AnthropicReader(sent)
        return TextStream(SSEParser(), NativeTextReader(reader) if sent.native else reader)

    def classify(self, sent: UpstreamRequest, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        return classify_answer(status, headers, body)


def native_headers(target: Target, betas: Sequence[str], given: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a call that carries the client's own body. The version is the configured version, else the
    client's version, because the client wrote its body for that version."""
    version = target.api_version or target.profile.api_version or given_version(given) or VERSION
    return {VERSION_HEADER: version, **({BETA_HEADER: ",".join(betas)} if betas else {})}


def with_betas(own: Mapping[str, str], given: Mapping[str, str] | None) -> dict[str, str]:
    """Return the headers of both mappings. A header in `given` overwrites the same header in `own`, but two lists of
    betas are joined, and the beta of `fallbacks` is removed."""
    headers = dict(own)
    for name, value in (given or {}).items():
        lower = name.lower()
        if lower == BETA_HEADER and not (value := ",".join(without_fallback_betas(value.split(",")))):
            continue
        headers[lower] = f"{headers[lower]},{value}" if lower == BETA_HEADER and lower in headers else value
    return headers


def request_body(
    request: UnifiedRequest, target: Target, table: Capabilities, version: str, opening: JsonObject
) -> tuple[RequestBody, ToolNames]:
    """Return the body of a call, and the names of its tools. Raises Refusal.

    `opening` holds the first fields of the body. `version` is the version of the API that the body is written for.
    """
    draft = RequestBody(request, target, table, opening)
    if names_fallback_beta(request.extra_headers):
        draft.dropped.append(BETA_HEADER)
    put_unknown(draft, _RESERVED, _ADVISORY_FIELDS)
    model = model_of(target)
    put_limit(draft, model)
    names = tool_names(request.params)
    conversation = _read_prompt(draft, names)
    put_tools(draft, names, model)
    put_thinking(draft, model, conversation)
    if system := conversation.system:
        draft.body["system"] = system
    draft.body["messages"] = [*conversation.turns]
    sampled = version < NO_SAMPLING and model.sampling
    put_fields(draft, FIELDS if sampled else FIELDS_WITHOUT_SAMPLING, WRITTEN_ELSEWHERE)
    if (conversation.marked or _has_marker(draft.body)) and limit_markers(draft.body):
        draft.dropped.append("cache_control")
    if request.stream:
        draft.body["stream"] = True
    return draft, names


def _has_marker(body: JsonObject) -> bool:
    """Return whether a body has a cache marker outside its messages."""
    tools = body.get("tools")
    tool_list = tools if isinstance(tools, list) else []
    return MARKER in body or any([isinstance(tool, dict) and MARKER in tool for tool in tool_list])


def model_of(target: Target) -> ClaudeModel:
    """Return the facts about a target's model. If the name that is sent upstream is unknown, the configured model name
    decides."""
    model = claude_model(target.model_names[0])
    return claude_model(target.model) if model is UNKNOWN else model


def call_of(draft: RequestBody, names: ToolNames, url: str, headers: Mapping[str, str]) -> UpstreamRequest:
    """Return the finished call."""
    sent = build_request(draft, Operation.CHAT, url, headers, names.changed())
    honoured_names = honoured_fields(draft, draft.body.get("thinking"))
    return replace(sent, custom_tools=names.custom, honoured=honoured_names) if names.custom or honoured_names else sent


def _read_prompt(draft: RequestBody, names: ToolNames) -> Conversation:
    prompt = draft.request.prompt
    if isinstance(prompt, ChatPrompt):
        conversation = Conversation(names, "messages")
        conversation.read(prompt.messages)
    else:
        draft.emulated.extend(("prompt", "images") if "images" in draft.params else ("prompt",))
        conversation = Conversation(names, "images" if "images" in draft.params else "prompt")
        conversation.read(wrapped_messages(draft.target, draft.table, draft.request))
    if conversation.folded:
        draft.emulated.append("messages")
    draft.dropped += conversation.dropped
    return conversation
