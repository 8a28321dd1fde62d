"""Requests whole answers as streams where a stream holds the same, so that a silent vendor is noticed while it
generates.

Only plain requests qualify: with log probabilities, tools, constraints, several choices, or members that are passed
through unread, a stream may hold less.
"""

from collections.abc import Mapping
from dataclasses import replace

from providers.failure import VERDICTS, Failure
from providers.request_fields import KEEP_FORM, is_neutral
from providers.target import Target
from providers.unified_request import UnifiedRequest


def prefer_stream(request: UnifiedRequest, target: Target) -> UnifiedRequest:
    """Return the request as the vendor gets it: streamed where the client wants it, or where the stream holds all that
    a whole answer does and the routing table allows it."""
    if target.stream_upstream == "off" or request.stream or not (_tells_all(target) and _is_plain(request)):
        return request
    return replace(request, stream=True)


def _tells_all(target: Target) -> bool:
    profile = target.version_profile
    return profile.for_model(*target.model_names).exact_streams


def _is_plain(request: UnifiedRequest) -> bool:
    if request.prompt.count > 1 or request.unknown or request.extra_params or request.extra_headers:
        return False
    params: Mapping[str, object] = request.params
    return all(name in KEEP_FORM or is_neutral(name, value) for name, value in params.items())


def refuses_streams(failure: Failure) -> bool:
    """Return whether a failure says that the request may not be streamed, as OpenAI answers organisations that it has
    not verified. The request may succeed without streaming."""
    return VERDICTS[failure.kind].status == 400 and ("stream" in failure.message.lower() or failure.param == "stream")
