"""What a client may hand through to the upstream, and how long it will wait. Never merges or sends anything.

Sources: `scale-gp` 0.1.0a58 `inference_timeout`, `inference_extra_params`, `inference_extra_headers`.
"""

import math
import re
from functools import partial

from providers.unified import PROTECTED_PARAMS, JsonObject, JsonValue
from proxy.surfaces.checks import Invalid, check_at, json_object

MAX_HEADERS = 32
MAX_HEADER_BYTES = 4096

# Words and hyphens, no underscore or other mark: CGI and WSGI servers read x_api_key as x-api-key.
_NAME = re.compile(r"[0-9A-Za-z]+(?:-[0-9A-Za-z]+)*")
_VALUE = re.compile(r"[\x20-\x7e]*")
_DECIMAL = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")

# The message's route and framing, what makes the answer unreadable to the gateway, and what the gateway says itself.
_DENIED = frozenset(
    {"via", "x-http-method", "x-http-method-override", "x-method-override", "max-forwards"}
    | {"x-real-ip", "x-client-ip", "x-cluster-client-ip", "true-client-ip", "client-ip"}
    | {"connection", "keep-alive", "te", "trailer", "trailers", "transfer-encoding", "upgrade", "http2-settings"}
    | {"accept", "accept-charset", "accept-encoding", "expect", "range", "prefer", "early-data", "date", "x-request-id"}
)
_DENIED_PREFIXES = (
    *("content-", "if-", "sec-", "proxy-", "forwarded", "x-forwarded", "x-original-", "x-rewrite-"),
    *("x-remote-", "x-envoy-", "x-amz", "x-goog-", "azureml-", "cf-", "x-portkey-", "x-litellm-", "helicone-"),
    "x-dragoman-",
)
# A host, a credential of any vendor, today's or tomorrow's, and the account that pays: OpenAI-Organization,
# x-hf-bill-to, x-selected-account-id. An idempotency key too: what is a repeat, the gateway decides.
_DENIED_WORDS = re.compile(
    r"auth|cookie|credential|passw|secret|token|apikey|(?:^|-)(?:hosts?|keys?)(?:-|$)"
    r"|(?:^|-)(?:account|bill|org|project|subscription|tenant|workspace)"
)
_NO_CREDENTIAL = frozenset({"x-smg-routing-key"})
"""SGLang's router keeps calls with the same value together."""

# What an upstream that is itself a gateway takes for another model, address or account (OpenRouter, LiteLLM).
_ELSEWHERE = frozenset(
    {"models", "fallbacks", "base_url", "api_base", "url", "api_key", "organization", "project"}
    | {"headers", "extra_headers", "extra_body", "extra_query"}
)
# Below the first level, what LiteLLM has taken from within other parameters. Plain words are left out: an image has a
# `url`, a search a `project`.
_ELSEWHERE_WITHIN = frozenset({"base_url", "api_base", "api_key", "extra_headers", "extra_body", "extra_query"})
# In JSON Schema the names below the first are the caller's own, and what the others hold is no setting but a value.
_NAMES_OF_DATA = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_DATA = frozenset({"const", "default", "enum", "example", "examples"})


def timeout(value: JsonValue) -> float:
    """Seconds above 0, as a number or as its decimal digits in a string."""
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        value = float(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf:
        return float(value)
    raise Invalid("must be a number of seconds above 0")


def params(value: JsonValue) -> JsonObject:
    """An object that leaves the gateway's own fields alone."""
    extra = json_object(value)
    for name, item in extra.items():
        check_at(partial(member, name), item, name)
    return extra


def member(name: str, value: JsonValue) -> JsonValue:
    """The value of a member that the gateway does not know and the upstream's body will have. Raises Invalid where it
    would take a decision of the gateway's."""
    if reserved(name):
        raise Invalid("cannot be set here")
    _check_within(value, name)
    return value


def reserved(name: str) -> bool:
    """Whether a member that a client adds to the upstream's body would take a decision of the gateway's.

    Whatever their case: Go's encoding/json, Ollama's, takes `Model` for `model`, and the last one wins.
    """
    folded = name.casefold()
    return folded in PROTECTED_PARAMS or folded in _ELSEWHERE or folded.endswith("_endpoint")


def _check_within(value: JsonValue, name: str) -> None:
    """Raises Invalid for what names another address or credential at any depth of a member's value.

    A schema in it may describe members of such names.
    """
    pending: list[tuple[tuple[str | int, ...], JsonValue, bool]] = [((), value, name in _NAMES_OF_DATA)]
    while pending:
        loc, holder, names_are_data = pending.pop()
        if isinstance(holder, list):
            pending.extend(((*loc, index), item, False) for index, item in enumerate(holder))
        elif isinstance(holder, dict):
            for inner, item in holder.items():
                if names_are_data:
                    pending.append(((*loc, inner), item, False))
                    continue
                folded = inner.casefold()
                if folded in _ELSEWHERE_WITHIN or folded.endswith("_endpoint"):
                    raise Invalid("cannot be set here", *loc, inner)
                if inner not in _DATA:
                    pending.append(((*loc, inner), item, inner in _NAMES_OF_DATA))


def headers(value: JsonValue) -> dict[str, str]:
    """Header names to values, printable ASCII, none of which touches host, route, framing or credentials.

    Tracing passes (`traceparent`, `tracestate`, `baggage`), as do a vendor's switches (`anthropic-beta`).
    """
    extra: dict[str, str] = {}
    seen: set[str] = set()
    for name, item in json_object(value).items():
        if not _NAME.fullmatch(name):
            raise Invalid("must map header names, words of letters and digits with hyphens between, to strings")
        lower = name.lower()
        if denied(lower):
            raise Invalid("cannot be set here", name)
        if lower in seen:
            raise Invalid("is given more than once", name)
        if not isinstance(item, str) or not _VALUE.fullmatch(item):
            raise Invalid("must be a string of printable ASCII", name)
        seen.add(lower)
        extra[name] = item
    if len(extra) > MAX_HEADERS or sum(len(name) + len(item) for name, item in extra.items()) > MAX_HEADER_BYTES:
        raise Invalid(f"may hold at most {MAX_HEADERS} headers and {MAX_HEADER_BYTES} bytes")
    return extra


def denied(lower: str) -> bool:
    """Whether a header is the gateway's or the operator's to send; `lower` is its name in lower case."""
    if lower in _NO_CREDENTIAL:
        return False
    return lower in _DENIED or lower.startswith(_DENIED_PREFIXES) or _DENIED_WORDS.search(lower) is not None
