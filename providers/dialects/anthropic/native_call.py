"""A call with a client's own Messages body: what the gateway decides is written over it, the rest goes as it came.

The gateway decides on the model, on streaming, on a limit within the deployment's, on thinking that the model has
another form of, and on sampling settings that this version of the API has not. Names of what was changed or left out
are the vendor's, since the client's are.

Sources: `anthropic` 2.12.0 type `MessageCreateParams`; "Messages", "API versions" and "Beta headers" pages, November
2026.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from providers.capabilities import Capabilities
from providers.dialect import UpstreamRequest
from providers.dialects.anthropic.fields import FIELDS_WITHOUT_SAMPLING
from providers.dialects.anthropic.native_betas import (
    BEDROCK_BETAS,
    BETA_HEADER,
    VERTEX_BETAS,
    Betas,
    betas_on,
    given_betas,
    names_fallback_beta,
    without_fallback_betas,
)
from providers.dialects.anthropic.native_body import (
    MendedBody,
    instructions_as_users,
    mend_body,
    remove_thinking,
    unscope_markers,
)
from providers.dialects.anthropic.thinking import BINDING_BETA, limit_within, put_limit, suit_thinking
from providers.dialects.anthropic.tools import NO_FORCED_CHOICE, forces_call
from providers.dialects.shared.request_body import RequestBody, build_request, check_window
from providers.json_types import JsonValue
from providers.models.claude import ClaudeModel
from providers.request_fields import WINDOW
from providers.target import Target
from providers.unified_request import NativeApi, NativeRequest, Operation, UnifiedRequest


@dataclass(frozen=True, slots=True)
class ClaudePlatform:
    """A service that takes Messages bodies: its betas by the names that clients use (None: those of Anthropic's own
    API, all of them), and how bodies written for Anthropic's own API are mended for it."""

    betas: Betas | None = None
    mends: tuple[Callable[[MendedBody], None], ...] = ()


CLAUDE_API = ClaudePlatform()
CLAUDE_ON_VERTEX = ClaudePlatform(VERTEX_BETAS, (instructions_as_users, unscope_markers))
CLAUDE_ON_BEDROCK = ClaudePlatform(BEDROCK_BETAS, (instructions_as_users, unscope_markers))


def messages_request(request: UnifiedRequest) -> NativeRequest | None:
    """Return the client's own request where it is one of the Messages API."""
    native = request.native
    return native if native is not None and native.api is NativeApi.MESSAGES else None


def mended_for(platform: ClaudePlatform, given: Mapping[str, JsonValue]) -> MendedBody:
    """Return a client's body as the platform takes it."""
    mended = mend_body(given)
    for mend in platform.mends:
        mend(mended)
    return mended


def betas_of(platform: ClaudePlatform, mended: MendedBody, headers: Mapping[str, str]) -> tuple[str, ...]:
    """Return the betas to name for a client's body with its headers; those that the platform lacks, and that of
    `fallbacks`, are noted."""
    given = given_betas(headers)
    betas = without_fallback_betas(given)
    lacks = betas != given
    if platform.betas is not None:
        betas, lacks = betas_on(platform.betas, given)
    if lacks:
        mended.dropped.append(BETA_HEADER)
    thinking = mended.body.get("thinking")
    binds = isinstance(thinking, dict) and "block_binding" in thinking
    return tuple(dict.fromkeys((*betas, BINDING_BETA))) if binds else betas


def native_draft(
    request: UnifiedRequest, target: Target, table: Capabilities, model: ClaudeModel, mended: MendedBody
) -> RequestBody:
    """Return a client's mended body with what the gateway decides, all but the version. Raises Refusal."""
    draft = RequestBody(request, target, table, mended.body, mended.emulated, mended.dropped, native=True)
    if names_fallback_beta(request.extra_headers):
        draft.dropped.append(BETA_HEADER)
    if WINDOW in request.params and WINDOW not in request.injected:
        check_window(draft, request.params[WINDOW])
    _put_limit(draft, model)
    # Only thinking that was asked for is fitted to the turns.
    turns = mended.turns if isinstance(draft.body.get("thinking"), dict) else []
    if suit_thinking(draft, model, turns):
        remove_thinking(mended)
    if forces_call(draft.body.get("tool_choice")) and not model.forced_choice:
        raise draft.unsupported("tool_choice", NO_FORCED_CHOICE)
    draft.body.pop("stream", None)
    if request.stream:
        draft.body["stream"] = True
    return draft


def refuse_sampling(draft: RequestBody) -> None:
    """Take the sampling settings out of a body for a model, or a version of the API, that has none. Raises Refusal for
    one that asks for something."""
    for name in ("temperature", "top_p", "top_k"):
        if name in draft.body:
            FIELDS_WITHOUT_SAMPLING[name](draft, draft.body.pop(name))


def native_call(draft: RequestBody, url: str, headers: Mapping[str, str]) -> UpstreamRequest:
    """Return the finished call."""
    return build_request(draft, Operation.CHAT, url, headers, {})


def _put_limit(draft: RequestBody, model: ClaudeModel) -> None:
    """Write `max_tokens`: the client's, which may have been lowered to the window since, within the deployment's. Its 0
    only fills the cache."""
    given = draft.body.get("max_tokens")
    limit = draft.params.get("max_tokens", given)
    if given is None and limit is None:
        put_limit(draft, model)
    elif isinstance(limit, int) and limit > 0:
        draft.body["max_tokens"] = lowered = limit_within(draft.target, model, limit)
        if lowered < limit:
            draft.emulated.append("max_tokens")
