"""Entries that the processes at one Redis share by their owners, so that the next request may come to any: what models
thought, and stored responses.

A request waits for them briefly. After a failure of the link none waits for a while, and after a slow command none of
the same owner: one whose entries are large holds nobody else up. What comes from there is read as something that
anybody may have written. Keys hold hashes, no names.
"""

import asyncio
import hashlib
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from proxy.bounded_dict import BoundedDict

WRITE_LIMIT: Final = 1.0
"""Seconds for a write, for which nobody has to wait."""

QUIET: Final = 2.0
"""Seconds without a command after one failed."""

AT_ONCE: Final = 8
"""Lookups of one kind that run at a time for one owner."""

PLACE_WAIT: Final = 0.05
"""Seconds for which a lookup waits for its place among them."""

OWNERS_REMEMBERED: Final = 1024
"""Owners of slow commands that are remembered."""

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
    those of one owner may take there (the oldest go first), what one lookup returns, and what may wait to be written,
    of one owner half of it. `patience` is how many seconds a request may wait for a lookup."""

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
        self._places: dict[str, asyncio.Semaphore] = {}
        self._asking: Counter[str] = Counter()
        self._clock = asyncio.get_running_loop().time
        self._quiet_until = 0.0
        self._slow_until: BoundedDict[str, float] = BoundedDict(OWNERS_REMEMBERED)
        self._waiting: deque[_Write] = deque()
        self._waiting_bytes = 0
        self._waiting_of: Counter[str] = Counter()
        self._wanted = asyncio.Event()

    def put(self, owner: str, entries: Mapping[str, bytes]) -> "asyncio.Future[bool] | None":
        """Write entries soon, and return what becomes whether they were; None where they are not written, because too
        much waits to be. One without data stands for one that was deleted."""
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
        """Return what is there of the wanted keys, those asked for first where it is too much, and which of those held
        here were deleted, without data. None where Redis does not answer in time."""
        if not self._reachable(owner) or not await self._take_place(owner):
            return None
        limits = (self._milliseconds, self._rules.reply_bytes, len(held))
        try:
            parts: tuple[str | int, ...] = ("EVAL", GET, 3, *self._names(owner), *limits, *held, *wanted)
            reply = await self._send(owner, parts, self._rules.patience)
        except ConnectionError:
            return None
        finally:
            self._leave_place(owner)
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
                _tell(writes, written)

    async def _write(self, writes: Sequence[_Write]) -> bool:
        """Send writes of one owner, and return whether they arrived. Where the link failed, give up those behind."""
        owner = writes[0].owner
        parts = [part for write in writes for entry in write.entries.items() for part in entry]
        limits = (self._milliseconds, self._rules.owner_bytes, OVERHEAD)
        try:
            if self._reachable(owner):
                await self._send(owner, ("EVAL", PUT, 3, *self._names(owner), *limits, *parts), WRITE_LIMIT)
                return True
        except ConnectionError:
            pass
        if not self._reachable(""):
            _tell(self._waiting, False)
            self._waiting.clear()
            self._waiting_of.clear()
            self._waiting_bytes = 0
        return False

    async def _send(self, owner: str, parts: Sequence[str | bytes | int], seconds: float) -> object:
        """Send a command and return its reply. Raises ConnectionError where there is none in time."""
        try:
            async with asyncio.timeout(seconds):
                return await self._command(parts)
        except TimeoutError:
            self._slow_until[owner] = self._clock() + QUIET
            raise ConnectionError("no answer in time") from None
        except ConnectionError:
            self._quiet_until = self._clock() + QUIET
            raise

    def _next_writes(self) -> list[_Write]:
        """Remove and return the writes that come next, all of one owner."""
        owner = self._waiting[0].owner
        writes: list[_Write] = []
        size = 0
        while self._waiting and self._waiting[0].owner == owner and (not writes or size < TOGETHER):
            writes.append(self._waiting.popleft())
            size += writes[-1].size
        self._waiting_bytes -= size
        _subtract(self._waiting_of, owner, size)
        return writes

    async def _take_place(self, owner: str) -> bool:
        """Wait briefly for a place among the owner's lookups, and return whether there is one."""
        places = self._places.setdefault(owner, asyncio.Semaphore(AT_ONCE))
        self._asking[owner] += 1
        taken = False
        try:
            async with asyncio.timeout(PLACE_WAIT):
                taken = await places.acquire()
        except TimeoutError:
            return False
        finally:
            if not taken:
                self._ask_no_more(owner)
        return True

    def _leave_place(self, owner: str) -> None:
        self._places[owner].release()
        self._ask_no_more(owner)

    def _ask_no_more(self, owner: str) -> None:
        if not _subtract(self._asking, owner, 1):
            del self._places[owner]

    def _reachable(self, owner: str) -> bool:
        now = self._clock()
        return self._up() and now >= self._quiet_until and now >= self._slow_until.get(owner, 0.0)

    def _names(self, owner: str) -> tuple[str, str, str]:
        """Return the owner's three keys; the braces keep them on one node of a cluster."""
        hashed = hashlib.sha256(owner.encode()).hexdigest()[:32]
        base = f"{self._base}{{{hashed}}}"
        return f"{base}:turns", f"{base}:times", f"{base}:size"


def _tell(writes: Iterable[_Write], written: bool) -> None:
    for write in writes:
        if not write.done.done():
            write.done.set_result(written)


def _subtract(counts: Counter[str], owner: str, amount: int) -> int:
    """Subtract from what is counted for an owner, and return what is left; nothing left is not kept."""
    counts[owner] -= amount
    return counts[owner] or counts.pop(owner)
