"""The link to Redis, by which processes share the cooldowns that vendors request, within about a second.

No request waits for the link. Without the link, each process learns cooldowns by itself.

Source: redis-py 8.1.0. Replies are checked like untrusted data, because any client of the Redis may have changed them.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Final
from urllib.parse import SplitResult, urlsplit

from config.sections.server_section import SharedSection
from providers.vendor_credential import reveal
from proxy.background_tasks import SharedTask
from proxy.optional_libraries import LIBRARY_ERRORS, silence
from proxy.shared_state.link_state import LinkCondition, LinkState
from proxy.shared_state.running_timeout import reply_within
from proxy.shared_state.shared_cooldowns import (
    LONGEST_COOLDOWN,
    MAX_COOLDOWNS,
    Cooldown,
    SharedCooldowns,
    Topic,
    encode_topic,
)

COMMAND_TIMEOUT: Final = 0.05
"""The most seconds for a command, including the time to connect."""

LEAST_PAUSE: Final = 0.05
"""The least seconds between two commands: when a limit is used up, many requests are refused at the same time."""

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
"""The script that adds cooldowns and returns all current ones. It uses the clock of Redis, because the clocks of the
processes may differ. They are stored in one sorted set, by the end of each cooldown in ms."""

_WORDS: Final[Mapping[LinkCondition, str]] = {
    LinkCondition.UP: "Redis at %s answers again",
    LinkCondition.FOREIGN: "Redis at %s holds data that no gateway wrote, which is ignored",
    LinkCondition.ALONE: "Redis at %s does not answer; continuing without it",
}


class SharedState:
    """Shares cooldowns between the processes at one Redis while `run` runs. It sends the cooldowns that are added to
    `cooldowns`, and calls `apply` with the received cooldowns and the time."""

    def __init__(self, settings: SharedSection, apply: Callable[[Collection[Cooldown], float], None]) -> None:
        # The library is imported here, only if the configuration needs it, because the import takes 0.1 s.
        from redis import RedisError
        from redis.asyncio import Redis
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff
        from redis.exceptions import NoScriptError

        silence("redis")
        url = reveal(settings.redis)
        once = Retry(NoBackoff(), 0)
        # The client's own timeouts are disabled: under Python 3.11 they swallow a cancellation (`asyncio.wait_for`), so
        # the task would not end.
        self._redis = Redis.from_url(url, protocol=2, retry=once, socket_timeout=None, socket_connect_timeout=None)
        self._failures = (RedisError, *LIBRARY_ERRORS)
        self._unknown_script = NoScriptError
        self.prefix = settings.prefix
        self._key = f"{self.prefix}:told:1"
        self._address = urlsplit(url)
        self._lookup = SharedTask(self._look_up)
        self._apply = apply
        self._log = logging.getLogger("dragoman")
        self._link = LinkState()
        self._wanted = asyncio.Event()
        self._clock = asyncio.get_running_loop().time
        self.cooldowns = SharedCooldowns(self._clock, self._wanted.set)

    @property
    def up(self) -> bool:
        """Whether Redis can be reached."""
        return self.cooldowns.up

    async def command(self, parts: Sequence[str | bytes | int]) -> object:
        """Send a command and return its reply. Raises ConnectionError if there is no reply or an error. The caller
        limits the time."""
        try:
            return await self._redis.execute_command(*parts)  # type: ignore[no-untyped-call]  # the library lacks types
        except self._failures:
            raise ConnectionError("no reply from the shared state") from None

    async def run_script(self, sha: str, script: str, keys: Sequence[str], words: Sequence[str]) -> object:
        """Run a script by its SHA-1, or send its text if Redis does not know it: some proxies forbid loading scripts.
        Raises the ConnectionError of `command`."""
        send = self._redis.execute_command
        try:
            try:
                return await send("EVALSHA", sha, len(keys), *keys, *words)  # type: ignore[no-untyped-call]  # as above
            except self._unknown_script:
                return await send("EVAL", script, len(keys), *keys, *words)  # type: ignore[no-untyped-call]  # as above
        except self._failures:
            raise ConnectionError("no reply from the shared state") from None

    async def run(self) -> None:
        """Exchange cooldowns until cancelled."""
        try:
            while True:
                wait = await self._exchange()
                self.cooldowns.up = self._link.up
                if news := self._link.news(self._clock()):
                    level = logging.INFO if news is LinkCondition.UP else logging.WARNING
                    self._log.log(level, _WORDS[news], _shown(self._address))
                await self._pause(wait)
        finally:
            await self._lookup.aclose()
            with suppress(*self._failures):  # A frozen Redis does not close the connection either.
                async with asyncio.timeout(COMMAND_TIMEOUT):
                    await self._redis.aclose()

    async def _exchange(self) -> float:
        """Send and receive cooldowns, and return the seconds until the next exchange."""
        self._wanted.clear()
        sent = self.cooldowns.outgoing()
        try:
            reply = await reply_within(COMMAND_TIMEOUT, self._command(sent))
            received = self.cooldowns.incoming(reply, sent)
        except self._failures:
            return self._link.missed()
        self._apply(received.cooldowns, self._clock())
        return self._link.answered(LinkCondition.FOREIGN if received.foreign else LinkCondition.UP)

    async def _command(self, sent: Mapping[Topic, int]) -> object:
        if self._link.unknown:
            await self._lookup.run()
        entries = [part for topic, left in sent.items() for part in (encode_topic(topic), left)]
        command: tuple[str | int, ...] = (
            "EVAL",
            SCRIPT,
            1,
            self._key,
            MAX_COOLDOWNS,
            round(1000 * LONGEST_COOLDOWN),
            *entries,
        )
        return await self._redis.execute_command(*command)  # type: ignore[no-untyped-call]  # the library lacks types

    async def _look_up(self) -> None:
        """Resolve the host. Only one lookup runs at a time, because each lookup that hangs occupies one of the few
        threads that other work needs."""
        if self._address.hostname:
            kind = socket.SOCK_STREAM
            await asyncio.get_running_loop().getaddrinfo(self._address.hostname, self._address.port, type=kind)

    async def _pause(self, seconds: float) -> None:
        """Wait until the next exchange, or until there is something to send and Redis can be reached."""
        if self._link.unknown:
            await asyncio.sleep(seconds)
            return
        await asyncio.sleep(LEAST_PAUSE)
        try:
            async with asyncio.timeout(seconds - LEAST_PAUSE):
                await self._wanted.wait()
        except TimeoutError:
            return


def _shown(address: SplitResult) -> str:
    return address.netloc.rpartition("@")[2] or address.path


def memory_facts(settings: SharedSection, seconds: float) -> object:
    """Return the memory section of INFO, for commands without an event loop. Return `None` if Redis does not reply
    within about `seconds`. This blocks."""
    from redis import Redis, RedisError

    try:
        with Redis.from_url(
            reveal(settings.redis), protocol=2, socket_timeout=seconds, socket_connect_timeout=seconds
        ) as redis:
            return redis.info("memory")
    except (RedisError, *LIBRARY_ERRORS):
        return None
