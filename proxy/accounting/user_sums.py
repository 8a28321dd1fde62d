"""Reads the ledger's sums of an end user when it is first seen. Its requests wait for that; one reading serves many
users."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from itertools import islice
from typing import Final

from proxy.ledger.ledger_settings import LedgerError

AT_ONCE: Final = 500
"""Users that are read together."""

REST: Final = 5.0
"""Seconds after a failed reading in which no request waits for another one."""


class UserSums:
    """Reads by `read`, which raises LedgerError and TimeoutError. `clock` is the loop's."""

    def __init__(self, read: Callable[[Sequence[str]], Awaitable[None]], clock: Callable[[], float]) -> None:
        self._read = read
        self._clock = clock
        self._wanted: dict[str, asyncio.Future[bool]] = {}
        self._wake = asyncio.Event()
        self._rests_until = -math.inf

    async def learn(self, scope: str, longest: float) -> bool:
        """Wait until the sums of a user have been read, and return whether they were: not if the ledger cannot be read,
        or not within `longest` seconds."""
        if self._clock() < self._rests_until:
            return False
        found = self._wanted.get(scope)
        if found is None:
            found = self._wanted[scope] = asyncio.get_running_loop().create_future()
            self._wake.set()
        done, _ = await asyncio.wait((found,), timeout=longest)
        return bool(done) and found.result()

    async def run(self) -> None:
        """Read the users that requests wait for, until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while some := list(islice(self._wanted, AT_ONCE)):
                await self.read_some(some)

    async def read_some(self, some: Sequence[str]) -> None:
        """Read some users, with or without waiting requests. A failure starts the REST."""
        known = False
        try:
            await self._read(some)
            known = True
        except (LedgerError, TimeoutError):
            self._rests_until = self._clock() + REST
        finally:
            for scope in some:
                if (found := self._wanted.pop(scope, None)) is not None:
                    found.set_result(known)
