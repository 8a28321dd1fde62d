"""The operator's token: programs send it as a Bearer token, browsers as the password of HTTP Basic.

A browser cannot send a Bearer token by itself, but asks the operator for a password. A token in an address would be in
histories and logs (RFC 6750, section 2.3; RFC 7617; November 2026). The name of a scheme may be in any case (RFC 9110,
section 11.1). Any user name is accepted, because there is only one operator.
"""

import hmac
from base64 import b64decode
from binascii import Error
from typing import Final

from pydantic import SecretStr

from providers.vendor_credential import Credential

CHALLENGES: Final = ('Bearer realm="dragoman operators"', 'Basic realm="dragoman operators", charset="UTF-8"')

CHALLENGE_LINES: Final = "".join([f"WWW-Authenticate: {each}\r\n" for each in CHALLENGES])
"""The header lines that let a browser ask for the token."""

MOST_HEADER: Final = 8192
"""The most bytes of an `Authorization` header that are read."""

_BEARER: Final = b"Bearer "


class AdminToken:
    """Checks the `Authorization` header of requests. Without a token, every request is permitted."""

    def __init__(self, token: SecretStr | None) -> None:
        self._expected = None if token is None else Credential("bearer", key=token).headers()["Authorization"].encode()

    def permits(self, authorization: str) -> bool:
        """Return whether a request with this header is permitted."""
        if self._expected is None:
            return True
        return hmac.compare_digest(_as_bearer(authorization), self._expected)


def _as_bearer(authorization: str) -> bytes:
    """Return the header rewritten as a Bearer token, or unchanged if it cannot be read."""
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
