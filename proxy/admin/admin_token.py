"""The operator's token: as Bearer from programs, as the password of HTTP Basic from a browser, which asks for it.

A browser cannot send a Bearer token by itself, and a token in an address would be in histories and logs (RFC 6750,
section 2.3; RFC 7617; November 2026). A scheme's name may be in any case (RFC 9110, section 11.1). Any user name will
do: there is one operator.
"""

import hmac
from base64 import b64decode
from binascii import Error
from typing import Final

from pydantic import SecretStr

from providers.vendor_credential import Credential

CHALLENGES: Final = ('Bearer realm="dragoman operators"', 'Basic realm="dragoman operators", charset="UTF-8"')

CHALLENGE_LINES: Final = "".join([f"WWW-Authenticate: {each}\r\n" for each in CHALLENGES])
"""What lets a browser ask for the token."""

MOST_HEADER: Final = 8192
"""Bytes of an `Authorization` header that are looked at."""

_BEARER: Final = b"Bearer "


class AdminToken:
    """Judges the `Authorization` of requests; without a token everything is permitted."""

    def __init__(self, token: SecretStr | None) -> None:
        self._expected = None if token is None else Credential("bearer", key=token).headers()["Authorization"].encode()

    def permits(self, authorization: str) -> bool:
        """Return whether a request with this header may be answered."""
        if self._expected is None:
            return True
        return hmac.compare_digest(_as_bearer(authorization), self._expected)


def _as_bearer(authorization: str) -> bytes:
    """Return the header as it would be with a Bearer token; what cannot be read is left as it is."""
    presented = authorization[:MOST_HEADER].encode("utf-8", "surrogateescape")
    scheme, _, encoded = presented.partition(b" ")
    name = scheme.lower()
    if name != b"basic":
        return _BEARER + encoded if name == b"bearer" else presented
    try:
        _, colon, password = b64decode(encoded.strip(), validate=True).partition(b":")
    except Error:
        return presented
    return _BEARER + password if colon else presented
