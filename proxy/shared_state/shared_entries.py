"""Entries that the processes at one Redis share by their owners, so that the next request may come to any: what models
thought, and stored responses.

A request waits for them briefly, and after a failure none waits for a while. What comes from there is read as something
that anybody may have written. Keys hold hashes, no names.
"""

import asyncio
import hashlib
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

WRITE_LIMIT: Final = 1.0
"""Seconds for a write, for which nobody has to wait."""

QUIET: Final = 2.0
"""Seconds without a command after one failed."""

AT_ONCE: Final = 8
"""Lookups of one kind that run at a time."""

PLACE_WAIT: Final = 0.05
"""Seconds for which a lookup waits for its place among them."""

TOGETHER: Final = 1024 * 1024
"""Bytes up to which writes of one owner that wait are sent as one command."""

OVERHEAD: Final = 512
"""Bytes that an entry counts besides its data."""

_TIME: Final = """\
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
"""

PUT: Final = f"""\
{_TIME}\
local function drop(names)
  for _, name in ipairs(names) do
    redis.call('DECRBY', KEYS[3], redis.call('HSTRLEN', KEYS[1], name) + ARGV[3])
    redis.call('HDEL', KEYS[1], name)
    redis.call('ZREM', KEYS[2], name)
  end
end
drop(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now - ARGV[1], 'LIMIT', 0, 1000))
for i = 4, #ARGV, 2 do
  if redis.call('HEXISTS', KEYS[1], ARGV[i]) == 1 then drop({{ARGV[i]}}) end
  redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
  redis.call('ZADD', KEYS[2], now, ARGV[i])
  redis.call('INCRBY', KEYS[3], #ARGV[i + 1] + ARGV[3])
end
while tonumber(redis.call('GET', KEYS[3])) > tonumber(ARGV[2]) do
  local oldest = redis.call('ZRANGE', KEYS[2], 0, 0)
  if #oldest == 0 then break end
  drop(oldest)
end
for i = 1, 3 do redis.call('PEXPIRE', KEYS[i], ARGV[1]) end
return 1
"""
"""Adds entries to those of their owner, and drops what is old or too much. A hash of entries, their times, their size.
An entry without data stands for one that was deleted."""

GET: Final = f"""\
{_TIME}\
local found, size = {{}}, 0
for i = 4, #ARGV do
  local used = redis.call('ZSCORE', KEYS[2], ARGV[i])
  found[i - 3] = false
  if used and tonumber(used) > now - ARGV[1] then
    local length = redis.call('HSTRLEN', KEYS[1], ARGV[i])
    if i - 3 > tonumber(ARGV[3]) then size = size + length end
    if size > tonumber(ARGV[2]) then break end
    if length == 0 or i - 3 > tonumber(ARGV[3]) then found[i - 3] = redis.call('HGET', KEYS[1], ARGV[i]) end
    redis.call('ZADD', KEYS[2], 'XX', now, ARGV[i])
  end
end
for i = 1, 3 do redis.call('PEXPIRE', KEYS[i], ARGV[1]) end
return found
"""
"""Returns entries in the order asked for, until they are too much, and keeps them on from now. Of the first so many
only whether they were deleted. A false ends no list: it stands for one not there."""

Command = Callable[[Sequence[str | bytes | int]], Awaitable[object]]
"""Sends a command. Raises ConnectionError, whatever is wrong."""


@dataclass(frozen=True, slots=True)
class EntryRules:
    """One kind of entries. `name` is part of their keys; each ends `seconds` after it was put or last used. Bytes: what
    those of one owner may take there (the oldest go first), what one lookup returns, and what may wait to be written.
    `patience` is how many seconds a request may wait for a lookup."""

    name: str
    seconds: float
    owner_bytes: int
    reply_bytes: int
    waiting_bytes: int
    patience: float


@dataclass(frozen=True, slots=True, eq=False)
class _Write:
    owner: str
    entries: dict[str, bytes]
    done: "asyncio.Future[bool]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    @property
    def size(self) -> int:
        return sum([OVERHEAD + len(data) for data in self.entries.values()])


