"""Access tokens from a token endpoint, by OAuth 2.0 client credentials or in exchange for an API key. These grants
have no refresh token.

Source: RFC 6749, 2.3.1, 4.4, 5; RFC 6750, 2.1; IBM Cloud "IAM Identity Services API", `getTokenApiKey`.
"""

import base64
import re
from dataclasses import replace
from typing import Final
from urllib.parse import quote_plus, urlencode

import orjson
from pydantic import SecretStr

from providers.dialect import UpstreamRequest
from providers.failure import UpstreamError
from providers.target import Target
from providers.unified_request import Operation
from providers.vendor_credential import Credential, ExchangeSource, OidcSource, reveal
from proxy.request_record import fresh_id
from proxy.upstream.transport import FRESH_CONNECTION, Transport, read_whole, unwatched
from proxy.vendor_credentials.token_cache import Bearer, Fetched, Unobtainable

IBM_GRANT: Final = "urn:ibm:params:oauth:grant-type:apikey"

DEFAULT_LIFETIME: Final = 300.0
"""The assumed lifetime in seconds of a token if the provider does not report it."""

MAX_RESPONSE: Final = 256 * 1024

_TOKEN: Final = re.compile(r"[!-~]+")
_ERRORS: Final = frozenset(
    {
        "invalid_client",
        "invalid_grant",
        "invalid_request",
        "invalid_scope",
        "invalid_target",
        "temporarily_unavailable",
        "unauthorized_client",
        "unsupported_grant_type",
    }
)
"""The error codes of RFC 6749 and 8707. Other codes are not logged, because providers may repeat values that they
received."""


class OidcFetch:
    """Calls a token endpoint through the same transport as other calls, with the settings of `target`."""

    def __init__(self, source: OidcSource | ExchangeSource, target: Target, transport: Transport) -> None:
        self._source = source
        self._target = replace(
            target,
            credential=_client(source),
            allow_private=source.allow_private,
            authorities=source.authorities if isinstance(source, OidcSource) else None,
        )
        self._transport = transport

    async def __call__(self) -> Fetched:
        """Return a fresh token. Raises Unobtainable."""
        try:
            status, body = await self._send()
        except UpstreamError as error:
            raise Unobtainable(f"the token endpoint: {error.failure.operator_message}") from None
        answer = _parsed(body)
        if status != 200:
            word = answer.get("error")
            error_code = f" {word}" if isinstance(word, str) and word in _ERRORS else ""
            raise Unobtainable(f"the token endpoint returned {status}{error_code}")
        return _fetched(answer)

    async def _send(self) -> tuple[int, bytes]:
        response = await self._transport.open(self._call(), fresh_id(), FRESH_CONNECTION)
        try:
            return response.status, await read_whole(response, unwatched, MAX_RESPONSE)
        finally:
            response.release()

    def _call(self) -> UpstreamRequest:
        return UpstreamRequest(
            self._target,
            Operation.COMPLETIONS,
            self._source.token_url,
            urlencode({name: value for name, value in _fields(self._source).items() if value is not None}).encode(),
            stream=False,
            headers={"Accept": "application/json"},
            content_type="application/x-www-form-urlencoded",
        )


def _fields(source: OidcSource | ExchangeSource) -> dict[str, str | None]:
    if isinstance(source, ExchangeSource):
        return {"grant_type": IBM_GRANT, "apikey": reveal(source.api_key)}
    fields = {"grant_type": "client_credentials", "scope": source.scope, "audience": source.audience}
    if source.client_auth == "post":
        fields |= {"client_id": source.client_id, "client_secret": reveal(source.client_secret)}
    return fields


def _client(source: OidcSource | ExchangeSource) -> Credential:
    """Return the client's credential as a header. The client's id and secret are form-encoded first, as RFC 6749
    requires."""
    if isinstance(source, ExchangeSource) or source.client_auth == "post":
        return Credential()
    pair = f"{quote_plus(source.client_id)}:{quote_plus(reveal(source.client_secret))}"
    return Credential(static={"Authorization": SecretStr(f"Basic {base64.b64encode(pair.encode()).decode()}")})


def _parsed(body: bytes) -> dict[str, object]:
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return answer if isinstance(answer, dict) else {}


def _fetched(answer: dict[str, object]) -> Fetched:
    token, kind = answer.get("access_token"), answer.get("token_type", "Bearer")
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise Unobtainable("the token endpoint returned 200 without an access token")
    if not isinstance(kind, str) or kind.lower() != "bearer":
        raise Unobtainable("the token endpoint returned a token that is not a Bearer token")
    return Fetched(Bearer(SecretStr(token)), _lifetime(answer.get("expires_in")))


def _lifetime(expires_in: object) -> float:
    """Return the token's lifetime in seconds. Some providers send the number as text."""
    if isinstance(expires_in, str) and re.fullmatch(r"[0-9]{1,9}", expires_in):
        return float(expires_in)
    return float(expires_in) if isinstance(expires_in, int | float) else DEFAULT_LIFETIME
