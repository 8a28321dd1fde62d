"""What a client may hand through to the upstream, and how long it will wait. Never merges or sends anything.

Sources: `scale-gp` 0.1.0a58 `inference_timeout`, `inference_extra_params`, `inference_extra_headers`.
"""

import math
import re

from providers.unified import PROTECTED_PARAMS, JsonObject, JsonValue
from proxy.surfaces.checks import Invalid, json_object

MAX_HEADERS = 32
MAX_HEADER_BYTES = 4096

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\x20-\x7e]*")
_DECIMAL = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")

# Credentials, the message's framing and route, and what makes the answer unreadable to the gateway.
_DENIED = frozenset(
    {"authorization", "api-key", "x-api-key", "x-goog-api-key", "x-auth-token", "ocp-apim-subscription-key"}
    | {"cookie", "cookie2", "host", "via", "x-real-ip", "x-original-url", "x-rewrite-url", "x-http-method-override"}
    | {"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "http2-settings", "expect"}
    | {"accept", "accept-encoding", "date", "x-request-id"}
)
_DENIED_PREFIXES = ("content-", "proxy-", "forwarded", "x-forwarded", "x-amz-", "x-dragoman-", "sec-")


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
    for name in extra:
        if name in PROTECTED_PARAMS:
            raise Invalid("cannot be set here", name)
    return extra


def headers(value: JsonValue) -> dict[str, str]:
    """Header names to values, printable ASCII, none of which touches host, route, framing or credentials."""
    extra: dict[str, str] = {}
    seen: set[str] = set()
    for name, item in json_object(value).items():
        if not _NAME.fullmatch(name):
            raise Invalid("must map header names to strings; a name has a character that no header name may have")
        lower = name.lower()
        if lower in _DENIED or lower.startswith(_DENIED_PREFIXES):
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
