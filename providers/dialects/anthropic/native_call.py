"""Builds a call from a client's own Messages body.

The gateway overwrites the fields that it decides on and sends the rest unchanged. It sets the model and streaming,
limits `max_tokens` to the deployment's limit, changes `thinking` to a form that the model accepts, and removes sampling
settings that this version of the API lacks. Fields that were changed or left out are reported under the vendor's names,
since the client uses the vendor's names too.

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
from providers.dialects.anthropic.thinking import BINDING_BETA, fit_client_thinking, limit_within, put_limit
from providers.dialects.anthropic.tools import NO_FORCED_CHOICE, forces_call
from providers.dialects.shared.request_body import RequestBody, build_request, check_window
from providers.json_types import JsonValue
from providers.models.claude import ClaudeModel
from providers.request_fields import WINDOW
from providers.target import Target
from providers.unified_request import NativeApi, NativeRequest, Operation, UnifiedRequest


@dataclass(frozen=True, slots=True)
class ClaudePlatform:
    """A service that accepts Messages bodies.

    `betas` maps the names that clients use for betas to the platform's names. It is `None` for Anthropic's own API,
    which has all betas. `mends` are the functions that adapt a body written for Anthropic's own API to the platform.
    """

    betas: Betas | None = None
    mends: tuple[Callable[[MendedBody], None], ...] = ()


CLAUDE_API = ClaudePlatform()
CLAUDE_ON_VERTEX = ClaudePlatform(VERTEX_BETAS, (instructions_as_users, unscope_markers))
CLAUDE_ON_BEDROCK = ClaudePlatform(BEDROCK_BETAS, (instructions_as_users, unscope_markers))


def messages_request(request: UnifiedRequest) -> NativeRequest | None:
    """Return the client's own request if it is a request of the Messages API."""
    native = request.native
    return native if native is not None and native.api is NativeApi.MESSAGES else None


def mended_for(platform: ClaudePlatform, given: Mapping[str, JsonValue]) -> MendedBody:
    """Return a client's body in the form that the platform accepts."""
    mended = mend_body(given)
    for mend in platform.mends:
        mend(mended)
    return mended


def betas_of(platform: ClaudePlatform, mended: MendedBody, headers: Mapping[str, str]) -> tuple[str, ...]:
    """Return the betas to send with a client's body. The betas that the platform lacks and the beta of `fallbacks` are
    left out and reported as dropped."""
    given = given_betas(headers)
    betas = without_fallback_betas(given)
    dropped = betas != given
    if platform.betas is not None:
        betas, dropped = betas_on(platform.betas, given)
    if dropped:
        mended.dropped.append(BETA_HEADER)
    thinking = mended.body.get("thinking")
    binds = isinstance(thinking, dict) and "block_binding" in thinking
    return tuple(dict.fromkeys((*betas, BINDING_BETA))) if binds else betas


def native_draft(
    request: UnifiedRequest, target: Target, table: Capabilities, model: ClaudeModel, mended: MendedBody
) -> RequestBody:
    """Return a client's mended body with all fields that the gateway decides on, except the version. Raises Refusal."""
    draft = RequestBody(request, target, table, mended.body, mended.emulated, mended.dropped, native=True)
    if names_fallback_beta(request.extra_headers):
        draft.dropped.append(BETA_HEADER)
    if WINDOW in request.params and WINDOW not in request.injected:
        check_window(draft, request.params[WINDOW])
    _put_limit(draft, model)
    # `thinking` is fitted to the turns only if the client sent it.
    turns = mended.turns if isinstance(draft.body.get("thinking"), dict) else []
    if fit_client_thinking(draft, model, turns):
        remove_thinking(mended)
    if forces_call(draft.body.get("tool_choice")) and not model.forced_choice:
        raise draft.unsupported("tool_choice", NO_FORCED_CHOICE)
    draft.body.pop("stream", None)
    if request.stream:
        draft.body["stream"] = True
    return draft


def refuse_sampling(draft: RequestBody) -> None:
    """Remove the sampling settings from a body, for a model or a version of the API that has none. Raises Refusal for a
    setting whose value is not neutral."""
    for name in ("temperature", "top_p", "top_k"):
        if name in draft.body:
            FIELDS_WITHOUT_SAMPLING[name](draft, draft.body.pop(name))


def native_call(draft: RequestBody, url: str, headers: Mapping[str, str]) -> UpstreamRequest:
    """Return the finished call."""
    return build_request(draft, Operation.CHAT, url, headers, {})


def _put_limit(draft: RequestBody, model: ClaudeModel) -> None:
    """Write `max_tokens`: the client's limit, which may already have been lowered to fit the context window, but at
    most the deployment's limit. A client's limit of 0 is sent unchanged: such a request only fills the cache."""
    given = draft.body.get("max_tokens")
    limit = draft.params.get("max_tokens", given)
    if given is None and limit is None:
        put_limit(draft, model)
    elif isinstance(limit, int) and limit > 0:
        draft.body["max_tokens"] = lowered = limit_within(draft.target, model, limit)
        if lowered < limit:
            draft.emulated.append("max_tokens")