class SharedEntries:
    """Writes entries of one kind and looks them up as long as `run` runs. `up` says whether Redis can be reached."""

    def __init__(self, command: Command, up: Callable[[], bool], prefix: str, rules: EntryRules) -> None:
        self._command = command
        self._up = up
        self._base = f"{prefix}:{rules.name}:1:"
        self._rules = rules
        self._milliseconds = round(1000 * rules.seconds)
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._clock = asyncio.get_running_loop().time
        self._quiet_until = 0.0
        self._waiting: deque[_Write] = deque()
        self._waiting_bytes = 0
        self._wanted = asyncio.Event()

    def put(self, owner: str, entries: Mapping[str, bytes]) -> "asyncio.Future[bool] | None":
        """Write entries soon, and return what becomes whether they were; None where they are not written, because too
        much waits to be. One without data stands for one that was deleted."""
        write = _Write(owner, dict(entries))
        if not self._reachable() or self._waiting_bytes + write.size > self._rules.waiting_bytes:
            return None
        self._waiting.append(write)
        self._waiting_bytes += write.size
        self._wanted.set()
        return write.done

    async def take(self, owner: str, wanted: Sequence[str], held: Sequence[str] = ()) -> dict[str, bytes] | None:
        """Return what is there of the wanted keys, those asked for first where it is too much, and which of those held
        here were deleted, without data. None where Redis does not answer in time."""
        if not self._reachable():
            return None
        names, rules = self._names(owner), self._rules
        limits = (self._milliseconds, rules.reply_bytes, len(held))
        try:
            async with asyncio.timeout(PLACE_WAIT):
                await self._slots.acquire()
        except TimeoutError:
            return None
        try:
            async with asyncio.timeout(rules.patience):
                reply = await self._command(("EVAL", GET, 3, *names, *limits, *held, *wanted))
        except (ConnectionError, TimeoutError):
            self._quiet_until = self._clock() + QUIET
            return None
        finally:
            self._slots.release()
        found = reply if isinstance(reply, list) else []
        return {key: data for key, data in zip((*held, *wanted), found, strict=False) if isinstance(data, bytes)}

    async def run(self) -> None:
        """Write entries until cancelled."""
        while True:
            await self._wanted.wait()
            if not self._waiting:
                self._wanted.clear()
                continue
            writes = self._next_writes()
            parts = [part for write in writes for entry in write.entries.items() for part in entry]
            limits = (self._milliseconds, self._rules.owner_bytes, OVERHEAD)
            written = True
            try:
                async with asyncio.timeout(WRITE_LIMIT):
                    await self._command(("EVAL", PUT, 3, *self._names(writes[0].owner), *limits, *parts))
            except (ConnectionError, TimeoutError):
                written = False
                self._quiet_until = self._clock() + QUIET
                writes += self._waiting
                self._waiting.clear()
                self._waiting_bytes = 0
            finally:
                _tell(writes, written)

    def _next_writes(self) -> list[_Write]:
        """Remove and return the writes that come next, all of one owner."""
        writes: list[_Write] = []
        size = 0
        while self._waiting and (not writes or (self._waiting[0].owner == writes[0].owner and size < TOGETHER)):
            writes.append(self._waiting.popleft())
            size += writes[-1].size
        self._waiting_bytes -= size
        return writes

    def _reachable(self) -> bool:
        return self._up() and self._clock() >= self._quiet_until

    def _names(self, owner: str) -> tuple[str, str, str]:
        """Return the owner's three keys; the braces keep them on one node of a cluster."""
        hashed = hashlib.sha256(owner.encode()).hexdigest()[:32]
        base = f"{self._base}{{{hashed}}}"
        return f"{base}:turns", f"{base}:times", f"{base}:size"


def _tell(writes: Sequence[_Write], written: bool) -> None:
    for write in writes:
        if not write.done.done():
            write.done.set_result(written)
