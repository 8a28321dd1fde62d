"""Redis between processes: what a vendor told one of them reaches the others within about a second.

Never waited for by a request, and never more than advice: without it every process finds out by itself.

Source: redis-py 8.1.0. An answer is read as whatever anybody may have sent.
"""

import asyncio
import logging
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Final
from urllib.parse import SplitResult, urlsplit

from config.server import Shared
from providers.auth import reveal
from proxy.background import Shared as Once
from proxy.credentials.extras import ODD, silence
from proxy.healths import Healths
from proxy.hearsay import LONGEST, MOST, Hearsay, Topic, member
from proxy.standing import Condition, Standing

LIMIT: Final = 0.05
"""Seconds for a command, connecting included."""

BREATH: Final = 0.05
"""Seconds between two commands at least: when limits are spent, many requests are told so at the same time."""

SCRIPT: Final = """\
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
redis.call('ZREMRANGEBYSCORE', KEYS[1], now + ARGV[2], '+inf')
for i = 3, #ARGV, 2 do
  redis.call('ZADD', KEYS[1], 'GT', now + ARGV[i + 1], ARGV[i])
end
if #ARGV > 2 then
  redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -1 - ARGV[1])
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return {now, redis.call('ZREVRANGE', KEYS[1], 0, ARGV[1] - 1, 'WITHSCORES')}
"""
"""Says words and reads all that hold, by Redis's own clock: those of the processes may differ. One sorted set, by the
end of each word in ms."""

_WORDS: Final[Mapping[Condition, str]] = {
    Condition.UP: "shared state at %s answers again",
    Condition.FOREIGN: "shared state at %s holds what no gateway wrote, which is ignored",
    Condition.ALONE: "shared state at %s does not answer; going on alone",
}


class SharedState:
    """Shares what vendors say with the processes at the same Redis, for as long as `run` runs."""

    def __init__(self, settings: Shared, healths: Healths) -> None:
        # Loaded here, where a table asks for it: it takes 0.1 s.
        from redis import RedisError
        from redis.asyncio import Redis
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff

        silence("redis")
        url = reveal(settings.redis)
        once = Retry(NoBackoff(), 0)
        # Without its own limits: under Python 3.11 those swallow a cancellation (`asyncio.wait_for`), and end nothing.
        self._redis = Redis.from_url(url, protocol=2, retry=once, socket_timeout=None, socket_connect_timeout=None)
        self._failures = (RedisError, *ODD)
        self._key = f"{settings.prefix}:told:1"
        self._address = urlsplit(url)
        self._lookup = Once(self._look_up)
        self._healths = healths
        self._log = logging.getLogger("dragoman")
        self._standing = Standing()
        self._wanted = asyncio.Event()
        self._clock = asyncio.get_running_loop().time
        self._hearsay = Hearsay(self._clock, self._wanted.set)
        healths.share(self._hearsay)

    @property
    def up(self) -> bool:
        """Whether others can be reached."""
        return self._hearsay.up

    async def run(self) -> None:
        """Say and hear, for ever."""
        try:
            while True:
                wait = await self._exchange()
                self._hearsay.up = self._standing.up
                if news := self._standing.news(self._clock()):
                    self._log.warning(_WORDS[news], _shown(self._address))
                await self._pause(wait)
        finally:
            await self._lookup.aclose()
            with suppress(*self._failures):  # from one that is frozen nobody parts well
                async with asyncio.timeout(LIMIT):
                    await self._redis.aclose()

    async def _exchange(self) -> float:
        """Say what is to be said and hear what is new; gives the seconds until the next time."""
        self._wanted.clear()
        said = self._hearsay.outgoing()
        try:
            async with asyncio.timeout(LIMIT):
                reply = await self._command(said)
            heard = self._hearsay.incoming(reply, said)
        except self._failures:
            return self._standing.missed()
        self._healths.hear(heard.words, self._clock())
        return self._standing.answered(Condition.FOREIGN if heard.foreign else Condition.UP)

    async def _command(self, said: Mapping[Topic, int]) -> object:
        if self._standing.unknown:
            await self._lookup.run()
        words = [part for topic, left in said.items() for part in (member(topic), left)]
        command: tuple[str | int, ...] = ("EVAL", SCRIPT, 1, self._key, MOST, round(1000 * LONGEST), *words)
        return await self._redis.execute_command(*command)  # type: ignore[no-untyped-call]  # the library's own gap

    async def _look_up(self) -> None:
        """Look the host up, once at a time: each lookup that hangs holds one of the few threads that others need."""
        if self._address.hostname:
            kind = socket.SOCK_STREAM
            await asyncio.get_running_loop().getaddrinfo(self._address.hostname, self._address.port, type=kind)

    async def _pause(self, seconds: float) -> None:
        """Until it is time, or until there is something to say to somebody who listens."""
        if self._standing.unknown:
            await asyncio.sleep(seconds)
            return
        await asyncio.sleep(BREATH)
        try:
            async with asyncio.timeout(seconds - BREATH):
                await self._wanted.wait()
        except TimeoutError:
            return


def _shown(address: SplitResult) -> str:
    """Where it is, without user and password."""
    return address.netloc.rpartition("@")[2] or address.path
