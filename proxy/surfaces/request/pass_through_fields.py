"""Checks the values that a client passes through to the upstream: fields and headers, and its timeout.

Sources: `scale-gp` 0.1.0a58 `inference_timeout`, `inference_extra_params`, `inference_extra_headers`.
"""

import math
import re
from functools import partial

from providers.client_extras.extra_headers import is_own
from providers.client_extras.hosts_paths_and_code import find_reserved, is_reserved
from providers.client_extras.proxy_instructions import GUARDS, TIMEOUTS, is_credential, is_instruction
from providers.json_types import JsonObject, JsonValue
from proxy.surfaces.request.rule_kinds import Invalid, check_at, json_object

_OWN_TIMEOUT = "inference_timeout"

MAX_HEADERS = 32
MAX_HEADER_BYTES = 4096

# A header's name has no underscore, because CGI and WSGI servers read x_api_key as x-api-key.
_NAME = re.compile(r"[0-9A-Za-z]+(?:-[0-9A-Za-z]+)*")
_VALUE = re.compile(r"[\x20-\x7e]*")
_DECIMAL = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")


def timeout(value: JsonValue) -> float:
    """Check a number of seconds above 0, as a number or a decimal string."""
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        value = float(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf:
        return float(value)
    raise Invalid("must be a number of seconds above 0")


def params(value: JsonValue) -> JsonObject:
    """Check an object of fields. A field may not override the gateway."""
    extra = json_object(value)
    for name, item in extra.items():
        check_at(partial(upstream_field, name), item, name)
    return extra


def upstream_field(name: str, value: JsonValue) -> JsonValue:
    """Check a field that the gateway does not know and that is sent to the upstream. Raises Invalid if it would
    override the gateway."""
    if is_reserved(name):
        raise Invalid("cannot be set here")
    path = find_reserved(name, value)
    if path is not None:
        raise Invalid("cannot be set here", *path)
    return value


def unknown_field(name: str, value: JsonValue) -> JsonValue:
    """Check a field of the body that the gateway does not know. Raises Invalid if it would override the gateway, or is
    a credential. Instructions for a proxy are accepted, and are removed for each target."""
    if name == GUARDS:
        raise Invalid("cannot be set here: the operator decides which guards apply", code="unsupported_parameter")
    if not is_instruction(name):
        if is_credential(name):
            raise Invalid("cannot be set here")
        return upstream_field(name, value)
    path = find_reserved(name, value)
    if path is not None:
        raise Invalid("cannot be set here", *path)
    return value


def with_own_timeout(data: JsonObject) -> JsonObject:
    """Return the fields of a body. A proxy's field for the longest time of a request is renamed to the gateway's own
    `inference_timeout`, unless the body has that too, or the value is not a timeout."""
    for name in TIMEOUTS:
        if name in data and _OWN_TIMEOUT not in data:
            try:
                seconds = timeout(data[name])
            except Invalid:
                continue
            return {**{other: value for other, value in data.items() if other != name}, _OWN_TIMEOUT: seconds}
    return data


def headers(value: JsonValue) -> dict[str, str]:
    """Check headers in printable ASCII. Headers of host, framing or credentials are refused."""
    extra: dict[str, str] = {}
    seen: set[str] = set()
    for name, item in json_object(value).items():
        if not _NAME.fullmatch(name):
            raise Invalid("must map header names, words of letters and digits with hyphens between, to strings")
        lower = name.lower()
        if is_own(lower):
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
