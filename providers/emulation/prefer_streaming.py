"""Requests a stream from the vendor although the client requests a non-streaming response, if the stream has the same
content. A vendor that stops sending is then noticed during generation.

Only plain requests qualify: for a request with log probabilities, tools, constraints, several choices, or fields that
are passed through, a stream may lack a part of the content.
"""

from collections.abc import Mapping
from dataclasses import replace

from providers.failure import VERDICTS, Failure
from providers.request_fields import KEEP_FORM, is_neutral
from providers.target import Target
from providers.unified_request import UnifiedRequest


def prefer_stream(request: UnifiedRequest, target: Target) -> UnifiedRequest:
    """Return the request that is sent to the vendor. It requests a stream if the client requests a stream, or if the
    configuration allows it and the stream holds all that a non-streaming response holds."""
    if target.stream_upstream == "off" or request.stream or not (_streams_are_complete(target) and _is_plain(request)):
        return request
    return replace(request, stream=True)


def _streams_are_complete(target: Target) -> bool:
    profile = target.version_profile
    return profile.for_model(*target.model_names).exact_streams


def _is_plain(request: UnifiedRequest) -> bool:
    if request.prompt.count > 1 or request.unknown or request.extra_params or request.extra_headers:
        return False
    params: Mapping[str, object] = request.params
    return all(name in KEEP_FORM or is_neutral(name, value) for name, value in params.items())


def refuses_streams(failure: Failure) -> bool:
    """Return whether a failure says that the request may not be streamed. OpenAI sends this failure to organisations
    that it has not verified. The request may succeed without streaming."""
    return VERDICTS[failure.kind].status == 400 and ("stream" in failure.message.lower() or failure.param == "stream")
