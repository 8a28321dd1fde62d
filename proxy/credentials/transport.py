"""The door to the vendors for calls whose credential expires: each gets the token of the moment.

Never fetches a token itself, and never tries another deployment.
"""

from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Final

from pydantic import SecretStr

from providers.auth import AwsSource, EntraSource, ExchangeSource, GoogleSource, OidcSource, Source
from providers.dialect import Target, UpstreamRequest
from proxy.credentials import aws, entra, google
from proxy.credentials.held import Fetched, Held, Token
from proxy.credentials.oidc import OidcFetch
from proxy.credentials.threads import InThread
from proxy.upstream import Transport, UpstreamResponse

THREADS: Final = 8
"""Fetches by blocking libraries at a time."""

UNUSED: Final = 3600.0
"""Seconds after which a credential that no call wanted is forgotten: a reload has taken it out of the table."""


class AuthorizedTransport:
    """A transport before another one. Calls with a key of their own pass as they are; the others wait for a token where
    none is held. Tokens are kept by where they come from, so that they outlive reloads that leave that as it was.

    `clock` counts seconds.
    """

    def __init__(self, inner: Transport, clock: Callable[[], float]) -> None:
        self._inner = inner
        self._clock = clock
        self._held: dict[Source, Held] = {}
        self._threads = ThreadPoolExecutor(THREADS, "credentials")

    def open(self, request: UpstreamRequest, request_id: str) -> Coroutine[object, object, UpstreamResponse]:
        """See Transport. Raises UpstreamError (AUTH) when there is no token to be had."""
        source = request.target.credential.source
        # No coroutine of its own for the common case: most calls carry a key.
        if source is None:
            return self._inner.open(request, request_id)
        return self._authorized(self._held.get(source) or self._new(source, request.target), request, request_id)

    def secrets(self, target: Target) -> Sequence[SecretStr]:
        """The tokens that a target's calls have carried lately; none where it has a key of its own."""
        source = target.credential.source
        held = None if source is None else self._held.get(source)
        return () if held is None else held.secrets()

    async def _authorized(self, held: Held, request: UpstreamRequest, request_id: str) -> UpstreamResponse:
        """The answer to a call with the token held, or, where that one was refused, with a newer one."""
        token = await held.token()
        response = await self._inner.open(_carrying(token, request), request_id)
        if not token.refused(response.status, response.headers):
            return response
        try:
            other = await held.instead_of(token)
        except BaseException:
            response.close()
            raise
        if other is None:
            return response
        response.close()
        return await self._inner.open(_carrying(other, request), request_id)

    def _new(self, source: Source, target: Target) -> Held:
        now = self._clock()
        self._held = {kept: held for kept, held in self._held.items() if now - held.used < UNUSED}
        name = f"{source.kind} credentials of {target.label}"
        held = self._held[source] = Held(name, self._fetch(source, target), self._clock)
        return held

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
        for held in self._held.values():
            await held.aclose()
        self._threads.shutdown(wait=False, cancel_futures=True)
        await self._inner.aclose()


def _carrying(token: Token, request: UpstreamRequest) -> UpstreamRequest:
    """The call with its credential, which is secret to the end: the socket reveals it."""
    return replace(request, target=replace(request.target, credential=token.credential(request)))
