"""Entries that the processes at one Redis share, so that any of the processes may receive the next request. The entries
are the reasoning of models, and stored responses. Each entry has an owner.

A request waits only briefly for entries. For a while after a failure of the link no request waits at all. For a while
after a slow command no request of the same owner waits, so an owner with large entries delays no other owner. Replies
are checked like untrusted data, because any client of the Redis may have changed them. Keys contain hashes, no names.
"""

import asyncio
import hashlib
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from proxy.bounded_dict import BoundedDict

WRITE_TIMEOUT: Final = 1.0
"""The most seconds for a write. No request waits for a write."""

QUIET_SECONDS: Final = 2.0
"""Seconds for which no command is sent after a command failed."""

LOOKUP_SLOTS: Final = 8
"""The most lookups of one kind that run at a time for one owner."""

SLOT_WAIT: Final = 0.05
"""The most seconds for which a lookup waits for a slot among LOOKUP_SLOTS."""

OWNERS_REMEMBERED: Final = 1024
"""The most owners of slow commands that are remembered."""

BATCH_BYTES: Final = 1024 * 1024
"""The most bytes of waiting writes of one owner that are sent as one command."""

OVERHEAD: Final = 512
"""The bytes that are counted for an entry in addition to its data."""

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
"""Adds entries of an owner, and drops old entries and the oldest entries beyond the size limit. The script's keys are a
hash of the entries, their times, and their total size. An entry without data stands for a deleted one."""

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
"""Returns entries in the requested order up to the size limit, and lets their lifetime begin again. For the first
`ARGV[3]` entries it returns only whether they were deleted. `false` stands for a missing entry and does not end the
list."""

Command = Callable[[Sequence[str | bytes | int]], Awaitable[object]]
"""A function that sends a command. It raises ConnectionError for any failure."""


