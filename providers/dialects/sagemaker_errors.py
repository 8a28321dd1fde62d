"""What SageMaker's errors mean, as HTTP answers and as frames; those of a container are handed to whoever knows them.

Never decides whether anything is tried again.

Sources: botocore 1.44.5 service model `sagemaker-runtime`; "Common Errors" and "InvokeEndpoint" pages, November 2026.
"""

import re
from collections.abc import Callable, Mapping

import orjson

from providers.dialects.openai_read import loaded
from providers.failure import OUR_WORDS, Failure, FailureKind, message_text, retry_after, vet
from providers.unified import JsonObject, JsonValue

_BY_TYPE: Mapping[str, FailureKind] = {
    "ValidationError": FailureKind.INVALID_REQUEST,
    "AccessDeniedException": FailureKind.AUTH,
    "ExpiredTokenException": FailureKind.AUTH,
    "IncompleteSignatureException": FailureKind.AUTH,
    "InvalidSignatureException": FailureKind.AUTH,
    "MissingAuthenticationTokenException": FailureKind.AUTH,
    "UnrecognizedClientException": FailureKind.AUTH,
    "ThrottlingException": FailureKind.RATE_LIMITED,
    # A 429 too, but of a model that is being loaded.
    "ModelNotReadyException": FailureKind.OVERLOADED,
    "ServiceUnavailable": FailureKind.OVERLOADED,
    "InternalFailure": FailureKind.SERVER,
    "InternalDependencyException": FailureKind.SERVER,
    "InternalStreamFailure": FailureKind.SERVER,
    "ModelError": FailureKind.SERVER,
    "ModelStreamError": FailureKind.SERVER,
}
_BY_STATUS: Mapping[int, FailureKind] = {
    401: FailureKind.AUTH,
    403: FailureKind.AUTH,
    404: FailureKind.NOT_FOUND,
    429: FailureKind.RATE_LIMITED,
    503: FailureKind.OVERLOADED,
}
_NO_ENDPOINT = re.compile(r"endpoint \S+ of account \S+ not found", re.IGNORECASE)
_SLOW = "ModelInvocationTimeExceeded"


def classify(
    status: int, headers: Mapping[str, str], body: bytes, of_container: Callable[[int, bytes], Failure]
) -> Failure:
    """The failure an error answer stands for; `headers` has lower-case names. `of_container` classifies what a
    container answered, by its status and body."""
    try:
        value: JsonValue = loaded(body)
    except orjson.JSONDecodeError:
        value = None
    told = value if isinstance(value, dict) else {}
    original, said = told.get("OriginalStatusCode"), told.get("OriginalMessage")
    if isinstance(original, int) and original >= 400:
        return of_container(original, said.encode(errors="replace") if isinstance(said, str) else b"")
    named = headers.get("x-amzn-errortype", "").partition(":")[0].rpartition("#")[2]
    return _failure(named, told, status, headers)


def failure_in_frame(headers: Mapping[str, object], payload: bytes) -> Failure:
    """What a frame tells that is no part of the answer: an exception in JSON, or an error in its headers alone."""
    if headers.get(":message-type") == "error":
        told: JsonObject = {"Message": str(headers.get(":error-message", ""))}
        return _failure(str(headers.get(":error-code", "")), told, None, {})
    try:
        value: JsonValue = loaded(payload)
    except orjson.JSONDecodeError:
        value = None
    return _failure(str(headers.get(":exception-type", "")), value if isinstance(value, dict) else {}, None, {})


def _failure(named: str, told: JsonObject, status: int | None, headers: Mapping[str, str]) -> Failure:
    texts = (told.get(name) for name in ("Message", "message"))
    message = message_text(next((text for text in texts if isinstance(text, str)), ""))
    kind = _BY_TYPE.get(named) or _BY_STATUS.get(status or 500)
    if kind is None:
        # Redirects are not followed, so one is an answer that makes no sense.
        below = FailureKind.INVALID_REQUEST if (status or 500) >= 400 else FailureKind.MALFORMED
        kind = FailureKind.SERVER if (status or 500) >= 500 else below
    if _NO_ENDPOINT.search(message):
        kind = FailureKind.NOT_FOUND
    if told.get("ErrorCode") == _SLOW:
        kind = FailureKind.TIMEOUT
    where = "reported an error" if status is None else f"answered with status {status}"
    words = OUR_WORDS.get(kind) or vet(message) or f"The upstream {where}."
    return Failure(kind, words, status, retry_after=retry_after(headers))
