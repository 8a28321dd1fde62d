"""Classifies errors of Amazon Bedrock and Amazon SageMaker, in HTTP responses and in frames of a stream.

Sources: botocore 1.44.5 service models `bedrock-runtime` and `sagemaker-runtime`; "Troubleshooting Amazon Bedrock API
Error Codes", "Common Errors" and "InvokeEndpoint" pages, November 2026; the patterns follow messages quoted in public
issue threads.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from providers.dialects.shared.errors import (
    TextRule,
    client_message,
    parse_error_object,
    read_sizes,
    refine_kind,
    size_field,
    withheld_words,
)
from providers.failure import Failure, FailureKind, kind_of_status, message_text
from providers.json_types import JsonObject, JsonValue
from providers.vendor_text.read_retry_after import read_retry_after


@dataclass(frozen=True, slots=True)
class AwsErrors:
    """How one service reports errors.

    `types` gives the failure kind by exception type, `statuses` by HTTP status if the type is unknown. `codes` gives
    the kind by the body's `ErrorCode` and `rules` by the message; both take precedence over the type. `messages` are
    the keys that may hold the message. `type_in_body` says that the exception type may be in the body. `reads_sizes`
    says that the message may hold token counts. `model_errors` are the types that carry the status of the model's own
    server in `originalStatusCode`. `fields` maps the vendor's fields that a message may name to unified fields.
    `remedies` are replacements for whole messages.
    """

    types: Mapping[str, FailureKind]
    statuses: Mapping[int, FailureKind]
    messages: tuple[str, ...]
    rules: tuple[TextRule, ...]
    codes: Mapping[str, FailureKind] = field(default_factory=dict)
    type_in_body: bool = False
    reads_sizes: bool = False
    model_errors: frozenset[str] = frozenset()
    fields: Mapping[str, str] = field(default_factory=dict)
    remedies: tuple[tuple[re.Pattern[str], str], ...] = ()


_COMMON_TYPES: Mapping[str, FailureKind] = {
    "AccessDeniedException": FailureKind.AUTH,
    "ExpiredTokenException": FailureKind.AUTH,
    "IncompleteSignatureException": FailureKind.AUTH,
    "InvalidSignatureException": FailureKind.AUTH,
    "MissingAuthenticationTokenException": FailureKind.AUTH,
    "UnrecognizedClientException": FailureKind.AUTH,
    "ThrottlingException": FailureKind.RATE_LIMITED,
    # Its status is 429 too, but the model is still loading: that takes minutes, and no quota is exhausted.
    "ModelNotReadyException": FailureKind.OVERLOADED,
}
_COMMON_STATUSES: Mapping[int, FailureKind] = {
    401: FailureKind.AUTH,
    403: FailureKind.AUTH,
    404: FailureKind.NOT_FOUND,
    429: FailureKind.RATE_LIMITED,
    503: FailureKind.OVERLOADED,
}

# Bedrock ------------------------------------------------------------------------------------------------------------

_NEEDS_PROFILE = re.compile(r"on-demand throughput isn.t supported", re.IGNORECASE)
NEEDS_PROFILE = (
    "The upstream serves this model only through an inference profile; the configuration must name the profile."
)

# Errors that share a type and differ only by their message. `providers.context_overflow` reads messages about sizes.
_BEDROCK_RULES: tuple[TextRule, ...] = (
    (FailureKind.INVALID_REQUEST, re.compile(r"content filter", re.IGNORECASE), FailureKind.CONTENT_FILTER),
    (FailureKind.INVALID_REQUEST, _NEEDS_PROFILE, FailureKind.NOT_FOUND),
    (FailureKind.INVALID_REQUEST, re.compile(r"model identifier is invalid", re.IGNORECASE), FailureKind.NOT_FOUND),
    # The pattern covers the whole message: the kind counts against the account, and other messages may quote the
    # request.
    (
        FailureKind.RATE_LIMITED,
        re.compile(r"^\s*Too many tokens per day, please wait before trying again\.\s*$", re.IGNORECASE),
        FailureKind.QUOTA,
    ),
)
BEDROCK = AwsErrors(
    types={
        **_COMMON_TYPES,
        "ValidationException": FailureKind.INVALID_REQUEST,
        "SerializationException": FailureKind.INVALID_REQUEST,
        "ServiceQuotaExceededException": FailureKind.QUOTA,
        "ResourceNotFoundException": FailureKind.NOT_FOUND,
        "UnknownOperationException": FailureKind.NOT_FOUND,
        "ModelTimeoutException": FailureKind.TIMEOUT,
        "ModelErrorException": FailureKind.SERVER,
        "ModelStreamErrorException": FailureKind.SERVER,
        "InternalServerException": FailureKind.SERVER,
        "ServiceUnavailableException": FailureKind.OVERLOADED,
    },
    statuses={
        **_COMMON_STATUSES,
        408: FailureKind.TIMEOUT,
        424: FailureKind.SERVER,
        504: FailureKind.TIMEOUT,
    },
    messages=("message", "Message", "originalMessage"),
    rules=_BEDROCK_RULES,
    type_in_body=True,
    reads_sizes=True,
    model_errors=frozenset({"ModelErrorException", "ModelStreamErrorException"}),
    fields={
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
    },
    remedies=((_NEEDS_PROFILE, NEEDS_PROFILE),),
)

# SageMaker ----------------------------------------------------------------------------------------------------------

_NO_ENDPOINT = re.compile(r"endpoint \S+ of account \S+ not found", re.IGNORECASE)
SAGEMAKER = AwsErrors(
    types={
        **_COMMON_TYPES,
        "ValidationError": FailureKind.INVALID_REQUEST,
        "ServiceUnavailable": FailureKind.OVERLOADED,
        "InternalFailure": FailureKind.SERVER,
        "InternalDependencyException": FailureKind.SERVER,
        "InternalStreamFailure": FailureKind.SERVER,
        "ModelError": FailureKind.SERVER,
        "ModelStreamError": FailureKind.SERVER,
    },
    statuses=_COMMON_STATUSES,
    messages=("Message", "message"),
    rules=((None, _NO_ENDPOINT, FailureKind.NOT_FOUND),),
    codes={"ModelInvocationTimeExceeded": FailureKind.TIMEOUT},
)


def read_container_answer(body: bytes) -> tuple[int, bytes] | None:
    """Return the status and body of the error response of a SageMaker container; `None` for an error of the service."""
    error = parse_error_object(body)
    status, text = error.get("OriginalStatusCode"), error.get("OriginalMessage")
    if not isinstance(status, int) or status < 400:
        return None
    return status, text.encode(errors="replace") if isinstance(text, str) else b""


# Reading ------------------------------------------------------------------------------------------------------------


def classify_answer(service: AwsErrors, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
    """Return the failure that a response outside 2xx means. `headers` has lower-case names."""
    error = parse_error_object(body)
    name = headers.get("x-amzn-errortype", "")
    if not name and service.type_in_body:
        name = _type_in(error)
    return _failure(service, _bare_type(name), error, status, headers)


def failure_in_frame(service: AwsErrors, headers: Mapping[str, object], payload: bytes) -> Failure:
    """Return the failure that a frame means which is not an event: its payload is an exception in JSON, or its headers
    hold an error."""
    if headers.get(":message-type") == "error":
        error: JsonObject = {service.messages[0]: str(headers.get(":error-message", ""))}
        return _failure(service, _bare_type(str(headers.get(":error-code", ""))), error, None, {})
    name = _bare_type(str(headers.get(":exception-type", "")))
    # In Bedrock's streams the types begin with a lower-case letter.
    return _failure(service, name[:1].upper() + name[1:], parse_error_object(payload), None, {})


def _type_in(error: JsonObject) -> str:
    """Return the exception type in a body. Some front ends send the type only there and not in a header."""
    output = error.get("Output")
    name: JsonValue = error.get("__type") or (output.get("__type") if isinstance(output, dict) else None)
    return name if isinstance(name, str) else ""


def _bare_type(name: str) -> str:
    """Return the bare exception type, such as `ThrottlingException` of
    `com.amazon.coral#ThrottlingException:http://internal/`."""
    return name.partition(":")[0].rpartition("#")[2].strip()


def _failure(
    service: AwsErrors, name: str, error: JsonObject, status: int | None, headers: Mapping[str, str]
) -> Failure:
    texts = (error.get(key) for key in service.messages)
    message = message_text(next((text for text in texts if isinstance(text, str)), ""))
    kind, overflow = _kind(service, name, message, error, status), None
    if service.reads_sizes:
        kind, overflow = read_sizes(kind, message, {})
    remedy = next((text for pattern, text in service.remedies if pattern.search(message)), None)
    return Failure(
        kind=kind,
        message=remedy or client_message(kind, message, status),
        status=status,
        param=size_field(overflow) or _param(service, kind, message),
        retry_after=read_retry_after(headers),
        overflow=overflow,
        said=withheld_words(kind, message),
    )


def _kind(service: AwsErrors, name: str, message: str, error: JsonObject, status: int | None) -> FailureKind:
    original, code = error.get("originalStatusCode"), error.get("ErrorCode")
    if isinstance(code, str) and code in service.codes:
        return service.codes[code]
    if name in service.model_errors and isinstance(original, int):
        kind = kind_of_status(original, service.statuses)
    else:
        kind = service.types.get(name) or kind_of_status(status, service.statuses)
    return refine_kind(service.rules, kind, message)


_REFUSED_FIELD = re.compile(r"doesn.t support (?:the )?([A-Za-z_.]{1,64}) (?:field|content)")


def _param(service: AwsErrors, kind: FailureKind, message: str) -> str | None:
    """Return the unified field at fault; `None` if the message names no field of the vendor that has a unified name."""
    found = _REFUSED_FIELD.search(message) if kind is FailureKind.INVALID_REQUEST else None
    if found is None:
        return None
    path = found[1]
    while path and path not in service.fields:
        path = path.rpartition(".")[0]
    return service.fields.get(path)
