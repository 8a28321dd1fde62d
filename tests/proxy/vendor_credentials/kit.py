"""Shared helpers of the tests of credentials: tokens that can be distinguished, and scripted fetches."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from pydantic import SecretStr

from providers.dialect import UpstreamRequest
from providers.vendor_credential import Credential
from proxy.vendor_credentials.token_cache import Bearer, CachedToken, Fetched, Unobtainable

SECRET = "canary-of-the-token"


@dataclass(frozen=True, slots=True)
class Numbered:
    """A token that is distinguished by its number."""

    number: int

    def secrets(self) -> Sequence[SecretStr]:
        return (SecretStr(f"{SECRET}-{self.number}"),)

    def credential(self, sent: UpstreamRequest) -> Credential:
        return Credential(static={"X-Token": SecretStr(f"{SECRET}-{self.number}")})

    def refused(self, status: int, headers: Mapping[str, str]) -> bool:
        return status == 401


Outcome: TypeAlias = float | str | None
"""A fetch that returns a token for a number of seconds, one that fails with a reason, or one that never ends."""


@dataclass(slots=True)
class Fetches:
    """Fetches that take a second each and end as scripted; the last outcome repeats. `begun` has the times at which
    they began."""

    outcomes: list[Outcome]
    takes: float = 1.0
    begun: list[float] = field(default_factory=list)

    async def __call__(self) -> Fetched:
        self.begun.append(asyncio.get_running_loop().time())
        number = len(self.begun)
        outcome = self.outcomes[min(number, len(self.outcomes)) - 1]
        await asyncio.sleep(self.takes)
        match outcome:
            case None:
                await asyncio.Event().wait()
                raise AssertionError("never set")
            case str() as reason:
                raise Unobtainable(reason)
            case float() as lifetime:
                return Fetched(Numbered(number), lifetime)

    def held(self) -> CachedToken:
        """Return a cached token that uses the running loop's clock."""
        return CachedToken("test credentials of v/m", self, asyncio.get_running_loop().time)


def bearer(text: str = SECRET) -> Bearer:
    """Return an access token."""
    return Bearer(SecretStr(text))
