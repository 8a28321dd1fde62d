"""Reads the vendor's id of a request, and the vendor's own limits, from the head of its response.

Sources: "Debugging requests" and "Rate limits" pages of OpenAI, "Errors" and "Rate limits" of Anthropic,
`apim-request-id` of Azure OpenAI, botocore 1.44.5 (`x-amzn-requestid`), November 2026. Pure.
"""

import re
from collections.abc import Mapping
from typing import Final

_ID = r"([A-Za-z0-9._:-]{1,128})"
_ID_LINE = re.compile(
    rf"\r\n(?:(?:x-)?request-id|x-amzn?-request-?id|apim-request-id|x-ms-request-id|x-generation-id):[ \t]*{_ID}"
    r"[ \t]*(?=\r\n)".encode(),
    re.IGNORECASE,
)
_ID_MEMBER = re.compile(rf'"request_?[iI]d"\s*:\s*"{_ID}"'.encode())

_VALUE = rb"[ \t]*([\w.:+-]{1,64})[ \t]*(?=\r\n)"
_RETRY = rb"x-should-retry"
_ANTHROPIC = re.compile(rb"\r\n(anthropic-ratelimit-[\w-]{1,64}|" + _RETRY + rb"):" + _VALUE, re.IGNORECASE)
_OPENAI = re.compile(rb"\r\n(x-ratelimit-[\w-]{1,64}|" + _RETRY + rb"):" + _VALUE, re.IGNORECASE)
_OWN: Final[Mapping[tuple[str, str], re.Pattern[bytes]]] = {
    ("anthropic", "anthropic"): _ANTHROPIC,
    **{
        (surface, profile): _OPENAI
        for surface in ("openai", "responses")
        for profile in ("openai", "azure", "azure_v1")
    },
}
"""The vendor's headers that are passed on, by surface and profile. Clients read the headers of their API's vendor."""

MOST_PASSED: Final = 32


def request_id_in(head: bytes, ours: str) -> str:
    """Return the vendor's id of a request; empty if there is no such id. The gateway's own id, `ours`, which engines
    send back, is ignored."""
    for found in _ID_LINE.finditer(head):
        if (named := found[1].decode()) != ours:
            return named
    return ""


def request_id_in_body(body: bytes) -> str:
    """Return the vendor's id of a request from an error body; empty if the body has no id."""
    found = _ID_MEMBER.search(body)
    return "" if found is None else found[1].decode()


def passed_headers(head: bytes, surface: str, profile: str) -> Mapping[str, str]:
    """Return the headers that clients of a surface get unchanged from its own vendor, with lower-case names."""
    pattern = _OWN.get((surface, profile))
    if pattern is None:
        return {}
    found = pattern.findall(head)[:MOST_PASSED]
    return {name.decode().lower(): value.decode("ascii", "replace") for name, value in found}
