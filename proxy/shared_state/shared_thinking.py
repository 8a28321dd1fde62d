"""The thinking of turns that called tools, shared by the processes at one Redis, so that the next turn may come to any.

A request waits for it at most LIMIT, and after a failure none waits for a while. What comes from there is read as
something that anybody may have written. Keys hold hashes, no names.
"""

import asyncio
import hashlib
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

LIMIT: Final = 0.05
"""Seconds that a request may wait for a lookup."""

WRITE_LIMIT: Final = 1.0
"""Seconds for a write, for which nobody waits."""

QUIET: Final = 2.0
"""Seconds without a command after one failed."""

AT_ONCE: Final = 8
"""Lookups that run at a time; further requests do without."""

OWNER_BYTES: Final = 16 * 1024 * 1024
"""What the turns of one owner may take there; the oldest go first."""

REPLY_BYTES: Final = 4 * 1024 * 1024
"""What one lookup returns at most."""

WAITING_BYTES: Final = 8 * 1024 * 1024
"""What may wait to be written; further turns stay in this process alone."""

OVERHEAD: Final = 512
"""Bytes that a turn counts besides its data."""

PUT: Final = """\
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function drop(names)
  for _, name in ipairs(names) do
    redis.call('DECRBY', KEYS[3], redis.call('HSTRLEN', KEYS[1], name) + ARGV[5])
    redis.call('HDEL', KEYS[1], name)
    redis.call('ZREM', KEYS[2], name)
  end
end
drop(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now - ARGV[3]))
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then drop({ARGV[1]}) end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('ZADD', KEYS[2], now, ARGV[1])
local size = redis.call('INCRBY', KEYS[3], #ARGV[2] + ARGV[5])
while size > tonumber(ARGV[4]) do
  local oldest = redis.call('ZRANGE', KEYS[2], 0, 0)
  if #oldest == 0 then break end
  drop(oldest)
  size = tonumber(redis.call('GET', KEYS[3]))
end
for i = 1, 3 do redis.call('PEXPIRE', KEYS[i], ARGV[3]) end
return 1
"""
"""Adds a turn to those of its owner, and drops what is old or too much. A hash of turns, their times, their size."""

GET: Final = """\
local found, size = {}, 0
for i = 2, #ARGV do
  size = size + redis.call('HSTRLEN', KEYS[1], ARGV[i])
  if size > tonumber(ARGV[1]) then break end
  found[i - 1] = redis.call('HGET', KEYS[1], ARGV[i])
end
return found
"""
"""Returns turns in the order asked for, until they are too much. A false ends no list: it stands for one not there."""

Command = Callable[[Sequence[str | bytes | int]], Awaitable[object]]
"""Sends a command. Raises ConnectionError, whatever is wrong."""


class SharedThinking:
    """Writes turns and looks them up as long as `run` runs. `up` says whether Redis can be reached."""

    def __init__(self, command: Command, up: Callable[[], bool], prefix: str, seconds: float) -> None:
        self._command = command
        self._up = up
        self._prefix = prefix
        self._milliseconds = round(1000 * seconds)
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._clock = asyncio.get_running_loop().time
        self._quiet_until = 0.0
        self._waiting: deque[tuple[str, str, bytes]] = deque()
        self._waiting_bytes = 0
        self._wanted = asyncio.Event()

    def put(self, owner: str, key: str, data: bytes) -> None:
        """Write a turn soon; not where too much waits to be written."""
        size = OVERHEAD + len(data)
        if not self._reachable() or self._waiting_bytes + size > WAITING_BYTES:
            return
        self._waiting.append((owner, key, data))
        self._waiting_bytes += size
        self._wanted.set()

    async def take(self, owner: str, keys: Sequence[str]) -> dict[str, bytes]:
        """Return what is there of these keys, those asked for first where it is too much; nothing where Redis does not
        answer in time."""
        if not self._reachable() or self._slots.locked():
            return {}
        names = self._names(owner)
        async with self._slots:
            try:
                async with asyncio.timeout(LIMIT):
                    reply = await self._command(("EVAL", GET, 1, names[0], REPLY_BYTES, *keys))
            except (ConnectionError, TimeoutError):
                self._quiet_until = self._clock() + QUIET
                return {}
        found = reply if isinstance(reply, list) else []
        return {key: data for key, data in zip(keys, found, strict=False) if isinstance(data, bytes)}

    async def run(self) -> None:
        """Write turns until cancelled."""
        while True:
            await self._wanted.wait()
            if not self._waiting:
                self._wanted.clear()
                continue
            owner, key, data = self._waiting.popleft()
            self._waiting_bytes -= OVERHEAD + len(data)
            limits = (self._milliseconds, OWNER_BYTES, OVERHEAD)
            try:
                async with asyncio.timeout(WRITE_LIMIT):
                    await self._command(("EVAL", PUT, 3, *self._names(owner), key, data, *limits))
            except (ConnectionError, TimeoutError):
                self._quiet_until = self._clock() + QUIET
                self._waiting.clear()
                self._waiting_bytes = 0

    def _reachable(self) -> bool:
        return self._up() and self._clock() >= self._quiet_until

    def _names(self, owner: str) -> tuple[str, str, str]:
        """Return the owner's three keys; the braces keep them on one node of a cluster."""
        hashed = hashlib.sha256(owner.encode()).hexdigest()[:32]
        base = f"{self._prefix}:thinking:1:{{{hashed}}}"
        return f"{base}:turns", f"{base}:times", f"{base}:size"
