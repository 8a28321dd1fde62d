"""What Amazon Bedrock's errors mean, as HTTP answers and as frames of a stream.

Never decides whether anything is tried again.

Sources: botocore 1.44.5 service model `bedrock-runtime`; "Troubleshooting Amazon Bedrock API Error Codes" page,
November 2026; the signatures follow messages quoted in public issue threads.
"""

import re
from collections.abc import Mapping

import orjson

from providers.context import Overflow, read_overflow
from providers.dialects.openai_read import loaded
from providers.failure import OUR_WORDS, Failure, FailureKind, kind_of_status, message_text, retry_after, vet
from providers.unified import JsonObject, JsonValue

_BY_TYPE: Mapping[str, FailureKind] = {
    "ValidationException": FailureKind.INVALID_REQUEST,
    "SerializationException": FailureKind.INVALID_REQUEST,
    "ServiceQuotaExceededException": FailureKind.QUOTA,
    "AccessDeniedException": FailureKind.AUTH,
    "ExpiredTokenException": FailureKind.AUTH,
    "IncompleteSignatureException": FailureKind.AUTH,
    "InvalidSignatureException": FailureKind.AUTH,
    "MissingAuthenticationTokenException": FailureKind.AUTH,
    "UnrecognizedClientException": FailureKind.AUTH,
    "ResourceNotFoundException": FailureKind.NOT_FOUND,
    "UnknownOperationException": FailureKind.NOT_FOUND,
    "ModelTimeoutException": FailureKind.TIMEOUT,
    "ModelErrorException": FailureKind.SERVER,
    "ModelStreamErrorException": FailureKind.SERVER,
    "ThrottlingException": FailureKind.RATE_LIMITED,
    # A 429 too, but of a model that is being loaded: that takes minutes, and no quota is spent.
    "ModelNotReadyException": FailureKind.OVERLOADED,
    "InternalServerException": FailureKind.SERVER,
    "ServiceUnavailableException": FailureKind.OVERLOADED,
}
_BY_STATUS: Mapping[int, FailureKind] = {
    401: FailureKind.AUTH,
    403: FailureKind.AUTH,
    404: FailureKind.NOT_FOUND,
    408: FailureKind.TIMEOUT,
    424: FailureKind.SERVER,
    429: FailureKind.RATE_LIMITED,
    503: FailureKind.OVERLOADED,
    504: FailureKind.TIMEOUT,
}
_OF_MODEL = frozenset({"ModelErrorException", "ModelStreamErrorException"})
"""These carry the status that the model's own server answered with."""

# Faults that share a type and differ by their text alone; those about sizes are read by `providers.context`.
_SIGNATURES = tuple(
    (of, re.compile(pattern, re.IGNORECASE), kind)
    for of, pattern, kind in (
        (FailureKind.INVALID_REQUEST, r"content filter", FailureKind.CONTENT_FILTER),
        (FailureKind.INVALID_REQUEST, r"on-demand throughput isn.t supported", FailureKind.NOT_FOUND),
        (FailureKind.INVALID_REQUEST, r"model identifier is invalid", FailureKind.NOT_FOUND),
        # The whole message, for it speaks against the account, and others may quote the request.
        (
            FailureKind.RATE_LIMITED,
            r"^\s*Too many tokens per day, please wait before trying again\.\s*$",
            FailureKind.QUOTA,
        ),
    )
)
_NEEDS_PROFILE = re.compile(r"on-demand throughput isn.t supported", re.IGNORECASE)
NEEDS_PROFILE = "The upstream serves this model by an inference profile alone; the routing table must name the profile."

