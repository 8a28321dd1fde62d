"""One credential that expires: the token in use, and the one fetch at a time that renews it.

Never knows where a token comes from, and never shows one.
"""

import logging
from asyncio import timeout
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pydantic import SecretStr

from providers.auth import Credential
from providers.dialect import UpstreamRequest
from providers.failure import FailureKind
from proxy.background import Shared
from proxy.upstream import fail

EARLY = 300.0
"""Seconds before a token's end at which it is renewed, while it still serves."""

EARLY_SHARE = 0.2
"""The same as a share of its life, for tokens that live only minutes."""

DEADLINE = 15.0
"""Seconds a fetch may take; after that those who wait for it are told that there is no credential."""

LONGEST_PAUSE = 60.0
"""Seconds between two fetches that are known to fail, at most."""

SETTLED = 60.0
"""Seconds after which a token that is refused has been good: until then a fresh one is likely to be refused as well."""

NO_CREDENTIAL = "The gateway has no valid credential for the upstream at the moment."


RECENT = 4
"""Tokens that are remembered: calls under way may carry one that has been replaced."""


class Token(Protocol):
    """What was fetched: the means to make the credential of a call."""

    def secrets(self) -> Sequence[SecretStr]:
        """What of it no answer may repeat."""

    def credential(self, sent: UpstreamRequest) -> Credential:
        """The credential of one call, beside the target's own static headers."""

    def refused(self, status: int, headers: Mapping[str, str]) -> bool:
        """Whether an answer means that the upstream does not take this token (any more); `headers` has lower-case
        names."""


@dataclass(frozen=True, slots=True)
class Bearer:
    """An access token, and headers that go with it."""

    value: SecretStr
    headers: Mapping[str, SecretStr] = field(default_factory=dict)

    def secrets(self) -> Sequence[SecretStr]:
        """See Token."""
        return (self.value,)

    def credential(self, sent: UpstreamRequest) -> Credential:
        """See Token."""
        return Credential("bearer", key=self.value, static={**sent.target.credential.static, **self.headers})

    def refused(self, status: int, headers: Mapping[str, str]) -> bool:
        """See Token."""
        return status == 401


@dataclass(frozen=True, slots=True)
class Fetched:
    """A fresh token and the seconds it is good for."""

    token: Token
    lives: float


class Unobtainable(Exception):
    """There is no token to be had; `reason` is in our own words, for the log."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Pause:
    """How long to leave something that failed: not at all after the first time, then 1 s, 2 s, 4 s and so on."""

    __slots__ = ("_count", "_until")

    def __init__(self) -> None:
        self._count = 0
        self._until = 0.0

    def over(self, now: float) -> bool:
        """Whether it may be tried."""
        return not self._count or now >= self._until

    def lengthen(self, now: float) -> None:
        """It failed once more."""
        self._count += 1
        self._until = now + (0.0 if self._count == 1 else min(LONGEST_PAUSE, 2.0 ** min(self._count - 2, 10)))

    def end(self) -> None:
        """It worked."""
        self._count = 0


class Held:
    """A token that is renewed before it ends, beside the first call that notices. Only where there is no good one do
    calls wait, all for the same fetch. `name` is what the log calls it; `clock` counts seconds."""

    def __init__(self, name: str, fetch: Callable[[], Awaitable[Fetched]], clock: Callable[[], float]) -> None:
        self._name = name
        self.used = clock()
        self._fetch = fetch
        self._clock = clock
        self._token: Token | None = None
        self._recent: deque[Token] = deque(maxlen=RECENT)
        self._since = self._renew_at = self._until = 0.0
        self._renewal = Shared(self._renew)
        self._failures = Pause()
        self._refusals = Pause()
        self._log = logging.getLogger("dragoman")

    def secrets(self) -> Sequence[SecretStr]:
        """What of the latest tokens no answer may repeat."""
        return [secret for token in self._recent for secret in token.secrets()]

    async def token(self) -> Token:
        """The token in use. Raises UpstreamError (AUTH) when there is none to be had."""
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

    async def instead_of(self, refused: Token) -> Token | None:
        """A newer token than one that an upstream refused; None when there is none to be had, or when fresh ones are
        refused as well. Until it is there others go on with the old one: it may be good elsewhere."""
        if self._token is refused and (self._renewal.running or self._doubted()):
            await self._renewal.run()
        return None if self._token is refused else self._token

    def _doubted(self) -> bool:
        """Whether a refusal is a reason to fetch: not over and over, where it is not the token's fault."""
        now = self._clock()
        if now - self._since >= SETTLED:
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
            self._failed(f"no answer within {DEADLINE:g} s")
        except Unobtainable as problem:
            self._failed(problem.reason)
        except BaseException:
            # A fault of ours, which every call would otherwise run into anew.
            self._failures.lengthen(self._clock())
            raise
        else:
            self._keep(fetched)

    def _keep(self, fetched: Fetched) -> None:
        if fetched.lives <= 0:
            self._failed("what was given had expired already")
            return
        self._failures.end()
        self._token, self._since = fetched.token, self._clock()
        self._recent.append(fetched.token)
        self._until = self._since + fetched.lives
        self._renew_at = self._until - min(EARLY, EARLY_SHARE * fetched.lives)

    def _failed(self, reason: str) -> None:
        self._failures.lengthen(self._clock())
        self._log.warning("no %s: %s", self._name, reason)

    async def aclose(self) -> None:
        """End what is under way."""
        await self._renewal.aclose()
