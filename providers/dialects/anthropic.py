"""Anthropic's Messages API: the outgoing request, and the door to its answers.

Never I/O, and never raw continuation: the vendor has retired it, so a prompt becomes one user message.

Sources: `anthropic` 2.12.0 type `MessageCreateParams`; "Messages" and "API versions" pages, November 2026.
"""

from collections.abc import Mapping

import orjson

from providers.capabilities import Capabilities
from providers.completion import Completion
from providers.dialect import StreamDecoder, Target, UpstreamRequest
from providers.dialects.anthropic_answer import decode_message
from providers.dialects.anthropic_errors import classify_answer
from providers.dialects.anthropic_fields import Draft, capabilities, put_fields
from providers.dialects.anthropic_messages import Conversation
from providers.dialects.anthropic_stream import AnthropicStream
from providers.dialects.anthropic_tools import ToolNames, put_tools
from providers.dialects.openai_prompt import wrapped_messages
from providers.failure import Failure, Refusal
from providers.profiles import merged
from providers.tool_names import offered_names
from providers.unified import ChatPrompt, JsonObject, Operation, UnifiedRequest

PATH = "/v1/messages"
"""Anthropic's own addresses end before the version, those of others that speak its wire often behind it."""

VERSION = "2023-06-01"
"""What is asked for when the table says nothing; every model understands it."""

NO_SAMPLING = "2026-10-21"
"""From this version on the vendor refuses `temperature`, `top_p` and `top_k` whatever their value."""

_VERSION_HEADER, _BETA_HEADER = "anthropic-version", "anthropic-beta"


class AnthropicDialect:
    """See providers.dialect.Dialect."""

    def capabilities(self, request: UnifiedRequest, target: Target) -> Capabilities:
        """See Dialect."""
        return capabilities(request.operation, target.context_window is not None)

    def encode(self, request: UnifiedRequest, target: Target) -> UpstreamRequest:
        """See Dialect."""
        version = target.api_version or target.profile.api_version or VERSION
        headers = with_betas({_VERSION_HEADER: version}, request.extra_headers)
        table = self.capabilities(request, target)
        draft, names = written(request, target, table, headers[_VERSION_HEADER], {"model": target.upstream_model})
        return finished(draft, names, target.base_url.removesuffix("/v1") + PATH, headers)

    def decode(self, sent: UpstreamRequest, body: bytes) -> Completion:
        """See Dialect."""
        return decode_message(sent, body)

    def stream(self, sent: UpstreamRequest) -> StreamDecoder:
        """See Dialect."""
        return AnthropicStream(sent)

    def classify(self, sent: UpstreamRequest, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        """See Dialect."""
        return classify_answer(status, headers, body)


def with_betas(own: Mapping[str, str], given: Mapping[str, str] | None) -> dict[str, str]:
    """Our headers and the client's, of which lists of betas are joined."""
    headers = dict(own)
    for name, value in (given or {}).items():
        lower = name.lower()
        headers[lower] = f"{headers[lower]},{value}" if lower == _BETA_HEADER and lower in headers else value
    return headers


def written(
    request: UnifiedRequest, target: Target, table: Capabilities, version: str, opening: JsonObject
) -> tuple[Draft, ToolNames]:
    """The body of a call, begun by `opening`, as this `version` of the API takes it. Raises Refusal."""
    draft = Draft(request, target, table, version < NO_SAMPLING, opening)
    if request.unknown:
        raise draft.unsupported(next(iter(request.unknown)), table["unknown"].how)
    _put_limit(draft)
    names = ToolNames(offered_names(request.params))
    _put_prompt(draft, names)
    put_tools(draft.body, request.params, names)
    put_fields(draft)
    if request.stream:
        draft.body["stream"] = True
    return draft, names


def finished(draft: Draft, names: ToolNames, url: str, headers: Mapping[str, str]) -> UpstreamRequest:
    """The finished call, with the client's own members on top."""
    request = draft.request
    body = merged(draft.body, dict(request.extra_params)) if request.extra_params else draft.body
    return UpstreamRequest(
        target=draft.target,
        operation=Operation.CHAT,
        url=url,
        body=orjson.dumps(body),
        stream=request.stream,
        headers=headers,
        emulated=tuple(draft.emulated),
        tool_names=names.changed(),
        unwrap_choice=draft.unwrap,
    )


def _put_limit(draft: Draft) -> None:
    limit = draft.request.params.get("max_tokens", draft.target.max_output_tokens)
    if limit is None:
        message = f"{draft.target.name} needs 'max_tokens'; set it, or 'max_output_tokens' of the model in the table."
        raise Refusal("max_tokens", message, "invalid_value")
    if limit < 1:
        raise draft.invalid("max_tokens", "must be at least 1")
    draft.body["max_tokens"] = limit


def _put_prompt(draft: Draft, names: ToolNames) -> None:
    prompt = draft.request.prompt
    if isinstance(prompt, ChatPrompt):
        conversation = Conversation(names, "messages")
        conversation.read(prompt.messages)
    else:
        draft.emulated.extend(("prompt", "images") if "images" in draft.request.params else ("prompt",))
        conversation = Conversation(names, "images" if "images" in draft.request.params else "prompt")
        conversation.read(wrapped_messages(draft.target, draft.table, draft.request))
    if conversation.folded:
        draft.emulated.append("messages")
    if system := conversation.system:
        draft.body["system"] = system
    draft.body["messages"] = [*conversation.turns]
