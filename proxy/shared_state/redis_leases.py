"""Leases from Redis: the processes at one Redis count rates, places and spending together, by its clock.

One script in one call, which takes 15 us of Redis for an entry and 0.5 ms for fifty. Keys hold hashes, no names, and
all have one hash tag, so that a call stays on one node of a cluster. Each key is a hash with one field for each process
that lapses by itself: what a process that died held comes back without anybody's help.
`proxy/limits/lease_counter.py` is the same arithmetic in Python.
"""

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from proxy.shared_state.answer_within import answer_within
from proxy.shared_state.lease import LeaseAsk, LeaseGrant, arguments, read_reply

LIMIT: Final = 0.05
"""Seconds for an exchange; without an answer the process goes on alone."""

SCRIPT: Final = """\
local time = redis.call('TIME')
local now = (time[1] - 1767225600) * 1000000 + time[2]
local me = 'p:' .. ARGV[1]
local out = {}
local function text(number) return string.format('%.17g', number) end
local function reply(a, b, c, d)
  for _, each in ipairs({a, b, c, d}) do out[#out + 1] = text(each) end
end
local function number(word)
  local value = tonumber(word)
  if value and value == value and math.abs(value) <= 1e15 then return value end
end
local function read(key, longest)
  local size = redis.pcall('HLEN', key)
  if type(size) ~= 'number' or size > 4096 then return nil end
  local seen = {sum = 0, count = 1}
  local all = redis.call('HGETALL', key)
  for i = 1, #all, 2 do
    local name, value = all[i], all[i + 1]
    if name == 't' or name == 'n' then
      seen[name] = number(value)
    else
      local amount, at = string.match(value, '^([^,]+),([^,]+)$')
      amount, at = number(amount), number(at)
      if not (amount and at and amount >= 0) or math.abs(now - at) > longest then
        redis.call('HDEL', key, name)
      elseif name == me then
        seen.last = at
      else
        seen.sum, seen.count = seen.sum + amount, seen.count + 1
      end
    end
  end
  return seen
end
local function write(key, amount, milliseconds)
  if amount == 0 then redis.call('HDEL', key, me) else redis.call('HSET', key, me, text(amount) .. ',' .. text(now)) end
  redis.call('PEXPIRE', key, milliseconds)
end
local function part(own, sum, count)
  if sum > 0 then return 0.9 * own / sum + 0.1 / count end
  return 1 / count
end
local function rate(key, rate, burst, want, least, back, demand)
  local seen = read(key, 3000000)
  if not seen then return reply(-1, 0, 0, 0) end
  local unit = 1000000 / rate
  local ahead = burst * unit
  local t = seen.t or now
  if seen.n and seen.n > now then t = t - (seen.n - now) end
  t = math.min(t, now + 11 * ahead)
  if back < 0 then t = math.max(t, now) end
  t = t - back * unit
  local base = math.max(t, now)
  local left = math.floor((now + ahead - base) / unit + 0.000001)
  local sum = seen.sum + demand
  local share = part(demand, sum, seen.count)
  local granted = math.max(0, math.min(want, left))
  if left < 0.05 * sum then
    local since = math.max(0, now - (seen.last or now - 20000)) / 1000000
    granted = math.min(granted, math.max(1, least, math.ceil(share * rate * since)))
  end
  if granted < least then granted = 0 end
  if granted > 0 then t = base + granted * unit end
  redis.call('HSET', key, 't', text(t), 'n', text(now))
  write(key, demand, math.ceil(math.max(ahead, t - now) / 1000) + 60000)
  reply(granted, left - granted, share, seen.count)
end
local function places(key, capacity, held, want)
  local seen = read(key, 10000000)
  if not seen then return reply(-1, 0, 0, 0) end
  local granted = math.max(0, math.min(want, capacity - seen.sum - held))
  write(key, held + granted, 20000)
  local sum = seen.sum + held + granted
  reply(granted, sum, part(held + granted, sum, seen.count), seen.count)
end
local function spent(key, amount)
  local seen = read(key, 10000000)
  if not seen then return reply(-1, 0, 0, 0) end
  write(key, amount, 20000)
  reply(0, seen.sum, 1, seen.count)
end
local kinds = {r = rate, c = places, s = spent}
for i, key in ipairs(KEYS) do
  local at = 2 + (i - 1) * 7
  local given = {}
  for j = 1, 6 do given[j] = tonumber(ARGV[at + j]) end
  kinds[ARGV[at]](key, unpack(given))
end
return out
"""
"""Times are microseconds since the beginning of 2026: a number of Lua holds them to a small part of one. `t` is when
all that was granted is paid for, `n` when that was written: where the clock of Redis steps back, both go back too."""

SHA: Final = hashlib.sha1(SCRIPT.encode(), usedforsecurity=False).hexdigest()
"""The name by which Redis remembers a script."""


@dataclass(frozen=True, slots=True)
class RedisLeases:
    """Counts in Redis. `run_script` sends a script by its name, or whole where Redis does not know it, and raises
    ConnectionError where there is no answer. `process` is this process's name among all, and means nothing else."""

    run_script: Callable[[str, str, Sequence[str], Sequence[str]], Awaitable[object]]
    prefix: str
    process: str

    async def exchange(self, asks: Sequence[LeaseAsk]) -> Sequence[LeaseGrant | None]:
        """Exchange entries within LIMIT."""
        keys = [f"{{{self.prefix}}}:lim:1:{_hashed(ask.key)}" for ask in asks]
        words = [self.process, *arguments(asks)]
        try:
            reply = await answer_within(LIMIT, self.run_script(SHA, SCRIPT, keys, words))
        except TimeoutError:
            raise ConnectionError("no answer in time") from None
        return read_reply(reply, asks)


@lru_cache(maxsize=65_536)
def _hashed(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:32]
