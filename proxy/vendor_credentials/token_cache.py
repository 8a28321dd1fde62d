"""One credential that expires: the current token, and its renewal by one fetch at a time."""

import logging
from asyncio import timeout
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pydantic import SecretStr

from providers.dialect import UpstreamRequest
from providers.failure import FailureKind
from providers.vendor_credential import Credential
from proxy.background_tasks import SharedTask
from proxy.upstream.transport import fail

RENEW_BEFORE = 300.0
"""A token is renewed this many seconds before its expiry. The old token is used until the renewal has ended."""

RENEW_BEFORE_SHARE = 0.2
"""The same lead time as a share of the token's lifetime, for tokens that are valid for only a few minutes."""

DEADLINE = 15.0
"""The most seconds that a fetch may take. After that, the calls that wait for the fetch fail."""

LONGEST_PAUSE = 60.0
"""The longest pause between two failing fetches, in seconds."""

TRUSTED_AFTER = 60.0
"""Once a token is this many seconds old, earlier refusals are forgotten, so that its refusal is followed by a fetch at
once. A younger token may be refused for the same cause as the token before it."""

NO_CREDENTIAL = "The gateway has no valid credential for the upstream at the moment."

REMEMBERED = 4
"""The number of tokens that are remembered: calls in flight may carry a token that has been replaced."""


class Token(Protocol):
    """A token from which the credential of each call is made."""

    def secrets(self) -> Sequence[SecretStr]:
        """Return the secret parts of the token, which no response may repeat."""

    def credential(self, sent: UpstreamRequest) -> Credential:
        """Return the credential of one call, with the target's own static headers."""

    def refused(self, status: int, headers: Mapping[str, str]) -> bool:
        """Return whether a response refuses this token; `headers` has lower-case names."""


@dataclass(frozen=True, slots=True)
class Bearer:
    """An access token and the headers that are sent with it."""

    value: SecretStr
    headers: Mapping[str, SecretStr] = field(default_factory=dict)

    def secrets(self) -> Sequence[SecretStr]:
        return (self.value,)

    def credential(self, sent: UpstreamRequest) -> Credential:
        return Credential("bearer", key=self.value, static={**sent.target.credential.static, **self.headers})

    def refused(self, status: int, headers: Mapping[str, str]) -> bool:
        return status == 401


@dataclass(frozen=True, slots=True)
class Fetched:
    """A fresh token and its lifetime in seconds."""

    token: Token
    lifetime: float


class Unobtainable(Exception):
    """The error if no token can be obtained. `reason` is for the log and contains only the gateway's own words."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Pause:
    """The pauses between attempts that fail: 0 s after the first failure, then 1 s, 2 s, 4 s and so on."""

    __slots__ = ("_count", "_until")

    def __init__(self) -> None:
        self._count = 0
        self._until = 0.0

    def over(self, now: float) -> bool:
        """Return whether the pause has passed."""
        return not self._count or now >= self._until

    def lengthen(self, now: float) -> None:
        """Record another failure."""
        self._count += 1
        self._until = now + (0.0 if self._count == 1 else min(LONGEST_PAUSE, 2.0 ** min(self._count - 2, 10)))

    def end(self) -> None:
        """Record a success."""
        self._count = 0


class CachedToken:
    """A token that is renewed before it expires. The first call after the token is due for renewal starts the renewal
    and does not wait for it. Calls wait only if there is no valid token, and all of them wait for the same fetch.
    `name` is for the log; `clock` returns seconds."""

    def __init__(self, name: str, fetch: Callable[[], Awaitable[Fetched]], clock: Callable[[], float]) -> None:
        self._name = name
        self.used = clock()
        self._fetch = fetch
        self._clock = clock
        self._token: Token | None = None
        self._recent: deque[Token] = deque(maxlen=REMEMBERED)
        self._since = self._renew_at = self._until = 0.0
        self._renewal = SharedTask(self._renew)
        self._failures = Pause()
        self._refusals = Pause()
        self._log = logging.getLogger("dragoman")

    def secrets(self) -> Sequence[SecretStr]:
        """Return the secret parts of the latest tokens, which no response may repeat."""
        return [secret for token in self._recent for secret in token.secrets()]

    async def token(self) -> Token:
        """Return the current token. Raises UpstreamError (AUTH) if no token can be obtained."""
        self.used = now = self._clock()
        if self._token is not None and now < self._until:
            if now >= self._renew_at and self._failures.over(now):
                self._renewal.start()
            return self._token
        if self._renewal.running or self._failures.over(now):
            await self._renewal.run()
        if self._token is None or self._clock() >= self._until:
            raise fail(FailureKind.AUTH, NO_CREDENTIAL)
        return self._token

    async def newer_than(self, refused: Token) -> Token | None:
        """Return a newer token than the token that an upstream refused. Return `None` if no newer token can be
        obtained, or if fresh tokens are refused as well. Until there is a newer token, other calls use the old one,
        which other upstreams may accept."""
        if self._token is refused and (self._renewal.running or self._may_fetch_again()):
            await self._renewal.run()
        return None if self._token is refused else self._token

    def _may_fetch_again(self) -> bool:
        """Return whether a refusal justifies a fetch. Repeated refusals do not justify one, because then the token is
        not the cause."""
        now = self._clock()
        if now - self._since >= TRUSTED_AFTER:
            self._refusals.end()
        fetch = self._refusals.over(now) and self._failures.over(now)
        if fetch:
            self._refusals.lengthen(now)
        return fetch

    async def _renew(self) -> None:
        try:
            async with timeout(DEADLINE):
                fetched = await self._fetch()
        except TimeoutError:
            self._failed(f"no response within {DEADLINE:g} s")
        except Unobtainable as problem:
            self._failed(problem.reason)
        except BaseException:
            # A bug in the gateway, which every call would otherwise trigger again.
            self._failures.lengthen(self._clock())
            raise
        else:
            self._keep(fetched)

    def _keep(self, fetched: Fetched) -> None:
        if fetched.lifetime <= 0:
            self._failed("the token had already expired")
            return
        self._failures.end()
        self._token, self._since = fetched.token, self._clock()
        self._recent.append(fetched.token)
        self._until = self._since + fetched.lifetime
        self._renew_at = self._until - min(RENEW_BEFORE, RENEW_BEFORE_SHARE * fetched.lifetime)

    def _failed(self, reason: str) -> None:
        self._failures.lengthen(self._clock())
        self._log.warning("no %s: %s", self._name, reason)

    async def aclose(self) -> None:
        """Cancel the fetch that is running."""
        await self._renewal.aclose()