@dataclass(frozen=True, slots=True)
class EntryRules:
    """The rules of one kind of entries. `name` is part of their keys. Each ends `seconds` after it was written or last
    used. In bytes: `owner_bytes` is the most stored for one owner (the oldest go first), `reply_bytes` the most of one
    lookup, and `waiting_bytes` the most that waits to be written, half of it for one owner. `patience` is how many
    seconds a request may wait for a lookup."""

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
    """Writes and looks up entries of one kind while `run` runs. `up` returns whether Redis can be reached."""

    def __init__(self, command: Command, up: Callable[[], bool], prefix: str, rules: EntryRules) -> None:
        self._command = command
        self._up = up
        self._base = f"{prefix}:{rules.name}:1:"
        self._rules = rules
        self._milliseconds = round(1000 * rules.seconds)
        self._slots: dict[str, asyncio.Semaphore] = {}
        self._lookups: Counter[str] = Counter()
        self._clock = asyncio.get_running_loop().time
        self._quiet_until = 0.0
        self._slow_until: BoundedDict[str, float] = BoundedDict(OWNERS_REMEMBERED)
        self._waiting: deque[_Write] = deque()
        self._waiting_bytes = 0
        self._waiting_of: Counter[str] = Counter()
        self._wanted = asyncio.Event()

    def put(self, owner: str, entries: Mapping[str, bytes]) -> "asyncio.Future[bool] | None":
        """Write entries soon. Return a future whose result is whether they were written; `None` if they are not written
        because too many bytes wait or Redis cannot be reached. An entry without data stands for a deleted one."""
        write, most = _Write(owner, dict(entries)), self._rules.waiting_bytes
        size = write.size
        full = self._waiting_bytes + size > most or self._waiting_of[owner] + size > most // 2
        if full or not self._reachable(owner):
            return None
        self._waiting.append(write)
        self._waiting_bytes += size
        self._waiting_of[owner] += size
        self._wanted.set()
        return write.done

    async def take(self, owner: str, wanted: Sequence[str], held: Sequence[str] = ()) -> dict[str, bytes] | None:
        """Return the stored entries of the wanted keys; if they are too large together, return only the first entries.
        Also return the keys of `held` that were deleted, without data. Return `None` if Redis does not reply in
        time."""
        if not self._reachable(owner) or not await self._take_slot(owner):
            return None
        limits = (self._milliseconds, self._rules.reply_bytes, len(held))
        try:
            parts: tuple[str | int, ...] = ("EVAL", GET, 3, *self._names(owner), *limits, *held, *wanted)
            reply = await self._send(owner, parts, self._rules.patience)
        except ConnectionError:
            return None
        finally:
            self._leave_slot(owner)
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
            written = False
            try:
                written = await self._write(writes)
            finally:
                _resolve(writes, written)

    async def _write(self, writes: Sequence[_Write]) -> bool:
        """Send writes of one owner, and return whether they arrived. If the link failed, give up the waiting writes."""
        owner = writes[0].owner
        parts = [part for write in writes for entry in write.entries.items() for part in entry]
        limits = (self._milliseconds, self._rules.owner_bytes, OVERHEAD)
        try:
            if self._reachable(owner):
                await self._send(owner, ("EVAL", PUT, 3, *self._names(owner), *limits, *parts), WRITE_TIMEOUT)
                return True
        except ConnectionError:
            pass
        if not self._reachable(""):
            _resolve(self._waiting, False)
            self._waiting.clear()
            self._waiting_of.clear()
            self._waiting_bytes = 0
        return False

    async def _send(self, owner: str, parts: Sequence[str | bytes | int], seconds: float) -> object:
        """Send a command and return its reply. Raises ConnectionError if there is no reply in time."""
        try:
            async with asyncio.timeout(seconds):
                return await self._command(parts)
        except TimeoutError:
            self._slow_until[owner] = self._clock() + QUIET_SECONDS
            raise ConnectionError("no reply in time") from None
        except ConnectionError:
            self._quiet_until = self._clock() + QUIET_SECONDS
            raise

    def _next_writes(self) -> list[_Write]:
        """Remove and return the next writes, all of one owner."""
        owner = self._waiting[0].owner
        writes: list[_Write] = []
        size = 0
        while self._waiting and self._waiting[0].owner == owner and (not writes or size < BATCH_BYTES):
            writes.append(self._waiting.popleft())
            size += writes[-1].size
        self._waiting_bytes -= size
        _subtract(self._waiting_of, owner, size)
        return writes

    async def _take_slot(self, owner: str) -> bool:
        """Wait briefly for a slot among the owner's lookups, and return whether there is one."""
        places = self._slots.setdefault(owner, asyncio.Semaphore(LOOKUP_SLOTS))
        self._lookups[owner] += 1
        taken = False
        try:
            async with asyncio.timeout(SLOT_WAIT):
                taken = await places.acquire()
        except TimeoutError:
            return False
        finally:
            if not taken:
                self._end_lookup(owner)
        return True

    def _leave_slot(self, owner: str) -> None:
        self._slots[owner].release()
        self._end_lookup(owner)

    def _end_lookup(self, owner: str) -> None:
        if not _subtract(self._lookups, owner, 1):
            del self._slots[owner]

    def _reachable(self, owner: str) -> bool:
        now = self._clock()
        return self._up() and now >= self._quiet_until and now >= self._slow_until.get(owner, 0.0)

    def _names(self, owner: str) -> tuple[str, str, str]:
        """Return the owner's three keys. The braces put them on one node of a cluster."""
        hashed = hashlib.sha256(owner.encode()).hexdigest()[:32]
        base = f"{self._base}{{{hashed}}}"
        return f"{base}:turns", f"{base}:times", f"{base}:size"


def _resolve(writes: Iterable[_Write], written: bool) -> None:
    for write in writes:
        if not write.done.done():
            write.done.set_result(written)


def _subtract(counts: Counter[str], owner: str, amount: int) -> int:
    """Subtract from an owner's count, and return the rest. A count of 0 is removed."""
    counts[owner] -= amount
    return counts[owner] or counts.pop(owner)
