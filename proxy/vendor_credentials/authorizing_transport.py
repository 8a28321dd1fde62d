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

THREADS: Final = 8
"""Fetches by blocking libraries at a time."""

UNUSED: Final = 3600.0
"""Seconds after which an unused credential is forgotten: a reload has removed it from the table."""


class AuthorizedTransport:
    """A transport before another one. Calls with a key of their own pass unchanged; the others wait for a token where
    there is none. Tokens are kept by their source, so that they outlive reloads that do not change it.

    `clock` returns seconds.
    """

    def __init__(self, inner: Transport, clock: Callable[[], float]) -> None:
        self._inner = inner
        self._clock = clock
        self._cached: dict[Source, CachedToken] = {}
        self._threads = ThreadPoolExecutor(THREADS, "credentials")

    def open(
        self, request: UpstreamRequest, request_id: str, repeats: Repeats = ()
    ) -> Coroutine[object, object, UpstreamResponse]:
        """See Transport. Raises UpstreamError (AUTH) when no token can be obtained."""
        source = request.target.credential.source
        # Most calls carry a key: no coroutine for them.
        if source is None:
            return self._inner.open(request, request_id, repeats)
        cached = self._cached.get(source) or self._new(source, request.target)
        return self._authorized(cached, request, request_id, repeats)

    def secrets(self, target: Target) -> Sequence[SecretStr]:
        """Return the tokens that a target's calls have carried lately; none where it has a key of its own."""
        source = target.credential.source
        cached = None if source is None else self._cached.get(source)
        return () if cached is None else cached.secrets()

    async def _authorized(
        self, cached: CachedToken, request: UpstreamRequest, request_id: str, repeats: Repeats
    ) -> UpstreamResponse:
        """Send the call with the token in use. Raises RepeatableError once it was refused and there is a newer one."""
        token = await cached.token()
        response = await self._inner.open(_carrying(token, request), request_id, repeats)
        if RepeatCause.CREDENTIAL_REFRESHED in repeats or not token.refused(response.status, response.headers):
            return response
        try:
            newer = await cached.instead_of(token)
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
        self._cached = {kept: cached for kept, cached in self._cached.items() if now - cached.used < UNUSED}
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
        """See Transport."""
        for cached in self._cached.values():
            await cached.aclose()
        self._threads.shutdown(wait=False, cancel_futures=True)
        await self._inner.aclose()


def _carrying(token: Token, request: UpstreamRequest) -> UpstreamRequest:
    """Return the call with its credential, which stays secret until it is written to the socket."""
    return replace(request, target=replace(request.target, credential=token.credential(request)))
