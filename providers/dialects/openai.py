"""The OpenAI family's wire format: completions and chat completions, as each vendor's profile has them.

Never I/O, and never a vendor's name: what differs between vendors is in their rows.

Sources: OpenAI OpenAPI 2.3.0; the rows name theirs.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote

import orjson

from providers.capabilities import Capabilities
from providers.completion import Completion
from providers.dialect import StreamDecoder, Target, UpstreamRequest
from providers.dialects.openai_answer import decode_body
from providers.dialects.openai_cells import capabilities
from providers.dialects.openai_errors import classify
from providers.dialects.openai_fields import Draft, put_fields, unsupported
from providers.dialects.openai_prompt import native_prompt, vendor_messages, wrapped_messages
from providers.dialects.openai_stream import OpenAIStream, decode_stream, is_stream
from providers.failure import Failure, Refusal
from providers.profiles import Profile, merged
from providers.unified import PROTECTED_PARAMS, ChatPrompt, JsonObject, Operation, UnifiedRequest, is_neutral


class OpenAIDialect:
    """See providers.dialect.Dialect."""

    def capabilities(self, request: UnifiedRequest, target: Target) -> Capabilities:
        """See Dialect."""
        operation = _operation(request, target)
        profile = _for_target(target).profile
        return capabilities(profile, request.operation, operation, _counted(profile, target))

    def encode(self, request: UnifiedRequest, target: Target) -> UpstreamRequest:
        """See Dialect."""
        operation = _operation(request, target)
        profile = _for_target(target).profile
        table = capabilities(profile, request.operation, operation, _counted(profile, target))
        body: JsonObject = {"model": target.upstream_model, **profile.body}
        stream = request.stream or profile.streams_only
        draft = Draft(target, operation, request.params, stream, body, table)
        _put_prompt(draft, profile, request)
        put_fields(draft, profile, request.injected)
        if stream:
            draft.body["stream"] = True
            if profile.asks_usage:
                # Always asked, for the gateway's own account; the surface shows it only to a client that asked.
                draft.body["stream_options"] = {"include_usage": True}
        if request.unknown or request.extra_params:
            _put_extras(draft, request)
        return UpstreamRequest(
            target=target,
            operation=operation,
            url=_url(target, profile, operation),
            body=orjson.dumps(draft.body),
            stream=request.stream,
            headers=request.extra_headers or {},
            emulated=tuple(draft.emulated),
            unwrap_choice=draft.unwrap,
        )

    def decode(self, sent: UpstreamRequest, body: bytes) -> Completion:
        """See Dialect. Some models only stream, and some servers do so unasked."""
        streamed = _for_target(sent.target).profile.streams_only or is_stream(body)
        return (decode_stream if streamed else decode_body)(sent, body)

    def stream(self, sent: UpstreamRequest) -> StreamDecoder:
        """See Dialect."""
        return OpenAIStream(sent)

    def classify(self, sent: UpstreamRequest, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        """See Dialect."""
        return classify(sent.target.profile, status, headers, body)


class _ForModel(NamedTuple):
    """A row as it holds for a model: what is said of it, whether it takes raw prompts, and whether it chats."""

    profile: Profile
    raw: bool
    chats: bool


def _for_target(target: Target) -> _ForModel:
    return _for_model(target.profile, target.api_version, target.upstream_model, target.model)


@lru_cache(maxsize=4096)
def _for_model(row: Profile, version: str | None, *names: str) -> _ForModel:
    profile = row.for_version(version or row.api_version)
    return _ForModel(profile.for_model(*names), profile.takes_raw_prompts(*names), profile.chats(*names))


def _counted(profile: Profile, target: Target) -> bool:
    return target.context_window is not None or profile.tokenizer is not None


def _operation(request: UnifiedRequest, target: Target) -> Operation:
    """What to ask the vendor: a prompt goes to completions where the model takes raw prompts, else into a chat."""
    profile, raw, chats = _for_target(target)
    if target.completions is not None:
        raw, chats = target.completions, Operation.CHAT in profile.wires
    raw = raw or (profile.raw_prompts == "suffix" and "suffix" in request.params)
    if request.operation is Operation.CHAT:
        if not chats:
            raise unsupported(target, "messages", "the model takes raw prompts only; use a completions endpoint")
        return Operation.CHAT
    if raw and Operation.COMPLETIONS in profile.wires and not request.params.get("tools"):
        return Operation.COMPLETIONS
    if not chats:
        raise unsupported(target, "tools", "the model takes raw prompts only")
    return Operation.CHAT


def _url(target: Target, profile: Profile, operation: Operation) -> str:
    url = target.base_url
    if profile.model_in == "path":
        url += f"/openai/deployments/{quote(target.upstream_model, safe='')}"
    url += profile.wires[operation].path
    version = target.api_version or profile.api_version
    return url if version is None else f"{url}?api-version={quote(version, safe='')}"


def _put_prompt(draft: Draft, profile: Profile, request: UnifiedRequest) -> None:
    if draft.operation is Operation.COMPLETIONS:
        draft.body["prompt"] = native_prompt(draft.target, draft.table, request.prompt)
    elif isinstance(request.prompt, ChatPrompt):
        if not is_neutral("images", request.params.get("images", ())):
            raise unsupported(draft.target, "images", "on chat they belong into the messages")
        draft.body["messages"] = vendor_messages(draft.target, profile, request.prompt)
    else:
        draft.body["messages"] = wrapped_messages(draft.target, draft.table, request)
        draft.emulated.append("prompt")
        if "images" in request.params:
            draft.emulated.append("images")


def _put_extras(draft: Draft, request: UnifiedRequest) -> None:
    """Fields outside the union, then the client's own extra members, which win over everything but the protected."""
    for name, value in (request.unknown or {}).items():
        if (cell := draft.table["unknown"]).refused:
            raise unsupported(draft.target, name, cell.how)
        if name in draft.body or name in PROTECTED_PARAMS:
            message = f"'{name}' goes to {draft.target.name} for another field of the request already."
            raise Refusal(name, message, "conflicting_parameters")
        draft.body[name] = value
    if request.extra_params:
        if protected := PROTECTED_PARAMS & set(request.extra_params):
            name = min(protected)
            raise Refusal("inference_extra_params", f"'inference_extra_params' may not set '{name}'.", "invalid_value")
        draft.body = merged(draft.body, dict(request.extra_params))
