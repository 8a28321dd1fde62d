"""Whole answers that are asked for as streams, so that a vendor's silence shows while it generates.

Never the stream itself. Only plain requests are asked so, and only of rows by which a stream tells all that a whole
answer does: with log probabilities, tools, constraints, several choices, or what goes to the vendor unread, that is in
doubt.
"""

from collections.abc import Mapping
from dataclasses import replace

from providers.dialect import Target
from providers.failure import VERDICTS, Failure
from providers.unified import UnifiedRequest, is_neutral

_PLAIN = frozenset(
    {"max_tokens", "temperature", "top_p", "top_k", "min_p", "typical_p", "repetition_penalty", "presence_penalty"}
    | {"frequency_penalty", "stop", "logit_bias", "seed", "user", "metadata", "prompt_cache_key", "reasoning_effort"}
    | {"thinking", "context_length_exceeded_behavior"}
)
"""Fields that change what is generated and not the form in which it comes."""


def as_asked(request: UnifiedRequest, target: Target) -> UnifiedRequest:
    """The request as the vendor gets it: streamed where the client or, for a whole answer, the table wants it so."""
    if target.stream_upstream == "off" or request.stream or not (_tells_all(target) and _is_plain(request)):
        return request
    return replace(request, stream=True)


def _tells_all(target: Target) -> bool:
    row = target.profile.for_version(target.api_version or target.profile.api_version)
    return row.for_model(target.upstream_model, target.model).exact_streams


def _is_plain(request: UnifiedRequest) -> bool:
    if request.prompts > 1 or request.unknown or request.extra_params or request.extra_headers:
        return False
    params: Mapping[str, object] = request.params
    return all(name in _PLAIN or is_neutral(name, value) for name, value in params.items())


def refuses_streams(failure: Failure) -> bool:
    """Whether a vendor says of a request that it may not be streamed, as OpenAI does to organisations that it has not
    verified: the same request in one piece may be answered."""
    return VERDICTS[failure.kind].status == 400 and ("stream" in failure.message.lower() or failure.param == "stream")
