"""A transport for credentials that expire: it puts the current token on each call."""

from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Final

from pydantic import SecretStr

from providers.dialect import UpstreamRequest
from providers.failure import Failure, FailureKind
from providers.target import Target
from providers.vendor_credential import AwsSource, EntraSource, ExchangeSource, GoogleSource, OidcSource, Source
from proxy.upstream.transport import RepeatableError, RepeatCause, Repeats, Transport, UpstreamResponse
from proxy.vendor_credentials import aws, entra, google
from proxy.vendor_credentials.blocking_fetch import InThread
from proxy.vendor_credentials.oidc import OidcFetch
from proxy.vendor_credentials.token_cache import CachedToken, Fetched, Token

REFUSED: Final = "The upstream refused a token that has been replaced since."

MAX_FETCHES: Final = 8
"""The most concurrent fetches by blocking libraries."""

FORGET_AFTER: Final = 3600.0
"""Seconds after which an unused credential is forgotten, because a reload has probably removed it from the
configuration."""


class AuthorizedTransport:
    """A transport that wraps another one and adds tokens. Calls that already have a key are sent unchanged. The other
    calls wait if there is no valid token. Tokens are cached by their source, so they outlive reloads that do not change
    the source.

    `clock` returns seconds.
    """

    def __init__(self, inner: Transport, clock: Callable[[], float]) -> None:
        self._inner = inner
        self._clock = clock
        self._cached: dict[Source, CachedToken] = {}
        self._threads = ThreadPoolExecutor(MAX_FETCHES, "credentials")

    def open(
        self, request: UpstreamRequest, request_id: str, repeats: Repeats = ()
    ) -> Coroutine[object, object, UpstreamResponse]:
        """Open the call with the current token. Raises UpstreamError (AUTH) if no token can be obtained."""
        source = request.target.credential.source
        # Most calls carry a key, and for them no extra coroutine is created.
        if source is None:
            return self._inner.open(request, request_id, repeats)
        cached = self._cached.get(source) or self._new(source, request.target)
        return self._authorized(cached, request, request_id, repeats)

    def secrets(self, target: Target) -> Sequence[SecretStr]:
        """Return the tokens that a target's calls have carried lately. The list is empty if the target has a key of
        its own."""
        source = target.credential.source
        cached = None if source is None else self._cached.get(source)
        return () if cached is None else cached.secrets()

    async def _authorized(
        self, cached: CachedToken, request: UpstreamRequest, request_id: str, repeats: Repeats
    ) -> UpstreamResponse:
        """Send the call with the current token. Raises RepeatableError if the upstream refused the token and a newer
        one exists."""
        token = await cached.token()
        response = await self._inner.open(_carrying(token, request), request_id, repeats)
        if RepeatCause.CREDENTIAL_REFRESHED in repeats or not token.refused(response.status, response.headers):
            return response
        try:
            newer = await cached.newer_than(token)
        except BaseException:
            response.close()
            raise
        if newer is None:
            return response
        response.close()
        refused = Failure(FailureKind.AUTH, REFUSED, response.status, ours=True)
        raise RepeatableError(refused, RepeatCause.CREDENTIAL_REFRESHED)

    def _new(self, source: Source, target: Target) -> CachedToken:
        now = self._clock()
        self._cached = {each: cached for each, cached in self._cached.items() if now - cached.used < FORGET_AFTER}
        name = f"{source.kind} credentials of {target.label}"
        cached = self._cached[source] = CachedToken(name, self._fetch(source, target), self._clock)
        return cached

    def _fetch(self, source: Source, target: Target) -> InThread | OidcFetch:
        blocking: Callable[[], Fetched]
        match source:
            case OidcSource() | ExchangeSource():
                return OidcFetch(source, target, self._inner)
            case AwsSource():
                blocking = aws.AwsFetch(source)
            case GoogleSource():
                blocking = google.GoogleFetch(source)
            case EntraSource():
                blocking = partial(entra.fetch, source)
        return InThread(blocking, self._threads)

    async def aclose(self) -> None:
        for cached in self._cached.values():
            await cached.aclose()
        self._threads.shutdown(wait=False, cancel_futures=True)
        await self._inner.aclose()


def _carrying(token: Token, request: UpstreamRequest) -> UpstreamRequest:
    """Return the call with its credential, which stays secret until it is written to the socket."""
    return replace(request, target=replace(request.target, credential=token.credential(request)))