_REFUSED_FIELD = re.compile(r"doesn.t support (?:the )?([A-Za-z_.]{1,64}) (?:field|content)")
_UNIFIED: Mapping[str, str] = {
    "stopSequences": "stop",
    "maxTokens": "max_tokens",
    "temperature": "temperature",
    "topP": "top_p",
    "top_k": "top_k",
    "toolConfig.toolChoice": "tool_choice",
    "toolConfig": "tools",
    "toolUse": "tools",
    "toolResult": "tools",
    "outputConfig.effort": "reasoning_effort",
    "outputConfig": "response_format",
    "serviceTier": "service_tier",
    "system": "messages",
    "image": "images",
}


def classify_answer(status: int, headers: Mapping[str, str], body: bytes) -> Failure:
    """An answer that is not 2xx; `headers` has lower-case names. The edge in front of the service answers in HTML."""
    try:
        value: JsonValue = loaded(body)
    except orjson.JSONDecodeError:
        value = None
    parsed = value if isinstance(value, dict) else {}
    named = headers.get("x-amzn-errortype") or _type_in(parsed)
    return _failure(_bare(named), parsed, status, headers)


def failure_in_frame(headers: Mapping[str, object], payload: bytes) -> Failure:
    """What a frame that is no event tells: an exception with a JSON payload, or an error in its headers alone."""
    if headers.get(":message-type") == "error":
        told: JsonObject = {"message": str(headers.get(":error-message", ""))}
        return _failure(_bare(str(headers.get(":error-code", ""))), told, None, {})
    try:
        value: JsonValue = loaded(payload)
    except orjson.JSONDecodeError:
        value = None
    named = _bare(str(headers.get(":exception-type", "")))
    # In a stream the types begin with a small letter.
    return _failure(named[:1].upper() + named[1:], value if isinstance(value, dict) else {}, None, {})


def _type_in(parsed: JsonObject) -> str:
    """The type where the body has it: some front ends send no header."""
    output = parsed.get("Output")
    named = parsed.get("__type") or (output.get("__type") if isinstance(output, dict) else None)
    return named if isinstance(named, str) else ""


def _bare(named: str) -> str:
    """`com.amazon.coral#ThrottlingException:http://internal/` without what stands around the name."""
    return named.partition(":")[0].rpartition("#")[2].strip()


def _failure(named: str, body: JsonObject, status: int | None, headers: Mapping[str, str]) -> Failure:
    texts = (body.get(key) for key in ("message", "Message", "originalMessage"))
    message = message_text(next((text for text in texts if isinstance(text, str)), ""))
    kind = _kind(named, message, body, status)
    overflow = read_overflow(message, {}) if kind is FailureKind.INVALID_REQUEST else None
    if overflow is not None and not overflow.of_answer:
        kind = FailureKind.CONTEXT_LENGTH
    unsaid = "reported an error" if status is None else f"answered with status {status}"
    words = NEEDS_PROFILE if _NEEDS_PROFILE.search(message) else OUR_WORDS.get(kind)
    return Failure(
        kind=kind,
        message=words or vet(message) or f"The upstream {unsaid}.",
        status=status,
        param=_param(kind, message, overflow),
        retry_after=retry_after(headers),
        overflow=overflow,
    )


def _kind(named: str, message: str, body: JsonObject, status: int | None) -> FailureKind:
    original = body.get("originalStatusCode")
    if named in _OF_MODEL and isinstance(original, int):
        kind = kind_of_status(original, _BY_STATUS)
    else:
        kind = _BY_TYPE.get(named) or kind_of_status(status, _BY_STATUS)
    return next((meant for of, pattern, meant in _SIGNATURES if of is kind and pattern.search(message)), kind)


def _param(kind: FailureKind, message: str, overflow: Overflow | None) -> str | None:
    """The unified field at fault, where the message names one on the wire."""
    if overflow is not None:
        return "max_tokens" if overflow.of_answer else "prompt"
    found = _REFUSED_FIELD.search(message) if kind is FailureKind.INVALID_REQUEST else None
    if found is None:
        return None
    path = found[1]
    while path and path not in _UNIFIED:
        path = path.rpartition(".")[0]
    return _UNIFIED.get(path)
